"""Normalizations: of layers, groups, instances, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.torch.converters.common import (
    cast,
    count,
    dims_of,
    number,
    rank_of,
    reshape,
    squeeze,
    unsqueeze,
)
from compiler.frontends.torch.converters.reduce import reduced
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import U8, Value
from compiler.ops.elementwise import Add, Div, Mul, Rsqrt, Sub
from compiler.ops.normalization import BatchNorm, GroupNorm, LayerNorm, RmsNorm
from compiler.ops.reduce import ReduceMean

if TYPE_CHECKING:
    from compiler.ir import ElementType


@converts("layer_norm")
def layer_norm(site: Site) -> Value:
    """Over the last dims, as many as the normalized shape has."""
    x = site.value("input")
    axis = rank_of(x) - len(site["normalized_shape"])
    scale, bias = _affine(site, x.tensor.element, site["normalized_shape"])
    return site.op(LayerNorm, x, scale, bias, axis=axis, epsilon=float(site["eps"]))


@converts("native_layer_norm")
def native_layer_norm(site: Site) -> list[Value]:
    """With the mean and the inverse deviation."""
    x = site.value("input")
    axis = rank_of(x) - len(site["normalized_shape"])
    scale, bias = _affine(site, x.tensor.element, site["normalized_shape"])
    op = site.b.op(LayerNorm, [x, scale, bias], axis=axis, epsilon=float(site["eps"]), statistics=True)
    y, *statistics = op.results
    return [y, *(cast(site, value, site.element(index)) for index, value in enumerate(statistics, 1))]


def _affine(site: Site, element: ElementType, shape: Any) -> tuple[Value | None, Value | None]:  # noqa: ANN401
    """Scale and bias; a bias alone gets a scale of ones."""
    scale, bias = (
        None if site.get(name) is None else cast(site, site.value(name), element) for name in ("weight", "bias")
    )
    if scale is None and bias is not None:
        scale = site.constant(np.ones([site.integer(size) for size in shape]), element)
    return scale, bias


@converts("rms_norm")
def rms_norm(site: Site) -> Value:
    """Over the last dims; by default with the type's own epsilon."""
    import ml_dtypes

    x = site.value("input")
    axis = rank_of(x) - len(site["normalized_shape"])
    element = x.tensor.element
    eps = site.get("eps")
    if eps is None:
        eps = ml_dtypes.finfo(wide(element).dtype).eps  # type: ignore[no-untyped-call] # the package is half annotated
    weight = site.get("weight")
    scale = None if weight is None else cast(site, weight, element)
    return site.op(RmsNorm, x, scale, axis=axis, epsilon=float(eps))


def _channel_vectors(site: Site, channels: int, element: ElementType) -> tuple[Value, Value]:
    scale, bias = site.get("weight"), site.get("bias")
    return (
        site.constant(np.ones(channels), element) if scale is None else cast(site, scale, element),
        site.constant(np.zeros(channels), element) if bias is None else cast(site, bias, element),
    )


@converts("group_norm")
def group_norm(site: Site) -> Value:
    """Over the channels of a group and all places."""
    x = site.value("input")
    scale, bias = _channel_vectors(site, site.size(x, 1), x.tensor.element)
    flat_x = x if rank_of(x) > 2 else unsqueeze(site, x, (2,))
    result = site.op(GroupNorm, flat_x, scale, bias, num_groups=site["num_groups"], epsilon=float(site["eps"]))
    return result if rank_of(x) > 2 else squeeze(site, result, (2,))


@converts("native_group_norm")
def native_group_norm(site: Site) -> list[Value]:
    """With mean and inverse deviation of each group."""
    x = site.value("input")
    element, groups = x.tensor.element, site["group"]
    scale, bias = _channel_vectors(site, site.size(x, 1), element)
    y = site.op(GroupNorm, x, scale, bias, num_groups=groups, epsilon=float(site["eps"]))
    own = cast(site, reshape(site, x, [*dims_of(x)[:1], groups, -1]), wide(element))
    mean, inverse = _statistics(site, own, (2,), float(site["eps"]))
    return [y, *(cast(site, squeeze(site, value, (2,)), site.element(i)) for i, value in ((1, mean), (2, inverse)))]


def _statistics(site: Site, x: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
    """Mean and 1 / sqrt(variance + eps), reduced dims kept."""
    mean = reduced(site, ReduceMean, x, axes, keep=True)
    distance = site.op(Sub, x, mean)
    variance = reduced(site, ReduceMean, site.op(Mul, distance, distance), axes, keep=True)
    return mean, site.op(Rsqrt, site.op(Add, variance, number(site, eps, x.tensor.element)))


@converts("batch_norm", "instance_norm")
def batch_norm(site: Site) -> Value | list[Value]:
    """With running statistics, or with those of the data; then the new running statistics follow, where there are any.

    The importer writes them to the tensors that they come from, which torch's schema does not say.
    """
    x = site.value("input")
    if rank_of(x) < 2:
        site.refuse(f"input has rank {rank_of(x)}; expected at least 2: batch and channels")
    own = site.operator.startswith("aten.instance_norm")
    if not (site["use_input_stats"] if own else site["training"]):
        return _by_running_statistics(site, x)
    axes = (*range(2, rank_of(x)),) if own else (0, *range(2, rank_of(x)))
    result = _by_own_statistics(site, x, axes)
    return result if site.get("running_mean") is None else [result, *_updated(site, x, axes)]


def _updated(site: Site, x: Value, axes: tuple[int, ...]) -> list[Value]:
    """Running mean and variance, each moved by the momentum towards that of the data, the latter unbiased."""
    element = wide(x.tensor.element)
    wanted = cast(site, x, element)
    mean = reduced(site, ReduceMean, wanted, axes, keep=True)
    distance = site.op(Sub, wanted, mean)
    variance = reduced(site, ReduceMean, site.op(Mul, distance, distance), axes, keep=True)
    terms = count(site, x, axes, element)
    one = number(site, 1, element)
    unbiased = site.op(Mul, variance, site.op(Div, terms, site.op(Sub, terms, one)))
    momentum = number(site, site["momentum"], element)
    kept = number(site, 1 - site["momentum"], element)
    results = []
    for name, found in (("running_mean", mean), ("running_var", unbiased)):
        channels = (
            squeeze(site, found, axes)
            if 0 in axes
            else squeeze(site, reduced(site, ReduceMean, found, (0,), keep=True), (0, *axes))
        )
        before = cast(site, site.value(name), element)
        after = site.op(Add, site.op(Mul, before, kept), site.op(Mul, channels, momentum))
        results.append(cast(site, after, site.value(name).tensor.element))
    return results


@converts("_native_batch_norm_legit_no_training")
def batch_norm_inference(site: Site) -> list[Value]:
    """With running statistics; what it gives beside is empty."""
    from compiler.ir import F32

    x = site.value("input")
    empty = site.constant(np.zeros(0), wide(F32))
    return [_by_running_statistics(site, x), *(cast(site, empty, site.element(i)) for i in (1, 2))]


@converts("_native_batch_norm_legit.no_stats")
def batch_norm_by_data(site: Site) -> list[Value]:
    """With statistics of the data, which it gives too."""
    x = site.value("input")
    axes = (0, *range(2, rank_of(x)))
    mean, inverse = _statistics(site, cast(site, x, wide(x.tensor.element)), axes, float(site["eps"]))
    statistics = [cast(site, squeeze(site, value, axes), site.element(i)) for i, value in ((1, mean), (2, inverse))]
    return [_by_own_statistics(site, x, axes), *statistics]


@converts("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
def native_batch_norm(site: Site) -> list[Value]:
    """Result and statistics; in training the new running statistics after them, as `batch_norm` has it."""
    if not site.get("training", True):
        return batch_norm_inference(site)
    x = site.value("input")
    results = batch_norm_by_data(site)
    if site.operator.startswith("aten._batch_norm_with_update"):
        # What a backward pass would keep.
        results.append(site.constant(np.zeros(0), U8))
    axes = (0, *range(2, rank_of(x)))
    return results if site.get("running_mean") is None else [*results, *_updated(site, x, axes)]


@converts("_batch_norm_no_update")
def batch_norm_no_update(site: Site) -> list[Value]:
    """At inference, with what a backward pass would keep."""
    return [*batch_norm_inference(site), site.constant(np.zeros(0), U8)]


def _by_running_statistics(site: Site, x: Value) -> Value:
    element = x.tensor.element
    inner = wide(element)
    scale, bias = _channel_vectors(site, site.size(x, 1), inner)
    mean, variance = (cast(site, site.value(name), inner) for name in ("running_mean", "running_var"))
    own = cast(site, x, inner)
    return cast(site, site.op(BatchNorm, own, scale, bias, mean, variance, epsilon=float(site["eps"])), element)


def _by_own_statistics(site: Site, x: Value, axes: tuple[int, ...]) -> Value:
    element = x.tensor.element
    own = cast(site, x, wide(element))
    mean, inverse = _statistics(site, own, axes, float(site["eps"]))
    result = site.op(Mul, site.op(Sub, own, mean), inverse)
    for name, definition in (("weight", Mul), ("bias", Add)):
        found = site.get(name)
        if found is not None:
            vector = unsqueeze(site, cast(site, found, own.tensor.element), tuple(range(1, rank_of(x) - 1)))
            result = site.op(definition, result, vector)
    return cast(site, result, element)


@converts("_weight_norm")
def weight_norm(site: Site) -> Value:
    """v g / |v|, over all dims but one."""
    from compiler.frontends.torch.converters.reduce import norm
    from compiler.ops.elementwise import Div

    v, g = site.value("v"), site.value("g")
    axes = tuple(axis for axis in range(rank_of(v)) if axis != site.axis(site["dim"], rank_of(v)))
    return site.op(Mul, v, site.op(Div, g, norm(site, v, 2.0, axes, keep=True)))
