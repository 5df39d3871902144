"""What tiles are: the boxes of tensors that they read, and the bytes of SRAM that they take."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING, Final

from compiler.ops.work import Arg, Index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Value
    from compiler.lowering.nests import Dims, Nest, Read

ALIGNMENT: Final = 64
"""Start of every SRAM tile and DRAM buffer, in bytes."""


def aligned(size: int) -> int:
    """``size`` rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Box:
    """A strided box of a tensor: per dim the first index, the number of indices and the step between them."""

    low: tuple[int, ...]
    count: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return product(self.count)


def product(sizes: Iterable[int]) -> int:
    """Product of sizes."""
    return prod(sizes)


def box_of(dims: Dims, origin: Sequence[int], sizes: Sequence[int], extents: Sequence[int]) -> Box:
    """The least strided box that holds the elements which a tile reads.

    ``origin`` and ``sizes`` give the tile, ``extents`` the whole nest. Only for affine indices.
    """
    lows, counts, steps = [], [], []
    for dim in dims:
        assert isinstance(dim, Index)
        step = gcd(*(coefficient for loop, coefficient in dim.terms if extents[loop] > 1)) or 1
        low = high = dim.offset
        for loop, coefficient in dim.terms:
            first = coefficient * origin[loop]
            last = coefficient * (origin[loop] + sizes[loop] - 1)
            low += min(first, last)
            high += max(first, last)
        lows.append(low)
        counts.append((high - low) // step + 1)
        steps.append(step)
    return Box(tuple(lows), tuple(counts), tuple(steps))


def tile_bytes(read: Read, sizes: Sequence[int], extents: Sequence[int]) -> int:
    """SRAM bytes of the tile of a read: its box, or the gathered elements where it goes through index tables."""
    element_bytes = read.value.tensor.element.bits // 8
    if read.is_affine:
        return aligned(box_of(read.dims, (0,) * len(sizes), sizes, extents).size * element_bytes)
    return aligned(product(sizes[loop] for loop in read.iterators()) * element_bytes)


def tabled_reads(nest: Nest) -> list[Read]:
    """All reads of a nest, and the index tables behind them and behind its write, each once."""
    pending = [*nest.all_reads, *(dim.read for dim in nest.write if not isinstance(dim, Index))]
    found: dict[Read, None] = {}
    while pending:
        read = pending.pop(0)
        found[read] = None
        pending.extend(dim.read for dim in read.dims if not isinstance(dim, Index))
    return list(found)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tile size a loop, and the loops that are cut, outermost first."""

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    footprint: int


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a kernel finds its operands and leaves its result.

    ``resident`` are the values, as the nest's reads name them, that are whole in SRAM; ``keeps``: so is the result.
    """

    resident: frozenset[Value] = frozenset()
    keeps: bool = False


NOTHING_RESIDENT: Final = Setting()
"""Operands and result in DRAM."""


def in_place(read: Read, nest: Nest, setting: Setting) -> bool:
    """Whether every tile of a read is where the resident tensor is: it is there, and nothing of it is padding."""
    if read.value not in setting.resident:
        return False
    return not read.is_affine or not padded_dims(read, nest.extents)


def padded_dims(read: Read, extents: Sequence[int]) -> tuple[int, ...]:
    """The dims in which an affine read reaches outside its tensor."""
    box = box_of(read.dims, (0,) * len(extents), extents, extents)
    return tuple(
        dim
        for dim, (low, count, step, size) in enumerate(
            zip(box.low, box.count, box.step, read.value.tensor.shape, strict=True)
        )
        if low < 0 or low + (count - 1) * step >= size
    )


@dataclass(frozen=True, slots=True)
class ResultSlots:
    """SRAM bytes of a tile of the result and of its accumulators, 0 where none is needed, and how many rotate."""

    out: int
    accumulators: int
    copies: int

    @property
    def total(self) -> int:
        """Bytes of all of them."""
        return (self.out + self.accumulators) * self.copies


@dataclass(frozen=True, slots=True)
class ResultShape:
    """How the tiles of a result grow with the tile: loops of its points, bytes of an element and of an accumulator.

    0 bytes where there is none: movement is stored from where it was read, and sums without a finish are the result.
    ``whole`` is the aligned size of a scattered result, which is in SRAM whole.
    """

    loops: tuple[int, ...]
    parallel: frozenset[int]
    out: int
    accumulator: int
    whole: int | None

    @classmethod
    def of(cls, nest: Nest, setting: Setting) -> ResultShape:
        """What a nest needs in a setting."""
        loops = tuple(range(len(nest.iterators))) if nest.is_scan else nest.parallel
        parallel = frozenset(nest.parallel)
        if scatters(nest):
            return cls(loops, parallel, 0, 0, 0 if setting.keeps else aligned(nest.result.tensor.nbytes))
        is_apart = not setting.keeps and not moves_directly(nest, setting)
        out = nest.result.tensor.element.bits // 8 if is_apart else 0
        if nest.combiner is None:
            return cls(loops, parallel, out, 0, None)
        accumulator = nest.combined_element.bits // 8
        if finishes_in_place(nest):
            return cls(loops, parallel, 0, 0 if setting.keeps else accumulator, None)
        return cls(loops, parallel, out, accumulator, None)

    def at(self, sizes: Sequence[int], cut: Iterable[int]) -> ResultSlots:
        """The slots for tiles of these sizes; two rotate where the result is cut."""
        if self.whole is not None:
            return ResultSlots(self.whole, 0, 1)
        points = prod([sizes[loop] for loop in self.loops])
        copies = 1 if self.parallel.isdisjoint(cut) else 2
        return ResultSlots(aligned(points * self.out), aligned(points * self.accumulator), copies)


def finishes_in_place(nest: Nest) -> bool:
    """Whether a combined element is an element of the result as it is."""
    return isinstance(nest.finish, Arg) and nest.finish.index == 0


def moves_directly(nest: Nest, setting: Setting) -> bool:
    """Whether tiles of the result are stored from where their elements were read.

    Not of a result that stays, nor what an index table picks in SRAM itself.
    """
    if setting.keeps or not nest.moves_only or scatters(nest):
        return False
    assert isinstance(nest.body, Arg)
    read = nest.reads[nest.body.index]
    return read.is_affine or read.value not in setting.resident


def scatters(nest: Nest) -> bool:
    """Whether the place written depends on data; the whole result then stays in SRAM while the nest runs."""
    return not all(isinstance(dim, Index) for dim in nest.write)
