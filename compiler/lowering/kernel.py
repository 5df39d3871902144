"""Emits one kernel: for each tile, load what it reads, compute, finish, and store or keep the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.errors import LoweringError
from compiler.lowering.operands import Operands, linear, pick, pick_operand
from compiler.lowering.stream import dense_strides, region, row_major
from compiler.lowering.tiles import Homes, Slot, Tile, tiles
from compiler.lowering.tiling import Tiling, box_of, product, result_bytes, result_copies, scatters
from compiler.ops.work import Apply, Arg, Expression
from compiler.program.instructions import Address, Matmul, Memory, Operand, Region, Vector

if TYPE_CHECKING:
    from compiler.lowering.contraction import Contraction
    from compiler.lowering.nests import Nest

_KEPT_PART: Final = 4
"""A result stays in SRAM if it takes at most this part of it."""


class KernelEmitter:
    """Emits the instructions of one nest under a tiling. ``contraction`` sends the products to the matrix array."""

    def __init__(self, nest: Nest, tiling: Tiling, contraction: Contraction | None, homes: Homes) -> None:
        self._nest = nest
        self._tiling = tiling
        self._contraction = contraction
        self._homes = homes
        self._stream = homes.stream
        self._scatters = scatters(nest)
        self._result_loops = tuple(range(len(nest.extents))) if nest.is_scan else nest.parallel
        self._whole = not tiling.order
        self._operands = Operands(nest, tiling, homes)
        self._accumulator = Slot(())
        self._out = Slot(())

    def emit(self) -> None:
        """Emit all tiles. Raises LoweringError when SRAM has no room for the tiling's block."""
        self._operands.pin()
        self._plan_block()
        self._operands.pin()
        self._operands.load_shared()
        resident = self._result_home()
        for tile in tiles(self._nest, self._tiling):
            self._emit_tile(tile, resident)
        if self._scatters and resident is None:
            self._copy_result(self._out.addresses[0], load=False)

    # ---- memory

    def _plan_block(self) -> None:
        nest = self._nest
        copies = result_copies(nest, self._tiling.order)
        out, accumulators = result_bytes(nest, self._tiling.sizes)
        operands = sum(size * count for _, size, count in self._operands.plan())
        base = self._homes.scratchpad.block(operands + (out + accumulators) * copies)
        if base is None:
            msg = f"no room in SRAM for the tiles of {'+'.join(op.name for op in nest.ops)}"
            raise LoweringError(msg)
        base = self._operands.place(base)
        self._out = Slot.at(base, out, copies)
        self._accumulator = Slot.at(base + out * copies, accumulators, copies)

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
        if nest.result.tensor.nbytes > scratchpad.capacity // _KEPT_PART:
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
        operand = self._operands.operand(self._nest.reads[self._nest.body.index], tile)
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
        current = self._accumulator.current
        return region(Memory.SRAM, current, element, row_major(self._result_sizes(tile), element))

    def _out_operand(self, tile: Tile, resident: int | None) -> Operand:
        nest = self._nest
        if self._scatters:
            return self._scatter_operand(tile, resident)
        if resident is not None:
            base, strides = linear(nest.write, dense_strides(nest.result.tensor), tile.origin)
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
        return self._operands.indexed(nest.write, nest.result, base, tile, Memory.SRAM, self._result_loops)

    def _copy_result(self, address: int, *, load: bool) -> None:
        type_ = self._nest.result.tensor
        if load:
            self._stream.copy_whole(type_, Memory.DRAM, self._homes.in_dram(self._nest.result), address)
        else:
            self._stream.copy_whole(type_, Memory.SRAM, address, self._homes.dram_result(self._nest.result))

    def _store(self, source: Region, tile: Tile) -> None:
        nest = self._nest
        home = self._homes.dram_result(nest.result)
        base, strides = linear(nest.write, dense_strides(nest.result.tensor), tile.origin)
        chosen = [strides[loop] for loop in self._result_loops]
        target = region(Memory.DRAM, home + base, nest.result.tensor.element, chosen)
        self._stream.transfer(self._result_sizes(tile), source, target)

    def _compute(self, tile: Tile, out: Operand) -> None:
        nest = self._nest
        inputs = [self._operands.operand(read, tile) for read in nest.reads]
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
        operands = [self._operands.operand(nest.reads[number], tile).region for number in (roles.a, roles.b)]
        batch, m, n, k = (
            tuple(tile.sizes[loop] for loop in loops) for loops in (roles.batch, roles.m, roles.n, roles.k)
        )
        a = pick(operands[0], (*roles.batch, *roles.m, *roles.k))
        b = pick(operands[1], (*roles.batch, *roles.k, *roles.n))
        place = {loop: position for position, loop in enumerate(self._result_loops)}
        out = pick(accumulator, [place[loop] for loop in (*roles.batch, *roles.m, *roles.n)])
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
            operand = self._operands.operand(read, tile)
            inputs.append(pick_operand(operand, self._result_loops))
        self._stream.add(Vector(0, 0, self._result_sizes(tile), tuple(inputs), nest.finish, out))
        points = product(self._result_sizes(tile))
        self._stream.count(operations=points * max(_functions(nest.finish), 1))
        return out.region


def _functions(expression: Expression) -> int:
    if isinstance(expression, Apply):
        return 1 + sum(_functions(operand) for operand in expression.operands)
    return 0
