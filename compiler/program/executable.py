"""What lowering produces: programs for the accelerator, and the tree of host steps and control flow around them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from compiler.ir import Constant, Location, Op, TensorType, Type
    from compiler.program.instructions import Step


class Role(Enum):
    """What a DRAM buffer is for."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor in DRAM, dense in row-major order, at a byte address."""

    name: str
    address: int
    type: TensorType
    role: Role
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a group of instructions computes, for reports: the operators it stands for and its least possible cost.

    ``macs`` counts multiply-accumulates on the matrix array, ``operations`` scalar operations on the vector unit,
    ``compulsory_bytes`` the DRAM bytes of its inputs, constants and outputs, each once. ``product``: the whole batch,
    M, N and K of a sum of products on the matrix array.
    """

    name: str
    operators: tuple[str, ...]
    location: Location
    macs: int
    operations: int
    compulsory_bytes: int
    product: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """One uninterrupted run of the accelerator. ``sram_bytes`` is the highest SRAM address used, plus one.

    ``sram_bound_bytes`` is the most bytes of SRAM that are in use at one time, which no placement goes under (0: not
    known).
    """

    name: str
    target: str
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    body: tuple[Step, ...]
    dram_bytes: int
    sram_bytes: int
    sram_bound_bytes: int = 0


Slot: TypeAlias = int
"""A value of the running executable: an array, a list (sequence) or None (empty optional)."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program: slots are copied to and from its input and output buffers, in the order of ``program.buffers``."""

    program: Program
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Evaluate one operation on the host with its reference evaluation; ``reason`` says why it is not accelerated.

    ``operands`` has None for an omitted optional operand.
    """

    op: Op
    operands: tuple[Slot | None, ...]
    results: tuple[Slot, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Alias:
    """The result is the operand's data under another type, at no cost."""

    operand: Slot
    result: Slot
    type: TensorType


@dataclass(frozen=True, slots=True)
class Block:
    """Steps in order. A block may read slots of the blocks around it."""

    inputs: tuple[Slot, ...]
    steps: tuple[ExecutableStep, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Run one of two blocks, by a bool scalar."""

    condition: Slot
    then_block: Block
    else_block: Block
    results: tuple[Slot, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Loop:
    """Run ``body`` up to ``trip_count`` times (None: no limit) while the condition holds.

    The body's inputs are iteration number (int64 scalar), condition (bool scalar) and the carried slots; its outputs
    condition, carried, and one slice for each scanned result, stacked along a new axis 0. ``results`` are the final
    carried slots, then the stacked ones. The meaning is ONNX's Loop.
    """

    trip_count: Slot | None
    condition: Slot | None
    carried: tuple[Slot, ...]
    body: Block
    results: tuple[Slot, ...]
    location: Location


ExecutableStep: TypeAlias = Run | Host | Alias | If | Loop


@dataclass(frozen=True, slots=True)
class Executable:
    """A compiled model for one set of input shapes. ``types`` gives the type of each slot where it is known."""

    target: str
    block: Block
    constants: dict[Slot, Constant]
    types: dict[Slot, Type]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
