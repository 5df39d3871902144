"""Structured loops: what an operator computes, in the one form that lowering reads.

A :class:`Loops` is a perfect loop nest in the manner of linalg.generic. For every point of the iteration space it reads
one element an access, computes the scalar ``body``, and writes it through ``write``; points that differ only in
reduction iterators meet in the same element and are joined by ``combiner``. An operator's work is a tuple of nests,
done in order; each part writes (a part of) one result. The element types of the body are explicit, so that a nest
alone, without its operator's name, says everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from compiler.ir import ElementType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class IteratorKind(Enum):
    """How the points along an iterator relate."""

    PARALLEL = "parallel"
    """Each index writes elements of its own."""
    REDUCTION = "reduction"
    """All indices write the same element, joined by the combiner in any order."""
    WINDOW = "window"
    """A reduction that shares a tensor dim with a parallel iterator (convolution and pooling windows)."""
    SEQUENTIAL = "sequential"
    """Index i writes the combination of the bodies of 0..i: a running sum."""


@dataclass(frozen=True, slots=True)
class Iterator:
    """One loop: its trip count and kind."""

    extent: int
    kind: IteratorKind = IteratorKind.PARALLEL

    @property
    def is_reduction(self) -> bool:
        """Whether indices of this loop are joined by the combiner."""
        return self.kind in (IteratorKind.REDUCTION, IteratorKind.WINDOW)


@dataclass(frozen=True, slots=True)
class Index:
    """An affine index of one tensor dim: offset + sum of coefficient * iterator, as (iterator, coefficient) pairs."""

    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0

    def bounds(self, extents: Sequence[int]) -> tuple[int, int]:
        """Least and greatest index over loops of these (positive) extents, both inclusive."""
        low = high = self.offset
        for iterator, coefficient in self.terms:
            reach = coefficient * (extents[iterator] - 1)
            low += min(reach, 0)
            high += max(reach, 0)
        return low, high


class OutOfRange(Enum):
    """What a data-dependent index outside 0..extent-1 means."""

    WRAP = "wrap"
    """Negative indices count from the end; anything else is an error."""
    CLAMP = "clamp"
    """The nearest index inside."""
    DROP = "drop"
    """A write is not done; a read gives the access's fill."""


@dataclass(frozen=True, slots=True)
class Indirect:
    """A data-dependent index of one tensor dim: read from an index operand, times nothing, plus nothing."""

    index: Access
    extent: int
    rule: OutOfRange = OutOfRange.WRAP


@dataclass(frozen=True, slots=True)
class Access:
    """One element of operand ``operand`` (of a result, in a write): an index a dim.

    ``fill`` is read where an affine index lies outside the tensor (padding); None promises that it never does.
    """

    operand: int
    dims: tuple[Index | Indirect, ...]
    fill: bool | int | float | complex | None = None

    @property
    def is_affine(self) -> bool:
        """Whether no index depends on data."""
        return all(isinstance(dim, Index) for dim in self.dims)


@dataclass(frozen=True, slots=True)
class Arg:
    """The element that read ``index`` gives."""

    index: int
    element: ElementType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant scalar."""

    value: bool | int | float | complex
    element: ElementType


@dataclass(frozen=True, slots=True)
class Position:
    """An iterator's index, as a number of ``element``: scale * index + offset."""

    iterator: int
    element: ElementType
    scale: float = 1
    offset: float = 0


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of the vector unit applied to scalars, its result rounded to ``element``.

    ``function`` is one of :data:`SCALAR_FUNCTIONS`.
    """

    function: str
    operands: tuple[Expression, ...]
    element: ElementType


Expression: TypeAlias = Arg | Literal | Position | Apply

SCALAR_FUNCTIONS: dict[str, int] = {
    # arithmetic: name -> number of operands
    "neg": 1, "abs": 1, "sign": 1, "floor": 1, "ceil": 1, "round": 1, "trunc": 1, "sqrt": 1, "rsqrt": 1,
    "reciprocal": 1, "exp": 1, "expm1": 1, "log": 1, "log1p": 1, "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1,
    "atan": 1, "sinh": 1, "cosh": 1, "tanh": 1, "asinh": 1, "acosh": 1, "atanh": 1, "erf": 1, "logistic": 1,
    "add": 2, "sub": 2, "mul": 2, "div": 2, "mod": 2, "rem": 2, "pow": 2, "atan2": 2, "max": 2, "min": 2,
    # predicates and logic
    "eq": 2, "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2, "isnan": 1, "isinf": 1, "isfinite": 1,
    "and": 2, "or": 2, "xor": 2, "not": 1,
    # bits
    "bitand": 2, "bitor": 2, "bitxor": 2, "bitnot": 1, "shift_left": 2, "shift_right": 2, "popcount": 1, "bitcast": 1,
    # choice and conversion: select(condition, then, else); cast wraps integers and rounds floats to nearest even,
    # cast_saturate clips to the range of the result type
    "select": 3, "cast": 1, "cast_saturate": 1,
}  # fmt: skip
"""The scalar functions that a body may use. Their meaning is IEEE 754's (C's for integers: wrapping, division
truncates; ``mod`` has the divisor's sign, ``rem`` the dividend's; ``max`` and ``min`` give NaN if either is NaN;
``round`` goes to the even neighbour).

Where C leaves integers open: x div, mod and rem 0 are 0; the least integer div -1 is itself; ``pow`` with a negative
exponent truncates the exact value (0 where that is infinite); a shift by the type's bits or more, or by a negative
number, moves every bit out: 0, but -1 for ``shift_right`` of a negative number, which is arithmetic.

``cast`` of a float to an integer truncates towards zero. Outside the range it does what x86 and onnxruntime do: the
value goes through a signed integer of 32 bits (64 for 64-bit results), in which NaN and everything outside is the least
integer, and is wrapped from there; for 32- and 64-bit unsigned results 2^(bits-1) is taken off values from there on
and put back after. ``cast_saturate`` clips instead, NaN to 0. Floats overflow to infinity (to NaN, where the type
has none; to the greatest value, where it has neither) under ``cast`` and to the greatest finite value under
``cast_saturate``. Anything but zero, NaN too, is true as a bool."""


class Combiner(Enum):
    """How the bodies of one element are joined."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"
    ARGMAX = "argmax"
    """The position, along the one reduction iterator, of the first greatest body (NaN is greatest; for ARGMIN least).

    A position has nothing to start from: ``initial`` is None and means nothing here."""
    ARGMIN = "argmin"
    ARGMAX_LAST = "argmax_last"
    ARGMIN_LAST = "argmin_last"


@dataclass(frozen=True, slots=True)
class Loops:
    """A loop nest. ``accumulate`` is the element type in which the combiner works; the write rounds to the result's.

    ``accumulate`` None is the result's element type.

    ``initial`` is the combiner's starting value; None: it continues from what the result already holds there (a part
    before this one wrote it). Where several points without a combiner write one element, the last in row-major order
    of the iteration space stays; where they have one (a write through an indirect index), each joins what is there.
    """

    iterators: tuple[Iterator, ...]
    reads: tuple[Access, ...]
    body: Expression
    write: Access
    combiner: Combiner | None = None
    initial: bool | int | float | None = None
    accumulate: ElementType | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        """Trip count a loop."""
        return tuple(iterator.extent for iterator in self.iterators)

    @property
    def points(self) -> int:
        """Number of points of the iteration space."""
        count = 1
        for iterator in self.iterators:
            count *= iterator.extent
        return count


Work: TypeAlias = tuple[Loops, ...]
"""Nests done in order. No nest has an extent of 0, so a result without elements has the empty work; a reduction over
nothing is a nest that fills in the starting value. A later nest may overwrite what an earlier one wrote."""


def nests(*parts: Loops) -> Work:
    """The parts that have points."""
    return tuple(part for part in parts if part.points)


def parallel(extents: Iterable[int]) -> tuple[Iterator, ...]:
    """Parallel loops of these extents."""
    return tuple(Iterator(extent) for extent in extents)


def identity_access(operand: int, rank: int) -> Access:
    """Dim d is indexed by loop d."""
    return Access(operand, tuple(Index(((d, 1),)) for d in range(rank)))


def broadcast_access(operand: int, shape: Sequence[int], rank: int) -> Access:
    """An operand of ``shape`` read under numpy's broadcasting by ``rank`` parallel loops, the last dims aligned."""
    lead = rank - len(shape)
    return Access(operand, tuple(Index() if size == 1 else Index(((lead + d, 1),)) for d, size in enumerate(shape)))
