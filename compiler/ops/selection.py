"""Operators whose result's size or order only the data decides: searching, sorting, sampling of distinct elements.

They have no loop form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import I64, UNKNOWN, Array, Dim, Type, tensor
from compiler.ops.movement import X, contiguous, integer_list, value_operand
from compiler.ops.registry import (
    ANY,
    BOOLEAN,
    FLAG,
    REAL,
    Attribute,
    Operand,
    Operator,
    Variable,
    integer,
    register,
)
from compiler.ops.scalars import widen
from compiler.ops.shapes import known_integers, normalize_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion


@register
class Compress(Operator):
    """The slices of x along ``axis`` (the elements of flat x without one) where the condition holds (ONNX Compress).

    A condition shorter than the dim leaves the rest out. Raises EvaluationError for a longer one that holds beyond.
    """

    name: ClassVar[str] = "compress"
    operands: ClassVar[tuple[Operand, ...]] = (X, Operand("condition", Variable("C", BOOLEAN)))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), None, "the dim, negative from the end; absent: x is flattened"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Unknown size along the axis, or one dim of unknown size."""
        x, axis = call.tensor(0), call.get("axis")
        if axis is None:
            return (tensor(x.element, (UNKNOWN,)),)
        if x.dims is None:
            return (tensor(x.element, None),)
        taken = normalize_axis(self.name, call.integer("axis"), x.rank)
        return (tensor(x.element, (*x.dims[:taken], UNKNOWN, *x.dims[taken + 1 :])),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's compress. Raises EvaluationError."""
        x, condition = np.asarray(operands[0]), np.asarray(operands[1]).reshape(-1)
        axis = None if call.get("axis") is None else call.integer("axis")
        flat = x.reshape(-1) if axis is None else x
        size = flat.shape[0 if axis is None else axis]
        if condition[size:].any():
            msg = f"compress: the condition holds beyond the {size} elements there are"
            raise EvaluationError(msg)
        return (np.take(flat, np.flatnonzero(condition), 0 if axis is None else axis),)


@register
class NonZero(Operator):
    """The coordinates, int64 [rank, count], of the elements that are not zero, in row-major order (ONNX NonZero).

    A scalar counts as a vector of one element. Strings that are not empty count.
    """

    name: ClassVar[str] = "nonzero"
    operands: ClassVar[tuple[Operand, ...]] = (X,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[rank, unknown]."""
        x = call.tensor(0)
        return (tensor(I64, (UNKNOWN if x.dims is None else max(x.rank, 1), UNKNOWN)),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's nonzero."""
        x = np.atleast_1d(np.asarray(operands[0]))
        return (np.array(np.nonzero(x != "" if x.dtype.kind in "OUS" else widen(x)), np.int64),)


@register
class Unique(Operator):
    """The distinct elements of flat x, or the distinct slices along ``axis`` (ONNX Unique-11).

    Results: the distinct ones, sorted or in the order of their first appearance; int64 vectors of the first index of
    each, of the index in the result for each of x's, and of the count of each. NaN equals NaN. Complex
    numbers are ordered by their real, then their imaginary parts.
    """

    name: ClassVar[str] = "unique"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", ANY)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), None, "the dim, negative from the end; absent: x is flattened"),
        Attribute("sorted", FLAG, True, "ascending order instead of that of appearance"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Unknown sizes; the inverse has one index an element or slice."""
        x = call.tensor(0)
        vector = tensor(I64, (UNKNOWN,))
        if call.get("axis") is None:
            count = x.size if x.is_static else UNKNOWN
            return (tensor(x.element, (UNKNOWN,)), vector, tensor(I64, (count,)), vector)
        if x.dims is None:
            return (tensor(x.element, None), vector, vector, vector)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        dims = (*x.dims[:axis], UNKNOWN, *x.dims[axis + 1 :])
        return (tensor(x.element, dims), vector, tensor(I64, (x.dims[axis],)), vector)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's unique, put into order of appearance where that is wanted."""
        x = np.asarray(operands[0])
        axis = 0
        flat = x.reshape(-1)
        if call.get("axis") is not None:
            axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
            flat = x
        comparable = _comparable(flat)
        along = axis if flat.ndim > 1 else None
        _, first, inverse, counts = np.unique(
            comparable, return_index=True, return_inverse=True, return_counts=True, axis=along
        )
        inverse = inverse.reshape(-1)
        if not call.flag("sorted"):
            order = np.argsort(first, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            first, counts, inverse = first[order], counts[order], rank[inverse]
        vectors = (np.asarray(vector, np.int64) for vector in (first, inverse, counts))
        return (np.take(flat, first, axis), *vectors)


def _comparable(x: Array) -> Array:
    """Elements that numpy can sort."""
    return x.astype(np.str_) if x.dtype.kind in "OUS" else widen(x)


@register
class TopK(Operator):
    """The k greatest (or least) elements along ``axis`` and their int64 positions (ONNX TopK-11).

    Among equal ones the lower position comes first. NaN counts as the greatest. Unsorted results are sorted all the
    same, which any order allows. Raises EvaluationError for k beyond the dim's size.
    """

    name: ClassVar[str] = "top_k"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL)), value_operand("k"))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), -1, "the dim, negative from the end"),
        Attribute("largest", FLAG, True, "the greatest instead of the least"),
        Attribute("sorted", FLAG, True, "whether the order of the results is asked for"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Size k along the axis. Raises TypeMismatch for a k that is negative or beyond the dim."""
        x, k = call.tensor(0), known_integers(call, 1)
        if x.dims is None:
            return (tensor(x.element, None), tensor(I64, None))
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        size, limit = (UNKNOWN if k is None else k[0]), x.dims[axis]
        if isinstance(size, int) and (size < 0 or (isinstance(limit, int) and size > limit)):
            msg = f"top_k: k is {size}; expected 0..{limit}, the size of dim {axis}"
            raise TypeMismatch(msg)
        dims: tuple[Dim, ...] = (*x.dims[:axis], size, *x.dims[axis + 1 :])
        return (tensor(x.element, dims), tensor(I64, dims))

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By a stable sort. Raises EvaluationError for a k that is negative or beyond the dim."""
        x, k = np.asarray(operands[0]), integer_list(operands[1])[0]
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        if not 0 <= k <= x.shape[axis]:
            msg = f"top_k: k is {k}; expected 0..{x.shape[axis]}, the size of dim {axis}"
            raise EvaluationError(msg)
        order = sorting_order(x, axis, descending=call.flag("largest"))
        found = np.take(order, np.arange(k), axis)
        return (np.take_along_axis(x, found, axis), found)


def sorting_order(x: Array, axis: int, *, descending: bool) -> Array:
    """int64 positions that sort x along an axis, equal elements by position; NaN is the greatest."""
    keys = widen(x)
    if not descending:
        return np.argsort(keys, axis, kind="stable")
    # A stable ascending sort of the reversed array, read backwards, keeps equal elements in their order.
    turned = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return contiguous(keys.shape[axis] - 1 - np.flip(turned, axis))
