"""What lowering asks of a target: sizes, element types, and modelled cycles for choosing between tilings."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf
from typing import TYPE_CHECKING

from compiler.ops.work import Apply, Arg, Expression
from compiler.targets.array import matmul_cycles
from compiler.targets.functions import body_functions, function_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler.ir import ElementType
    from compiler.targets.schema import Dataflow, Target

_BYTE = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """A target as lowering sees it. Cycles here only rank choices; the simulator's are the result.

    ``overlaps``: its engines work at the same time.
    """

    target: Target
    overlaps: bool = True
    known: dict[tuple[object, ...], tuple[Dataflow, int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rows(self) -> int:
        """Rows of the matrix array."""
        return self.target.matrix.rows

    @property
    def columns(self) -> int:
        """Columns of the matrix array."""
        return self.target.matrix.columns

    @property
    def sram_bytes(self) -> int:
        """Size of the scratchpad."""
        return self.target.sram.bytes

    @property
    def latency(self) -> int:
        """Cycles of an empty DMA transfer."""
        return self.target.dram.latency_cycles

    @property
    def burst(self) -> int:
        """Bytes that the DRAM moves at least."""
        return self.target.dram.burst_bytes

    @property
    def bytes_per_cycle(self) -> float:
        """DRAM bandwidth, at most a number that keeps costs finite."""
        bandwidth = self.target.dram.bytes_per_cycle
        return bandwidth if bandwidth != inf else 1e12

    def computes(self, element: ElementType) -> bool:
        """Whether the vector unit takes tensors of this type (those of whole bytes)."""
        return element.bits >= _BYTE and self.target.supports(element)

    def may_compute(self, element: ElementType) -> bool:
        """Whether the vector unit takes this type at least inside a program."""
        return element.bits >= _BYTE and element in self.target.vector.allowed

    def accumulator(self, a: ElementType, b: ElementType) -> ElementType | None:
        """The type in which the matrix array sums products of these, or None."""
        product = self.target.matrix.product(a, b)
        return None if product is None else product.accumulator

    def matrix_cycles(self, factors: tuple[ElementType, ElementType], batch: int, m: int, n: int, k: int) -> int:
        """Stall-free cycles of ``batch`` products on the array, for factors of types that it takes."""
        return self.best_dataflow(factors, batch, m, n, k)[1]

    def best_dataflow(
        self, factors: tuple[ElementType, ElementType], batch: int, m: int, n: int, k: int
    ) -> tuple[Dataflow, int]:
        """The dataflow of the array that takes least cycles for such products (its own among equals), and these."""
        key = (factors, batch, m, n, k)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._best_dataflow(factors, batch, m, n, k)
        return found

    def _best_dataflow(
        self, factors: tuple[ElementType, ElementType], batch: int, m: int, n: int, k: int
    ) -> tuple[Dataflow, int]:
        matrix = self.target.matrix
        product = matrix.product(*factors)
        depth = 1 if product is None else product.depth
        flows = [
            (matmul_cycles(matrix, m, n, k, batch=batch, depth=depth, dataflow=flow), flow) for flow in matrix.dataflows
        ]
        cycles, flow = min(flows, key=lambda pair: pair[0])
        return flow, cycles

    def asked(self, flow: Dataflow) -> Dataflow | None:
        """How an instruction asks for a dataflow: not at all for the array's own."""
        return None if flow is self.target.matrix.dataflow else flow

    def vector_cycles(self, points: int, cycles: int = 1) -> float:
        """Cycles of one vector instruction over so many points, each of so many cycles."""
        unit = self.target.vector
        return unit.cycles.start + ceil(points / unit.lanes) * cycles

    def body_cycles(self, body: Expression, *, combines: bool = False) -> int:
        """Cycles of a body at one point of each lane, with the combiner's; moving an element takes one."""
        cycles = self.target.vector.cycles
        total = sum(function_cycles(node.function, cycles) for node in body_functions(body))
        return max(total + (cycles.simple if combines else 0), 1)


def elements_of(expression: Expression) -> Iterator[ElementType]:
    """The element types that a body computes in (arguments included)."""
    yield expression.element
    if isinstance(expression, Apply):
        for operand in expression.operands:
            yield from elements_of(operand)


def arguments_of(expression: Expression) -> Iterator[int]:
    """Numbers of the arguments that a body reads."""
    if isinstance(expression, Arg):
        yield expression.index
    elif isinstance(expression, Apply):
        for operand in expression.operands:
            yield from arguments_of(operand)
