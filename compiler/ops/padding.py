"""Padding, and the triangles of matrices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import BOOL, I32, STRING, UNKNOWN, Array, Dim, ElementType, TensorType, Type, tensor
from compiler.ops.movement import T, X, contiguous, copy, integer_list, result_tensor, value_operand
from compiler.ops.registry import ANY, FLAG, Attribute, Operand, Operator, Variable, choice, integers, register
from compiler.ops.scalars import python_number
from compiler.ops.shapes import known_integers, normalize_axes
from compiler.ops.work import (
    Access,
    Apply,
    Arg,
    Index,
    Literal,
    Loops,
    Position,
    identity_access,
    nests,
    parallel,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work


@dataclass(frozen=True, slots=True)
class Margin:
    """The padding of one dim: ``low`` and ``high`` elements around (negative: taken away), ``interior`` between."""

    low: int
    high: int
    interior: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether the dim stays as it is."""
        return (self.low, self.high, self.interior) == (0, 0, 0)

    def size(self, size: int) -> int:
        """The dim's size after padding. Raises TypeMismatch where more is taken away than there is."""
        padded = self.low + size + max(size - 1, 0) * self.interior + self.high
        if padded < 0:
            msg = f"pad: {self.low} and {self.high} elements on a dim of size {size}; expected at least 0 in all"
            raise TypeMismatch(msg)
        return padded

    def sources(self, mode: str, size: int) -> Array:
        """Which element each place of the padded dim repeats, for the modes edge, reflect and wrap.

        Negative padding takes elements away before the rest is padded, as onnxruntime does. Raises EvaluationError
        where there is nothing to repeat.
        """
        first, last = -min(self.low, 0), size - 1 + min(self.high, 0)
        kept = last - first + 1
        places = np.arange(-max(self.low, 0), kept + max(self.high, 0))
        if kept <= 0 and places.size:
            msg = f"pad: mode '{mode}' on a dim of {max(kept, 0)} elements; expected at least one to repeat"
            raise EvaluationError(msg)
        return first + _REPEATED[mode](places, max(kept, 1))


def _edge(places: Array, size: int) -> Array:
    return np.clip(places, 0, size - 1)


def _wrap(places: Array, size: int) -> Array:
    return places % size


def _reflect(places: Array, size: int) -> Array:
    period = max(2 * (size - 1), 1)
    phase = places % period
    return np.minimum(phase, period - phase) if size > 1 else np.zeros_like(places)


_REPEATED: Final = {"edge": _edge, "wrap": _wrap, "reflect": _reflect}


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive places ``start .. start + count - 1`` that hold elements first, first + step, ..."""

    start: int
    count: int
    first: int
    step: int


def runs(sources: Sequence[int]) -> list[Run]:
    """The longest runs, front to back, whose step is -1, 0 or 1."""
    found: list[Run] = []
    start = 0
    while start < len(sources):
        end = start + 1
        step = sources[end] - sources[start] if end < len(sources) else 0
        step = step if abs(step) <= 1 else 0
        while end < len(sources) and sources[end] - sources[end - 1] == step:
            end += 1
        found.append(Run(start, end - start, sources[start], step if end - start > 1 else 0))
        start = end
    return found


MOST_PIECES: Final = 256
"""Slabs that a pad's work may consist of; beyond, it has no loop form."""


@register
class Pad(Operator):
    """x with elements put around (ONNX Pad-21), and between with ``interior``.

    ``pads`` holds the numbers before each of ``axes`` (all dims where omitted), then those after; negative ones take
    elements away. What is put there: ``value`` (0 where omitted), or in mode edge the nearest element, in mode reflect
    the elements mirrored at the first and last (again and again, if need be), in mode wrap those from the other end.
    Raises TypeMismatch for a wrong number of pads, EvaluationError where there is no element to repeat.
    """

    name: ClassVar[str] = "pad"
    operands: ClassVar[tuple[Operand, ...]] = (
        X,
        value_operand("pads"),
        Operand("value", T, optional=True),
        Operand("axes", Variable("A", value_operand("axes").type.allowed), optional=True, value=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("mode", choice("constant", "edge", "reflect", "wrap"), "constant", "what is put there"),
        Attribute("interior", integers(0), (), "elements put between two, a dim; none: nothing (mode constant only)"),
    )

    def check(self, call: Call) -> None:
        """Only constant padding goes between elements. Raises TypeMismatch, InvalidAttribute."""
        super().check(call)
        if any(call.integers("interior")) and call.text("mode") != "constant":
            interior = list(call.integers("interior"))
            msg = f"pad: interior {interior} in mode '{call.text('mode')}'; expected mode 'constant'"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Padded sizes; unknown where the pads or a padded size are."""
        x = call.tensor(0)
        if x.dims is None:
            return (tensor(x.element, None),)
        pads, axes = known_integers(call, 1), known_integers(call, 3)
        if pads is None or (axes is None and call.has(3)):
            return (tensor(x.element, (UNKNOWN,) * x.rank),)
        margins = self.margins(call, x.rank, pads, axes)
        return (tensor(x.element, [_padded(dim, margin) for dim, margin in zip(x.dims, margins, strict=True)]),)

    def margins(self, call: Call, rank: int, pads: Sequence[int], axes: Sequence[int] | None) -> list[Margin]:
        """The padding a dim. Raises TypeMismatch for a wrong number of pads."""
        taken = normalize_axes(self.name, range(rank) if axes is None else axes, rank)
        interior = call.integers("interior") or (0,) * rank
        if len(pads) != 2 * len(taken) or len(interior) != rank:
            msg = f"pad: {len(pads)} pads, {len(interior)} interior; expected {2 * len(taken)} and {rank}"
            raise TypeMismatch(msg)
        around = dict(zip(taken, zip(pads[: len(taken)], pads[len(taken) :], strict=True), strict=True))
        return [Margin(*around.get(axis, (0, 0)), interior[axis]) for axis in range(rank)]

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By index vectors a dim. Raises TypeMismatch, EvaluationError."""
        x = np.asarray(operands[0])
        given = [*operands, None, None, None]
        axes = None if given[3] is None else integer_list(given[3])
        margins = self.margins(call, x.ndim, integer_list(operands[1]), axes)
        mode = call.text("mode")
        if mode != "constant":
            sources = [margin.sources(mode, size) for margin, size in zip(margins, x.shape, strict=True)]
            return (contiguous(x[np.ix_(*sources)]),)
        shape = [margin.size(size) for margin, size in zip(margins, x.shape, strict=True)]
        padded = np.empty(shape, x.dtype)
        padded[...] = zero_of(call.tensor(0).element) if given[2] is None else np.asarray(given[2]).reshape(())
        placed = [_placed(margin, size) for margin, size in zip(margins, x.shape, strict=True)]
        padded[np.ix_(*[to for _, to in placed])] = x[np.ix_(*[source for source, _ in placed])]
        return (padded,)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """One nest whose reads outside give the fill, or a fill and a copy, or slabs that repeat elements.

        None for strings, unknown pads, and more than MOST_PIECES slabs.
        """
        x, result = call.tensor(0), result_tensor(results)
        pads, axes = known_integers(call, 1), known_integers(call, 3)
        if pads is None or (axes is None and call.has(3)) or x.element is STRING:
            return None
        margins = self.margins(call, x.rank, pads, axes)
        if call.text("mode") != "constant":
            return _repeating(call.text("mode"), x, margins)
        if x.size == 0 or call.integers("interior") or (call.has(2) and call.value(2) is None):
            return (*self._filled(call, result), *_inserted(x, margins))
        outside = any(margin.low > 0 or margin.high > 0 for margin in margins)
        fill = self._fill(call) if outside else None
        read = Access(0, tuple(Index(((d, 1),), -margin.low) for d, margin in enumerate(margins)), fill)
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))

    def _fill(self, call: Call) -> bool | int | float | complex:
        value = call.value(2)
        return 0 if value is None else python_number(value)

    def _filled(self, call: Call, result: TensorType) -> Work:
        write = identity_access(0, result.rank)
        if call.has(2) and call.value(2) is None:
            rank = call.tensor(2).rank
            read = Access(2, (Index(),) * rank)
            return nests(copy(read, result.element, parallel(result.shape), write))
        return nests(Loops(parallel(result.shape), (), Literal(self._fill(call), result.element), write))


def _padded(dim: Dim, margin: Margin) -> Dim:
    if isinstance(dim, int):
        return margin.size(dim)
    return dim if margin.is_nothing else UNKNOWN


def zero_of(element: ElementType) -> Any:  # noqa: ANN401 - whatever the array takes
    """What stands where nothing is: zero, false or the empty string."""
    return "" if element is STRING else np.zeros((), element.dtype)


def _placed(margin: Margin, size: int) -> tuple[Array, Array]:
    """The elements that stay and their places in the padded dim."""
    elements = np.arange(size)
    places = margin.low + elements * (1 + margin.interior)
    inside = (places >= 0) & (places < margin.size(size))
    return elements[inside], places[inside]


def _inserted(x: TensorType, margins: Sequence[Margin]) -> Work:
    """The copy of the elements that stay, each at its place."""
    extents, read, write = [], [], []
    for axis, (size, margin) in enumerate(zip(x.shape, margins, strict=True)):
        elements, places = _placed(margin, size)
        extents.append(len(elements))
        read.append(Index(((axis, 1),), int(elements[0]) if len(elements) else 0))
        write.append(Index(((axis, 1 + margin.interior),), int(places[0]) if len(places) else 0))
    return nests(copy(Access(0, tuple(read)), x.element, parallel(extents), Access(0, tuple(write))))


def _repeating(mode: str, x: TensorType, margins: Sequence[Margin]) -> Work | None:
    """A slab for each choice of a run a dim."""
    if any(margin.size(size) == 0 for margin, size in zip(margins, x.shape, strict=True)):
        return ()
    if x.size == 0:
        return None
    a_dim = [runs(margin.sources(mode, size).tolist()) for margin, size in zip(margins, x.shape, strict=True)]
    if np.prod([len(found) for found in a_dim], initial=1) > MOST_PIECES:
        return None
    parts = []
    for slab in itertools.product(*a_dim):
        read = tuple(Index(((d, run.step),) if run.step else (), run.first) for d, run in enumerate(slab))
        write = tuple(Index(((d, 1),), run.start) for d, run in enumerate(slab))
        parts.append(copy(Access(0, read), x.element, parallel(run.count for run in slab), Access(0, write)))
    return nests(*parts)


@register
class Trilu(Operator):
    """The triangle on and above (``upper``) or below diagonal ``k`` of each matrix in the last two dims, else 0.

    Strings are empty elsewhere. k counts to the right from the main diagonal; omitted it is 0 (ONNX Trilu-14). Raises
    TypeMismatch below rank 2.
    """

    name: ClassVar[str] = "trilu"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", ANY)),
        value_operand("k", optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("upper", FLAG, True, "which triangle stays"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The operand's type. Raises TypeMismatch below rank 2."""
        x = call.tensor(0)
        if x.dims is not None and x.rank < 2:
            msg = f"trilu: operand 'x' is {x}; expected at least two dims"
            raise TypeMismatch(msg)
        return (tensor(x.element, x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By a mask of positions."""
        x = np.asarray(operands[0])
        k = integer_list(operands[1])[0] if len(operands) > 1 and operands[1] is not None else 0
        rows, columns = x.shape[-2:]
        place = np.arange(columns) - np.arange(rows)[:, None]
        keep = place >= k if call.flag("upper") else place <= k
        return (np.where(keep, x, zero_of(call.tensor(0).element)).astype(x.dtype, copy=False),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """A choice by the positions of row and column; None for strings and where k is not known."""
        x, known = call.tensor(0), known_integers(call, 1)
        if x.element is STRING or (known is None and call.has(1)):
            return None
        rows, columns = x.shape[-2:]
        # Beyond the matrix every k is the same; clamped, positions fit 32 bits.
        k = max(-rows, min(known[0] if known else 0, columns))
        row, column = Position(x.rank - 2, I32, 1, k), Position(x.rank - 1, I32)
        keep = Apply("ge" if call.flag("upper") else "le", (column, row), BOOL)
        body = Apply("select", (keep, Arg(0, x.element), Literal(0, x.element)), x.element)
        access = identity_access(0, x.rank)
        return nests(Loops(parallel(x.shape), (access,), body, access))
