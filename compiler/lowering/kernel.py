"""Emits one kernel: for each tile, load what it reads, compute, finish, and store or keep the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.lowering.contraction import factor_elements
from compiler.lowering.operands import Operands, linear, pick, pick_operand
from compiler.lowering.stream import dense_strides, region, row_major
from compiler.lowering.tiles import Homes, Slot, Tile, tiles
from compiler.lowering.tiling import ResultShape, finishes_in_place, moves_directly, product, scatters
from compiler.ops.work import Apply, Arg, Expression
from compiler.program.instructions import Address, Matmul, Memory, Operand, Region, Vector

if TYPE_CHECKING:
    from compiler.lowering.contraction import Contraction
    from compiler.lowering.nests import Nest
    from compiler.lowering.plan import KernelPlan


class KernelEmitter:
    """Emits the instructions of one nest by its plan. ``contraction`` sends the products to the matrix array."""

    def __init__(self, nest: Nest, plan: KernelPlan, contraction: Contraction | None, homes: Homes) -> None:
        self._nest = nest
        self._tiling = plan.tiling
        self._setting = plan.setting
        self._contraction = contraction
        self._homes = homes
        self._stream = homes.stream
        self._scatters = scatters(nest)
        self._result_loops = tuple(range(len(nest.extents))) if nest.is_scan else nest.parallel
        self._operands = Operands(nest, plan.tiling, plan.setting, homes)
        base = self._operands.place(plan.block.address)
        slots = ResultShape.of(nest, plan.setting).at(plan.tiling.sizes, plan.tiling.order)
        self._out = Slot.at(base, slots.out, slots.copies)
        self._accumulator = Slot.at(base + slots.out * slots.copies, slots.accumulators, slots.copies)
        self._resident = homes.resident(homes.root(nest.result)) if plan.setting.keeps else None

    def emit(self) -> None:
        """Emit all tiles. What a tile reads is loaded before the tile ahead of it is computed."""
        resident = self._resident
        waiting: Tile | None = None
        for tile in tiles(self._nest, self._tiling):
            self._operands.load(tile)
            if waiting is not None:
                self._emit_tile(waiting, resident)
            waiting = tile
        assert waiting is not None
        self._emit_tile(waiting, resident)
        if self._scatters and resident is None:
            self._copy_result(self._out.addresses[0], load=False)

    # ---- one tile

    def _emit_tile(self, tile: Tile, resident: int | None) -> None:
        nest = self._nest
        if moves_directly(nest, self._setting):
            self._store(self._moved(tile), tile)
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

    def _moved(self, tile: Tile) -> Region:
        """For movement alone: where the tile's elements lie in SRAM, to be stored from there."""
        assert isinstance(self._nest.body, Arg)
        return self._operands.operand(self._nest.reads[self._nest.body.index], tile).region

    def _result_sizes(self, tile: Tile) -> tuple[int, ...]:
        return tuple(tile.sizes[loop] for loop in self._result_loops)

    def _accumulator_region(self, tile: Tile, resident: int | None) -> Region:
        """Where a tile is combined: in the result itself, when that is kept and needs no finish."""
        if resident is not None and finishes_in_place(self._nest):
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
        factors = factor_elements(nest, roles)
        flow, _ = self._homes.machine.best_dataflow(factors, *(product(sizes) for sizes in (batch, m, n, k)))
        self._stream.add(
            Matmul(0, 0, batch, m, n, k, a, b, out, accumulate=not tile.first, dataflow=self._homes.machine.asked(flow))
        )
        self._stream.count(macs=product(tile.sizes))

    def _finish(self, tile: Tile, accumulator: Region, resident: int | None) -> Region:
        """Turn the accumulators into elements of the result; where there is nothing to do they are that already."""
        nest = self._nest
        assert nest.finish is not None
        if finishes_in_place(nest):
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
