"""The gradients among the core operators: what a traced backward pass consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.torch.converters.common import (
    cast,
    concat,
    cut,
    flat,
    number,
    rank_of,
    reshape,
    swap,
    unsqueeze,
)
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import I64, Value
from compiler.ops.compare import Eq, Ge, Select
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.creation import Fill, Range
from compiler.ops.elementwise import Div, Max, Mul, Sub
from compiler.ops.indexing import Gather, ScatterElements, ScatterNd
from compiler.ops.reduce import ReduceSum

if TYPE_CHECKING:
    from compiler.ir import Array


def _averages(size: int, count: int) -> Array:
    """The matrix [count, size] of adaptive average pooling along one dim."""
    matrix = np.zeros((count, size))
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        matrix[i, start:end] = 1 / (end - start)
    return matrix


@converts("_adaptive_avg_pool2d_backward")
def adaptive_average(site: Site) -> Value:
    """A^T g B for the averaging matrices of both dims."""
    x, grad = site.value("self"), site.value("grad_output")
    element = wide(x.tensor.element)
    rank = rank_of(x)
    rows, columns = (_averages(site.size(x, axis), site.size(grad, axis)) for axis in (rank - 2, rank - 1))
    result = site.op(MatMul, site.constant(rows.T, element), cast(site, grad, element))
    return cast(site, site.op(MatMul, result, site.constant(columns, element)), x.tensor.element)


@converts("avg_pool2d_backward")
def average_pool(site: Site) -> Value:
    """Each window's gradient over its divisor, added at every element of the window."""
    x, grad = site.value("self"), site.value("grad_output")
    element = wide(x.tensor.element)
    sizes, outputs = site.sizes(x)[-2:], site.sizes(grad)[-2:]
    kernel, padding = (list(site[name]) * (2 if len(site[name]) == 1 else 1) for name in ("kernel_size", "padding"))
    stride = list(site["stride"] or kernel)
    stride = stride * 2 if len(stride) == 1 else stride
    taps = [
        np.arange(n)[:, None] * s - p + np.arange(k)
        for n, s, p, k in zip(outputs, stride, padding, kernel, strict=True)
    ]
    rows, columns = taps[0][:, None, :, None], taps[1][None, :, None, :]
    inside = (rows >= 0) & (rows < sizes[0]) & (columns >= 0) & (columns < sizes[1])
    plane = sizes[0] * sizes[1]
    places = np.where(inside, rows * sizes[1] + columns, plane).reshape(-1, kernel[0] * kernel[1])
    divisors = _divisors(site, taps, sizes, padding, inside).reshape(-1, 1)
    own = reshape(site, cast(site, grad, element), [-1, outputs[0] * outputs[1]])
    shared = site.op(Div, swap(site, own, 0, 1), site.constant(divisors, element))
    planes = site.size(shared, 1)
    spread = site.op(Gather, shared, site.b.constant(np.repeat(np.arange(len(places)), places.shape[1])), axis=0)
    zeros = site.op(Fill, site.integers(plane + 1, planes), number(site, 0, element))
    summed = site.op(ScatterNd, zeros, site.b.constant(places.reshape(-1, 1).astype(np.int64)), spread, reduction="add")
    result = swap(site, cut(site, summed, 0, 0, plane), 0, 1)
    return cast(site, reshape(site, result, site.sizes(x)), x.tensor.element)


def _divisors(site: Site, taps: list[Array], sizes: tuple[int, ...], padding: list[int], inside: Array) -> Array:
    """What each window's sum is divided by, as avg_pool2d has it: padding counts up to the explicit one."""
    if site.get("divisor_override") is not None:
        return np.full(inside.shape[:2], site["divisor_override"])
    if not site["count_include_pad"]:
        return np.asarray(inside.sum((2, 3)))
    counts = [(tap < size + pad).sum(1) for tap, size, pad in zip(taps, sizes, padding, strict=True)]
    return np.asarray(counts[0][:, None] * counts[1])


@converts("max_pool2d_with_indices_backward")
def max_pool(site: Site) -> Value:
    """Each window's gradient added where its maximum was."""
    x, grad, places = site.value("self"), site.value("grad_output"), site.value("indices")
    lead, sizes = site.sizes(x)[:-2], site.sizes(x)
    zeros = site.op(Fill, site.integers(*lead, sizes[-1] * sizes[-2]), number(site, 0, x.tensor.element))
    own, where = (reshape(site, value, [*lead, -1]) for value in (grad, places))
    return reshape(site, site.op(ScatterElements, zeros, where, own, axis=len(lead), reduction="add"), sizes)


@converts("convolution_backward")
def convolution(site: Site) -> list[Value | None]:
    """The gradients of the input, the weight and the bias, as far as the mask asks for them."""
    grad, x, w = site.value("grad_output"), site.value("input"), site.value("weight")
    if site["transposed"]:
        site.refuse("a transposed convolution", "transposed")
    groups = site["groups"]
    parts = [
        [_channels(site, value, axis, group, groups) for value, axis in ((grad, 1), (x, 1), (w, 0))]
        for group in range(groups)
    ]
    wanted = site["output_mask"]
    by_input = concat(site, [_input_gradient(site, *part) for part in parts], 1) if wanted[0] else None
    by_weight = concat(site, [_weight_gradient(site, *part) for part in parts], 0) if wanted[1] else None
    axes = (0, *range(2, rank_of(grad)))
    by_bias = site.op(ReduceSum, grad, axes=axes, keep_dims=False) if wanted[2] else None
    return [by_input, by_weight, by_bias]


def _channels(site: Site, value: Value, axis: int, group: int, groups: int) -> Value:
    size = site.size(value, axis) // groups
    return cut(site, value, axis, group * size, (group + 1) * size) if groups > 1 else value


def _input_gradient(site: Site, grad: Value, x: Value, w: Value) -> Value:
    """A transposed convolution whose size is that of the input."""
    extra = [
        site.size(x, 2 + i) - ((site.size(grad, 2 + i) - 1) * s - 2 * p + d * (site.size(w, 2 + i) - 1) + 1)
        for i, (s, p, d) in enumerate(zip(site["stride"], site["padding"], site["dilation"], strict=True))
    ]
    return site.op(
        ConvTranspose,
        grad,
        w,
        strides=tuple(site["stride"]),
        dilations=tuple(site["dilation"]),
        pads=tuple(site["padding"]) * 2,
        output_padding=tuple(extra),
        groups=1,
    )


def _weight_gradient(site: Site, grad: Value, x: Value, w: Value) -> Value:
    """The input convolved with the gradient, batches as channels: strides and dilations change places."""
    spatial = rank_of(w) - 2
    found = site.op(
        Conv,
        swap(site, x, 0, 1),
        swap(site, grad, 0, 1),
        strides=tuple(site["dilation"]),
        dilations=tuple(site["stride"]),
        pads=tuple(site["padding"]) * 2,
        groups=1,
    )
    for axis in range(2, 2 + spatial):
        found = cut(site, found, axis, 0, site.size(w, axis))
    return swap(site, found, 0, 1)


@converts("embedding_dense_backward")
def embedding(site: Site) -> Value:
    """Each row's gradients added up; those of the padding row are 0."""
    grad, places = site.value("grad_output"), flat(site, cast(site, site.value("indices"), I64))
    if site["scale_grad_by_freq"]:
        site.refuse("scaling by frequency", "scale_grad_by_freq")
    element = wide(grad.tensor.element)
    width = site.size(grad, rank_of(grad) - 1)
    rows = reshape(site, cast(site, grad, element), [-1, width])
    padding = site.integer(site["padding_idx"])
    if padding >= 0:
        here = unsqueeze(site, site.op(Eq, places, number(site, padding, I64)), (1,))
        rows = site.op(Select, here, number(site, 0, element), rows)
    zeros = site.op(Fill, site.integers(site.integer(site["num_weights"]), width), number(site, 0, element))
    summed = site.op(ScatterNd, zeros, unsqueeze(site, places, (1,)), rows, reduction="add")
    return cast(site, summed, grad.tensor.element)


@converts("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag", "embedding_bag.padding_idx")
def embedding_bag(site: Site) -> list[Value | None]:
    """Sums, means or maxima of bags of rows; where bags start is data. The positions of maxima have no conversion."""
    weight, places = site.value("weight"), flat(site, cast(site, site.value("indices"), I64))
    offsets = cast(site, site.value("offsets"), I64)
    if site["include_last_offset"]:
        offsets = cut(site, offsets, 0, 0, -1)
    element = wide(weight.tensor.element)
    count, width = site.size(places, 0), site.size(weight, 1)
    numbers = site.op(Range, *[number(site, value, I64) for value in (0, count, 1)])
    started = site.op(Ge, unsqueeze(site, numbers, (1,)), unsqueeze(site, offsets, (0,)))
    bags = site.op(Sub, site.op(ReduceSum, cast(site, started, I64), axes=(1,), keep_dims=False), number(site, 1, I64))
    rows = cast(site, site.op(Gather, weight, places, axis=0), element)
    if site.get("per_sample_weights") is not None:
        rows = site.op(Mul, rows, unsqueeze(site, cast(site, site["per_sample_weights"], element), (1,)))
    padding = site.get("padding_idx", -1)
    if site.operator == "aten.embedding_bag.padding_idx" and site["padding_idx"] is not None:
        # Counted from the end here; elsewhere -1 says that there is none.
        padding %= site.size(weight, 0)
    kept = number(site, 1, I64)
    if padding >= 0:
        here = site.op(Eq, places, number(site, padding, I64))
        neutral = -np.inf if site["mode"] == 2 else 0
        rows = site.op(Select, unsqueeze(site, here, (1,)), number(site, neutral, element), rows)
        kept = site.op(Select, here, number(site, 0, I64), kept)
    index = unsqueeze(site, bags, (1,))
    total = site.size(offsets, 0)
    ones = site.op(Mul, site.op(Fill, site.integers(count), number(site, 1, I64)), kept)
    sizes = site.op(ScatterNd, site.op(Fill, site.integers(total), number(site, 0, I64)), index, ones, reduction="add")
    start = number(site, -np.inf if site["mode"] == 2 else 0, element)
    begun = site.op(Fill, site.integers(total, width), start)
    result = site.op(ScatterNd, begun, index, rows, reduction="max" if site["mode"] == 2 else "add")
    if site["mode"] == 1:
        divisor = cast(site, site.op(Max, sizes, number(site, 1, I64)), element)
        result = site.op(Div, result, unsqueeze(site, divisor, (1,)))
    if site["mode"] == 2:
        empty = unsqueeze(site, site.op(Eq, sizes, number(site, 0, I64)), (1,))
        result = site.op(Select, empty, number(site, 0, element), result)
    return [cast(site, result, weight.tensor.element), None, None, None]


@converts("native_layer_norm_backward")
def layer_norm(site: Site) -> list[Value | None]:
    """With y = (x - mean) * rstd and g = grad * weight: (g - mean(g) - y * mean(g * y)) * rstd."""
    grad, x = site.value("grad_out"), site.value("input")
    element = wide(x.tensor.element)
    rank, inner = rank_of(x), len(site["normalized_shape"])
    outer, last = tuple(range(rank - inner)), tuple(range(rank - inner, rank))
    own, own_grad, mean, rstd = (
        cast(site, value, element) for value in (x, grad, site.value("mean"), site.value("rstd"))
    )
    y = site.op(Mul, site.op(Sub, own, mean), rstd)
    scaled = own_grad if site.get("weight") is None else site.op(Mul, own_grad, cast(site, site["weight"], element))
    from compiler.ops.reduce import ReduceMean

    average = site.op(ReduceMean, scaled, axes=last, keep_dims=True)
    product = site.op(ReduceMean, site.op(Mul, scaled, y), axes=last, keep_dims=True)
    by_input = site.op(Mul, site.op(Sub, site.op(Sub, scaled, average), site.op(Mul, y, product)), rstd)
    by_weight, by_bias = (
        cast(site, site.op(ReduceSum, value, axes=outer, keep_dims=False) if outer else value, x.tensor.element)
        for value in (site.op(Mul, own_grad, y), own_grad)
    )
    results = [cast(site, by_input, x.tensor.element), by_weight, by_bias]
    return [value if wanted else None for value, wanted in zip(results, site["output_mask"], strict=True)]
