"""How many bytes of a memory hold something that is still needed, over time.

A byte is live from the start of the instance that writes it to the end of the last one that reads what was written;
content that nobody reads is live while it is written. Spans are those that bound an instruction's regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compiler.program.addresses import all_values, touches
from compiler.program.executable import Role
from compiler.program.instructions import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array
    from compiler.program.addresses import Placed
    from compiler.simulator.timing import Clock, Instance


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``live[i]`` bytes are live from cycle ``times[i]`` to ``times[i + 1]``; the last entry is 0."""

    times: tuple[int, ...]
    live: tuple[int, ...]

    @property
    def peak(self) -> int:
        """The most bytes live at once: no plan of addresses for this schedule can take less."""
        return max(self.live, default=0)

    def thinned(self, most: int) -> Occupancy:
        """At most ``most`` entries, each the highest of those that it stands for: for drawing."""
        step = -(-len(self.times) // max(1, most))
        if step <= 1:
            return self
        starts = range(0, len(self.times), step)
        return Occupancy(
            tuple(self.times[start] for start in starts),
            tuple(max(self.live[start : start + step]) for start in starts),
        )


@dataclass(frozen=True, slots=True)
class _Span:
    """Bytes that an instruction touches: a low and a high end for each of its instances."""

    low: Array
    high: Array
    writes: bool


def occupancy(clock: Clock, timeline: Sequence[Sequence[Instance]], memory: Memory) -> Occupancy:
    """Live bytes of SRAM, or of the temporaries in DRAM (inputs, constants and outputs are not the program's to place).

    ``timeline`` is that of :meth:`Clock.timeline`.
    """
    kept = _temporaries(clock) if memory is Memory.DRAM else None
    spans = [_spans(item, memory, kept) for item in clock.items]
    ends = [side for found in spans for span in found for side in (span.low, span.high)]
    if not ends:
        return Occupancy((0,), (0,))
    bounds = np.unique(np.concatenate(ends))
    sizes = np.diff(bounds)
    cells = _Cells(len(sizes))
    places = [
        [(np.searchsorted(bounds, span.low), np.searchsorted(bounds, span.high), span.writes) for span in found]
        for found in spans
    ]
    instances = sorted((one for queue in timeline for one in queue), key=lambda one: (one.start, one.order))
    for one in instances:
        for low, high, writes in places[one.item]:
            cells.touch(int(low[one.k]), int(high[one.k]), one, writes=writes)
    return cells.summed(sizes)


class _Cells:
    """For each stretch of bytes between two bounds: when its content was written and last used."""

    def __init__(self, count: int) -> None:
        self._born = np.full(count, -1, np.int64)
        self._last = np.zeros(count, np.int64)
        self._closed: list[tuple[Array, Array, Array]] = []

    def touch(self, low: int, high: int, one: Instance, *, writes: bool) -> None:
        born, last = self._born[low:high], self._last[low:high]
        if not writes:
            np.maximum(last, one.end, out=last)
            return
        self._close(low, born, np.minimum(last, one.start))
        born[:] = one.start
        last[:] = one.end

    def _close(self, low: int, born: Array, until: Array) -> None:
        lived = np.flatnonzero((born >= 0) & (until > born))
        if lived.size:
            self._closed.append((born[lived], until[lived], lived + low))

    def summed(self, sizes: Array) -> Occupancy:
        self._close(0, self._born.copy(), self._last)
        if not self._closed:
            return Occupancy((0,), (0,))
        starts, ends, cells = (np.concatenate(part) for part in zip(*self._closed, strict=True))
        times, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        change = np.zeros(len(times), np.int64)
        np.add.at(change, place, np.concatenate([sizes[cells], -sizes[cells]]))
        return Occupancy(tuple(times.tolist()), tuple(np.cumsum(change).tolist()))


def _temporaries(clock: Clock) -> list[tuple[int, int]]:
    return [
        (buffer.address, buffer.address + buffer.type.nbytes)
        for buffer in clock.program.buffers
        if buffer.role is Role.TEMPORARY
    ]


def _spans(item: Placed, memory: Memory, kept: Sequence[tuple[int, int]] | None) -> list[_Span]:
    """Reads before writes: an instance reads at its start."""
    found = []
    for touch in sorted(touches(item.instruction), key=lambda touch: touch.writes):
        if touch.region.memory is not memory:
            continue
        low, high = touch.bounds()
        starts = np.asarray(all_values(touch.region.address, item.counts), np.int64)
        if kept is not None:
            at = int(starts[0]) + low
            if not any(first <= at < last for first, last in kept):
                continue
        found.append(_Span(starts + low, starts + high, touch.writes))
    return found
