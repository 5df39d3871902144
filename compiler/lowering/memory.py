"""Address spaces and the order that shared bytes demand.

:class:`Space` hands out addresses; :class:`Hazards` finds the waits. Because every wait is derived from the byte ranges
that instructions touch, addresses may be reused freely: an early reuse costs time, never correctness.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compiler.lowering.tiling import aligned
from compiler.program.addresses import touches
from compiler.program.instructions import Memory, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compiler.program.instructions import Engine, Instruction


_SRAM: Final = -1


class Space:
    """First-fit addresses in a memory of ``capacity`` bytes (None: no limit). ``peak`` is the highest end so far."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self._taken: list[tuple[int, int]] = []
        self.peak = 0

    def allocate(self, size: int) -> int | None:
        """The lowest free address with room for ``size`` bytes, or None."""
        size = max(aligned(size), 1)
        start = 0
        for low, high in self._taken:
            if low - start >= size:
                break
            start = max(start, high)
        if self.capacity is not None and start + size > self.capacity:
            return None
        insort(self._taken, (start, start + size))
        self.peak = max(self.peak, start + size)
        return start

    def free(self, start: int) -> None:
        """Give back the allocation that starts there."""
        self._taken = [taken for taken in self._taken if taken[0] != start]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes low..high-1 of a memory."""

    memory: Memory
    low: int
    high: int


def touched(instruction: Instruction) -> tuple[list[Span], list[Span]]:
    """The bytes that an instruction at fixed addresses reads, and those that it writes, bounded by intervals."""
    spans: tuple[list[Span], list[Span]] = ([], [])
    for touch in touches(instruction):
        low, high = touch.bounds()
        base = touch.region.address.base
        spans[touch.writes].append(Span(touch.region.memory, base + low, base + high))
    return spans


_MOST_TOUCHES: Final = 64
"""Touches of one list that are told apart."""


@dataclass(frozen=True, slots=True)
class _Touch:
    low: int
    high: int
    id: int


def _condensed(touches: list[_Touch]) -> list[_Touch]:
    """Without touches that newer ones cover; if many are left, the older half as one, under its newest number.

    That may ask for a wait too many, on an instruction so long ago that it has ended.
    """
    kept: list[_Touch] = []
    for touch in reversed(touches):
        if not any(newer.low <= touch.low and touch.high <= newer.high for newer in kept):
            kept.append(touch)
    half = _MOST_TOUCHES // 2
    if len(kept) > half:
        older = kept[half:]
        joined = _Touch(min(one.low for one in older), max(one.high for one in older), older[0].id)
        kept = [*kept[:half], joined]
    return kept[::-1]


class Hazards:
    """Remembers who touched which bytes, and tells what a new instruction must wait for.

    Touches are kept apart by place (SRAM, or one DRAM buffer), engine, and reading or writing, newest last. An engine
    works in order, so of each list only the newest touch that conflicts matters, and one that a newer touch of the same
    list covers never does.
    """

    def __init__(self) -> None:
        self._touched: dict[tuple[int, bool], dict[Engine, list[_Touch]]] = {}
        self._starts: list[int] = []

    def add_buffer(self, address: int) -> None:
        """Tell where a DRAM buffer starts. Buffers do not overlap."""
        insort(self._starts, address)

    def order(self, number: int, engine: Engine, reads: Iterable[Span], writes: Iterable[Span]) -> tuple[Wait, ...]:
        """Waits of instruction ``number``: for each other engine the last instruction whose bytes conflict."""
        latest: dict[Engine, int] = {}
        spans = [(self._place(span), span, False) for span in reads] + [
            (self._place(span), span, True) for span in writes
        ]
        for place, span, is_write in spans:
            self._find(place, span, engine, latest, earlier_writes=True)
            if is_write:
                self._find(place, span, engine, latest, earlier_writes=False)
        for place, span, is_write in spans:
            touches = self._touched.setdefault((place, is_write), {}).setdefault(engine, [])
            touches.append(_Touch(span.low, span.high, number))
            if len(touches) > _MOST_TOUCHES:
                touches[:] = _condensed(touches)
        return tuple(Wait(on) for on in sorted(latest.values()))

    def _place(self, span: Span) -> int:
        return _SRAM if span.memory is Memory.SRAM else bisect_right(self._starts, span.low)

    def _find(self, place: int, span: Span, engine: Engine, latest: dict[Engine, int], *, earlier_writes: bool) -> None:
        for other, found in self._touched.get((place, earlier_writes), {}).items():
            if other is engine:
                continue
            known = latest.get(other, -1)
            for touch in reversed(found):
                if touch.id <= known:
                    break
                if touch.low < span.high and span.low < touch.high:
                    latest[other] = touch.id
                    break
