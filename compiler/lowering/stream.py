"""The instruction stream of one program: numbers, waits, kernels, DRAM buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.ir import Constant, Op, Value
from compiler.ir.location import Location
from compiler.lowering.memory import Hazards, Space, Span, span_of
from compiler.lowering.tiling import product
from compiler.program.executable import Buffer, Kernel, Role
from compiler.program.instructions import Address, Engine, Instruction, Matmul, Memory, Operand, Region, Transfer, Vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import ElementType, TensorType
    from compiler.ops.work import Combiner, Expression


def dense_strides(type_: TensorType) -> tuple[int, ...]:
    """Byte strides of a dense row-major tensor."""
    strides, step = [], type_.element.bits // 8
    for size in reversed(type_.shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def row_major(extents: Sequence[int], element: ElementType) -> tuple[int, ...]:
    """Byte strides of dense row-major loops."""
    strides, step = [], element.bits // 8
    for extent in reversed(extents):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def region(memory: Memory, base: int, element: ElementType, strides: Sequence[int]) -> Region:
    """A region at a fixed address."""
    return Region(memory, Address(base), element, tuple(strides))


@dataclass(slots=True)
class _KernelNotes:
    ops: tuple[Op, ...]
    macs: int = 0
    operations: int = 0
    compulsory: int = 0


@dataclass(slots=True)
class Stream:
    """Collects instructions in program order. Every instruction gets a number, its kernel and its waits."""

    steps: list[Instruction] = field(default_factory=list)
    buffers: dict[Value, Buffer] = field(default_factory=dict)
    dram: Space = field(default_factory=lambda: Space(None))
    _hazards: Hazards = field(default_factory=Hazards)
    _kernels: list[_KernelNotes] = field(default_factory=list)

    def begin_kernel(self, ops: tuple[Op, ...]) -> None:
        """Instructions from here on belong to a new kernel."""
        self._kernels.append(_KernelNotes(ops))

    def count(self, *, macs: int = 0, operations: int = 0, compulsory: int = 0) -> None:
        """Add to the current kernel's least cost."""
        notes = self._kernels[-1]
        notes.macs += macs
        notes.operations += operations
        notes.compulsory += compulsory

    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, named after their operators."""
        found = []
        for notes in self._kernels:
            names = tuple(op.name for op in dict.fromkeys(notes.ops))
            location = Location().fused(*(op.location for op in notes.ops))
            found.append(Kernel("+".join(names), names, location, notes.macs, notes.operations, notes.compulsory))
        return tuple(found)

    def buffer(self, value: Value, role: Role, constant: Constant | None = None) -> Buffer:
        """The DRAM buffer of a value, made when first asked for."""
        found = self.buffers.get(value)
        if found is None:
            address = self.dram.allocate(value.tensor.nbytes)
            assert address is not None
            name = f"{role.value}{len(self.buffers)}"
            found = Buffer(name, address, value.tensor, role, constant)
            self.buffers[value] = found
        return found

    def transfer(self, extents: Sequence[int], source: Operand, destination: Operand) -> None:
        """A copy between the memories."""
        if not product(extents):
            return
        number, kernel = len(self.steps), len(self._kernels) - 1
        made = Transfer(number, kernel, tuple(extents), source, destination)
        reads = [span_of(source, extents), *self._tables(source, extents), *self._tables(destination, extents)]
        waits = self._hazards.order(number, made.engine, reads, [span_of(destination, extents)])
        self.steps.append(Transfer(number, kernel, tuple(extents), source, destination, waits))

    def vector(
        self,
        extents: Sequence[int],
        inputs: Sequence[Operand],
        body: Expression,
        out: Operand,
        *,
        reduced: int = 0,
        combiner: Combiner | None = None,
        initial: bool | int | float | None = None,
        accumulate: ElementType | None = None,
        scan: bool = False,
        origin: Sequence[int] = (),
    ) -> None:
        """A vector instruction; the operands' strides cover ``extents`` (the output's: see :class:`Vector`)."""
        number, kernel = len(self.steps), len(self._kernels) - 1
        leading = tuple(extents) if scan or not reduced else tuple(extents[:-reduced])
        reads = [span_of(operand, extents) for operand in inputs]
        for operand in inputs:
            reads += self._tables(operand, extents)
        reads += self._tables(out, leading)
        written = span_of(out, leading)
        if out.lookups or (combiner is not None and initial is None):
            reads.append(written)
        waits = self._hazards.order(number, Engine.VECTOR, reads, [written])
        self.steps.append(
            Vector(
                number, kernel, tuple(extents), tuple(inputs), body, out, reduced, combiner, initial, accumulate, scan,
                tuple(Address(start) for start in origin), waits,
            )
        )  # fmt: skip

    def matmul(
        self, groups: Sequence[Sequence[int]], a: Region, b: Region, out: Region, *, accumulate: bool
    ) -> None:
        """A pass of the matrix array; ``groups`` are the extents of batch, m, n and k."""
        batch, m, n, k = (tuple(group) for group in groups)
        number, kernel = len(self.steps), len(self._kernels) - 1
        reads = [span_of(Operand(a), batch + m + k), span_of(Operand(b), batch + k + n)]
        written = span_of(Operand(out), batch + m + n)
        if accumulate:
            reads.append(written)
        waits = self._hazards.order(number, Engine.MATRIX, reads, [written])
        self.steps.append(Matmul(number, kernel, batch, m, n, k, a, b, out, accumulate, waits))

    @staticmethod
    def _tables(operand: Operand, extents: Sequence[int]) -> list[Span]:
        return [span_of(Operand(lookup.index), extents) for lookup in operand.lookups]
