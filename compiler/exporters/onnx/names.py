"""Unique, stable names for values and nodes."""

from __future__ import annotations


class Names:
    """Hands out names: the wanted one where it is free, else with the least number that makes it unique."""

    __slots__ = ("_journal", "_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._journal: list[tuple[str, str, int]] = []

    def __len__(self) -> int:
        return len(self._journal)

    def take(self, wanted: str) -> str:
        """A name that nothing else has."""
        first = self._next.get(wanted, 1)
        name, number = wanted, first
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._next[wanted] = number
        self._taken.add(name)
        self._journal.append((name, wanted, first))
        return name

    def forget(self, kept: int) -> None:
        """Give back all names but the first ``kept``, as if they had never been taken."""
        while len(self._journal) > kept:
            name, wanted, first = self._journal.pop()
            self._taken.discard(name)
            self._next[wanted] = first
