"""What stays in SRAM: for each kernel its tiling, which tensors it finds there, and where everything lies.

Kernels are taken in order. A result stays for its readers, and small operands that are read again are loaded whole,
as long as there is room; else the tensor that is read last gives way (Belady's rule), if what that costs is less than
what the kernel gains. A kernel's block of tiles lives from the kernel before, so that its first loads need not wait.
Decisions count bytes by time alone; addresses come after them, from all lifetimes at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from compiler.errors import LoweringError
from compiler.ir import Value
from compiler.lowering.nests import Nest, Read
from compiler.lowering.packing import Allocation, Packing, pack
from compiler.lowering.placement import on_matrix
from compiler.lowering.search import Choice, Tiler
from compiler.lowering.signature import signature
from compiler.lowering.tiling import Setting, Tiling, aligned, finishes_in_place, product, scatters, tabled_reads
from compiler.ops.work import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from compiler.lowering.machine import Machine

_SHARED_PART: Final = 8
"""A tensor is loaded whole, to stay, if it takes at most this part of SRAM."""

_TABLE_PART: Final = 2
"""The same for a tensor that is gathered from, if that takes more bursts than loading it."""

_MOST_EVICTED: Final = 4
"""How many residents may give way to make one kernel cheaper (any number where it must)."""

_NEAR: Final = 1.05
"""A kernel within this of what it would take with all of SRAM needs no more room."""

_SHRINK: Final = (1.0, 0.95, 0.88, 0.8, 0.65, 0.5)
"""Parts of SRAM to plan with, until the addresses fit."""

_STEPS: Final = 8
"""Budgets are rounded down to so many steps an octave: alike kernels then share one search."""


@dataclass(slots=True)
class Stay:
    """A whole tensor in SRAM for some kernels. ``loaded``: it is read from DRAM when the first one begins."""

    root: Value
    allocation: Allocation
    loaded: bool = False

    @property
    def address(self) -> int:
        """Where it lies."""
        return self.allocation.address


@dataclass(slots=True)
class KernelPlan:
    """One kernel: its tiling, the tensors that it finds in SRAM, those that it loads whole or that leave before it."""

    tiling: Tiling
    setting: Setting
    block: Allocation
    stays: dict[Value, Stay]
    loads: list[Stay] = field(default_factory=list)
    leaves: list[Stay] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels' plans; None for a kernel without points. ``packing``: the peak of SRAM and its lower bound."""

    kernels: tuple[KernelPlan | None, ...]
    packing: Packing


class Uses:
    """When each tensor is read and written, by kernel number."""

    def __init__(self, nests: Sequence[Nest], root: Callable[[Value], Value]) -> None:
        self.root = root
        self.reads: dict[Value, list[int]] = {}
        self.last_write: dict[Value, int] = {}
        for number, nest in enumerate(nests):
            for value in dict.fromkeys(root(read.value) for read in tabled_reads(nest)):
                self.reads.setdefault(value, []).append(number)
            self.last_write[root(nest.result)] = number

    def next(self, root: Value, number: int) -> int | None:
        """The first kernel from ``number`` on that reads the tensor or writes a part of it, else None."""
        later = next((read for read in self.reads.get(root, ()) if read >= number), None)
        if later is not None:
            return later
        written = self.last_write.get(root, -1)
        return written if written >= number else None

    def last(self, root: Value) -> int:
        """The last kernel that reads or writes the tensor."""
        return max(self.reads.get(root, (-1,))[-1], self.last_write.get(root, -1))


class Searches:
    """Tilings found so far, shared by kernels that are alike."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._found: dict[Hashable, list[tuple[int, Choice | None]]] = {}

    def choose(self, nest: Nest, key: Hashable, budget: int, setting: Setting) -> Choice | None:
        """The tiling of a nest in a setting within a budget, or None.

        What was found within a greater budget and fits a smaller one is what would be found there.
        """
        budget = _rounded(budget)
        flags = tuple(read.value in setting.resident for read in tabled_reads(nest))
        found = self._found.setdefault((key, flags, setting.keeps), [])
        for searched, choice in found:
            if searched == budget or (searched > budget and (choice is None or choice.tiling.footprint <= budget)):
                return choice
        tiler = Tiler(nest, on_matrix(nest, self.machine), self.machine, budget, setting)
        found.append((budget, tiler.choose()))
        return found[-1][1]

    def best(self, nest: Nest, key: Hashable, setting: Setting) -> Choice | None:
        """The tiling with all of SRAM."""
        return self.choose(nest, key, self.machine.sram_bytes, setting)


def _rounded(budget: int) -> int:
    if budget < _STEPS * 64:
        return budget
    unit = 1 << max(budget.bit_length() - _STEPS.bit_length(), 0)
    return budget // unit * unit


def plan_kernels(
    nests: Sequence[Nest], root: Callable[[Value], Value], kept: frozenset[Value], searches: Searches
) -> Plan:
    """The plan of some kernels; ``kept`` must be in DRAM at the end. Raises LoweringError if one has no room."""
    capacity = searches.machine.sram_bytes
    for part in _SHRINK:
        planner = _Planner(nests, root, kept, searches, int(capacity * part))
        planner.run()
        packing = pack(planner.allocations)
        if packing.peak <= capacity:
            return Plan(tuple(planner.kernels), packing)
    msg = f"{len(nests)} kernels found no addresses within {capacity} bytes of SRAM"
    raise LoweringError(msg)


@dataclass(slots=True)
class _Attempt:
    """One way to run a kernel: who gives way for it, and what it costs in cycles, penalties included.

    ``is_near``: with all of SRAM it would take hardly fewer.
    """

    choice: Choice
    setting: Setting
    evicted: list[Value]
    cycles: float
    early: bool
    is_near: bool = False


class _Planner:
    def __init__(
        self,
        nests: Sequence[Nest],
        root: Callable[[Value], Value],
        kept: frozenset[Value],
        searches: Searches,
        capacity: int,
    ) -> None:
        self.nests = nests
        self.root = root
        self.kept = kept
        self.searches = searches
        self.machine = searches.machine
        self.capacity = capacity
        self.uses = Uses(nests, root)
        self.kernels: list[KernelPlan | None] = []
        self.allocations: list[Allocation] = []
        self._stays: dict[Value, Stay] = {}
        self._dirty: set[Value] = set()
        self._used = [0] * (len(nests) + 1)

    # ---- bytes by time

    def _occupy(self, allocation: Allocation) -> None:
        self.allocations.append(allocation)
        for time in range(max(allocation.start, 0), allocation.end + 1):
            self._used[time] += allocation.size

    def _end(self, stay: Stay, number: int) -> None:
        """The tensor leaves before kernel ``number``."""
        for time in range(number, stay.allocation.end + 1):
            self._used[time] -= stay.allocation.size
        stay.allocation.end = min(stay.allocation.end, number - 1)

    def _free(self, number: int, *, early: bool) -> int:
        used = self._used[number]
        if early and number:
            used = max(used, self._used[number - 1])
        return self.capacity - used

    # ---- kernels

    def run(self) -> None:
        """Plan every kernel in order."""
        for number, nest in enumerate(self.nests):
            self._forget(number)
            self.kernels.append(self._kernel(number, nest) if nest.points else None)

    def _forget(self, number: int) -> None:
        for root in [root for root in self._stays if self.uses.next(root, number) is None]:
            del self._stays[root]
            self._dirty.discard(root)

    def _kernel(self, number: int, nest: Nest) -> KernelPlan:
        key = signature(nest)
        loads = self._shared(number, nest)
        attempt = self._best(number, nest, key)
        leaves = [self._stays[root] for root in attempt.evicted]
        for stay in leaves:
            self._end(stay, number)
            del self._stays[stay.root]
            self._dirty.discard(stay.root)
        loads = [stay for stay in loads if stay.root in self._stays]
        start = number - 1 if attempt.early else number
        block = Allocation(aligned(attempt.choice.tiling.footprint), max(start, 0), number)
        self._occupy(block)
        if attempt.setting.keeps:
            self._keep_result(number, nest)
        result = self.root(nest.result)
        if result in self.kept and self.uses.last_write[result] == number:
            self._dirty.discard(result)
        return KernelPlan(attempt.choice.tiling, attempt.setting, block, self._seen(nest), loads, leaves)

    def _seen(self, nest: Nest) -> dict[Value, Stay]:
        roots = {self.root(read.value) for read in tabled_reads(nest)} | {self.root(nest.result)}
        return {root: self._stays[root] for root in roots if root in self._stays}

    def _shared(self, number: int, nest: Nest) -> list[Stay]:
        """Operands in DRAM that later kernels read too, or that are gathered from: loaded whole, if there is room."""
        made = []
        for read in dict.fromkeys(nest.all_reads):
            root, type_ = self.root(read.value), read.value.tensor
            if read.is_affine:
                small = type_.nbytes <= self.capacity // _SHARED_PART
                again = any(later > number for later in self.uses.reads.get(root, ()))
            else:
                small = type_.nbytes <= self.capacity // _TABLE_PART
                again = self._is_scattered(read, nest)
            if root in self._stays or not (type_.nbytes and small and again):
                continue
            if not self.machine.may_compute(type_.element):
                continue
            size = aligned(type_.nbytes)
            early = self._free(number, early=True) >= 2 * size
            if not early and self._free(number, early=False) < 2 * size:
                continue
            start = max(number - 1, 0) if early else number
            stay = Stay(root, Allocation(size, start, self.uses.last(root)), loaded=True)
            self._occupy(stay.allocation)
            self._stays[root] = stay
            made.append(stay)
        return made

    def _is_scattered(self, read: Read, nest: Nest) -> bool:
        """Whether gathering from DRAM takes more than loading the tensor whole: a burst for each run of elements."""
        last = read.dims[-1]
        run = nest.extents[-1] if isinstance(last, Index) else 1
        run_bytes = max(run * (read.value.tensor.element.bits // 8), self.machine.burst)
        return product(nest.extents[loop] for loop in read.iterators()) // run * run_bytes > read.value.tensor.nbytes

    # ---- choices

    def _setting(self, nest: Nest, evicted: Sequence[Value], *, keeps: bool) -> Setting:
        resident = frozenset(
            read.value
            for read in tabled_reads(nest)
            if (root := self.root(read.value)) in self._stays and root not in evicted
        )
        return Setting(resident, keeps)

    def _best(self, number: int, nest: Nest, key: Hashable) -> _Attempt:
        result = self.root(nest.result)
        ways = [True] if result in self._stays else [True, False] if self._may_keep(number, nest) else [False]
        attempts: list[_Attempt] = []
        for keeps in ways:
            found = self._attempt(number, nest, key, keeps=keeps)
            attempts += [found] if found is not None else []
            if found is not None and not found.evicted and found.is_near:
                break
        if result in self._stays and not attempts:
            found = self._attempt(number, nest, key, keeps=False)
            attempts += [found] if found is not None else []
        if not attempts:
            attempts = [self._alone(nest, key)]
        return min(attempts, key=lambda attempt: attempt.cycles)

    def _may_keep(self, number: int, nest: Nest) -> bool:
        root = self.root(nest.result)
        read_later = any(later > number for later in self.uses.reads.get(root, ()))
        written_later = self.uses.last_write[root] > number
        if nest.continues or not self.machine.may_compute(nest.result.tensor.element):
            return False
        return (read_later or written_later) and root.tensor.nbytes <= self.capacity

    def _attempt(self, number: int, nest: Nest, key: Hashable, *, keeps: bool) -> _Attempt | None:
        """The cheapest way with the result kept or not: nobody gives way, or those that are read last.

        More give way only where the kernel is far from what it would take with all of SRAM.
        """
        result = self.root(nest.result)
        evicted = [result] if not keeps and result in self._stays else []
        roomy = self.searches.best(nest, key, self._setting(nest, evicted, keeps=keeps))
        if roomy is None:
            return None
        best: _Attempt | None = None
        candidates = self._candidates(number, nest)
        while True:
            found = self._priced(number, nest, key, evicted, roomy.cycles * _NEAR, keeps=keeps)
            if found is not None and (best is None or found.cycles < best.cycles):
                best = found
            if best is not None:
                best.is_near = best.cycles <= roomy.cycles * _NEAR
                if best.is_near or len(evicted) >= _MOST_EVICTED:
                    return best
            if not candidates:
                return best
            evicted = [*evicted, candidates.pop(0)]

    def _candidates(self, number: int, nest: Nest) -> list[Value]:
        """Residents that may give way, the one that is read last first; the kernel's own operands after all others."""
        own = {self.root(read.value) for read in tabled_reads(nest)} | {self.root(nest.result)}
        others = [root for root in self._stays if root not in own]
        others.sort(key=lambda root: -(self.uses.next(root, number) or 0))
        mine = [root for root in self._stays if root in own and root is not self.root(nest.result)]
        return [*others, *mine]

    def _priced(
        self, number: int, nest: Nest, key: Hashable, evicted: list[Value], enough: float, *, keeps: bool
    ) -> _Attempt | None:
        """The cost with some residents gone; ``enough`` cycles are not improved on by a block without its own place."""
        setting = self._setting(nest, evicted, keeps=keeps)
        size = 0
        if keeps and self.root(nest.result) not in self._stays and self._replaced(number, nest, setting) is None:
            size = aligned(self.root(nest.result).tensor.nbytes)
        given = sum(self._stays[root].allocation.size for root in evicted)
        late = self._free(number, early=False) + given - size
        early = min(self._free(number, early=True), late)
        ways: list[tuple[float, bool, Choice]] = []
        for budget, is_early in ((early, True), (late, False)):
            if ways and ways[0][0] <= enough:
                break
            choice = self.searches.choose(nest, key, budget, setting) if budget >= 0 else None
            if choice is not None:
                exposed = 0.0 if is_early else self._start_up(nest, setting, choice)
                ways.append((choice.cycles + exposed, is_early, choice))
        if not ways:
            return None
        cycles, is_early, choice = min(ways, key=lambda way: (way[0], not way[1]))
        penalty = sum(self._penalty(root, number) for root in evicted)
        if not keeps:
            penalty += self._reload(self.root(nest.result), number)
        return _Attempt(choice, setting, list(evicted), cycles + penalty, is_early)

    def _start_up(self, nest: Nest, setting: Setting, choice: Choice) -> float:
        """Cycles of the first loads, which a block without a place of its own cannot hide."""
        loads = sum(read.value not in setting.resident for read in tabled_reads(nest))
        moved = choice.tiling.footprint / 2 / self.machine.bytes_per_cycle if loads else 0.0
        return loads * self.machine.latency + moved

    def _reload(self, root: Value, number: int) -> float:
        """Cycles to read a tensor from DRAM for its readers after this kernel."""
        readers = sum(later > number for later in self.uses.reads.get(root, ()))
        return readers * root.tensor.nbytes / self.machine.bytes_per_cycle

    def _penalty(self, root: Value, number: int) -> float:
        """Cycles that it costs to have the tensor in DRAM from here on."""
        written = root.tensor.nbytes / self.machine.bytes_per_cycle if root in self._dirty else 0.0
        return written + self._reload(root, number) + self.machine.latency

    def _alone(self, nest: Nest, key: Hashable) -> _Attempt:
        """With all of SRAM, everybody else gone."""
        evicted = list(self._stays)
        setting = self._setting(nest, evicted, keeps=False)
        choice = self.searches.choose(nest, key, self.machine.sram_bytes, setting)
        if choice is None:
            contraction = on_matrix(nest, self.machine)
            choice = Tiler(nest, contraction, self.machine, self.machine.sram_bytes, setting).choose()
        if choice is None:
            names = "+".join(op.name for op in nest.ops)
            msg = f"no tile of {names} fits {self.machine.sram_bytes} bytes of SRAM"
            raise LoweringError(msg)
        return _Attempt(choice, setting, evicted, 0.0, early=False)

    # ---- results

    def _replaced(self, number: int, nest: Nest, setting: Setting) -> Stay | None:
        """The resident whose bytes the result may take: each is read for the last time to compute the one in its place.

        Instructions read at their start and write at their end, and no tile reads what another one writes.
        """
        if nest.parts > 1 or nest.is_scan or scatters(nest) or (nest.combiner is not None and finishes_in_place(nest)):
            return None
        reads = nest.reads if nest.combiner is None else nest.finish_reads
        for read in reads:
            root = self.root(read.value)
            stay = self._stays.get(root)
            others = [other for other in tabled_reads(nest) if self.root(other.value) is root and other is not read]
            if stay is None or read.value not in setting.resident or others or read.dims != nest.write:
                continue
            same = read.value.tensor.shape == nest.result.tensor.shape
            fits = read.value.tensor.element.bits == nest.result.tensor.element.bits
            if same and fits and read.fill is None and self.uses.next(root, number + 1) is None:
                return stay
        return None

    def _keep_result(self, number: int, nest: Nest) -> None:
        root = self.root(nest.result)
        self._dirty.add(root)
        if root in self._stays:
            return
        end = self.uses.last(root)
        replaced = self._replaced(number, nest, self._setting(nest, (), keeps=True))
        if replaced is not None:
            for time in range(replaced.allocation.end + 1, end + 1):
                self._used[time] += replaced.allocation.size
            replaced.allocation.end = end
            self._stays[root] = replace(replaced, root=root, loaded=False)
            return
        stay = Stay(root, Allocation(aligned(root.tensor.nbytes), number, end))
        self._occupy(stay.allocation)
        self._stays[root] = stay
