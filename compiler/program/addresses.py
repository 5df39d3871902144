"""Arithmetic of addresses: values, bounds over loops, the bytes that a region touches, and walks over a program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidProgram
from compiler.program.instructions import Matmul, Operand, Repeat, Transfer, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compiler.ir import Array
    from compiler.program.instructions import Address, Instruction, Region, Step


def value_of(address: Address, indices: Sequence[int]) -> int:
    """The address at these loop indices, outermost first."""
    value = address.base
    for level, coefficient in address.terms:
        value += coefficient * indices[level]
    for rotation in address.rotations:
        value += (indices[rotation.level] % rotation.count) * rotation.stride
    return value


def all_values(address: Address, counts: Sequence[int]) -> list[int]:
    """The addresses of all instances under loops of these counts, in program order (the last loop runs fastest)."""
    if not counts:
        return [address.base]
    values = np.full(counts, address.base, np.int64)
    for level, coefficient in address.terms:
        values += _along(np.arange(counts[level]) * coefficient, level, len(counts))
    for rotation in address.rotations:
        turns = np.arange(counts[rotation.level]) % rotation.count
        values += _along(turns * rotation.stride, rotation.level, len(counts))
    return [int(value) for value in values.ravel().tolist()]


def _along(values: Array, level: int, rank: int) -> Array:
    return values.reshape([-1 if index == level else 1 for index in range(rank)])


def address_bounds(address: Address, counts: Sequence[int]) -> tuple[int, int]:
    """Least and greatest value over loops of these positive counts, both inclusive."""
    low = high = address.base
    factors: dict[int, int] = {}
    for level, coefficient in address.terms:
        factors[level] = factors.get(level, 0) + coefficient
    rotated = {rotation.level for rotation in address.rotations}
    for level in rotated:
        indices = np.arange(counts[level])
        values = indices * factors.pop(level, 0)
        for rotation in address.rotations:
            if rotation.level == level:
                values = values + indices % rotation.count * rotation.stride
        low, high = low + int(values.min()), high + int(values.max())
    for level, factor in factors.items():
        distance = factor * (counts[level] - 1)
        low, high = low + min(distance, 0), high + max(distance, 0)
    return low, high


def reach(region: Region, extents: Sequence[int]) -> tuple[int, int]:
    """The bytes that the region touches, relative to its address: from the first to one past the last."""
    extents, strides, size = in_bytes(region, extents)
    low = high = 0
    for extent, stride in zip(extents, strides, strict=True):
        distance = stride * (extent - 1)
        low, high = low + min(distance, 0), high + max(distance, 0)
    return low, high + size


def in_bytes(region: Region, extents: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Extents, byte strides and the bytes of one element; packed elements along the last loop become whole bytes."""
    bits = region.element.bits
    if bits % 8 == 0:
        return tuple(extents), region.strides, bits // 8
    if not extents or region.strides[-1] == 0:
        return tuple(extents), region.strides, 1
    return (*extents[:-1], -(-extents[-1] * bits // 8)), (*region.strides[:-1], 1), 1


def distinct_bytes(region: Region, extents: Sequence[int]) -> int:
    """The number of different bytes that the region touches, overlaps counted once."""
    sizes, strides, size = in_bytes(region, extents)
    loops = sorted(
        (abs(stride), extent) for extent, stride in zip(sizes, strides, strict=True) if stride and extent > 1
    )
    if math.prod(sizes) == 0:
        return 0
    covered = size
    for stride, extent in loops:
        if stride < covered:
            return _union(loops, size)
        covered += stride * (extent - 1)
    return size * math.prod(extent for _, extent in loops)


def _union(loops: Sequence[tuple[int, int]], size: int) -> int:
    starts = np.zeros(1, np.int64)
    for stride, extent in loops:
        starts = np.unique((starts[:, None] + np.arange(extent) * stride).ravel())
    return int(np.minimum(np.diff(starts), size).sum()) + size


@dataclass(frozen=True, slots=True)
class Placed:
    """An instruction and the counts of the loops around it, outermost first."""

    instruction: Instruction
    counts: tuple[int, ...]

    @property
    def instances(self) -> int:
        """How often it runs."""
        return math.prod(self.counts)


def placed(body: Sequence[Step], counts: tuple[int, ...] = ()) -> Iterator[Placed]:
    """Every instruction once, in program order."""
    for step in body:
        if isinstance(step, Repeat):
            yield from placed(step.body, (*counts, step.count))
        else:
            yield Placed(step, counts)


@dataclass(frozen=True, slots=True)
class Touch:
    """A region that an instruction reads or writes, with the extents it covers there.

    ``scattered``: data decides where; stride and extent of each lookup then bound it.
    """

    region: Region
    extents: tuple[int, ...]
    writes: bool
    scattered: tuple[tuple[int, int], ...] = ()

    def bounds(self) -> tuple[int, int]:
        """The bytes that can be touched, relative to the region's address: the first, and one past the last."""
        low, high = reach(self.region, self.extents)
        for stride, extent in self.scattered:
            distance = stride * (extent - 1)
            low, high = low + min(distance, 0), high + max(distance, 0)
        return low, high


def touches(instruction: Instruction) -> tuple[Touch, ...]:
    """What the instruction reads and writes; an accumulating one reads what it writes."""
    return _TOUCHES[type(instruction)](instruction)


def _operand(operand: Operand, extents: tuple[int, ...], writes: bool) -> Iterator[Touch]:
    scattered = tuple((lookup.stride, lookup.extent) for lookup in operand.lookups)
    yield Touch(operand.region, extents, writes, scattered)
    for lookup in operand.lookups:
        yield Touch(lookup.index, extents[: len(lookup.index.strides)], writes=False)


def _of_transfer(instruction: Transfer) -> tuple[Touch, ...]:
    source = _operand(instruction.source, instruction.extents, writes=False)
    return (*source, *_operand(instruction.destination, instruction.extents, writes=True))


def _of_matmul(instruction: Matmul) -> tuple[Touch, ...]:
    batch, m, n, k = instruction.batch, instruction.m, instruction.n, instruction.k
    read = (Touch(instruction.a, batch + m + k, writes=False), Touch(instruction.b, batch + k + n, writes=False))
    out = Touch(instruction.out, batch + m + n, writes=True)
    return (*read, Touch(out.region, out.extents, writes=False), out) if instruction.accumulate else (*read, out)


def written_extents(instruction: Vector) -> tuple[int, ...]:
    """The loops that ``out.strides`` covers."""
    whole = instruction.scan or len(instruction.out.region.strides) == len(instruction.extents)
    return instruction.extents if whole else instruction.extents[: len(instruction.extents) - instruction.reduced]


def _of_vector(instruction: Vector) -> tuple[Touch, ...]:
    found: list[Touch] = []
    for operand in instruction.inputs:
        found.extend(_operand(operand, instruction.extents, writes=False))
    out = list(_operand(instruction.out, written_extents(instruction), writes=True))
    if instruction.combiner is not None and instruction.initial is None:
        found.append(Touch(out[0].region, out[0].extents, writes=False, scattered=out[0].scattered))
    return (*found, *out)


_TOUCHES: Final[dict[type, Callable[[Any], tuple[Touch, ...]]]] = {
    Transfer: _of_transfer,
    Matmul: _of_matmul,
    Vector: _of_vector,
}


def describe(instruction: Instruction, program: str = "") -> str:
    """The instruction's name in messages."""
    where = f" of program '{program}'" if program else ""
    return f"{type(instruction).__name__.lower()} {instruction.id}{where}"


def check_strides(instruction: Instruction, program: str = "") -> None:
    """Every region must have a stride for each loop it covers. Raises InvalidProgram."""
    for touch in touches(instruction):
        if len(touch.region.strides) != len(touch.extents):
            msg = (
                f"{describe(instruction, program)}: a region has {len(touch.region.strides)} strides; "
                f"expected {len(touch.extents)}, one for each of its loops {list(touch.extents)}"
            )
            raise InvalidProgram(msg)
