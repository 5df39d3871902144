"""Proves that instructions which share bytes are ordered.

Instances are taken in program order. Each carries a clock: for every engine, how many of its instances have surely
ended before this one starts. A queue is in order, so the clock is the greatest of those of the instance before it on
its engine and of those it waits for, each counted as ended itself. Two instances on different engines of which one
writes a byte that the other touches must be ordered: the earlier one must be within the later one's clock. Every pair
that is not within it is compared, first by bounds, then byte by byte.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import InvalidProgram
from compiler.program.addresses import address_bounds, all_values, describe, in_bytes, placed, touches
from compiler.program.instructions import Engine, Repeat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.ir import Array
    from compiler.program.addresses import Placed, Touch
    from compiler.program.executable import Program
    from compiler.program.instructions import Step
    from compiler.program.segments import Segments

_ENGINES: Final = tuple(Engine)
_FEW: Final = 24
"""Up to so many candidates a loop is faster than numpy."""


@dataclass(frozen=True, slots=True)
class _Access:
    """One touch of an instruction: the address of each instance, and the bytes around it."""

    touch: Touch
    segment: int
    starts: Sequence[int]
    low: int
    high: int


class _Item:
    """An instruction prepared: engine, accesses, waits."""

    __slots__ = ("accesses", "engine", "placed", "seen")

    def __init__(self, item: Placed, segments: Segments) -> None:
        self.placed = item
        self.engine = _ENGINES.index(item.instruction.engine)
        self.accesses = [_access(touch, item, segments) for touch in touches(item.instruction)]
        self.seen = 0


def _access(touch: Touch, item: Placed, segments: Segments) -> _Access:
    region = touch.region
    low, high = address_bounds(region.address, item.counts)
    first, last = touch.bounds()
    who = describe(item.instruction, segments.program.name)
    segment = segments.locate(region.memory, low + first, high + last, who, writes=touch.writes)
    return _Access(touch, segment, all_values(region.address, item.counts), first, last)


class _Queue:
    """The accesses of one engine so far, in columns that grow; ``offsets[p]`` is the first access of instance p."""

    def __init__(self) -> None:
        self.offsets: list[int] = [0]
        self.count = 0
        self.bounds: Array = np.zeros((64, 4), np.int64)
        self.sources: list[tuple[_Item, _Access, int]] = []

    def add(self, item: _Item, k: int) -> None:
        for access in item.accesses:
            if self.count == len(self.bounds):
                self.bounds = np.concatenate([self.bounds, np.zeros_like(self.bounds)])
            start = access.starts[k]
            self.bounds[self.count] = (access.segment, start + access.low, start + access.high, access.touch.writes)
            self.sources.append((item, access, k))
            self.count += 1
        self.offsets.append(self.count)

    def near(self, first: int, access: _Access, k: int) -> Iterator[tuple[_Item, _Access, int]]:
        """Accesses from instance ``first`` on whose bounds meet this access's, one of the two writing."""
        start = access.starts[k]
        low, high = start + access.low, start + access.high
        begin = self.offsets[first]
        window = self.bounds[begin : self.count]
        meets = (window[:, 0] == access.segment) & (window[:, 1] < high) & (window[:, 2] > low)
        if not access.touch.writes:
            meets &= window[:, 3] != 0
        for index in np.flatnonzero(meets).tolist():
            yield self.sources[begin + index]


def check_order(program: Program, segments: Segments) -> None:
    """Raises InvalidProgram naming two instructions that share bytes and are not ordered, and the bytes."""
    _Order(program, segments).run()


class _Order:
    """One proof: the queues, and the clocks of the latest instances that may be waited for."""

    def __init__(self, program: Program, segments: Segments) -> None:
        self.program = program
        self.items = [_Item(item, segments) for item in placed(program.body)]
        self.by_id = {item.placed.instruction.id: item for item in self.items}
        lags: dict[int, int] = {}
        for item in self.items:
            for wait in item.placed.instruction.waits:
                lags[wait.on] = max(lags.get(wait.on, 0), wait.lag)
        self.ended: dict[int, deque[tuple[int, ...]]] = {on: deque(maxlen=lag + 1) for on, lag in lags.items()}
        self.queues = [_Queue() for _ in _ENGINES]
        self.positions = [0] * len(_ENGINES)
        self.clocks: list[tuple[int, ...]] = [(0,) * len(_ENGINES)] * len(_ENGINES)
        self.known: dict[tuple[int, int, int], bool] = {}

    def run(self) -> None:
        self._walk(self.program.body, iter(self.items))

    def _walk(self, body: Sequence[Step], items: Iterator[_Item]) -> None:
        for step in body:
            if isinstance(step, Repeat):
                inside = [next(items) for _ in range(_size(step.body))]
                for _ in range(step.count):
                    self._walk(step.body, iter(inside))
            else:
                self._instance(next(items))

    def _instance(self, item: _Item) -> None:
        engine, instruction = item.engine, item.placed.instruction
        clock = self.clocks[engine]
        for wait in instruction.waits:
            ended = self.ended[wait.on]
            if len(ended) > wait.lag:
                clock = tuple(map(max, clock, ended[-1 - wait.lag]))
        self._check(item, clock)
        self.queues[engine].add(item, item.seen)
        item.seen += 1
        self.positions[engine] += 1
        after = (*clock[:engine], self.positions[engine], *clock[engine + 1 :])
        self.clocks[engine] = after
        kept = self.ended.get(instruction.id)
        if kept is not None:
            kept.append(after)

    def _check(self, item: _Item, clock: tuple[int, ...]) -> None:
        for engine, queue in enumerate(self.queues):
            if engine == item.engine or clock[engine] >= self.positions[engine]:
                continue
            for access in item.accesses:
                for other, other_access, other_k in queue.near(clock[engine], access, item.seen):
                    if self._share(access, item.seen, other_access, other_k):
                        self._refuse((item, access, item.seen), (other, other_access, other_k))

    def _share(self, a: _Access, a_k: int, b: _Access, b_k: int) -> bool:
        if a.touch.scattered or b.touch.scattered:
            return True
        distance = b.starts[b_k] - a.starts[a_k]
        key = (id(a), id(b), distance)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = share_bytes(a.touch, b.touch, distance)
        return found

    def _refuse(self, later: tuple[_Item, _Access, int], earlier: tuple[_Item, _Access, int]) -> None:
        names, ranges = [], []
        for item, access, k in (earlier, later):
            indices = list(product(*(range(count) for count in item.placed.counts)))[k] if item.placed.counts else ()
            where = f" (loop indices {list(indices)})" if indices else ""
            verb = "writes" if access.touch.writes else "reads"
            start = access.starts[k]
            low, high = start + access.low, start + access.high
            ranges.append((low, high))
            names.append(f"{describe(item.placed.instruction)}{where} {verb} bytes {low}..{high - 1}")
        memory = later[1].touch.region.memory.value
        low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
        msg = (
            f"program '{self.program.name}': {names[0]} and {names[1]} of {memory} in no fixed order; "
            f"expected a wait that orders them (they meet within {low}..{high - 1})"
        )
        raise InvalidProgram(msg)


def _size(body: Sequence[Step]) -> int:
    return sum(_size(step.body) if isinstance(step, Repeat) else 1 for step in body)


def share_bytes(a: Touch, b: Touch, distance: int) -> bool:
    """Whether the two regions share a byte when b's address is ``distance`` bytes after a's."""
    a_starts, a_length = runs(a)
    b_starts, b_length = runs(b)
    b_starts = b_starts + distance
    # The first run of b that ends after each run of a begins; it must begin before that run of a ends.
    index = np.searchsorted(b_starts + b_length, a_starts, side="right")
    inside = index < len(b_starts)
    return bool(np.any(b_starts[index[inside]] < a_starts[inside] + a_length))


def runs(touch: Touch) -> tuple[Array, int]:
    """The region's bytes as sorted starts of runs of one length, relative to its address."""
    extents, strides, length = in_bytes(touch.region, touch.extents)
    loops = sorted((abs(stride), extent) for extent, stride in zip(extents, strides, strict=True) if extent > 1)
    base = sum(min(0, stride * (extent - 1)) for extent, stride in zip(extents, strides, strict=True))
    starts = np.full(1, base, np.int64)
    for stride, extent in loops:
        if stride <= length and len(starts) == 1:
            length += stride * (extent - 1)
        else:
            starts = np.unique((starts[:, None] + np.arange(extent) * stride).ravel())
    return starts, length
