"""Tile sizes and loop order: the cheapest cut of a nest that fits its share of SRAM, by a simple cost model.

From the whole nest, the loop whose halving costs least for the bytes it frees is halved until the tiles fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import ceil, gcd, inf
from typing import TYPE_CHECKING, Final

from compiler.lowering.contraction import factor_elements
from compiler.lowering.nests import ARGUMENT_COMBINERS, Nest, Read
from compiler.ops.work import Index, IteratorKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.lowering.contraction import Contraction
    from compiler.lowering.machine import Machine
    from compiler.lowering.nests import Dims

ALIGNMENT: Final = 64
"""Start of every SRAM tile and DRAM buffer, in bytes."""

_MOST_PERMUTED: Final = 5
"""Loop orders of more tiled loops than this are not searched; the natural one is taken."""

_DEEPEST_CUT: Final = 5
"""Halvings of one loop that are looked ahead."""

_HIDDEN_SHARE: Final = 0.125
"""Weight of what the busier engine hides."""

_MOST_POINTS: Final = 1 << 22
"""Most points of one vector instruction that combines products: the simulator holds them all at once."""


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
    total = 1
    for size in sizes:
        total *= size
    return total


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


class Tiler:
    """Chooses the tiling of one nest for a machine and a budget of SRAM bytes."""

    def __init__(self, nest: Nest, contraction: Contraction | None, machine: Machine, budget: int) -> None:
        self._nest = nest
        self._contraction = contraction
        self._machine = machine
        self._budget = budget
        self._extents = nest.extents
        self._reads = tabled_reads(nest)
        self._scatters = scatters(nest)
        self._cuttable = self._find_cuttable()
        self._granules = self._find_granules()

    def _find_cuttable(self) -> tuple[int, ...]:
        nest = self._nest
        found = [] if self._scatters else list(nest.parallel)
        if self._scatters:
            held = {loop for dim in nest.write if isinstance(dim, Index) for loop, _ in dim.terms}
            found = [loop for loop in nest.parallel if loop not in held]
        if nest.combiner not in ARGUMENT_COMBINERS and not nest.is_scan:
            found += [loop for loop in nest.folded if nest.iterators[loop].kind is IteratorKind.REDUCTION]
        return tuple(loop for loop in found if self._extents[loop] > 1)

    def _find_granules(self) -> dict[int, int]:
        """Multiples that tile sizes keep to: the array's sides, along the innermost loop of m and n."""
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

    def choose(self) -> Tiling | None:
        """The tiling, or None when even tiles of one point do not fit."""
        if self._fits(self._extents):
            return Tiling(self._extents, (), self._footprint(self._extents))
        sizes = list(self._extents)
        while not self._fits(sizes):
            step = self._best_cut(sizes)
            if step is None:
                return None
            loop, size = step
            sizes[loop] = size
        self._grow(sizes)
        order = self._best_order(sizes)
        return Tiling(tuple(sizes), order, self._footprint(sizes))

    def is_possible(self) -> bool:
        """Whether the smallest tiles fit."""
        smallest = [1 if loop in self._cuttable else extent for loop, extent in enumerate(self._extents)]
        return self._fits(self._extents) or self._fits(smallest)

    def _grow(self, sizes: list[int]) -> None:
        """Double tiles again where that fits after all and costs less: an early deep cut may have left room."""
        cost = self._cost(sizes)
        grown = True
        while grown:
            grown = False
            for loop in self._cuttable:
                trial = list(sizes)
                trial[loop] = min(sizes[loop] * 2, self._extents[loop])
                fits = trial[loop] > sizes[loop] and self._keeps_order(trial) and self._fits(trial)
                if fits and self._cost(trial) < cost:
                    sizes[:], cost, grown = trial, self._cost(trial), True

    def _fits(self, sizes: Sequence[int]) -> bool:
        if self._contraction is None and self._nest.combiner is not None and product(sizes) > _MOST_POINTS:
            return False
        return self._footprint(sizes) <= self._budget

    def _footprint(self, sizes: Sequence[int]) -> int:
        """Bytes of all tiles, those that change from tile to tile twice."""
        total = 0
        cut = {loop for loop in self._cuttable if sizes[loop] < self._extents[loop]}
        for read in self._reads:
            total += tile_bytes(read, sizes, self._extents) * (2 if cut & read.iterators() else 1)
        return total + sum(result_bytes(self._nest, sizes)) * result_copies(self._nest, cut)

    def _best_cut(self, sizes: list[int]) -> tuple[int, int] | None:
        """The cut that costs least for the bytes it frees.

        A first cut may free nothing, since tiles that change need two buffers; so deeper cuts are tried too.
        """
        best: tuple[float, int, int] | None = None
        cost, footprint = self._cost(sizes), self._footprint(sizes)
        for loop in self._cuttable:
            trial = list(sizes)
            for _ in range(_DEEPEST_CUT):
                if trial[loop] == 1:
                    break
                trial[loop] = self._halved(loop, trial[loop])
                if not self._keeps_order(trial):
                    continue
                freed = footprint - self._footprint(trial)
                rate = (self._cost(trial) - cost) / freed if freed > 0 else inf
                if best is None or rate < best[0]:
                    best = (rate, loop, trial[loop])
        return None if best is None else best[1:]

    def _keeps_order(self, sizes: Sequence[int]) -> bool:
        """Whether tile after tile meets the points in row-major order, which decides among writes to one place.

        Only where data says what is written: then a loop may be cut once those around it go by single indices.
        """
        if not self._scatters:
            return True
        whole = [sizes[loop] == self._extents[loop] for loop in self._cuttable]
        first = next((place for place, loop in enumerate(self._cuttable) if sizes[loop] > 1), len(whole))
        return all(whole[first + 1 :])

    def _halved(self, loop: int, size: int) -> int:
        half = ceil(size / 2)
        granule = self._granules[loop]
        whole = ceil(half / granule) * granule
        return whole if whole < size else half

    def _counts(self, sizes: Sequence[int]) -> dict[int, int]:
        return {
            loop: ceil(self._extents[loop] / sizes[loop])
            for loop in self._cuttable
            if sizes[loop] < self._extents[loop]
        }

    def _cost(self, sizes: Sequence[int]) -> float:
        """Modelled cycles: the slower of transfers and compute, and a share of the other to tell equals apart."""
        counts = self._counts(sizes)
        order = self._best_order(sizes)
        pair = (self._transfer_cycles(sizes, order, counts), self._compute_cycles(sizes, counts))
        return max(pair) + min(pair) * _HIDDEN_SHARE

    def _transfer_cycles(self, sizes: Sequence[int], order: Sequence[int], counts: dict[int, int]) -> float:
        machine = self._machine
        cycles = 0.0
        for read in self._reads:
            loads = _loads(read.iterators(), order, counts)
            cycles += loads * (machine.latency + tile_bytes(read, sizes, self._extents) / machine.bytes_per_cycle)
        folded = set(self._nest.folded)
        stores = product(count for loop, count in counts.items() if loop not in folded)
        element_bytes = self._nest.result.tensor.element.bits // 8
        stored = product(sizes[loop] for loop in self._nest.parallel) * element_bytes
        return cycles + stores * (machine.latency + stored / machine.bytes_per_cycle)

    def _compute_cycles(self, sizes: Sequence[int], counts: dict[int, int]) -> float:
        tiles = product(counts.values())
        if self._contraction is None:
            return tiles * self._machine.vector_cycles(product(sizes))
        groups = (self._contraction.batch, self._contraction.m, self._contraction.n, self._contraction.k)
        batch, m, n, k = (product(sizes[loop] for loop in loops) for loops in groups)
        factors = factor_elements(self._nest, self._contraction)
        return tiles * self._machine.matrix_cycles(factors, batch, m, n, k)

    def _best_order(self, sizes: Sequence[int]) -> tuple[int, ...]:
        counts = self._counts(sizes)
        folded = [loop for loop in self._nest.folded if loop in counts]
        outer = [loop for loop in self._nest.parallel if loop in counts]
        if self._scatters or len(outer) > _MOST_PERMUTED:
            return (*outer, *folded)
        orders = [(*order, *folded) for order in permutations(outer)]
        return min(orders, key=lambda order: self._transfer_cycles(sizes, order, counts))


def _loads(depends: frozenset[int], order: Sequence[int], counts: dict[int, int]) -> int:
    """How often a tile is loaded: once for each step of the loops down to the innermost that it depends on."""
    last = max((place for place, loop in enumerate(order) if loop in depends), default=-1)
    return product(counts[loop] for loop in order[: last + 1])


def result_bytes(nest: Nest, sizes: Sequence[int]) -> tuple[int, int]:
    """SRAM bytes of the tile of the result, and of its accumulators (0 without a combiner)."""
    element_bytes = nest.result.tensor.element.bits // 8
    if scatters(nest):
        return aligned(nest.result.tensor.nbytes), 0
    points = product(sizes) if nest.is_scan else product(sizes[loop] for loop in nest.parallel)
    accumulators = 0 if nest.combiner is None else aligned(points * (nest.combined_element.bits // 8))
    return aligned(points * element_bytes), accumulators


def result_copies(nest: Nest, cut: Iterable[int]) -> int:
    """Two tiles of the result rotate where it is cut."""
    return 2 if set(cut) & set(nest.parallel) and not scatters(nest) else 1


def scatters(nest: Nest) -> bool:
    """Whether the place written depends on data; the whole result then stays in SRAM while the nest runs."""
    return not all(isinstance(dim, Index) for dim in nest.write)
