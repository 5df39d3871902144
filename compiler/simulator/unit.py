"""What the functional simulator asks of a compiled instruction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.simulator.memory import Memories
    from compiler.simulator.views import Scattered, View


class Unit(ABC):
    """An instruction compiled for a layout of memories; ``k`` numbers its instances in program order.

    ``sources`` are what it reads and ``sinks`` what it writes, for telling whether two instances touch.
    """

    __slots__ = ("sinks", "sources")

    def __init__(self, sources: list[View | Scattered], sinks: list[View | Scattered]) -> None:
        self.sources = sources
        self.sinks = sinks

    @abstractmethod
    def perform(self, memories: Memories, k: int) -> None:
        """Read, compute and write at once. Raises EvaluationError for an index out of range."""

    @abstractmethod
    def prepare(self, memories: Memories, k: int) -> Callable[[], None]:
        """Read and compute now; the function returned writes. Raises EvaluationError for an index out of range."""

    def reads_from(self, sinks: list[tuple[int, int, int]], k: int) -> bool:
        """Whether instance ``k`` may read any of these byte ranges (segment, low, high)."""
        for source in self.sources:
            segment, low, high = source.touched(k)
            for other, other_low, other_high in sinks:
                if segment == other and low < other_high and other_low < high:
                    return True
        return False
