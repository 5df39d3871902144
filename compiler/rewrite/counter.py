"""A counter that every rewrite of a compilation passes, so that a limit can stop before any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.ir import Op


class RewriteCounter:
    """Counts rewrites; beyond ``limit`` none is allowed. ``last`` says what the last allowed one was.

    A binary search over the limit finds the first rewrite that breaks a result.
    """

    __slots__ = ("_last", "count", "limit")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.count = 0
        self._last: tuple[str, Op] | None = None

    def allow(self, name: str, op: Op) -> bool:
        """Whether the rewrite ``name`` may change ``op``; counts it if so."""
        if self.limit is not None and self.count >= self.limit:
            return False
        self.count += 1
        self._last = (name, op)
        return True

    @property
    def last(self) -> str:
        """Name of the last rewrite allowed, and where it was; empty before any."""
        return "" if self._last is None else f"{self._last[0]} at '{self._last[1].name}' ({self._last[1].location})"
