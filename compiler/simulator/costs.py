"""What one instance of an instruction costs: cycles, bytes and energy. Nothing here depends on data or addresses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidProgram
from compiler.program.addresses import describe, distinct_bytes, in_bytes, touches
from compiler.program.instructions import Engine, Matmul, Memory, Transfer, Vector
from compiler.simulator.functions import FUNCTIONS
from compiler.targets import Dataflow
from compiler.targets.array import matmul_cycles
from compiler.targets.functions import body_functions, function_cycles

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import ElementType
    from compiler.program.instructions import Instruction, Region
    from compiler.targets import Matrix, Target

COMPONENTS: Final = ("matrix", "vector", "sram", "dram")
"""Where energy goes."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one instance. ``energy`` is picojoules by component, in the order of ``COMPONENTS``.

    ``beats``: of a transfer's cycles, those in which it has the DRAM to itself; the rest is latency.
    ``dram_read`` and ``dram_written`` are the bytes asked for, ``bus_bytes`` the whole bursts that they lie in.
    ``full_cycles``: what the multiply-accumulates would take with every cell of the array at work.
    """

    engine: Engine
    cycles: int
    beats: int = 0
    dram_read: int = 0
    dram_written: int = 0
    macs: int = 0
    full_cycles: float = 0.0
    energy: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    bus_bytes: int = 0


def matmul_sram(
    matrix: Matrix, m: int, n: int, k: int, *, accumulate: bool, dataflow: Dataflow | None = None
) -> tuple[int, int, int, int]:
    """Elements of a and b read from SRAM, and of the result read back and written, in a dataflow (None: its own).

    Of pruned weights what is left is read; of ``a`` all is, each group's cells taking from it what they need.
    """
    kept = k if matrix.pruned is None else matrix.pruned.length(k)
    across, down, deep = math.ceil(n / matrix.columns), math.ceil(m / matrix.rows), math.ceil(kept / matrix.rows)
    wide = math.ceil(m / matrix.columns)
    again = 1 if accumulate else 0
    table = {
        Dataflow.OUTPUT_STATIONARY: (m * k * across, kept * n * down, m * n * again, m * n),
        Dataflow.WEIGHT_STATIONARY: (m * k * across, kept * n, m * n * (deep - 1 + again), m * n * deep),
        Dataflow.INPUT_STATIONARY: (m * k, kept * n * wide, m * n * (deep - 1 + again), m * n * deep),
    }
    return table[dataflow or matrix.dataflow]


def _bytes(elements: int, element: ElementType) -> float:
    return elements * element.bits / 8


class Costs:
    """Charges for a target. ``free_transfers``: DMA takes no time (infinite bandwidth, no latency)."""

    def __init__(self, target: Target, *, free_transfers: bool = False) -> None:
        self.target = target
        self.free_transfers = free_transfers

    def charge(self, instruction: Instruction, program: str = "") -> Charge:
        """The cost of one instance. Raises InvalidProgram for a type that the target's engines lack."""
        return _CHARGES[type(instruction)](self, instruction, describe(instruction, program))

    def transfer(self, instruction: Transfer, who: str) -> Charge:  # noqa: ARG002 - the interface
        """Latency + ceil(bytes on the bus / bandwidth): DRAM moves whole bursts, whatever of them is needed."""
        dram = bus = 0
        for operand in (instruction.source, instruction.destination):
            if operand.region.memory is Memory.DRAM:
                dram = self._moved(operand.region, instruction)
                bus = _bus_bytes(operand.region, instruction.extents, dram, self.target.dram.burst_bytes)
        sram = sum(
            _points_bytes(touch.region, touch.extents)
            for touch in touches(instruction)
            if touch.region.memory is Memory.SRAM
        )
        incoming = instruction.engine is Engine.DMA_IN
        energy = self.target.energy
        cycles = 0 if self.free_transfers else self.target.transfer_cycles(bus)
        return Charge(
            instruction.engine,
            cycles,
            beats=max(0, cycles - self.target.dram.latency_cycles),
            dram_read=dram if incoming else 0,
            dram_written=0 if incoming else dram,
            bus_bytes=bus,
            energy=(0.0, 0.0, sram * energy.sram_byte, bus * energy.dram_byte),
        )

    def _moved(self, region: Region, instruction: Transfer) -> int:
        lookups = (*instruction.source.lookups, *instruction.destination.lookups)
        if not lookups:
            return distinct_bytes(region, instruction.extents)
        sizes, strides, size = in_bytes(region, instruction.extents)
        varies = [
            stride != 0 or any(index < len(look.index.strides) and look.index.strides[index] for look in lookups)
            for index, stride in enumerate(strides)
        ]
        return size * math.prod(extent for extent, moving in zip(sizes, varies, strict=True) if moving)

    def matmul(self, instruction: Matmul, who: str) -> Charge:
        """The closed forms of the dataflow."""
        matrix = self.target.matrix
        a, b, out = instruction.a.element, instruction.b.element, instruction.out.element
        product = matrix.product(a, b)
        if product is None or product.accumulator is not out:
            expected = "no such product" if product is None else f"{product.accumulator.dtype.name}"
            msg = f"{who}: multiplies {a} by {b} into {out}; expected {expected} on target '{self.target.name}'"
            raise InvalidProgram(msg)
        batch, m, n, k = (math.prod(g) for g in (instruction.batch, instruction.m, instruction.n, instruction.k))
        flow = instruction.dataflow or matrix.dataflow
        if flow not in matrix.dataflows:
            offered = ", ".join(one.value for one in matrix.dataflows)
            msg = f"{who}: asks for dataflow {flow.value}; target '{self.target.name}' offers {offered}"
            raise InvalidProgram(msg)
        cycles = matmul_cycles(matrix, m, n, k, batch=batch, depth=product.depth, dataflow=flow)
        read_a, read_b, read_out, written = matmul_sram(
            matrix, m, n, k, accumulate=instruction.accumulate, dataflow=flow
        )
        index = 0.0 if matrix.pruned is None else read_b * matrix.pruned.index_bits / 8
        sram = batch * (_bytes(read_a, a) + _bytes(read_b, b) + index + _bytes(read_out + written, out))
        macs = batch * m * n * (k if matrix.pruned is None else matrix.pruned.length(k))
        energy = self.target.energy
        return Charge(
            Engine.MATRIX,
            cycles,
            macs=macs,
            full_cycles=macs / (matrix.rows * matrix.columns * product.depth),
            energy=(macs * energy.mac[a.dtype.name], 0.0, sram * energy.sram_byte, 0.0),
        )

    def vector(self, instruction: Vector, who: str) -> Charge:
        """start + ceil(points / lanes) * the cycles of the body's functions (and of the combiner), at least one."""
        unit = self.target.vector
        points = math.prod(instruction.extents)
        cycles = 0
        energy = 0.0
        for node in body_functions(instruction.body):
            if node.function not in FUNCTIONS:
                msg = f"{who}: scalar function '{node.function}' is unknown; expected one of {', '.join(FUNCTIONS)}"
                raise InvalidProgram(msg)
            each = function_cycles(node.function, unit.cycles)
            cycles += each
            energy += points * each * self._operation(node.element, who)
        if instruction.combiner is not None:
            cycles += unit.cycles.simple
            energy += points * self._operation(instruction.accumulate or instruction.out.region.element, who)
        sram = sum(_points_bytes(touch.region, touch.extents) for touch in touches(instruction))
        steps = math.ceil(points / unit.lanes)
        served = steps * max(cycles, 1)
        if self.target.sram.word_bytes is not None:
            served = max(served, math.ceil(steps * self._accesses(instruction, self.target.sram.word_bytes)))
        return Charge(
            Engine.VECTOR,
            unit.cycles.start + served,
            energy=(0.0, energy, sram * self.target.energy.sram_byte, 0.0),
        )

    def _accesses(self, instruction: Vector, word: int) -> float:
        """Cycles in which the banks serve the lanes once: lanes that meet in a bank wait for each other."""
        lanes, banks = self.target.vector.lanes, self.target.sram.banks
        total = 0.0
        for touch in touches(instruction):
            sizes, strides, size = in_bytes(touch.region, touch.extents)
            moving = [(extent, abs(stride)) for extent, stride in zip(sizes, strides, strict=True) if extent > 1]
            extent, stride = moving[-1] if moving else (1, 0)
            at_once = min(lanes, extent)
            if stride <= word:  # neighbours share words, or all read one
                served = max(1.0, at_once * max(stride, 0) / word, size / word) / banks
            else:
                served = at_once * math.ceil(size / word) / (banks // math.gcd(stride // word, banks))
            total += served * lanes / at_once
        return total

    def _operation(self, element: ElementType, who: str) -> float:
        found = self.target.energy.operation.get(element.dtype.name)
        if found is None:
            msg = f"{who}: computes in {element}, which the vector unit of target '{self.target.name}' lacks"
            raise InvalidProgram(msg)
        return found


def _bus_bytes(region: Region, extents: tuple[int, ...], moved: int, burst: int) -> int:
    """Bytes of the bursts that ``moved`` bytes of a region lie in, if each of its unbroken runs starts with one.

    Runs that are closer than a burst share them: no more than the bursts of all that lies between first and last.
    """
    sizes, strides, size = in_bytes(region, extents)
    run = span = size
    is_run = True
    for stride, extent in sorted((abs(s), e) for s, e in zip(strides, sizes, strict=True) if s and e > 1):
        is_run = is_run and stride <= run
        run += stride * (extent - 1) if is_run else 0
        span += stride * (extent - 1)
    run = min(run, moved)
    whole = math.ceil(moved / run) * math.ceil(run / burst) * burst if moved else 0
    return max(moved, whole if moved > span else min(whole, math.ceil(span / burst) * burst))


def _points_bytes(region: Region, extents: tuple[int, ...]) -> int:
    """Bytes read or written when loops of stride 0 reuse the element at hand."""
    sizes, strides, size = in_bytes(region, extents)
    return size * math.prod(extent for extent, stride in zip(sizes, strides, strict=True) if stride)


_CHARGES: Final[dict[type, Callable[[Costs, Any, str], Charge]]] = {
    Transfer: Costs.transfer,
    Matmul: Costs.matmul,
    Vector: Costs.vector,
}
