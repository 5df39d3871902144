"""ai.onnx.ml's linear models and support vector machines, as matrix products with constants."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.onnx.converters.ml_scores import (
    ML,
    best,
    complemented,
    floats,
    labels_of,
    mirrored,
    picked,
    positive,
    rows,
    transformed,
    two_labels,
)
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import F32, Value
from compiler.ops.compose import Emit
from compiler.ops.ml_coupling import PairCoupling

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Array


def _linear(site: Site, x: Value, coefficients: Array, intercepts: Array) -> Value:
    """X times the rows of coefficients [E, F], plus intercepts [E]."""
    size = x.tensor.known_dims[1]
    if isinstance(size, int) and size != coefficients.shape[1]:
        site.bad_attribute(
            f"it has coefficients for {coefficients.shape[1]} features; expected {size}, as its input has"
        )
    emit = Emit(site.b)
    product = emit("matmul", x, emit.constant(np.ascontiguousarray(coefficients.T)))
    return emit("add", product, emit.constant(intercepts)) if intercepts.any() else product


def _coefficients(site: Site, count: int, name: str = "coefficients") -> Array:
    values = floats(site.attribute(name) or ())
    if not values.size or count < 1 or values.size % count:
        site.bad_attribute(f"attribute '{name}' has {values.size} entries; expected a multiple of {count}")
    return values.reshape(count, -1)


@converts("LinearRegressor", domain=ML)
def linear_regressor(site: Site) -> Results:
    """X C^T + b, transformed."""
    targets = site.attribute("targets")
    intercepts = floats(site.attribute("intercepts") or (0.0,) * targets)
    scores = _linear(site, rows(site, site.input(0)), _coefficients(site, targets), intercepts)
    return transformed(site, scores, str(site.attribute("post_transform")))


@converts("LinearClassifier", domain=ML)
def linear_classifier(site: Site) -> Results:
    """The class of the greatest score; one score decides between two classes by its sign."""
    labels = labels_of(site, "classlabels_ints", "classlabels_strings")
    intercepts = site.attribute("intercepts")
    count = len(intercepts) if intercepts else 1 if labels is None else labels.size
    scores = _linear(site, rows(site, site.input(0)), _coefficients(site, count), floats(intercepts or (0.0,) * count))
    transform = str(site.attribute("post_transform"))
    if count > 1:
        if labels is None or labels.size != count:
            site.bad_attribute(
                f"it has {0 if labels is None else labels.size} labels for {count} scores; expected as many"
            )
        return best(site, scores, labels), transformed(site, scores, transform)
    label = positive(site, scores, 0.0, two_labels(labels))
    final = transformed(site, scores, transform)
    if labels is not None and labels.size == 2:
        final = complemented(Emit(site.b), final)
    return label, final


# ---- support vectors


def _poly(emit: Emit, products: Value, gamma: float, offset: float, degree: float) -> Value:
    return emit("pow", emit("add", emit("mul", products, gamma), offset), degree)


def _sigmoid(emit: Emit, products: Value, gamma: float, offset: float, _degree: float) -> Value:
    return emit("tanh", emit("add", emit("mul", products, gamma), offset))


_OF_PRODUCTS: Final[dict[str, Callable[[Emit, Value, float, float, float], Value]]] = {
    "LINEAR": lambda _emit, products, _gamma, _offset, _degree: products,
    "POLY": _poly,
    "SIGMOID": _sigmoid,
}


def _kernel(site: Site, x: Value, vectors: Array) -> Value:
    """K [N, V] of rows and support vectors [V, F]. Parameters are gamma, coef0 and degree."""
    kind, given = str(site.attribute("kernel_type")), site.attribute("kernel_params") or (0.0, 0.0, 0.0)
    if kind not in {*_OF_PRODUCTS, "RBF"} or len(given) != 3:
        site.bad_attribute(
            f"kernel '{kind}' with {len(given)} parameters; expected LINEAR, POLY, RBF or SIGMOID with 3"
        )
    gamma, offset, degree = given
    emit = Emit(site.b)
    if kind != "RBF":
        return _OF_PRODUCTS[kind](emit, _linear(site, x, vectors, floats([0.0])), gamma, offset, degree)
    apart = emit("sub", emit.unsqueeze(x, (1,)), emit.constant(vectors))
    return emit("exp", emit("mul", emit("reduce_sum", emit("mul", apart, apart), axes=(2,), keep_dims=False), -gamma))


@converts("SVMRegressor", domain=ML)
def svm_regressor(site: Site) -> Results:
    """The sum of coefficients times kernels, plus rho: [N, 1]; of one class, 1 above 0 and -1 below."""
    count, emit = site.attribute("n_supports"), Emit(site.b)
    x, rho = rows(site, site.input(0)), floats((site.attribute("rho") or (0.0,))[:1])
    if count:
        kernel = _kernel(site, x, _coefficients(site, count, "support_vectors"))
        scores = _linear(site, kernel, _coefficients(site, 1), rho)
    else:
        scores = _linear(site, x, _coefficients(site, 1), rho)
    if site.attribute("one_class"):
        ones = [emit.scalar(value, F32) for value in (1.0, -1.0)]
        return emit("select", emit("gt", scores, 0.0), *ones)
    return transformed(site, scores, str(site.attribute("post_transform")))


@converts("SVMClassifier", domain=ML)
def svm_classifier(site: Site) -> Results:
    """Each pair of classes votes; without support vectors, a linear score a class.

    Scores are those of the pairs, or probabilities of the classes where coefficients for them are given.
    """
    labels = labels_of(site, "classlabels_ints", "classlabels_strings")
    if labels is None:
        site.bad_attribute("it has neither 'classlabels_ints' nor 'classlabels_strings'; expected one of them")
    x, rho = rows(site, site.input(0)), floats(site.attribute("rho") or ())
    counts = site.attribute("vectors_per_class")
    transform = str(site.attribute("post_transform"))
    if not counts:
        scores = _linear(site, x, _coefficients(site, labels.size), np.repeat(rho[:1], labels.size))
        return best(site, scores, labels), transformed(site, scores, transform)
    pairs = list(combinations(range(labels.size), 2))
    if len(counts) != labels.size or len(rho) < len(pairs):
        site.bad_attribute(f"{len(counts)} counts of vectors and {len(rho)} offsets for {labels.size} classes")
    kernel = _kernel(site, x, _coefficients(site, sum(counts), "support_vectors"))
    scores = _linear(site, kernel, _pair_weights(site, counts, pairs), rho[: len(pairs)])
    label = picked(site, _votes(site, scores, labels.size, pairs), labels)
    return label, _final_scores(site, scores, labels.size, transform)


def _pair_weights(site: Site, counts: tuple[int, ...], pairs: list[tuple[int, int]]) -> Array:
    """What each support vector [V] counts for in each pair [P]: coefficients have a row a class less one."""
    coefficients = _coefficients(site, len(counts) - 1)
    if coefficients.shape[1] != sum(counts):
        site.bad_attribute(f"attribute 'coefficients' has rows of {coefficients.shape[1]}; expected {sum(counts)}")
    starts = np.cumsum([0, *counts])
    weights = np.zeros((len(pairs), sum(counts)), np.float32)
    for place, (i, j) in enumerate(pairs):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        weights[place, of_i] = coefficients[j - 1, of_i]
        weights[place, of_j] = coefficients[i, of_j]
    return weights


def _votes(site: Site, scores: Value, classes: int, pairs: list[tuple[int, int]]) -> Value:
    """The class with the most pairs: the first of a pair above 0, else the second."""
    first, second = np.zeros((2, len(pairs), classes), np.float32)
    for place, (i, j) in enumerate(pairs):
        first[place, i] = second[place, j] = 1
    emit = Emit(site.b)
    holds = emit.cast(emit("gt", scores, 0.0), F32)
    votes = emit("add", emit("matmul", holds, emit.constant(first - second)), emit.constant(second.sum(0)))
    return emit("argmax", votes, axis=1, keep_dims=False)


def _final_scores(site: Site, scores: Value, classes: int, transform: str) -> Value:
    emit = Emit(site.b)
    a, b = site.attribute("prob_a"), site.attribute("prob_b")
    if a:
        if len(a) != len(b or ()) or len(a) != classes * (classes - 1) // 2:
            site.bad_attribute(f"{len(a)} and {len(b or ())} coefficients for probabilities of {classes} classes")
        exponent = emit("add", emit("mul", scores, emit.constant(floats(a))), emit.constant(floats(b)))
        wins = emit("logistic", emit("neg", exponent))
        return transformed(site, site.b(PairCoupling, wins, classes=classes), transform)
    if classes > 2:
        return transformed(site, scores, transform)
    if transform == "NONE":
        return mirrored(emit, scores)
    # Only LOGISTIC is defined on one score; onnxruntime leaves it as it is under the others.
    return complemented(emit, transformed(site, scores, transform) if transform == "LOGISTIC" else scores)
