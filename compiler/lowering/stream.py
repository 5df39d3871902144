"""The instruction stream of one program: numbers, waits, kernels, DRAM buffers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compiler.errors import LoweringError
from compiler.ir import Constant, Op, Value
from compiler.ir.location import Location
from compiler.lowering.memory import Hazards, Space, touched
from compiler.lowering.tiling import product
from compiler.program.executable import Buffer, Kernel, Role
from compiler.program.instructions import Address, Instruction, Memory, Operand, Region, Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import ElementType, TensorType


def dense_strides(type_: TensorType) -> tuple[int, ...]:
    """Byte strides of a dense row-major tensor."""
    strides, step = [], type_.element.bits // 8
    for size in reversed(type_.shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def row_major(extents: Sequence[int], element: ElementType) -> tuple[int, ...]:
    """Byte strides of dense row-major loops."""
    strides, step = [], element.bits // 8
    for extent in reversed(extents):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def region(memory: Memory, base: int, element: ElementType, strides: Sequence[int]) -> Region:
    """A region at a fixed address."""
    return Region(memory, Address(base), element, tuple(strides))


@dataclass(slots=True)
class _KernelNotes:
    ops: tuple[Op, ...]
    macs: int = 0
    operations: int = 0
    compulsory: int = 0
    product: tuple[int, ...] = ()


@dataclass(slots=True)
class Stream:
    """Collects instructions in program order. Every instruction gets a number, its kernel and its waits."""

    dram: Space
    steps: list[Instruction] = field(default_factory=list)
    buffers: dict[Value, Buffer] = field(default_factory=dict)
    _hazards: Hazards = field(default_factory=Hazards)
    _kernels: list[_KernelNotes] = field(default_factory=list)

    def begin_kernel(self, ops: tuple[Op, ...], product: tuple[int, ...] = ()) -> None:
        """Instructions from here on belong to a new kernel; ``product``: batch, M, N, K of its sum of products."""
        self._kernels.append(_KernelNotes(ops, product=product))

    def count(self, *, macs: int = 0, operations: int = 0, compulsory: int = 0) -> None:
        """Add to the current kernel's least cost."""
        notes = self._kernels[-1]
        notes.macs += macs
        notes.operations += operations
        notes.compulsory += compulsory

    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, named after their operators."""
        found = []
        for notes in self._kernels:
            names = tuple(op.name for op in dict.fromkeys(notes.ops))
            location = Location().fused(*(op.location for op in notes.ops))
            counts = (notes.macs, notes.operations, notes.compulsory, notes.product)
            found.append(Kernel("+".join(names), names, location, *counts))
        return tuple(found)

    def buffer(self, value: Value, role: Role, constant: Constant | None = None) -> Buffer:
        """The DRAM buffer of a value, made when first asked for. Raises LoweringError where there is no room for it."""
        found = self.buffers.get(value)
        if found is None:
            address = self.dram.allocate(value.tensor.nbytes)
            if address is None:
                what = f"{value.type} ({value.tensor.nbytes} bytes) beside {self.dram.peak} bytes"
                msg = f"the DRAM of {self.dram.capacity} bytes has no room for {what}"
                raise LoweringError(msg)
            self._hazards.add_buffer(address)
            name = f"{role.value}{len(self.buffers)}"
            found = Buffer(name, address, value.tensor, role, constant)
            self.buffers[value] = found
        return found

    def add(self, made: Instruction) -> None:
        """Append an instruction; its number, kernel and waits are set here."""
        reads, writes = touched(made)
        number, kernel = len(self.steps), len(self._kernels) - 1
        waits = self._hazards.order(number, made.engine, reads, writes)
        self.steps.append(replace(made, id=number, kernel=kernel, waits=waits))

    def transfer(self, extents: Sequence[int], source: Region, destination: Region) -> None:
        """Append a copy between the memories, unless there is nothing to copy."""
        if product(extents):
            self.add(Transfer(0, 0, tuple(extents), Operand(source), Operand(destination)))

    def copy_whole(self, type_: TensorType, memory: Memory, source: int, destination: int) -> None:
        """Append a copy of a whole dense tensor from an address of ``memory`` to one of the other memory."""
        whole, other = (type_.size,), Memory.SRAM if memory is Memory.DRAM else Memory.DRAM
        strides = row_major(whole, type_.element)
        self.transfer(
            whole, region(memory, source, type_.element, strides), region(other, destination, type_.element, strides)
        )
