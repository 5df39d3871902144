"""What a tile reads, brought into SRAM: boxes with their padding, gathers, and tensors that are there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.errors import LoweringError
from compiler.lowering.stream import dense_strides, region, row_major
from compiler.lowering.tiles import Slot
from compiler.lowering.tiling import Box, Setting, Tiling, box_of, in_place, tabled_reads, tile_bytes
from compiler.ops.work import Arg, Index, Literal
from compiler.program.instructions import Lookup, Memory, Operand, Region, Transfer, Vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Value
    from compiler.lowering.nests import Dims, Nest, Read
    from compiler.lowering.tiles import Homes, Tile


@dataclass(slots=True)
class _Source:
    """One read prepared: the loops that it depends on, its slot unless it is in place, and its operands by tile."""

    loops: tuple[int, ...]
    slot: Slot | None
    made: dict[tuple[int, ...], tuple[int | None, Operand]] = field(default_factory=dict)


class Operands:
    """The operands of one nest. Before the first tile :meth:`place` says where the slots are."""

    def __init__(self, nest: Nest, tiling: Tiling, setting: Setting, homes: Homes) -> None:
        self._nest = nest
        self._tiling = tiling
        self._setting = setting
        self._homes = homes
        self._stream = homes.stream
        self._sources: dict[Read, _Source] = {}
        self._known: dict[int, _Source] = {}

    def place(self, base: int) -> int:
        """Lay the slots of tiles out from ``base``, two where tiles change; returns the address after them."""
        cut = set(self._tiling.order)
        for read in tabled_reads(self._nest):
            loops = read.iterators()
            if in_place(read, self._nest, self._setting):
                self._sources[read] = _Source(tuple(sorted(loops)), None)
                continue
            size = tile_bytes(read, self._tiling.sizes, self._nest.extents)
            copies = 2 if cut & loops else 1
            self._sources[read] = _Source(tuple(sorted(loops)), Slot.at(base, size, copies))
            base += size * copies
        return base

    def _source(self, read: Read) -> _Source:
        """The prepared read. Reads are kept by identity too: they are large to compare."""
        found = self._known.get(id(read))
        if found is None:
            found = self._known[id(read)] = self._sources[read]
        return found

    def load(self, tile: Tile) -> None:
        """Bring everything that a tile reads into SRAM, ahead of its use."""
        for read in self._nest.all_reads:
            self.operand(read, tile)

    def operand(self, read: Read, tile: Tile) -> Operand:
        """The tile of a read in SRAM, with a stride for each loop of the nest; loaded unless it is there."""
        source = self._source(read)
        key = (*[tile.origin[loop] for loop in source.loops], *[tile.sizes[loop] for loop in source.loops])
        known = source.made.get(key)
        if known is not None and (known[0] is None or (source.slot is not None and source.slot.find(key) == known[0])):
            return known[1]
        made = self._make(read, tile, source, key)
        address = None if source.slot is None else source.slot.find(key)
        source.made[key] = (address, made)
        return made

    def _make(self, read: Read, tile: Tile, source: _Source, key: tuple[int, ...]) -> Operand:
        resident = self._homes.resident(self._homes.root(read.value))
        if not read.is_affine:
            return self._gathered(read, tile, source, key, resident)
        box = box_of(read.dims, tile.origin, tile.sizes, self._nest.extents)
        inside = _clip(box, read.value.tensor.shape)
        if resident is not None and inside == box:
            base, strides = linear(read.dims, dense_strides(read.value.tensor), tile.origin)
            return Operand(region(Memory.SRAM, resident + base, read.value.tensor.element, strides))
        slot = source.slot
        assert slot is not None
        address = slot.find(key)
        if address is None:
            address = slot.take(key)
            self._load_box(read, box, inside, address, resident)
        return self._boxed(read, box, address, tile)

    def _boxed(self, read: Read, box: Box, address: int, tile: Tile) -> Operand:
        element = read.value.tensor.element
        dims = row_major(box.count, element)
        base, strides = address, [0] * len(tile.sizes)
        for dim, low, step, stride in zip(read.dims, box.low, box.step, dims, strict=True):
            assert isinstance(dim, Index)
            start = dim.offset + sum(factor * tile.origin[loop] for loop, factor in dim.terms)
            base += (start - low) // step * stride
            for loop, factor in dim.terms:
                if tile.sizes[loop] > 1:
                    strides[loop] += factor // step * stride
        return Operand(region(Memory.SRAM, base, element, strides))

    def _load_box(self, read: Read, box: Box, inside: Box, address: int, resident: int | None) -> None:
        """Bring a box into a tile: what lies inside the tensor is copied, the rest filled."""
        type_ = read.value.tensor
        element = type_.element
        dims = row_major(box.count, element)
        if inside != box:
            if read.fill is None:
                msg = f"{'+'.join(op.name for op in self._nest.ops)} reads outside {type_} without a fill"
                raise LoweringError(msg)
            flat = Operand(region(Memory.SRAM, address, element, row_major((box.size,), element)))
            self._stream.add(Vector(0, 0, (box.size,), (), Literal(read.fill, element), flat))
        if not inside.size:
            return
        skipped = sum(
            (new - old) // step * stride
            for new, old, step, stride in zip(inside.low, box.low, box.step, dims, strict=True)
        )
        dense = dense_strides(type_)
        base = sum(low * stride for low, stride in zip(inside.low, dense, strict=True))
        strides = [stride * step for stride, step in zip(dense, box.step, strict=True)]
        target = region(Memory.SRAM, address + skipped, element, dims)
        if resident is not None:
            source = region(Memory.SRAM, resident + base, element, strides)
            copied = (Operand(source),)
            self._stream.add(Vector(0, 0, inside.count, copied, Arg(0, element), Operand(target)))
        else:
            home = self._homes.in_dram(read.value)
            source = region(Memory.DRAM, home + base, element, strides)
            self._stream.transfer(inside.count, source, target)

    def _gathered(self, read: Read, tile: Tile, source: _Source, key: tuple[int, ...], resident: int | None) -> Operand:
        """A read through index tables: from SRAM directly, else gathered by DMA into a tile of the nest's loops."""
        every = tuple(range(len(tile.sizes)))
        if resident is not None:
            return self.indexed(read.dims, read.value, resident, tile, Memory.SRAM, every, read)
        loops = source.loops
        sizes = [tile.sizes[loop] for loop in loops]
        element = read.value.tensor.element
        packed = row_major(sizes, element)
        slot = source.slot
        assert slot is not None
        address = slot.find(key)
        if address is None:
            home = self._homes.in_dram(read.value)
            gathered = self.indexed(read.dims, read.value, home, tile, Memory.DRAM, loops, read)
            address = slot.take(key)
            target = Operand(region(Memory.SRAM, address, element, packed))
            self._stream.add(Transfer(0, 0, tuple(sizes), gathered, target))
        strides = [0] * len(tile.sizes)
        for loop, stride in zip(loops, packed, strict=True):
            strides[loop] = stride
        return Operand(region(Memory.SRAM, address, element, strides))

    def indexed(
        self,
        dims: Dims,
        value: Value,
        address: int,
        tile: Tile,
        memory: Memory,
        loops: Sequence[int],
        read: Read | None = None,
    ) -> Operand:
        """An operand with a lookup for each data-dependent dim, over the given loops."""
        dense = dense_strides(value.tensor)
        affine = tuple(dim if isinstance(dim, Index) else Index() for dim in dims)
        base, strides = linear(affine, dense, tile.origin)
        lookups = []
        for dim, stride in zip(dims, dense, strict=True):
            if not isinstance(dim, Index):
                table = pick(self.operand(dim.read, tile).region, loops)
                lookups.append(Lookup(table, stride, dim.extent, dim.rule))
        place = region(memory, address + base, value.tensor.element, [strides[loop] for loop in loops])
        return Operand(place, tuple(lookups), None if read is None else read.fill)


def linear(dims: Dims, dense: Sequence[int], origin: Sequence[int]) -> tuple[int, list[int]]:
    """Byte offset of a tile's first element in a dense tensor, and the stride a loop."""
    base, strides = 0, [0] * len(origin)
    for dim, stride in zip(dims, dense, strict=True):
        assert isinstance(dim, Index)
        base += dim.offset * stride
        for loop, factor in dim.terms:
            base += factor * origin[loop] * stride
            strides[loop] += factor * stride
    return base, strides


def _clip(box: Box, shape: Sequence[int]) -> Box:
    """The part of a box that lies inside a tensor."""
    lows, counts = [], []
    for low, count, step, size in zip(box.low, box.count, box.step, shape, strict=True):
        first = max(0, -(low // step)) if low < 0 else 0
        last = min(count - 1, (size - 1 - low) // step)
        lows.append(low + first * step)
        counts.append(max(last - first + 1, 0))
    return Box(tuple(lows), tuple(counts), box.step)


def pick(place: Region, loops: Sequence[int]) -> Region:
    """The region over some loops, in that order."""
    return Region(place.memory, place.address, place.element, tuple(place.strides[loop] for loop in loops))


def pick_operand(operand: Operand, loops: Sequence[int]) -> Operand:
    """The operand over some loops, its lookups too."""
    lookups = tuple(
        Lookup(pick(lookup.index, loops), lookup.stride, lookup.extent, lookup.rule) for lookup in operand.lookups
    )
    return Operand(pick(operand.region, loops), lookups, operand.fill)
