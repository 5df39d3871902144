"""Unique, stable names for values and nodes."""

from __future__ import annotations


class Names:
    """Hands out names: the wanted one where it is free, else with the least number that makes it unique."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """A name that nothing else has."""
        name, number = wanted, self._next.get(wanted, 1)
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._next[wanted] = number
        self._taken.add(name)
        return name
