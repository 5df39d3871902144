"""DMA: copies between memories, with gather and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.simulator.scatter import scatter
from compiler.simulator.unit import Unit
from compiler.simulator.views import Scattered, View

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.program.instructions import Region, Transfer
    from compiler.simulator.memory import Layout, Memories

    Loops = tuple[tuple[int, ...], tuple[int, ...]]


class CopyUnit(Unit):
    """A copy between affine addresses: one strided copy of raw bytes."""

    __slots__ = ("destination", "source")

    def __init__(self, source: Region, out: Region, loops: Loops, layout: Layout, who: str) -> None:
        extents, counts = loops
        self.source = View(source, extents, counts, layout, who, thin=True, raw=True)
        self.destination = View(out, extents, counts, layout, who, writes=True, raw=True)
        super().__init__([self.source], [self.destination])

    def perform(self, memories: Memories, k: int) -> None:
        np.copyto(self.destination.bytes_view(memories, k), self.source.bytes_view(memories, k))

    def prepare(self, memories: Memories, k: int) -> Callable[[], None]:
        held = self.source.bytes_view(memories, k).copy()
        return lambda: np.copyto(self.destination.bytes_view(memories, k), held)


class GatherUnit(Unit):
    """A transfer with lookups on either side."""

    __slots__ = ("destination", "source")

    def __init__(self, transfer: Transfer, counts: tuple[int, ...], layout: Layout, who: str) -> None:
        self.source = _side(transfer, counts, layout, who, writes=False)
        self.destination = _side(transfer, counts, layout, who, writes=True)
        indices = [
            view for side in (self.source, self.destination) if isinstance(side, Scattered) for _, view in side.lookups
        ]
        super().__init__([self.source, *indices], [self.destination])

    def perform(self, memories: Memories, k: int) -> None:
        self.prepare(memories, k)()

    def prepare(self, memories: Memories, k: int) -> Callable[[], None]:
        held = np.array(self.source.read(memories, k))
        if isinstance(self.destination, Scattered):
            return scatter(self.destination, memories, k, held)
        view = self.destination
        return lambda: view.write(memories, k, held)


def _side(transfer: Transfer, counts: tuple[int, ...], layout: Layout, who: str, *, writes: bool) -> View | Scattered:
    operand = transfer.destination if writes else transfer.source
    if operand.lookups:
        return Scattered(operand, transfer.extents, counts, layout, who, writes=writes)
    return View(operand.region, transfer.extents, counts, layout, who, writes=writes, thin=not writes)


def transfer_unit(transfer: Transfer, counts: tuple[int, ...], layout: Layout, who: str) -> Unit:
    """The transfer compiled. Raises InvalidProgram for addresses outside the memories."""
    if transfer.source.lookups or transfer.destination.lookups:
        return GatherUnit(transfer, counts, layout, who)
    loops = (transfer.extents, counts)
    return CopyUnit(transfer.source.region, transfer.destination.region, loops, layout, who)
