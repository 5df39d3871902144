"""Where the addresses of a program lie: SRAM, and the stretches of DRAM that its buffers make."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compiler.errors import InvalidProgram
from compiler.program.executable import Role
from compiler.program.instructions import Memory

if TYPE_CHECKING:
    from compiler.program.executable import Program

SRAM_SEGMENT: Final = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """Addresses low..high-1 and the buffers (by index) that lie there.

    ``mapped``: it is exactly one input or constant, which a simulator need not copy and nothing may write.
    """

    low: int
    high: int
    buffers: tuple[int, ...]
    mapped: bool


class Segments:
    """Segment 0 is SRAM; the others are DRAM, in order of addresses. Buffers that share a byte share a segment."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.all: list[Segment] = [Segment(0, program.sram_bytes, (), mapped=False)]
        self._merge()
        self._lows = [segment.low for segment in self.all[1:]]

    def _merge(self) -> None:
        sized = [
            (buffer.address, buffer.address + buffer.type.nbytes, index)
            for index, buffer in enumerate(self.program.buffers)
            if buffer.type.nbytes
        ]
        group: list[int] = []
        low = high = -1
        for start, end, index in sorted(sized):
            if group and start < high:
                group.append(index)
                high = max(high, end)
                continue
            self._close(low, high, group)
            group, low, high = [index], start, end
        self._close(low, high, group)

    def _close(self, low: int, high: int, group: list[int]) -> None:
        if group:
            roles = [self.program.buffers[index].role for index in group]
            mapped = len(group) == 1 and roles[0] in (Role.INPUT, Role.CONSTANT)
            self.all.append(Segment(low, high, tuple(group), mapped))

    def at(self, address: int) -> int:
        """The DRAM segment that begins at or before this address; 0 where none does."""
        return bisect_right(self._lows, address)

    def locate(self, memory: Memory, low: int, high: int, who: str, *, writes: bool) -> int:
        """The segment that holds bytes low..high-1. Raises InvalidProgram where none does or it is read-only."""
        if memory is Memory.SRAM:
            if low < 0 or high > self.program.sram_bytes:
                msg = f"{who}: bytes {low}..{high - 1} of SRAM; expected within 0..{self.program.sram_bytes - 1}"
                raise InvalidProgram(msg)
            return SRAM_SEGMENT
        position = self.at(low)
        found = self.all[position] if position else None
        if found is None or high > found.high:
            inside = found is not None and low < found.high
            near = f"the buffer there ends at {found.high}" if inside and found else "no buffer is there"
            msg = f"{who}: bytes {low}..{high - 1} of DRAM; expected within one buffer ({near})"
            raise InvalidProgram(msg)
        if writes and found.mapped:
            name = self.program.buffers[found.buffers[0]].name
            msg = f"{who}: writes bytes {low}..{high - 1} of DRAM, in input or constant '{name}', which is read-only"
            raise InvalidProgram(msg)
        return position
