"""When each instruction runs: integer cycles, four in-order queues, one DRAM, and repeats skipped once they recur.

An instruction starts when its engine has ended the one before and every instance it waits for has ended. The two DMA
engines share the DRAM: the beats of their transfers do not overlap (latencies do). Which goes first must not depend on
bandwidth, or a faster memory could make a run slower (Graham's anomalies); so it is decided by *logical* time, in which
a transfer takes one step and other instructions their cycles: a store yields to loads that are logically earlier. With
the order fixed, all times are sums and maxima of durations, and grow with each of them.

All durations are constant, so an iteration of a repeat maps the engines' state (relative to now) to the next one; once
that relative state recurs, so does everything after, and whole periods are added instead of run. Where it never
recurs, every iteration is run: the result is exact either way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from compiler.program.addresses import placed
from compiler.program.instructions import Engine, Repeat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.program.executable import Program
    from compiler.program.instructions import Instruction, Step
    from compiler.simulator.costs import Charge, Costs

ENGINES: Final = tuple(Engine)
CAUSES: Final = ("dma", "dependency", "drained")
"""Why an engine is idle: it waits for a DMA engine, for the matrix array or vector unit, or has nothing left to do."""

_DMA: Final = 0
_DEPENDENCY: Final = 1
_CAUSE: Final = {Engine.DMA_IN: _DMA, Engine.DMA_OUT: _DMA, Engine.MATRIX: _DEPENDENCY, Engine.VECTOR: _DEPENDENCY}


_IN: Final = ENGINES.index(Engine.DMA_IN)
_OUT: Final = ENGINES.index(Engine.DMA_OUT)


class Instance(NamedTuple):
    """One execution of instruction ``item`` (its place in the program), its ``k``-th, in cycles.

    ``order`` is its place in program order among all instances.
    """

    item: int
    k: int
    start: int
    end: int
    order: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The result of timing. ``idle`` is cycles by engine and cause; with ``busy`` they add up to ``cycles`` each.

    ``kernel_cycles``: by how much each kernel's instructions moved the end of the run; they add up to ``cycles``.
    ``simulated`` counts the instances run, the others were skipped.
    """

    cycles: int
    busy: tuple[int, ...]
    idle: tuple[tuple[int, ...], ...]
    kernel_cycles: tuple[int, ...]
    simulated: int


class _Leaf:
    __slots__ = ("beats", "cause", "cycles", "engine", "id", "item", "kernel", "latency", "steps", "waits")

    def __init__(self, item: int, instruction: Instruction, charge: Charge) -> None:
        self.item, self.id, self.kernel = item, instruction.id, instruction.kernel
        self.engine, self.cycles, self.beats = ENGINES.index(charge.engine), charge.cycles, charge.beats
        self.latency = charge.cycles - charge.beats
        self.waits = tuple((wait.on, wait.lag) for wait in instruction.waits)
        self.cause = _CAUSE[charge.engine]
        self.steps = 1 if self.cause == _DMA else charge.cycles


class _Ended:
    """When an instance ended, in real and in logical time; ``real`` is None for a store that has not had its turn."""

    __slots__ = ("logical", "real")

    def __init__(self, real: int | None, logical: int) -> None:
        self.real, self.logical = real, logical


class _Store:
    """A store that waits for its turn at the DRAM: its operands are ready at ``floor``."""

    __slots__ = ("cause", "ended", "floor", "k", "leaf", "logical", "order")

    def __init__(self, leaf: _Leaf, ended: _Ended, floor: int, logical: int, cause: int, k: int, order: int) -> None:
        self.leaf, self.ended, self.floor, self.logical = leaf, ended, floor, logical
        self.cause, self.k, self.order = cause, k, order


class _Loop:
    """A repeat. ``own``: the ids inside of it that anything waits for; ``moves``: whether it has transfers."""

    __slots__ = ("body", "count", "engines", "moves", "own")

    def __init__(self, count: int, body: list[_Node], waited: frozenset[int]) -> None:
        self.count, self.body = count, body
        leaves = list(_leaves(body))
        inside = {leaf.id for leaf in leaves}
        self.engines = sorted({leaf.engine for leaf in leaves})
        self.own = sorted(inside & waited)
        self.moves = bool({_IN, _OUT} & set(self.engines))


_Node: TypeAlias = "_Leaf | _Loop"


def _leaves(body: Sequence[_Node]) -> Iterator[_Leaf]:
    for node in body:
        if isinstance(node, _Loop):
            yield from _leaves(node.body)
        else:
            yield node


class Clock:
    """A program prepared for timing: charges of each instruction (in program order), queues and waits."""

    def __init__(self, program: Program, costs: Costs) -> None:
        self.program = program
        self.items = list(placed(program.body))
        self.charges: list[Charge] = [costs.charge(item.instruction, program.name) for item in self.items]
        lags: dict[int, int] = {}
        for item in self.items:
            for wait in item.instruction.waits:
                lags[wait.on] = max(lags.get(wait.on, 0), wait.lag)
        self._lags = lags
        self._next = 0
        self._body = self._prepare(program.body)
        self._reset()

    def _prepare(self, body: Sequence[Step]) -> list[_Node]:
        nodes: list[_Node] = []
        for step in body:
            if isinstance(step, Repeat):
                nodes.append(_Loop(step.count, self._prepare(step.body), frozenset(self._lags)))
                continue
            nodes.append(_Leaf(self._next, step, self.charges[self._next]))
            self._next += 1
        return nodes

    def _reset(self) -> None:
        self._ready = [0] * len(ENGINES)
        self._last = 0
        self._simulated = 0
        self._idle = [[0] * len(CAUSES) for _ in ENGINES]
        self._kernel = [0] * max(1, len(self.program.kernels))
        self._logical = [0] * len(ENGINES)
        self._open = 0  # the earliest start of a transfer at which its latency covers the beats before it
        self._stores: deque[_Store] = deque()
        self._ends: dict[int, deque[_Ended]] = {on: deque(maxlen=lag + 1) for on, lag in self._lags.items()}
        self._causes = {leaf.id: leaf.cause for leaf in _leaves(self._body)}
        self._seen = [0] * len(self.items)
        self._record: list[list[Instance]] | None = None

    def measure(self, *, overlap: bool = True, skip: bool = True) -> Schedule:
        """Time the program. ``skip`` False runs every iteration (the same result, more slowly)."""
        self._reset()
        if not overlap:
            return self._sequential()
        self._run(self._body, skip=skip)
        self._finish_stores()
        return self._schedule()

    def timeline(self, *, overlap: bool = True) -> tuple[Schedule, list[list[Instance]]]:
        """Time the program and give every instance, an engine a list, in order."""
        self._reset()
        record: list[list[Instance]] = [[] for _ in ENGINES]
        self._record = record
        self._run(self._body, skip=False, overlap=overlap)
        self._finish_stores()
        return self._schedule(), record

    def _schedule(self) -> Schedule:
        busy = [0] * len(ENGINES)
        for item, charge in zip(self.items, self.charges, strict=True):
            busy[ENGINES.index(charge.engine)] += charge.cycles * item.instances
        for engine, idle in enumerate(self._idle):
            idle[-1] += self._last - self._ready[engine]
        idle_table = tuple(tuple(row) for row in self._idle)
        return Schedule(self._last, tuple(busy), idle_table, tuple(self._kernel), self._simulated)

    def _sequential(self) -> Schedule:
        for item, charge in zip(self.items, self.charges, strict=True):
            spent = charge.cycles * item.instances
            self._last += spent
            self._kernel[item.instruction.kernel] += spent
        busy = [0] * len(ENGINES)
        for item, charge in zip(self.items, self.charges, strict=True):
            busy[ENGINES.index(charge.engine)] += charge.cycles * item.instances
        idle = tuple((0, self._last - spent, 0) for spent in busy)
        return Schedule(self._last, tuple(busy), idle, tuple(self._kernel), len(self.items))

    def _run(self, body: Sequence[_Node], *, skip: bool, overlap: bool = True) -> None:
        for node in body:
            if isinstance(node, _Leaf):
                self._step(node, overlap)
            elif skip:
                self._repeat(node)
            else:
                for _ in range(node.count):
                    self._run(node.body, skip=False, overlap=overlap)

    def _step(self, leaf: _Leaf, overlap: bool) -> None:
        engine = leaf.engine
        floor, logical, cause = 0, self._logical[engine], _DEPENDENCY
        for on, lag in leaf.waits:
            ends = self._ends[on]
            if len(ends) <= lag:
                continue
            ended = ends[-1 - lag]
            while ended.real is None:
                self._commit(self._stores.popleft())
            if ended.real > floor:
                floor, cause = ended.real, self._causes[on]
            logical = max(logical, ended.logical)
        if not overlap:
            floor, cause = self._last, _DEPENDENCY
        self._logical[engine] = logical + leaf.steps
        ended = _Ended(None, logical + leaf.steps)
        kept = self._ends.get(leaf.id)
        if kept is not None:
            kept.append(ended)
        store = _Store(leaf, ended, floor, logical, cause, self._seen[leaf.item], self._simulated)
        self._seen[leaf.item] += 1
        self._simulated += 1
        if engine == _OUT and overlap:
            self._stores.append(store)
            return
        if engine == _IN:
            while self._stores and self._stores[0].logical <= logical:
                self._commit(self._stores.popleft())
        self._commit(store)

    def _commit(self, one: _Store) -> None:
        """Place an instance in time; those of its engine before it are placed."""
        leaf = one.leaf
        engine, ready = leaf.engine, self._ready[leaf.engine]
        start, cause = max(ready, one.floor), one.cause
        if leaf.beats:
            if self._open > start:
                start, cause = self._open, _DMA
            self._open = start + leaf.beats
        if start > ready:
            self._idle[engine][cause] += start - ready
        end = start + leaf.cycles
        self._ready[engine] = end
        one.ended.real = end
        if end > self._last:
            self._kernel[leaf.kernel] += end - self._last
            self._last = end
        if self._record is not None:
            self._record[engine].append(Instance(leaf.item, one.k, start, end, one.order))

    def _finish_stores(self) -> None:
        while self._stores:
            self._commit(self._stores.popleft())

    def _repeat(self, loop: _Loop) -> None:
        """Run the loop; skip whole periods once the state recurs (found as Brent's algorithm finds a cycle)."""
        done, anchor_at, limit = 0, 0, 1
        anchor: tuple[object, ...] | None = None
        counters: list[int] = []
        anchor_time = (0, 0)
        while done < loop.count:
            self._run(loop.body, skip=True)
            done += 1
            if done == loop.count:
                return
            state = self._state(loop)
            if state == anchor:
                period = done - anchor_at
                times = (loop.count - done) // period
                if times:
                    passed = self._now(loop) - anchor_time[0], self._step_now(loop) - anchor_time[1]
                    self._advance(loop, times, passed, counters)
                    done += times * period
                for _ in range(loop.count - done):
                    self._run(loop.body, skip=True)
                return
            if anchor is None or done - anchor_at == limit:
                anchor, anchor_at, limit = state, done, limit * 2
                counters, anchor_time = self._counters(), (self._now(loop), self._step_now(loop))

    def _now(self, loop: _Loop) -> int:
        return self._ready[loop.engines[0]] if loop.engines else 0

    def _step_now(self, loop: _Loop) -> int:
        return self._logical[loop.engines[0]] if loop.engines else 0

    def _state(self, loop: _Loop) -> tuple[object, ...]:
        now, step = self._now(loop), self._step_now(loop)
        ready = [self._ready[engine] for engine in loop.engines]
        logical = [self._logical[engine] for engine in loop.engines]
        # Instances outside of the loop delay its first iteration only: whoever waits for one is behind it after that.
        floor = min(ready, default=0)
        own = tuple(
            tuple((None if end.real is None else end.real - now, end.logical - step) for end in self._ends[on])
            for on in loop.own
        )
        dram: tuple[object, ...] = ()
        if loop.moves:
            stores = tuple((one.leaf.item, one.floor - now, one.logical - step) for one in self._stores)
            queued = (self._open - now, self._ready[_OUT] - now) if stores else (max(self._open, floor) - now,)
            dram = (queued, stores)
        relative = tuple(at - now for at in ready), tuple(at - step for at in logical)
        return (self._last - now, relative, own, dram)

    def _counters(self) -> list[int]:
        return [*self._kernel, *(cycles for row in self._idle for cycles in row)]

    def _advance(self, loop: _Loop, times: int, periods: tuple[int, int], before: list[int]) -> None:
        shift, logical = times * periods[0], times * periods[1]
        for engine in loop.engines:
            self._ready[engine] += shift
            self._logical[engine] += logical
        self._last += shift
        moved = {id(end): end for on in loop.own for end in self._ends[on]}
        if loop.moves:
            self._open += shift
            for one in self._stores:
                one.floor += shift
                one.logical += logical
                moved[id(one.ended)] = one.ended
        for end in moved.values():
            end.logical += logical
            if end.real is not None:
                end.real += shift
        grown = [now + times * (now - then) for now, then in zip(self._counters(), before, strict=True)]
        kernels = len(self._kernel)
        self._kernel, rest = grown[:kernels], grown[kernels:]
        self._idle = [rest[row * len(CAUSES) : (row + 1) * len(CAUSES)] for row in range(len(ENGINES))]
