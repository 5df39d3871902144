"""Normalizations and losses over classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import cast, squeeze, unsqueeze
from compiler.frontends.tensorflow.converters.common import as_images, is_channels_first
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ops.compose import Emit, widened
from compiler.ops.indexing import GatherElements, OneHot
from compiler.ops.normalization import BatchNorm, Lrn

if TYPE_CHECKING:
    from compiler.ir import Value


@converts("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(site: Site) -> Results:
    """By given statistics, or in training by those of the data, which it then gives."""
    x, scale, offset, mean, variance = site.values
    epsilon = float(site.attr("epsilon"))
    more = [site.constant(np.zeros(0), site.element(5))] if site.operator == "FusedBatchNormV3" else []
    if not site.attr("is_training"):
        y = as_images(site, x, lambda own: site.op(BatchNorm, own, scale, offset, mean, variance, epsilon=epsilon))
        return [y, mean, variance, mean, variance, *more]
    return [*_by_data(site, epsilon), *more]


def _by_data(site: Site, epsilon: float) -> list[Value]:
    x, scale, offset, mean, variance = site.values
    rank, element = site.rank(x), x.tensor.element
    first = is_channels_first(site)
    axes = (0, *range(2, rank)) if first else tuple(range(rank - 1))
    own = cast(site, x, widened(element))
    count = float(np.prod([site.size(x, axis) for axis in axes]))
    e = Emit(site.b)

    def spread(value: Value) -> Value:
        return unsqueeze(site, value, tuple(range(1, rank - 1))) if first else value

    found = e("reduce_mean", own, axes=axes)
    distance = e("sub", own, found)
    square = e("reduce_mean", e("mul", distance, distance), axes=axes)
    normal = e("mul", distance, e("rsqrt", e("add", square, epsilon)))
    y = cast(site, e("add", e("mul", normal, spread(scale)), spread(offset)), element)
    found, square = squeeze(site, found, axes), squeeze(site, square, axes)
    corrected = e("mul", square, count / max(count - 1, 1))
    factor = float(site.attr("exponential_avg_factor")) if site.has("exponential_avg_factor") else 1.0
    running = [
        new if factor == 1 else e("add", e("mul", old, 1 - factor), e("mul", new, factor))
        for old, new in ((mean, found), (variance, corrected))
    ]
    return [y, *running, found, square]


@converts("BatchNormWithGlobalNormalization")
def batch_norm_before(site: Site) -> Value:
    """(t - m) / sqrt(v + epsilon), times gamma where that is asked for, plus beta."""
    from compiler.frontends.tensorflow.converters.common import computed

    epsilon, scaled = float(site.attr("variance_epsilon")), bool(site.attr("scale_after_normalization"))

    def formula(e: Emit, t: Value, m: Value, v: Value, beta: Value, gamma: Value) -> Value:
        factor = e("rsqrt", e("add", v, epsilon))
        factor = e("mul", factor, gamma) if scaled else factor
        return e("add", e("mul", e("sub", t, m), factor), beta)

    return computed(site, formula)


@converts("LRN")
def local_response(site: Site) -> Value:
    """x / (bias + alpha * sum of squares over neighbouring channels)^beta, channels last."""
    from compiler.frontends.tensorflow.converters.common import to_channels_first, to_channels_last

    size = 2 * int(site.attr("depth_radius")) + 1
    found = site.op(
        Lrn,
        to_channels_first(site, site.value(0)),
        size=size,
        alpha=float(site.attr("alpha")) * size,
        beta=float(site.attr("beta")),
        bias=float(site.attr("bias")),
    )
    return to_channels_last(site, found)


def _losses(e: Emit, logits: Value) -> tuple[Value, Value]:
    """log softmax and softmax along the last dim, in the wide type."""
    top = e("reduce_max", logits, axes=(1,))
    shifted = e("sub", logits, top)
    total = e("reduce_sum", e("exp", shifted), axes=(1,))
    return e("sub", shifted, e("log", total)), e("div", e("exp", shifted), total)


@converts("SoftmaxCrossEntropyWithLogits")
def cross_entropy(site: Site) -> Results:
    """The loss a row, and what flows back: softmax less the labels."""
    features, labels = site.values
    element = features.tensor.element
    e = Emit(site.b)
    own, wanted = (cast(site, value, widened(element)) for value in (features, labels))
    logarithms, softmax = _losses(e, own)
    terms = e("select", e("eq", wanted, 0), 0, e("mul", wanted, logarithms))
    loss = e("neg", e("reduce_sum", terms, axes=(1,), keep_dims=False))
    return [cast(site, loss, element), cast(site, e("sub", softmax, wanted), element)]


@converts("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(site: Site) -> Results:
    """The same, labels being the numbers of classes."""
    features, labels = site.values
    element = features.tensor.element
    e = Emit(site.b)
    logarithms, softmax = _losses(e, cast(site, features, widened(element)))
    places = site.as_int64(labels)
    loss = e("neg", squeeze(site, site.op(GatherElements, logarithms, unsqueeze(site, places, (1,)), axis=1), (1,)))
    values = site.constant([0, 1], logarithms.tensor.element)
    wanted = site.op(OneHot, places, site.constant(site.size(features, 1), places.tensor.element), values, axis=1)
    return [cast(site, loss, element), cast(site, e("sub", softmax, wanted), element)]
