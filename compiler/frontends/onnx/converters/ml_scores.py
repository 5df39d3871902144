"""Scores of ai.onnx.ml's models: the transforms at their end, the second score of two classes, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.onnx.converters.common import cast, reshape
from compiler.ir import F32, STRING, Value
from compiler.ops.compose import Emit
from compiler.ops.strings import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.frontends.onnx.site import Site
    from compiler.ir import Array

ML: Final = "ai.onnx.ml"
_TINY: Final = 1e-7
"""Scores closer to 0 than this count as 0 in SOFTMAX_ZERO."""
_WINITZKI: Final = 0.147
"""The constant of Winitzki's approximation of the inverse error function, which implementations of PROBIT use."""


def rows(site: Site, x: Value) -> Value:
    """X as float32 rows [N, F]; a vector is one row."""
    rank = site.rank(x)
    if rank not in {1, 2}:
        site.bad_shape(f"its input is {x.type}; expected [N, F] or [F]")
    x = cast(site, x, F32)
    return reshape(site, x, (1, -1)) if rank == 1 else x


def floats(values: Sequence[float]) -> Array:
    """A float32 vector."""
    return np.array(values, np.float32)


def labels_of(site: Site, integers: str, strings: str) -> Array | None:
    """The labels of one of two attributes, strings first; None without any."""
    names = site.attribute(strings)
    if names:
        return texts(names, (len(names),))
    numbers = site.attribute(integers)
    return np.array(numbers, np.int64) if numbers else None


def transformed(site: Site, scores: Value, transform: str) -> Value:
    """The scores [N, E] after a transform: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT."""
    found = _TRANSFORMS.get(transform)
    if found is None:
        site.bad_attribute(f"attribute 'post_transform' is '{transform}'; expected one of {', '.join(_TRANSFORMS)}")
    return found(Emit(site.b), scores)


def _softmax_zero(emit: Emit, scores: Value) -> Value:
    """A softmax in which scores of 0 stay 0."""
    shifted = emit("exp", emit("sub", scores, emit("reduce_max", scores, axes=(1,), keep_dims=True)))
    kept = emit("mul", scores, emit("exp", emit("neg", emit("reduce_max", scores, axes=(1,), keep_dims=True))))
    counts = emit("gt", emit("abs", scores), _TINY)
    weights = emit("select", counts, shifted, kept)
    return emit("div", weights, emit("reduce_sum", weights, axes=(1,), keep_dims=True))


def _probit(emit: Emit, scores: Value) -> Value:
    """sqrt(2) erfinv(2 p - 1), by Winitzki's approximation."""
    x = emit("sub", emit("mul", scores, 2.0), 1.0)
    log = emit("log", emit("mul", emit("sub", emit.scalar(1.0, F32), x), emit("add", x, 1.0)))
    half = emit("add", emit("mul", log, 0.5), 2.0 / (np.pi * _WINITZKI))
    root = emit("sqrt", emit("sub", emit("mul", half, half), emit("mul", log, 1.0 / _WINITZKI)))
    size = emit("sqrt", emit("sub", root, half))
    signed = emit("select", emit("lt", x, 0.0), emit("neg", size), size)
    return emit("mul", signed, float(np.sqrt(2.0)))


_TRANSFORMS: Final[dict[str, Callable[[Emit, Value], Value]]] = {
    "NONE": lambda _emit, scores: scores,
    "LOGISTIC": lambda emit, scores: emit("logistic", scores),
    "SOFTMAX": lambda emit, scores: emit("softmax", scores, axis=1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def mirrored(emit: Emit, score: Value) -> Value:
    """[-s, s] of a score [N, 1]."""
    return emit.concat([emit("neg", score), score], 1)


def complemented(emit: Emit, score: Value) -> Value:
    """[1 - s, s] of a score [N, 1]."""
    return emit.concat([emit("sub", emit.scalar(1.0, F32), score), score], 1)


def best(site: Site, scores: Value, labels: Array) -> Value:
    """The label of the greatest score of each row, the first of equal ones."""
    emit = Emit(site.b)
    return picked(site, emit("argmax", scores, axis=1, keep_dims=False), labels)


def positive(site: Site, score: Value, bound: float, labels: Array) -> Value:
    """Label 1 where a score [N, 1] is above the bound, else label 0."""
    emit = Emit(site.b)
    holds = emit.reshape(emit("gt", score, bound), (-1,))
    pair = [emit.constant(label.reshape(())) for label in (labels[1:2], labels[0:1])]
    return emit("select", holds, *pair)


def picked(site: Site, index: Value, labels: Array) -> Value:
    """The labels at indices."""
    return Emit(site.b)("gather", site.b.constant(labels), index, axis=0)


def two_labels(labels: Array | None) -> Array:
    """The labels of a decision between two: those given where there are two, else 0 and 1."""
    if labels is not None and labels.size == 2:
        return labels
    if labels is not None and labels.dtype == STRING.dtype:
        return texts(("0", "1"), (2,))
    return np.array([0, 1], np.int64)
