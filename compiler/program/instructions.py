"""The instruction set: what the simulated accelerator executes.

Four engines (DMA in, DMA out, matrix array, vector unit) each take their instructions in program order; instructions on
different engines overlap unless a :class:`Wait` orders them. Memories are byte-addressed. Addresses are affine in the
indices of the :class:`Repeat` loops around an instruction, plus ``index mod buffers`` for rotating buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from compiler.ir import ElementType
    from compiler.ops.work import Combiner, Expression, OutOfRange
    from compiler.targets.schema import Dataflow


class Memory(Enum):
    """Where a region lies."""

    DRAM = "dram"
    SRAM = "sram"


class Engine(Enum):
    """The engines of a core. Each is an in-order queue."""

    DMA_IN = "dma_in"
    DMA_OUT = "dma_out"
    MATRIX = "matrix"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Rotation:
    """Adds ``(index mod count) * stride`` bytes, where index is that of repeat loop ``level``."""

    level: int
    count: int
    stride: int


@dataclass(frozen=True, slots=True)
class Address:
    """A byte address (or, in ``Vector.origin``, a number): base + sum of coefficient * loop index + rotations.

    ``terms`` are (level, coefficient) pairs; level 0 is the outermost Repeat around the instruction.
    """

    base: int
    terms: tuple[tuple[int, int], ...] = ()
    rotations: tuple[Rotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """Elements in a memory: one at address + sum of index * stride for every point of an iteration space.

    ``strides`` are bytes a loop of that space (0: the same element again; overlapping strides: windows). Extents are
    the instruction's. For sub-byte elements the innermost loop walks packed elements and its stride is given in
    elements packed (stride 1 and a start on a byte).
    """

    memory: Memory
    address: Address
    element: ElementType
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A data-dependent term of an address: ``stride`` bytes times an index.

    The index is read from ``index``, a region over the same iteration space (for a result: over the loops that its
    strides cover), and must lie in 0..extent-1 after ``rule`` is applied.
    """

    index: Region
    stride: int
    extent: int
    rule: OutOfRange


@dataclass(frozen=True, slots=True)
class Operand:
    """A region, with data-dependent terms for gather and scatter. ``fill`` is read where a lookup drops out."""

    region: Region
    lookups: tuple[Lookup, ...] = ()
    fill: bool | int | float | complex | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Start only after an instance of instruction ``on`` has ended.

    It is the latest one that precedes this instance in program order, or the one ``lag`` instances before that. Where
    there is no such instance there is no wait.
    """

    on: int
    lag: int = 0


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copy between DRAM and SRAM, in either direction; same extents, same element type.

    A source in DRAM with lookups is a DMA gather (its index regions lie in SRAM); a destination with them a scatter.
    """

    id: int
    kernel: int
    extents: tuple[int, ...]
    source: Operand
    destination: Operand
    waits: tuple[Wait, ...] = ()

    @property
    def engine(self) -> Engine:
        """The direction decides."""
        return Engine.DMA_IN if self.source.region.memory is Memory.DRAM else Engine.DMA_OUT


@dataclass(frozen=True, slots=True)
class Matmul:
    """out[b, m, n] (+)= sum over k of a[b, m, k] * b[b, k, n], on the matrix array; all three regions in SRAM.

    Each of b, m, n, k is a group of loops: ``a.strides`` cover batch + m + k, ``b.strides`` batch + k + n,
    ``out.strides`` batch + m + n. Convolution windows are overlapping strides of ``a``. Products are summed in
    ``out.element`` (the accumulator's type); with ``accumulate`` onto what ``out`` holds. ``dataflow`` is one that the
    array offers; None: its own.
    """

    id: int
    kernel: int
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]
    a: Region
    b: Region
    out: Region
    accumulate: bool = False
    waits: tuple[Wait, ...] = ()
    dataflow: Dataflow | None = None

    @property
    def engine(self) -> Engine:
        """The matrix array."""
        return Engine.MATRIX


@dataclass(frozen=True, slots=True)
class Vector:
    """One element of ``out`` for each point of the leading loops; ``combiner`` joins the last ``reduced`` loops.

    ``body`` sees input i as Arg(i) and loop l's index, plus ``origin[l]``, as Position(l). With ``initial`` None a
    combiner continues from what ``out`` holds. ``scan`` makes the (one) reduced loop a running combination: then
    ``out.strides`` has a stride for it too and every prefix is written. Otherwise ``out.strides`` covers the leading
    loops only. Elementwise, fill, transpose, reduce, pooling, gather and scatter are all this instruction.
    """

    id: int
    kernel: int
    extents: tuple[int, ...]
    inputs: tuple[Operand, ...]
    body: Expression
    out: Operand
    reduced: int = 0
    combiner: Combiner | None = None
    initial: bool | int | float | None = None
    accumulate: ElementType | None = None
    scan: bool = False
    origin: tuple[Address, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def engine(self) -> Engine:
        """The vector unit."""
        return Engine.VECTOR


Instruction: TypeAlias = Transfer | Matmul | Vector


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the body ``count`` times; the loop's index is at the level given by its nesting depth."""

    count: int
    body: tuple[Step, ...]


Step: TypeAlias = Instruction | Repeat
