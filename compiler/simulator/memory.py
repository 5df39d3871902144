"""Byte-addressed memories: SRAM, and DRAM as the segments that a program's buffers make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from compiler.errors import InvalidInput, InvalidProgram
from compiler.program.executable import Role
from compiler.program.segments import Segments
from compiler.simulator.convert import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, TensorType
    from compiler.program.executable import Buffer, Program
    from compiler.program.segments import Segment

Memories: TypeAlias = "list[Array]"
"""The bytes of each segment; segment 0 is SRAM."""

_POISON: Final = np.array([0xFFA5], "<u2").view(np.uint8)
"""Two bytes that, repeated, are NaN in float16, bfloat16 and float32, and no small integer."""


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
        packed = (
            memory[: type_.nbytes].reshape((*shape[:-1], -1)) if type_.size else np.zeros((*shape[:-1], 0), np.uint8)
        )
        return unpack(packed, count, type_.element).reshape(shape)
    return memory[: type_.nbytes].view(type_.element.dtype).reshape(shape)


class Layout(Segments):
    """The memories of a program's runs. Constants are converted to bytes once; mapped buffers are never copied."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._constants: dict[int, Array] = {}

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
        return [poisoned(self.program.sram_bytes), *(self._segment_bytes(segment, data) for segment in self.all[1:])]

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
            position = self.at(buffer.address)
            segment = self.all[position]
            array = from_bytes(memories[position][buffer.address - segment.low :], buffer.type)
            found.append(array if len(segment.buffers) == 1 else array.copy())
        return found


def _checked(array: Array, buffer: Buffer) -> Array:
    type_ = buffer.type
    if array.dtype != type_.element.dtype or array.shape != type_.shape:
        msg = f"buffer '{buffer.name}' is given {array.dtype}{list(array.shape)}; expected {type_}"
        raise InvalidInput(msg)
    return array
