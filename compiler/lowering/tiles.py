"""Tiles of a nest, the SRAM slots in which they rotate, and where whole tensors are."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product as cartesian
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler.ir import Value
    from compiler.lowering.machine import Machine
    from compiler.lowering.nests import Nest
    from compiler.lowering.stream import Stream
    from compiler.lowering.tiling import Tiling


class Homes(Protocol):
    """Where the tensors of a program are. Aliases share the home of their root."""

    stream: Stream
    machine: Machine

    def root(self, value: Value) -> Value:
        """The value whose bytes ``value`` is."""

    def in_dram(self, value: Value) -> int:
        """DRAM address of the tensor's content (written there first, if only SRAM has it)."""

    def dram_result(self, value: Value) -> int:
        """DRAM address for a result that a kernel writes tile by tile."""

    def resident(self, root: Value) -> int | None:
        """SRAM address of a tensor that the kernel finds there whole, else None."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One tile: first index and number of indices a loop, and whether it begins or ends the cut reduction loops."""

    origin: tuple[int, ...]
    sizes: tuple[int, ...]
    first: bool
    last: bool


@dataclass(slots=True)
class Slot:
    """Addresses in which the tiles of one operand rotate, and what each of them holds."""

    addresses: tuple[int, ...]
    holds: list[tuple[int, ...] | None] = field(default_factory=list)
    turn: int = 0

    @classmethod
    def at(cls, base: int, size: int, copies: int) -> Slot:
        """A slot of adjacent tiles of ``size`` bytes."""
        return cls(tuple(base + size * copy for copy in range(copies)), [None] * copies)

    @property
    def current(self) -> int:
        """The address taken last."""
        return self.addresses[self.turn - 1]

    def find(self, key: tuple[int, ...]) -> int | None:
        """The address that holds this tile, or None."""
        return self.addresses[self.holds.index(key)] if key in self.holds else None

    def take(self, key: tuple[int, ...] | None) -> int:
        """The next address in turn, from now on holding this tile."""
        address = self.addresses[self.turn]
        self.holds[self.turn] = key
        self.turn = (self.turn + 1) % len(self.addresses)
        return address


def tiles(nest: Nest, tiling: Tiling) -> Iterator[Tile]:
    """The tiles in order, the cut reduction loops innermost."""
    folded = set(nest.folded)
    starts = [range(0, nest.extents[loop], tiling.sizes[loop]) for loop in tiling.order]
    for chosen in cartesian(*starts):
        origin = [0] * len(nest.extents)
        sizes = list(tiling.sizes)
        first = last = True
        for loop, start in zip(tiling.order, chosen, strict=True):
            origin[loop] = start
            sizes[loop] = min(tiling.sizes[loop], nest.extents[loop] - start)
            if loop in folded:
                first = first and start == 0
                last = last and start + sizes[loop] == nest.extents[loop]
        yield Tile(tuple(origin), tuple(sizes), first, last)
