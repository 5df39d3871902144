"""Addresses for allocations whose lifetimes are known: none that live together share a byte, and the peak is low.

The peak can not be under the most bytes that live at one time. First fit in several orders usually comes within a few
percent of that; what stands in the way is then placed first and everything again.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ROUNDS: Final = 24
"""How often the allocations at the peak are moved to the front."""

_CLOSE: Final = 1.005
"""A peak this near to its bound is not improved any more."""


@dataclass(slots=True)
class Allocation:
    """``size`` bytes, a multiple of the alignment, that live from time ``start`` to ``end``, both inclusive."""

    size: int
    start: int
    end: int
    address: int = 0

    def lives_with(self, other: Allocation) -> bool:
        """Whether the lifetimes have a time in common."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True)
class Packing:
    """The highest address used, plus one, and the most bytes that live at one time."""

    peak: int
    bound: int


def live_bytes(allocations: Iterable[Allocation]) -> int:
    """The most bytes that live at one time."""
    changes: dict[int, int] = {}
    for one in allocations:
        changes[one.start] = changes.get(one.start, 0) + one.size
        changes[one.end + 1] = changes.get(one.end + 1, 0) - one.size
    most = live = 0
    for time in sorted(changes):
        live += changes[time]
        most = max(most, live)
    return most


_ORDERS: Final[tuple[Callable[[Allocation], tuple[int, ...]], ...]] = (
    lambda one: (-one.size, one.start),
    lambda one: (-(one.end - one.start + 1) * one.size, one.start),
    lambda one: (-(one.end - one.start), -one.size, one.start),
    lambda one: (one.start, -one.size),
)


def pack(allocations: Sequence[Allocation]) -> Packing:
    """Set the address of each allocation."""
    bound = live_bytes(allocations)
    neighbours = _neighbours(allocations)
    best: tuple[int, list[int]] | None = None
    for key in _ORDERS:
        order = sorted(range(len(allocations)), key=lambda index: key(allocations[index]))
        for _ in range(_ROUNDS):
            peak, addresses = _first_fit(allocations, order, neighbours)
            if best is None or peak < best[0]:
                best = (peak, addresses)
            if best[0] <= bound * _CLOSE:
                break
            top = [index for index in order if addresses[index] + allocations[index].size == peak]
            if order[: len(top)] == top:
                break
            order = [*top, *(index for index in order if index not in set(top))]
        if best is not None and best[0] <= bound * _CLOSE:
            break
    peak, addresses = best if best is not None else (0, [])
    for one, address in zip(allocations, addresses, strict=True):
        one.address = address
    return Packing(peak, bound)


def _neighbours(allocations: Sequence[Allocation]) -> list[list[int]]:
    """For each allocation those that live at a time when it does."""
    found: list[list[int]] = [[] for _ in allocations]
    active: list[int] = []
    for index in sorted(range(len(allocations)), key=lambda index: allocations[index].start):
        one = allocations[index]
        active = [other for other in active if allocations[other].end >= one.start]
        for other in active:
            found[index].append(other)
            found[other].append(index)
        active.append(index)
    return found


def _first_fit(
    allocations: Sequence[Allocation], order: Sequence[int], neighbours: Sequence[Sequence[int]]
) -> tuple[int, list[int]]:
    """Each in turn at the lowest address that is free for all of its life; returns the peak and the addresses."""
    addresses = [-1] * len(allocations)
    peak = 0
    for index in order:
        size = allocations[index].size
        taken: list[tuple[int, int]] = []
        for other in neighbours[index]:
            if addresses[other] >= 0:
                insort(taken, (addresses[other], addresses[other] + allocations[other].size))
        start = 0
        for low, high in taken:
            if low - start >= size:
                break
            start = max(start, high)
        addresses[index] = start
        peak = max(peak, start + size)
    return peak, addresses
