"""Address spaces and the order that shared bytes demand.

:class:`Space` hands out addresses; :class:`Hazards` finds the waits. Because every wait is derived from the byte ranges
that instructions touch, addresses may be reused freely: an early reuse costs time, never correctness.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from compiler.lowering.tiling import aligned
from compiler.program.instructions import Matmul, Memory, Operand, Transfer, Vector, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from compiler.program.instructions import Engine, Instruction


_SRAM: Final = -1


class Space:
    """First-fit addresses in a memory of ``capacity`` bytes (None: no limit). ``peak`` is the highest end so far."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
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
        if self._capacity is not None and start + size > self._capacity:
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


def span_of(operand: Operand, extents: Sequence[int]) -> Span:
    """The bytes between the first and the last that an operand can touch."""
    region = operand.region
    low = high = region.address.base
    reaches = [stride * (extent - 1) for stride, extent in zip(region.strides, extents, strict=True)]
    reaches += [lookup.stride * (lookup.extent - 1) for lookup in operand.lookups]
    for reach in reaches:
        low += min(reach, 0)
        high += max(reach, 0)
    return Span(region.memory, low, high + max(region.element.bits // 8, 1))


Spans: TypeAlias = tuple[list[Span], list[Span]]
"""What an instruction reads and what it writes."""


def touched(instruction: Instruction) -> Spans:
    """The bytes that an instruction reads and writes, bounded by intervals."""
    return _TOUCHED[type(instruction)](instruction)


def _tables(operand: Operand, extents: Sequence[int]) -> list[Span]:
    return [span_of(Operand(lookup.index), extents) for lookup in operand.lookups]


def _transfer(made: Transfer) -> Spans:
    tables = _tables(made.source, made.extents) + _tables(made.destination, made.extents)
    return [span_of(made.source, made.extents), *tables], [span_of(made.destination, made.extents)]


def _matmul(made: Matmul) -> Spans:
    factors = [
        span_of(Operand(made.a), made.batch + made.m + made.k),
        span_of(Operand(made.b), made.batch + made.k + made.n),
    ]
    out = span_of(Operand(made.out), made.batch + made.m + made.n)
    return [*factors, out] if made.accumulate else factors, [out]


def _vector(made: Vector) -> Spans:
    leading = made.extents if made.scan or not made.reduced else made.extents[: -made.reduced]
    reads = [
        span for operand in made.inputs for span in (span_of(operand, made.extents), *_tables(operand, made.extents))
    ]
    out = span_of(made.out, leading)
    continues = made.combiner is not None and made.initial is None
    reads += _tables(made.out, leading) + ([out] if continues or made.out.lookups else [])
    return reads, [out]


_TOUCHED: dict[type, Callable[[Any], Spans]] = {Transfer: _transfer, Matmul: _matmul, Vector: _vector}


@dataclass(frozen=True, slots=True)
class _Touch:
    low: int
    high: int
    id: int


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
            if place == _SRAM:
                touches[:] = [old for old in touches if old.low < span.low or span.high < old.high]
            touches.append(_Touch(span.low, span.high, number))
        return tuple(Wait(on) for on in sorted(latest.values()))

    def _place(self, span: Span) -> int:
        return _SRAM if span.memory is Memory.SRAM else bisect_right(self._starts, span.low)

    def _find(self, place: int, span: Span, engine: Engine, latest: dict[Engine, int], *, earlier_writes: bool) -> None:
        for other, touches in self._touched.get((place, earlier_writes), {}).items():
            if other is engine:
                continue
            known = latest.get(other, -1)
            for touch in reversed(touches):
                if touch.id <= known:
                    break
                if touch.low < span.high and span.low < touch.high:
                    latest[other] = touch.id
                    break
