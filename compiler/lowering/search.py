"""Tile sizes and loop order of one kernel, searched by a model of its cycles.

The model takes the engines as a pipeline over tiles: the busiest engine's cycles, plus what one tile spends on the
others, since the first load and the last store overlap with nothing. From a first cut that fits, one loop (then two at
once) is made coarser or finer as long as the modelled cycles fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, inf
from typing import TYPE_CHECKING, Final

from compiler.lowering.contraction import factor_elements
from compiler.lowering.nests import ARGUMENT_COMBINERS, LookupIndex, Nest, Read
from compiler.lowering.tiling import (
    NOTHING_RESIDENT,
    ResultShape,
    Setting,
    Tiling,
    aligned,
    finishes_in_place,
    in_place,
    moves_directly,
    padded_dims,
    product,
    scatters,
    tabled_reads,
)
from compiler.ops.work import Index, IteratorKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compiler.lowering.contraction import Contraction
    from compiler.lowering.machine import Machine
    from compiler.lowering.nests import Dims

_MOST_POINTS: Final = 1 << 22
"""Most points of one vector instruction that combines products: the simulator holds them all at once."""

_SMALL: Final = 256
"""A kernel that could gain no more cycles than this by overlap is not cut."""

_HIDDEN_SHARE: Final = 0.06
"""Weight of transfers, also where others hide them: they take energy, and bandwidth from the kernels around."""

_TILE_CYCLES: Final = 4
"""What a tile is taken to cost by itself, so that there are no more of them than help."""

_ROOM_SHARE: Final = 0.02
"""What a kernel that takes all of SRAM is taken to lose, by what does not fit beside it."""

_GAIN: Final = 0.995
"""A step is taken if the cycles fall to this part at most."""

_CLIMBS: Final = 2
"""From how many starts the search goes on."""

_ALL: Final = 1 << 24
_FORMS: Final = (
    (_ALL, 1), (1, _ALL), (_ALL, 2), (2, _ALL), (_ALL, 4), (4, _ALL), (_ALL, 8), (8, _ALL), (_ALL, 16), (16, _ALL),
    (2, 2), (4, 4), (8, 8), (12, 12), (16, 16), (8, 16), (16, 8), (16, 4), (4, 16),
)  # fmt: skip
"""Blocks of a product's result to start from, in array sides down and across."""

_PARTS: Final = (
    1,
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    192,
    256,
    512,
    1024,
    4096,
    1 << 14,
    1 << 18,
    1 << 24,
)
"""Numbers of tiles that a loop is cut into."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A tiling and its modelled cycles."""

    tiling: Tiling
    cycles: float


class _Place:
    """A tensor in DRAM that is cut into boxes: the bytes of bursts that a box takes."""

    def __init__(self, dims: Dims, extents: Sequence[int], shape: Sequence[int], element_bytes: int) -> None:
        self._dims = tuple(
            (_factors(dim, extents), size if isinstance(dim, Index) else None)
            for dim, size in zip(dims, shape, strict=True)
        )
        last = dims[-1] if dims else Index()
        self._is_unit = isinstance(last, Index) and _step(last, extents) == 1
        self._element_bytes = element_bytes

    def bus_bytes(self, sizes: Sequence[int], burst: int) -> int:
        """Whole bursts for each unbroken run of the box; single elements that lie near share them in part."""
        elements = 1
        run = self._element_bytes
        is_run = self._is_unit
        for factors, extent in reversed(self._dims):
            count = 1
            for loop, factor in factors:
                count += factor * (sizes[loop] - 1)
            elements *= count
            is_run = is_run and extent is not None
            if is_run:
                run *= count
                is_run = extent is not None and count >= extent
        moved = elements * self._element_bytes
        return moved if run >= 16 * burst else ceil(moved / run) * ceil(run / burst) * burst


class _Operand:
    """A read prepared for the model: bytes of its tile as a product over dims of 1 + sum of factor * (size - 1)."""

    def __init__(self, read: Read, nest: Nest, setting: Setting) -> None:
        self.loops = read.iterators()
        self.element_bytes = read.value.tensor.element.bits // 8
        self.is_resident = read.value in setting.resident
        self.has_slot = not in_place(read, nest, setting)
        extents = nest.extents
        self.padding: tuple[frozenset[int], ...] = ()
        if read.is_affine:
            self.dims = tuple(_factors(dim, extents) for dim in read.dims if isinstance(dim, Index))
            padded = padded_dims(read, extents)
            self.padding = tuple(frozenset(loop for loop, _ in self.dims[dim]) for dim in padded)
        else:
            self.dims = tuple(((loop, 1),) for loop in sorted(self.loops))
        self.place = _Place(read.dims, extents, read.value.tensor.shape, self.element_bytes)

    def elements(self, sizes: Sequence[int]) -> int:
        """Elements of the tile."""
        total = 1
        for factors in self.dims:
            count = 1
            for loop, factor in factors:
                count += factor * (sizes[loop] - 1)
            total *= count
        return total

    def padded_share(self, counts: dict[int, int]) -> float:
        """The part of the tiles that reach outside the tensor: the first and the last along each padded dim."""
        inner = 1.0
        for loops in self.padding:
            tiles = product(counts.get(loop, 1) for loop in loops)
            inner *= max(tiles - 2, 0) / tiles
        return 1.0 - inner


def _step(dim: Index, extents: Sequence[int]) -> int:
    return gcd(*(factor for loop, factor in dim.terms if extents[loop] > 1)) or 1


def _factors(dim: Index | LookupIndex, extents: Sequence[int]) -> tuple[tuple[int, int], ...]:
    if not isinstance(dim, Index):
        return tuple((loop, 1) for loop in sorted(dim.read.iterators()))
    step = _step(dim, extents)
    return tuple((loop, abs(factor) // step) for loop, factor in dim.terms if extents[loop] > 1)


class Tiler:
    """Chooses the tiling of one nest for a machine, a setting, and a budget of SRAM bytes."""

    def __init__(
        self,
        nest: Nest,
        contraction: Contraction | None,
        machine: Machine,
        budget: int,
        setting: Setting = NOTHING_RESIDENT,
    ) -> None:
        self._nest = nest
        self._contraction = contraction
        self._machine = machine
        self._budget = budget
        self._setting = setting
        self._extents = nest.extents
        self._folded = set(nest.folded)
        self._parallel = nest.parallel
        self._moves = moves_directly(nest, setting)
        self._result_bytes = nest.result.tensor.element.bits // 8
        self._slots = ResultShape.of(nest, setting)
        self._factors = None if contraction is None else factor_elements(nest, contraction)
        self._scatters = scatters(nest)
        self._operands = [_Operand(read, nest, setting) for read in tabled_reads(nest)]
        self._cuttable = self._find_cuttable()
        self._sides = self._find_sides()
        self._body_cycles = machine.body_cycles(nest.body, combines=nest.combiner is not None)
        has_finish = nest.finish is not None and not finishes_in_place(nest)
        self._finish_cycles = machine.body_cycles(nest.finish) if has_finish and nest.finish is not None else 0
        self._known: dict[tuple[int, ...], float] = {}
        self._moved: dict[tuple[_Operand, tuple[int, ...]], float] = {}
        result = nest.result.tensor
        self._stored = None if self._scatters else _Place(nest.write, nest.extents, result.shape, self._result_bytes)

    def _find_cuttable(self) -> tuple[int, ...]:
        nest = self._nest
        found = [] if self._scatters else list(nest.parallel)
        if self._scatters:
            held = {loop for dim in nest.write if isinstance(dim, Index) for loop, _ in dim.terms}
            found = [loop for loop in nest.parallel if loop not in held]
        if nest.combiner not in ARGUMENT_COMBINERS and not nest.is_scan:
            found += [loop for loop in nest.folded if nest.iterators[loop].kind is IteratorKind.REDUCTION]
        return tuple(loop for loop in found if self._extents[loop] > 1)

    def _find_sides(self) -> dict[int, int]:
        """The side of the array that the innermost wide loop of m, and that of n, fills."""
        found = dict.fromkeys(self._cuttable, 1)
        if self._contraction is not None:
            for loops, side in (
                (self._contraction.m, self._machine.rows),
                (self._contraction.n, self._machine.columns),
            ):
                wide = [loop for loop in loops if loop in found and self._extents[loop] >= side]
                if wide:
                    found[wide[-1]] = side
        return found

    # ---- what fits

    def is_possible(self) -> bool:
        """Whether the smallest tiles fit."""
        return self._fits(self._extents) or self._fits(self._smallest())

    def _smallest(self) -> list[int]:
        return [1 if loop in self._cuttable else extent for loop, extent in enumerate(self._extents)]

    def _fits(self, sizes: Sequence[int]) -> bool:
        if self._contraction is None and self._nest.combiner is not None and product(sizes) > _MOST_POINTS:
            return False
        return self._footprint(sizes) <= self._budget

    def _footprint(self, sizes: Sequence[int]) -> int:
        """Bytes of all tiles, those that change from tile to tile twice."""
        cut = {loop for loop in self._cuttable if sizes[loop] < self._extents[loop]}
        total = self._slots.at(sizes, cut).total
        for operand in self._operands:
            if operand.has_slot:
                size = aligned(operand.elements(sizes) * operand.element_bytes)
                total += size * (2 if cut & operand.loops else 1)
        return total

    # ---- search

    def choose(self) -> Choice | None:
        """The tiling, or None when even tiles of one point do not fit."""
        whole = tuple(self._extents)
        fits = self._fits(whole)
        if fits and (not self._cuttable or not self._machine.overlaps or self._loose(whole) <= _SMALL):
            return self._choice(whole)
        seeds = sorted({*self._seeds(), *((whole,) if fits else ())}, key=self._cost)
        if not fits and (not seeds or self._is_batched()):
            start = self._first_fit()
            seeds = sorted({*seeds, *(() if start is None else (start,))}, key=self._cost)
        if not seeds:
            return None
        return self._choice(min((self._improved(seed) for seed in seeds[:_CLIMBS]), key=self._cost))

    def _is_batched(self) -> bool:
        """Whether there are products of a batch, which the seeds take one by one."""
        roles = self._contraction
        return roles is not None and product(self._extents[loop] for loop in roles.batch) > 1

    def _seeds(self) -> Iterator[tuple[int, ...]]:
        """For products: blocks of the result of several forms, with as much of the sum as fits."""
        roles = self._contraction
        if roles is None:
            return
        machine = self._machine
        for down, across in _FORMS:
            sizes = list(self._extents)
            for loops, target in (
                (roles.batch, 1),
                (roles.m, machine.rows * down),
                (roles.n, machine.columns * across),
            ):
                self._fill(sizes, loops, target)
            for loop in [loop for loop in roles.k if loop in self._cuttable]:
                for size in self._candidates(loop):
                    sizes[loop] = size
                    if self._fits(sizes):
                        break
                if self._fits(sizes):
                    break
            if self._fits(sizes):
                yield tuple(sizes)

    def _fill(self, sizes: list[int], loops: Sequence[int], target: int) -> None:
        """Sizes of tiles along a group of loops, from the innermost on, whose product comes near to the target."""
        for loop in reversed(loops):
            if loop in self._cuttable:
                sizes[loop] = max(min(self._extents[loop], target), 1)
            target = max(target // sizes[loop], 1)

    def _choice(self, sizes: tuple[int, ...]) -> Choice:
        counts = self._counts(sizes)
        order, _ = self._best_order(sizes, counts)
        return Choice(Tiling(sizes, order, self._footprint(sizes)), self._cost(sizes))

    def _candidates(self, loop: int) -> list[int]:
        """Sizes of tiles along a loop, from the whole extent down."""
        extent, side = self._extents[loop], self._sides[loop]
        found = {extent}
        for parts in _PARTS:
            size = ceil(extent / parts)
            found.update((size, min(ceil(size / side) * side, extent)))
            if size == 1:
                break
        return sorted(found, reverse=True)

    def _first_fit(self) -> tuple[int, ...] | None:
        """Halve, again and again, the loop that frees most bytes for the cycles it costs, until the tiles fit."""
        sizes = list(self._extents)
        while not self._fits(sizes):
            best: tuple[float, int, int] | None = None
            cost, footprint = self._cost(tuple(sizes)), self._footprint(sizes)
            for loop, size in self._cuts(sizes):
                trial = [*sizes[:loop], size, *sizes[loop + 1 :]]
                freed = footprint - self._footprint(trial)
                rate = (self._cost(tuple(trial)) - cost) / freed if freed > 0 else inf
                if best is None or rate < best[0]:
                    best = (rate, loop, size)
            if best is None:
                smallest = self._smallest()
                return tuple(smallest) if self._fits(smallest) else None
            sizes[best[1]] = best[2]
        return tuple(sizes)

    def _cuts(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Deeper cuts of one loop. A first one may free nothing, since tiles that change need two buffers."""
        for loop in self._cuttable:
            finer = [size for size in self._candidates(loop) if size < sizes[loop]]
            for size in finer[:6]:
                if self._keeps_order([*sizes[:loop], size, *sizes[loop + 1 :]]):
                    yield loop, size

    def _improved(self, start: tuple[int, ...]) -> tuple[int, ...]:
        ladders = {loop: self._candidates(loop) for loop in self._cuttable}
        sizes, cost = start, self._cost(start)
        while True:
            best = self._better(_single_steps(sizes, ladders), cost)
            if best is None:
                best = self._better(_double_steps(sizes, ladders), cost)
            if best is None:
                return sizes
            sizes, cost = best

    def _better(self, trials: Iterable[tuple[int, ...]], cost: float) -> tuple[tuple[int, ...], float] | None:
        """The cheapest of the trials that fit, if it is cheaper by enough."""
        best: tuple[tuple[int, ...], float] | None = None
        for trial in trials:
            if not self._fits(trial):
                continue
            found = self._cost(trial)
            if found < (cost * _GAIN if best is None else best[1]) and self._keeps_order(trial):
                best = (trial, found)
        return best

    def _keeps_order(self, sizes: Sequence[int]) -> bool:
        """Whether tile after tile meets the points in row-major order, which decides among writes to one place.

        Only where data says what is written: then a loop may be cut once those around it go by single indices.
        """
        if not self._scatters:
            return True
        whole = [sizes[loop] == self._extents[loop] for loop in self._cuttable]
        first = next((place for place, loop in enumerate(self._cuttable) if sizes[loop] > 1), len(whole))
        return all(whole[first + 1 :])

    # ---- modelled cycles

    def _counts(self, sizes: Sequence[int]) -> dict[int, int]:
        return {
            loop: ceil(self._extents[loop] / sizes[loop])
            for loop in self._cuttable
            if sizes[loop] < self._extents[loop]
        }

    def _loose(self, sizes: tuple[int, ...]) -> float:
        """Cycles of the engines that are not the busiest, in all: what overlap could hide."""
        engines = self._engines(sizes, self._counts(sizes))
        return sum(engines) - max(engines)

    def _cost(self, sizes: tuple[int, ...]) -> float:
        """The pipeline's cycles."""
        found = self._known.get(sizes)
        if found is None:
            counts = self._counts(sizes)
            engines = self._engines(sizes, counts)
            busiest, tiles = max(engines), product(counts.values()) if self._machine.overlaps else 1
            piped = busiest + (sum(engines) - busiest) / tiles + engines[0] * _HIDDEN_SHARE + tiles * _TILE_CYCLES
            room = self._footprint(sizes) / self._machine.sram_bytes
            found = self._known[sizes] = piped * (1 + room * _ROOM_SHARE)
        return found

    def _engines(self, sizes: tuple[int, ...], counts: dict[int, int]) -> tuple[float, float, float]:
        """Cycles of DMA, matrix array, vector unit."""
        order, transfers = self._best_order(sizes, counts)
        tiles = product(counts.values())
        finished = product(count for loop, count in counts.items() if loop not in self._folded)
        parallel = product([sizes[loop] for loop in self._parallel])
        matrix = vector = 0.0
        if self._contraction is not None:
            matrix = tiles * self._matrix_cycles(sizes)
        elif not self._moves:
            vector = tiles * self._machine.vector_cycles(product(sizes), self._body_cycles)
        if self._finish_cycles:
            vector += finished * self._machine.vector_cycles(parallel, self._finish_cycles)
        vector += self._padding_cycles(sizes, order, counts)
        return transfers, matrix, vector

    def _matrix_cycles(self, sizes: Sequence[int]) -> float:
        assert self._contraction is not None
        groups = (self._contraction.batch, self._contraction.m, self._contraction.n, self._contraction.k)
        batch, m, n, k = (product([sizes[loop] for loop in loops]) for loops in groups)
        assert self._factors is not None
        return self._machine.matrix_cycles(self._factors, batch, m, n, k)

    def _padding_cycles(self, sizes: Sequence[int], order: Sequence[int], counts: dict[int, int]) -> float:
        """Fills of tiles that reach outside, and copies of those from residents."""
        cycles = 0.0
        for operand in self._operands:
            if operand.padding:
                loads = _loads(operand.loops, order, counts) * operand.padded_share(counts)
                passes = 2 if operand.is_resident else 1
                cycles += loads * passes * self._machine.vector_cycles(operand.elements(sizes), 1)
        return cycles

    def _transfer_cycles(self, sizes: Sequence[int], order: Sequence[int], counts: dict[int, int]) -> float:
        machine = self._machine
        cycles = 0.0
        for operand in self._operands:
            if not operand.is_resident:
                cycles += _loads(operand.loops, order, counts) * (machine.latency + self._moved_cycles(operand, sizes))
        if self._setting.keeps:
            return cycles
        stores = product([count for loop, count in counts.items() if loop not in self._folded])
        if self._stored is None:
            stored = product([sizes[loop] for loop in self._parallel]) * self._result_bytes
        else:
            stored = self._stored.bus_bytes(sizes, machine.burst)
        return cycles + stores * (machine.latency + stored / machine.bytes_per_cycle)

    def _moved_cycles(self, operand: _Operand, sizes: Sequence[int]) -> float:
        moved = self._moved.get((operand, key := tuple([sizes[loop] for loop in operand.loops])))
        if moved is None:
            bus = operand.place.bus_bytes(sizes, self._machine.burst)
            moved = self._moved[operand, key] = bus / self._machine.bytes_per_cycle
        return moved

    def _best_order(self, sizes: Sequence[int], counts: dict[int, int]) -> tuple[tuple[int, ...], float]:
        """The order of the cut loops, sums innermost, that moves least, and the cycles of its transfers.

        For each operand the order that keeps its tile for longest: its loops outside, the others inside.
        """
        folded = [loop for loop in self._cuttable if loop in counts and loop in self._folded]
        outer = [loop for loop in self._parallel if loop in counts]
        orders = [(*outer, *folded)]
        if not self._scatters and len(outer) > 1:
            for operand in self._operands:
                if not operand.is_resident:
                    kept = [loop for loop in outer if loop in operand.loops]
                    orders.append((*kept, *(loop for loop in outer if loop not in operand.loops), *folded))
        priced = [(self._transfer_cycles(sizes, order, counts), order) for order in dict.fromkeys(orders)]
        cycles, order = min(priced, key=lambda pair: pair[0])
        return order, cycles


def _single_steps(sizes: tuple[int, ...], ladders: dict[int, list[int]]) -> Iterator[tuple[int, ...]]:
    for loop, ladder in ladders.items():
        for size in _neighbours(sizes[loop], ladder):
            yield (*sizes[:loop], size, *sizes[loop + 1 :])


def _double_steps(sizes: tuple[int, ...], ladders: dict[int, list[int]]) -> Iterator[tuple[int, ...]]:
    """One loop coarser and another finer at once."""
    for loop, ladder in ladders.items():
        coarser = [size for size in ladder if size > sizes[loop]][-2:]
        for other, finer_ladder in ladders.items():
            finer = [size for size in finer_ladder if size < sizes[other]][:2]
            if other == loop:
                continue
            for up in coarser:
                for down in finer:
                    trial = list(sizes)
                    trial[loop], trial[other] = up, down
                    yield tuple(trial)


def _neighbours(size: int, ladder: Sequence[int]) -> list[int]:
    coarser = [other for other in ladder if other > size]
    finer = [other for other in ladder if other < size]
    return [*coarser[-2:], *finer[:3]]


def _loads(depends: frozenset[int], order: Sequence[int], counts: dict[int, int]) -> int:
    """How often a tile is loaded: once for each step of the loops down to the innermost that it depends on."""
    loads = 1
    seen = 1
    for loop in order:
        seen *= counts[loop]
        if loop in depends:
            loads = seen
    return loads
