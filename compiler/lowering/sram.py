"""Tensors that stay in SRAM between kernels, and the block in which the current kernel's tiles rotate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.lowering.memory import Space

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Value


@dataclass(slots=True)
class Resident:
    """A whole tensor in SRAM, dense. ``dirty``: DRAM does not have its content yet."""

    value: Value
    address: int
    dirty: bool


class Scratchpad:
    """Allocates kernels' blocks and resident tensors; makes room by evicting residents that are needed last.

    ``next_use`` tells when a value is read next (None: never again); ``spill`` writes a dirty resident to DRAM.
    """

    def __init__(
        self, capacity: int, next_use: Callable[[Value], int | None], spill: Callable[[Resident], None]
    ) -> None:
        self.capacity = capacity
        self._space = Space(capacity)
        self._residents: dict[Value, Resident] = {}
        self._current: int | None = None
        self._previous: int | None = None
        self._pinned: set[Value] = set()
        self._next_use = next_use
        self._spill = spill

    @property
    def peak(self) -> int:
        """Highest address used so far, plus one."""
        return self._space.peak

    def resident(self, root: Value) -> Resident | None:
        """The tensor, if all of it is in SRAM."""
        return self._residents.get(root)

    def pin(self, root: Value) -> None:
        """Keep the resident until :meth:`end_kernel`."""
        self._pinned.add(root)

    def block(self, size: int) -> int | None:
        """A block for the current kernel's tiles. The block of the kernel before stays its own if there is room.

        If nothing else makes room, pinned residents are evicted too: their readers then load tiles.
        """
        address = self._allocate(size)
        if address is None:
            self._pinned.clear()
            address = self._allocate(size)
        self._current = address
        return address

    def keep(self, root: Value, size: int, *, dirty: bool) -> Resident | None:
        """A place for a whole tensor that stays; None where there is no free room: nothing is evicted for it."""
        address = self._space.allocate(size)
        if address is None:
            return None
        self._residents[root] = Resident(root, address, dirty)
        self._pinned.add(root)
        return self._residents[root]

    def _allocate(self, size: int) -> int | None:
        while True:
            address = self._space.allocate(size)
            if address is not None:
                return address
            if not self._make_room():
                return None

    def _make_room(self) -> bool:
        """Free the block of the kernel before, else the resident whose next use is farthest; False if none is left."""
        if self._previous is not None:
            self._space.free(self._previous)
            self._previous = None
            return True
        candidates = [resident for root, resident in self._residents.items() if root not in self._pinned]
        if not candidates:
            return False
        victim = max(candidates, key=lambda resident: self._next_use(resident.value) or 0)
        if victim.dirty:
            self._spill(victim)
        self.drop(victim.value)
        return True

    def drop(self, root: Value) -> None:
        """Forget a resident; its bytes are free."""
        resident = self._residents.pop(root, None)
        if resident is not None:
            self._space.free(resident.address)

    def end_kernel(self) -> None:
        """The kernel is over: unpin, forget residents that nobody reads again, keep only its own block."""
        if self._previous is not None:
            self._space.free(self._previous)
        self._previous, self._current = self._current, None
        for root in list(self._residents):
            if self._next_use(root) is None:
                self.drop(root)
        self._pinned.clear()
