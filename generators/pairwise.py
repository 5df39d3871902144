"""Chooses few combinations of many: every value of every axis, then as many pairs of values as the cap allows.

Greedy, in the manner of AETG (Cohen et al., "The AETG system", IEEE TSE 23(7), 1997), but without randomness, so that
the choice is a pure function of axes and constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

_PATIENCE = 2000
"""Assignments tried for one row before a seed counts as impossible."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the choice. Values from ``paired`` on only need to appear once, not in pairs."""

    name: str
    values: tuple[object, ...]
    paired: int | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """What must hold of the named axes; ``holds`` gets the values chosen so far by axis name."""

    axes: frozenset[str]
    holds: Callable[[dict[str, object]], bool]


def select(
    axes: Sequence[Axis], constraints: Sequence[Constraint], cap: int, crossed: Sequence[tuple[str, str]] = ()
) -> list[tuple[object, ...]]:
    """Rows of values, one an axis. Every value that constraints allow appears, whatever the cap on rows.

    So does every pair of values of two axes that are ``crossed``: a type and a class of data, say. Other pairs are
    met as far as the cap allows. The first row takes the first value of each axis where constraints allow it.
    """
    return [
        tuple(axis.values[index] for axis, index in zip(axes, row, strict=True))
        for row in _rows(axes, constraints, cap, crossed)
    ]


def _rows(
    axes: Sequence[Axis], constraints: Sequence[Constraint], cap: int, crossed: Sequence[tuple[str, str]]
) -> list[tuple[int, ...]]:
    search = _Search(axes, constraints)
    first = [search.complete_and_take({0: index}) for index in range(len(axes[0].values) if axes else 0)]
    rows = [row for row in first if row is not None]
    met = {pair: {(row[pair[0]], row[pair[1]]) for row in rows} for pair in _indices(axes, crossed)}
    for (one, other), found in met.items():
        for values in product(range(len(axes[one].values)), range(len(axes[other].values))):
            row = None if values in found else search.complete_and_take({one: values[0], other: values[1]})
            if row is not None:
                rows.append(row)
                for pair, seen in met.items():
                    seen.add((row[pair[0]], row[pair[1]]))
    while (seed := search.next_seed()) is not None and (len(seed) == 1 or len(rows) < cap):
        row = search.complete_and_take(seed)
        if row is None:
            search.give_up(seed)
        else:
            rows.append(row)
    return rows


def _indices(axes: Sequence[Axis], crossed: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    place = {axis.name: index for index, axis in enumerate(axes)}
    return [(place[one], place[other]) for one, other in crossed]


@dataclass(slots=True)
class _Search:
    axes: Sequence[Axis]
    constraints: Sequence[Constraint]
    by_axis: list[list[tuple[frozenset[str], Constraint]]] = field(init=False)
    open_pairs: dict[tuple[int, int, int], int] = field(init=False)
    """(axis, value, later axis) -> bits of the later axis' values not yet met beside it"""
    open_values: list[int] = field(init=False)
    steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.by_axis = [[(one.axes, one) for one in self.constraints if axis.name in one.axes] for axis in self.axes]
        self.open_values = [(1 << len(axis.values)) - 1 for axis in self.axes]
        self.open_pairs = {
            (first, value, second): (1 << _paired(self.axes[second])) - 1
            for first, axis in enumerate(self.axes)
            for value in range(_paired(axis))
            for second in range(first + 1, len(self.axes))
        }

    def next_seed(self) -> dict[int, int] | None:
        for axis, bits in enumerate(self.open_values):
            if bits:
                return {axis: _lowest(bits)}
        for (first, value, second), bits in self.open_pairs.items():
            if bits:
                return {first: value, second: _lowest(bits)}
        return None

    def give_up(self, seed: dict[int, int]) -> None:
        if len(seed) == 1:
            ((axis, value),) = seed.items()
            self.open_values[axis] &= ~(1 << value)
        else:
            (first, value), (second, other) = seed.items()
            self.open_pairs[first, value, second] &= ~(1 << other)

    def take(self, row: tuple[int, ...]) -> tuple[int, ...]:
        for first, value in enumerate(row):
            self.open_values[first] &= ~(1 << value)
            for second in range(first + 1, len(row)):
                key = (first, value, second)
                if key in self.open_pairs:
                    self.open_pairs[key] &= ~(1 << row[second])
        return row

    def complete_and_take(self, seed: dict[int, int]) -> tuple[int, ...] | None:
        row = self.complete(seed)
        return None if row is None else self.take(row)

    def complete(self, seed: dict[int, int]) -> tuple[int, ...] | None:
        """A whole row that contains the seed and meets the most pairs not yet met, or None."""
        self.steps = 0
        chosen = dict(seed)
        names = {self.axes[axis].name: self.axes[axis].values[value] for axis, value in seed.items()}
        if not all(self._allowed(axis, names) for axis in seed):
            return None
        if not self._fill(0, chosen, names):
            return None
        return tuple(chosen[axis] for axis in range(len(self.axes)))

    def _fill(self, axis: int, chosen: dict[int, int], names: dict[str, object]) -> bool:
        if axis == len(self.axes):
            return True
        if axis in chosen:
            return self._fill(axis + 1, chosen, names)
        name = self.axes[axis].name
        for value in self._by_gain(axis, chosen):
            self.steps += 1
            if self.steps > _PATIENCE:
                return False
            chosen[axis], names[name] = value, self.axes[axis].values[value]
            if self._allowed(axis, names) and self._fill(axis + 1, chosen, names):
                return True
            del chosen[axis], names[name]
        return False

    def _allowed(self, axis: int, names: dict[str, object]) -> bool:
        return all(one.holds(names) for needed, one in self.by_axis[axis] if needed <= names.keys())

    def _by_gain(self, axis: int, chosen: dict[int, int]) -> Iterator[int]:
        count = len(self.axes[axis].values)
        if count == 1:
            return iter((0,))
        gains = [0] * count
        for value in range(count):
            gain = 4 * (self.open_values[axis] >> value & 1)
            for other, picked in chosen.items():
                key, bit = ((other, picked, axis), value) if other < axis else ((axis, value, other), picked)
                gain += self.open_pairs.get(key, 0) >> bit & 1
            gains[value] = -gain
        return iter(sorted(range(count), key=gains.__getitem__))


def _paired(axis: Axis) -> int:
    return len(axis.values) if axis.paired is None else axis.paired


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
