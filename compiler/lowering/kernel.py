"""Emits one kernel: for each tile, load what it reads, compute, finish, and store or keep the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product as cartesian
from typing import TYPE_CHECKING, Protocol

from compiler.errors import LoweringError
from compiler.ir import Value
from compiler.lowering.contraction import Contraction
from compiler.lowering.nests import Nest, Read
from compiler.lowering.stream import Stream, dense_strides, region, row_major
from compiler.lowering.tiling import Box, Tiling, box_of, product, result_bytes, result_copies, tabled_reads, tile_bytes
from compiler.ops.work import Apply, Arg, Expression, Index, Literal
from compiler.program.instructions import Address, Lookup, Matmul, Memory, Operand, Region, Transfer, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.ir import ElementType
    from compiler.lowering.nests import Dims
    from compiler.lowering.sram import Scratchpad


class Homes(Protocol):
    """Where the tensors of a program are. Aliases share the home of their root."""

    stream: Stream
    scratchpad: Scratchpad

    def root(self, value: Value) -> Value:
        """The value whose bytes ``value`` is."""

    def in_dram(self, value: Value) -> int:
        """DRAM address of the tensor's content (written there first, if only SRAM has it)."""

    def dram_result(self, value: Value) -> int:
        """DRAM address for a result that a kernel writes tile by tile."""

    def stays(self, value: Value) -> bool:
        """Whether a later kernel reads the value."""

    def computes(self, element: ElementType) -> bool:
        """Whether the vector unit takes elements of this type."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One tile: first index and number of indices a loop, and whether it begins or ends the cut reduction loops."""

    origin: tuple[int, ...]
    sizes: tuple[int, ...]
    first: bool
    last: bool


@dataclass(slots=True)
class _Slot:
    """Addresses in which the tiles of one operand rotate, and what each of them holds."""

    addresses: tuple[int, ...]
    holds: list[tuple[int, ...] | None] = field(default_factory=list)
    turn: int = 0

    def find(self, key: tuple[int, ...]) -> int | None:
        return self.addresses[self.holds.index(key)] if key in self.holds else None

    def take(self, key: tuple[int, ...] | None) -> int:
        address = self.addresses[self.turn]
        self.holds[self.turn] = key
        self.turn = (self.turn + 1) % len(self.addresses)
        return address


def tiles(nest: Nest, tiling: Tiling) -> Iterator[Tile]:
    """The tiles in order, the cut reduction loops innermost."""
    folded = set(nest.folded)
    starts = [range(0, nest.extents[loop], tiling.sizes[loop]) for loop in tiling.order]
    for chosen in cartesian(*starts):
        origin = [0] * len(nest.extents)
        sizes = list(tiling.sizes)
        first = last = True
        for loop, start in zip(tiling.order, chosen, strict=True):
            origin[loop] = start
            sizes[loop] = min(tiling.sizes[loop], nest.extents[loop] - start)
            if loop in folded:
                first = first and start == 0
                last = last and start + sizes[loop] == nest.extents[loop]
        yield Tile(tuple(origin), tuple(sizes), first, last)


class KernelEmitter:
    """Emits the instructions of one nest under a tiling. ``contraction`` sends the products to the matrix array."""

    def __init__(self, nest: Nest, tiling: Tiling, contraction: Contraction | None, homes: Homes) -> None:
        self._nest = nest
        self._tiling = tiling
        self._contraction = contraction
        self._homes = homes
        self._stream = homes.stream
        self._scatters = not all(isinstance(dim, Index) for dim in nest.write)
        self._result_loops = tuple(range(len(nest.extents))) if nest.is_scan else nest.parallel
        self._whole = not tiling.order
        self._slots: dict[Read, _Slot] = {}
        self._accumulator = _Slot(())
        self._out = _Slot(())

    def emit(self) -> None:
        """Emit all tiles. Raises LoweringError when SRAM has no room for the tiling's block."""
        for read in self._nest.all_reads:
            self._homes.scratchpad.pin(self._homes.root(read.value))
        self._plan_block()
        self._load_shared_operands()
        resident = self._result_home()
        for tile in tiles(self._nest, self._tiling):
            self._emit_tile(tile, resident)
        if self._scatters and resident is None:
            self._copy_result(self._out.addresses[0], load=False)

    # ---- memory

    def _load_shared_operands(self) -> None:
        """Whole tensors that later kernels read too are loaded once and stay, if they are small enough."""
        limit = self._homes.scratchpad.capacity // 8
        for read in dict.fromkeys(self._nest.all_reads):
            root = self._homes.root(read.value)
            self._homes.scratchpad.pin(root)
            type_ = read.value.tensor
            if self._homes.scratchpad.resident(root) or not read.is_affine or not self._homes.stays(read.value):
                continue
            if not 0 < type_.nbytes <= limit or not self._homes.computes(type_.element):
                continue
            address = self._homes.in_dram(read.value)
            resident = self._homes.scratchpad.keep(root, type_.nbytes, dirty=False)
            if resident is None:
                continue
            whole = (type_.size,)
            source = region(Memory.DRAM, address, type_.element, row_major(whole, type_.element))
            target = region(Memory.SRAM, resident.address, type_.element, row_major(whole, type_.element))
            self._stream.transfer(whole, source, target)

    def _plan_block(self) -> None:
        nest, sizes = self._nest, self._tiling.sizes
        cut = set(self._tiling.order)
        plan: list[tuple[Read | str, int, int]] = []
        for read in tabled_reads(nest):
            copies = 2 if cut & read.iterators() else 1
            plan.append((read, tile_bytes(read, sizes, nest.extents), copies))
        copies = result_copies(nest, cut)
        out, accumulators = result_bytes(nest, sizes)
        plan += [("out", out, copies), ("accumulator", accumulators, copies)]
        base = self._homes.scratchpad.block(sum(size * copies for _, size, copies in plan))
        if base is None:
            msg = f"no room in SRAM for the tiles of {'+'.join(op.name for op in nest.ops)}"
            raise LoweringError(msg)
        for owner, size, copies in plan:
            slot = _Slot(tuple(base + size * copy for copy in range(copies)), [None] * copies)
            base += size * copies
            self._assign(owner, slot)

    def _assign(self, owner: Read | str, slot: _Slot) -> None:
        if isinstance(owner, Read):
            self._slots[owner] = slot
        elif owner == "out":
            self._out = slot
        else:
            self._accumulator = slot

    def _result_home(self) -> int | None:
        """SRAM address of the whole result when it is kept there, else None: then every tile is stored."""
        nest, scratchpad = self._nest, self._homes.scratchpad
        root = self._homes.root(nest.result)
        resident = scratchpad.resident(root)
        if resident is not None:
            scratchpad.pin(root)
            resident.dirty = True
            return resident.address
        if self._scatters:
            return None
        covers = nest.parts == 1 or (self._covers_result() and not nest.continues)
        if not (self._whole and covers and self._homes.computes(nest.result.tensor.element)):
            return None
        if not (self._homes.stays(nest.result) or nest.parts > 1):
            return None
        if nest.result.tensor.nbytes > scratchpad.capacity // 4:
            return None
        made = scratchpad.keep(root, nest.result.tensor.nbytes, dirty=True)
        return None if made is None else made.address

    def _covers_result(self) -> bool:
        shape = self._nest.result.tensor.shape
        box = box_of(self._nest.write, (0,) * len(self._nest.extents), self._nest.extents, self._nest.extents)
        points = product(self._nest.extents[loop] for loop in self._result_loops)
        return box.count == shape and points == box.size

    # ---- one tile

    def _emit_tile(self, tile: Tile, resident: int | None) -> None:
        nest = self._nest
        if nest.moves_only and resident is None and not self._scatters:
            source = self._moved(tile)
            if source is not None:
                self._store(source, tile)
                return
        if nest.combiner is None or self._scatters:
            place = self._out_operand(tile, resident)
            self._compute(tile, place)
            if resident is None and not self._scatters:
                self._store(place.region, tile)
            return
        accumulator = self._accumulator_region(tile, resident)
        if self._contraction is not None:
            self._multiply(tile, accumulator)
        else:
            self._compute(tile, Operand(accumulator))
        if tile.last:
            out = self._finish(tile, accumulator, resident)
            if resident is None:
                self._store(out, tile)

    def _moved(self, tile: Tile) -> Region | None:
        """For movement alone: where the tile's elements lie in SRAM, to be stored from there."""
        assert isinstance(self._nest.body, Arg)
        operand = self._operand(self._nest.reads[self._nest.body.index], tile)
        return None if operand.lookups else operand.region

    def _result_sizes(self, tile: Tile) -> tuple[int, ...]:
        return tuple(tile.sizes[loop] for loop in self._result_loops)

    def _accumulator_region(self, tile: Tile, resident: int | None) -> Region:
        """Where a tile is combined: in the result itself, when that is kept and needs no finish."""
        if resident is not None and isinstance(self._nest.finish, Arg) and self._nest.finish.index == 0:
            return self._out_operand(tile, resident).region
        element = self._nest.combined_element
        if tile.first:
            self._accumulator.take(None)
        current = self._accumulator.addresses[self._accumulator.turn - 1]
        return region(Memory.SRAM, current, element, row_major(self._result_sizes(tile), element))

    def _out_operand(self, tile: Tile, resident: int | None) -> Operand:
        nest = self._nest
        if self._scatters:
            return self._scatter_operand(tile, resident)
        if resident is not None:
            base, strides = _linear(nest.write, dense_strides(nest.result.tensor), tile.origin)
            chosen = [strides[loop] for loop in self._result_loops]
            return Operand(region(Memory.SRAM, resident + base, nest.result.tensor.element, chosen))
        element = nest.result.tensor.element
        return Operand(region(Memory.SRAM, self._out.take(None), element, row_major(self._result_sizes(tile), element)))

    def _scatter_operand(self, tile: Tile, resident: int | None) -> Operand:
        """The whole result in SRAM, indexed through tables; loaded when the first tile begins."""
        nest = self._nest
        base = resident
        if base is None:
            base = self._out.addresses[0]
            if self._out.holds[0] is None:
                self._out.holds[0] = ()
                if nest.continues:
                    self._copy_result(base, load=True)
        return self._indexed(nest.write, nest.result, base, tile, Memory.SRAM, self._result_loops)

    def _copy_result(self, address: int, *, load: bool) -> None:
        type_ = self._nest.result.tensor
        whole = (type_.size,)
        strides = row_major(whole, type_.element)
        inside = region(Memory.SRAM, address, type_.element, strides)
        home = self._homes.in_dram(self._nest.result) if load else self._homes.dram_result(self._nest.result)
        outside = region(Memory.DRAM, home, type_.element, strides)
        self._stream.transfer(whole, *((outside, inside) if load else (inside, outside)))

    def _store(self, source: Region, tile: Tile) -> None:
        nest = self._nest
        home = self._homes.dram_result(nest.result)
        base, strides = _linear(nest.write, dense_strides(nest.result.tensor), tile.origin)
        chosen = [strides[loop] for loop in self._result_loops]
        target = region(Memory.DRAM, home + base, nest.result.tensor.element, chosen)
        self._stream.transfer(self._result_sizes(tile), source, target)

    def _compute(self, tile: Tile, out: Operand) -> None:
        nest = self._nest
        inputs = [self._operand(read, tile) for read in nest.reads]
        self._stream.add(
            Vector(
                0,
                0,
                tile.sizes,
                tuple(inputs),
                nest.body,
                out,
                reduced=len(nest.folded),
                combiner=nest.combiner,
                initial=nest.initial if tile.first else None,
                accumulate=nest.accumulate,
                scan=nest.is_scan,
                origin=tuple(Address(start) for start in tile.origin),
            )
        )
        self._stream.count(operations=product(tile.sizes) * max(_functions(nest.body) + len(nest.folded), 1))

    def _multiply(self, tile: Tile, accumulator: Region) -> None:
        roles = self._contraction
        assert roles is not None
        nest = self._nest
        operands = [self._operand(nest.reads[number], tile).region for number in (roles.a, roles.b)]
        batch, m, n, k = (
            tuple(tile.sizes[loop] for loop in loops) for loops in (roles.batch, roles.m, roles.n, roles.k)
        )
        a = _pick(operands[0], (*roles.batch, *roles.m, *roles.k))
        b = _pick(operands[1], (*roles.batch, *roles.k, *roles.n))
        place = {loop: position for position, loop in enumerate(self._result_loops)}
        out = _pick(accumulator, [place[loop] for loop in (*roles.batch, *roles.m, *roles.n)])
        self._stream.add(Matmul(0, 0, batch, m, n, k, a, b, out, accumulate=not tile.first))
        self._stream.count(macs=product(tile.sizes))

    def _finish(self, tile: Tile, accumulator: Region, resident: int | None) -> Region:
        """Turn the accumulators into elements of the result; where there is nothing to do they are that already."""
        nest = self._nest
        assert nest.finish is not None
        if isinstance(nest.finish, Arg) and nest.finish.index == 0:
            return accumulator
        out = self._out_operand(tile, resident)
        inputs = [Operand(accumulator)]
        for read in nest.finish_reads:
            operand = self._operand(read, tile)
            inputs.append(_pick_operand(operand, self._result_loops))
        self._stream.add(Vector(0, 0, self._result_sizes(tile), tuple(inputs), nest.finish, out))
        points = product(self._result_sizes(tile))
        self._stream.count(operations=points * max(_functions(nest.finish), 1))
        return out.region

    # ---- operands

    def _operand(self, read: Read, tile: Tile) -> Operand:
        """The tile of a read in SRAM, with a stride for each loop of the nest; loaded unless it is there."""
        scratchpad, root = self._homes.scratchpad, self._homes.root(read.value)
        resident = scratchpad.resident(root)
        if not read.is_affine:
            return self._gathered(read, tile, None if resident is None else resident.address)
        box = box_of(read.dims, tile.origin, tile.sizes, self._nest.extents)
        inside = _clip(box, read.value.tensor.shape)
        if resident is not None and inside == box:
            base, strides = _linear(read.dims, dense_strides(read.value.tensor), tile.origin)
            return Operand(region(Memory.SRAM, resident.address + base, read.value.tensor.element, strides))
        slot = self._slots[read]
        loops = sorted(read.iterators())
        key = tuple(tile.origin[loop] for loop in loops) + tuple(tile.sizes[loop] for loop in loops)
        address = slot.find(key)
        if address is None:
            address = slot.take(key)
            self._load_box(read, box, inside, address, None if resident is None else resident.address)
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

    def _gathered(self, read: Read, tile: Tile, resident: int | None) -> Operand:
        """A read through index tables: from SRAM directly, else gathered by DMA into a tile of the nest's loops."""
        every = tuple(range(len(tile.sizes)))
        if resident is not None:
            return self._indexed(read.dims, read.value, resident, tile, Memory.SRAM, every, read)
        loops = tuple(sorted(read.iterators()))
        key = tuple(tile.origin[loop] for loop in loops) + tuple(tile.sizes[loop] for loop in loops)
        sizes = [tile.sizes[loop] for loop in loops]
        element = read.value.tensor.element
        packed = row_major(sizes, element)
        slot = self._slots[read]
        address = slot.find(key)
        if address is None:
            home = self._homes.in_dram(read.value)
            source = self._indexed(read.dims, read.value, home, tile, Memory.DRAM, loops, read)
            address = slot.take(key)
            target = Operand(region(Memory.SRAM, address, element, packed))
            self._stream.add(Transfer(0, 0, tuple(sizes), source, target))
        strides = [0] * len(tile.sizes)
        for loop, stride in zip(loops, packed, strict=True):
            strides[loop] = stride
        return Operand(region(Memory.SRAM, address, element, strides))

    def _indexed(
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
        base, strides = _linear(affine, dense, tile.origin)
        lookups = []
        for dim, stride in zip(dims, dense, strict=True):
            if not isinstance(dim, Index):
                table = _pick(self._operand(dim.read, tile).region, loops)
                lookups.append(Lookup(table, stride, dim.extent, dim.rule))
        place = region(memory, address + base, value.tensor.element, [strides[loop] for loop in loops])
        return Operand(place, tuple(lookups), None if read is None else read.fill)


def _linear(dims: Dims, dense: Sequence[int], origin: Sequence[int]) -> tuple[int, list[int]]:
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


def _pick(place: Region, loops: Sequence[int]) -> Region:
    """The region over some loops, in that order."""
    return Region(place.memory, place.address, place.element, tuple(place.strides[loop] for loop in loops))


def _pick_operand(operand: Operand, loops: Sequence[int]) -> Operand:
    lookups = tuple(
        Lookup(_pick(lookup.index, loops), lookup.stride, lookup.extent, lookup.rule) for lookup in operand.lookups
    )
    return Operand(_pick(operand.region, loops), lookups, operand.fill)


def _functions(expression: Expression) -> int:
    if isinstance(expression, Apply):
        return 1 + sum(_functions(operand) for operand in expression.operands)
    return 0
