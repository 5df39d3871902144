"""Byte-addressed memories: SRAM, and DRAM as the segments that a program's buffers make."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from compiler.errors import InvalidInput, InvalidProgram
from compiler.program.executable import Role
from compiler.program.instructions import Memory
from compiler.simulator.convert import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, TensorType
    from compiler.program.executable import Buffer, Program

Memories: TypeAlias = "list[Array]"
"""The bytes of each segment; segment 0 is SRAM."""

SRAM_SEGMENT: Final = 0
_POISON: Final = np.array([0xFFA5], "<u2").view(np.uint8)
"""Two bytes that, repeated, are NaN in every IEEE-like float of 16, 32 and 64 bits, and no small integer."""


def poisoned(count: int) -> Array:
    """``count`` bytes that nothing has written."""
    memory = np.empty(count + (count & 1), np.uint8)
    memory.view(np.uint16).fill(_POISON.view(np.uint16)[0])
    return memory[:count]


def to_bytes(array: Array, type_: TensorType) -> Array:
    """The array as it lies in memory: dense, row-major, rows of narrow elements packed. A view where that is one."""
    if type_.element.bits < 8:
        rows = array.reshape(*array.shape[:-1], -1) if array.ndim else array.reshape(1)
        return pack(rows, type_.element).reshape(-1)
    dense = np.ascontiguousarray(array)
    return dense.reshape(-1).view(np.uint8)


def from_bytes(memory: Array, type_: TensorType) -> Array:
    """The array that lies dense at the start of ``memory``; a view where elements fill bytes."""
    shape = type_.shape
    if type_.element.bits < 8:
        count = shape[-1] if shape else 1
        packed = memory[: type_.nbytes].reshape((*shape[:-1], -1)) if type_.size else np.zeros((*shape[:-1], 0), np.uint8)
        return unpack(packed, count, type_.element).reshape(shape)
    return memory[: type_.nbytes].view(type_.element.dtype).reshape(shape)


@dataclass(frozen=True, slots=True)
class Segment:
    """Addresses low..high-1 of DRAM and the buffers there. ``mapped``: it is the given array itself, read-only."""

    low: int
    high: int
    buffers: tuple[int, ...]
    mapped: bool


class Layout:
    """Where each address of a program lies: segment 0 is SRAM, the others follow in order of DRAM addresses.

    A buffer of inputs or constants that shares no byte with another is a segment of its own and never copied.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.segments: list[Segment] = [Segment(0, program.sram_bytes, (), mapped=False)]
        self._constants: dict[int, Array] = {}
        self._merge()
        self._lows = [segment.low for segment in self.segments[1:]]

    def _merge(self) -> None:
        sized = [(buffer.address, buffer.address + buffer.type.nbytes, index)
                 for index, buffer in enumerate(self.program.buffers) if buffer.type.nbytes]
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
            self.segments.append(Segment(low, high, tuple(group), mapped))

    def locate(self, memory: Memory, low: int, high: int, who: str, *, writes: bool) -> int:
        """The segment that holds bytes low..high-1. Raises InvalidProgram where none does, or it must not be written."""
        if memory is Memory.SRAM:
            if low < 0 or high > self.program.sram_bytes:
                msg = f"{who}: bytes {low}..{high - 1} of SRAM; expected within 0..{self.program.sram_bytes - 1}"
                raise InvalidProgram(msg)
            return SRAM_SEGMENT
        position = bisect_right(self._lows, low)
        found = self.segments[position] if position else None
        if found is None or high > found.high:
            near = "no buffer is there" if found is None or low >= found.high else f"the buffer there ends at {found.high}"
            msg = f"{who}: bytes {low}..{high - 1} of DRAM; expected within one buffer ({near})"
            raise InvalidProgram(msg)
        if writes and found.mapped:
            name = self.program.buffers[found.buffers[0]].name
            msg = f"{who}: writes bytes {low}..{high - 1} of DRAM, in input or constant '{name}', which is read-only"
            raise InvalidProgram(msg)
        return position

    def _constant_bytes(self, index: int) -> Array:
        found = self._constants.get(index)
        if found is None:
            buffer = self.program.buffers[index]
            if buffer.constant is None:
                msg = f"program '{self.program.name}': constant buffer '{buffer.name}' has no data"
                raise InvalidProgram(msg)
            found = self._constants[index] = to_bytes(_checked(buffer.constant.array, buffer), buffer.type)
        return found

    def memories(self, inputs: Sequence[Array]) -> Memories:
        """Fresh memories: poison, and the constants and ``inputs`` (in the order of the input buffers) in place."""
        data: dict[int, Array] = {}
        positions = [index for index, buffer in enumerate(self.program.buffers) if buffer.role is Role.INPUT]
        if len(positions) != len(inputs):
            msg = f"program '{self.program.name}' takes {len(positions)} inputs; {len(inputs)} given"
            raise InvalidInput(msg)
        for index, array in zip(positions, inputs, strict=True):
            buffer = self.program.buffers[index]
            data[index] = to_bytes(_checked(array, buffer), buffer.type)
        made = [poisoned(self.program.sram_bytes)]
        for segment in self.segments[1:]:
            made.append(self._segment_bytes(segment, data))
        return made

    def _segment_bytes(self, segment: Segment, inputs: dict[int, Array]) -> Array:
        if segment.mapped:
            index = segment.buffers[0]
            data = inputs[index] if index in inputs else self._constant_bytes(index)
            view = data.view()
            view.flags.writeable = False
            return view
        memory = poisoned(segment.high - segment.low)
        for index in segment.buffers:
            buffer = self.program.buffers[index]
            if buffer.role in (Role.INPUT, Role.CONSTANT):
                data = inputs[index] if index in inputs else self._constant_bytes(index)
                memory[buffer.address - segment.low :][: data.size] = data
        return memory

    def outputs(self, memories: Memories) -> list[Array]:
        """The arrays in the output buffers, in their order."""
        found = []
        for buffer in self.program.buffers:
            if buffer.role is not Role.OUTPUT:
                continue
            if buffer.type.nbytes == 0:
                found.append(np.zeros(buffer.type.shape, buffer.type.element.dtype))
                continue
            position = bisect_right(self._lows, buffer.address)
            segment = self.segments[position]
            array = from_bytes(memories[position][buffer.address - segment.low :], buffer.type)
            found.append(array if len(segment.buffers) == 1 else array.copy())
        return found


def _checked(array: Array, buffer: Buffer) -> Array:
    type_ = buffer.type
    if array.dtype != type_.element.dtype or array.shape != type_.shape:
        msg = f"buffer '{buffer.name}' is given {array.dtype}{list(array.shape)}; expected {type_}"
        raise InvalidInput(msg)
    return array
