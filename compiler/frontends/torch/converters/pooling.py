"""Pooling over windows, and over windows that a size of the result decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.torch.converters.common import cast, concat, cut, number, rank_of, squeeze, unsqueeze
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import F32, I64, Value
from compiler.ops.compare import IsNan, Select
from compiler.ops.elementwise import Add, Div, Mod, Mul
from compiler.ops.indexing import GatherElements
from compiler.ops.pooling import AvgPool, MaxPool, MaxPoolIndices, SumPool
from compiler.ops.reduce import ArgMax, ReduceMax, ReduceMean

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter


def _per_dim(found: Any, spatial: int) -> tuple[int, ...]:  # noqa: ANN401 - an int or a list
    values = [found] if isinstance(found, int) else list(found)
    return tuple(values * spatial if len(values) == 1 else values)


def _window(site: Site, spatial: int) -> dict[str, Any]:
    """The IR's attributes of the window; without a stride windows stand side by side."""
    kernel = _per_dim(site["kernel_size"], spatial)
    return {
        "kernel": kernel,
        "strides": _per_dim(site.get("stride") or kernel, spatial),
        "pads": _per_dim(site.get("padding", 0), spatial) * 2,
        "ceil_mode": bool(site.get("ceil_mode", False)),
    }


def _batched(site: Site, x: Value, spatial: int) -> tuple[Value, bool]:
    batched = rank_of(x) == spatial + 2
    return (x if batched else unsqueeze(site, x, (0,))), batched


def _max_pool(spatial: int, *, indices: bool) -> Converter:
    def convert(site: Site) -> Value | list[Value]:
        x, batched = _batched(site, site.value("self"), spatial)
        attributes = {**_window(site, spatial), "dilations": _per_dim(site.get("dilation", 1), spatial)}
        if not indices:
            values = site.op(MaxPool, x, **attributes)
            return values if batched else squeeze(site, values, (0,))
        values, places = site.b.op(MaxPoolIndices, [x], **attributes).results
        if x.tensor.element.is_float:
            places = _last_nan(site, x, values, places, attributes)
        plane = 1
        for axis in range(2, spatial + 2):
            plane *= site.size(x, axis)
        # The IR counts over the whole tensor, torch within a channel.
        places = site.op(Mod, places, number(site, max(plane, 1), I64))
        return [value if batched else squeeze(site, value, (0,)) for value in (values, places)]

    return convert


def _last_nan(site: Site, x: Value, values: Value, places: Value, attributes: dict[str, Any]) -> Value:
    """Where a window's maximum is NaN torch reports the last one, the IR the first."""
    sizes = site.sizes(x)
    plane = np.arange(int(np.prod(sizes[2:]))).reshape(1, 1, *sizes[2:])
    numbered = site.op(Select, site.op(IsNan, x), site.constant(plane, F32), number(site, -1, F32))
    last = cast(site, site.op(MaxPool, numbered, **attributes), I64)
    return site.op(Select, site.op(IsNan, values), last, places)


for _dims in (1, 2, 3):
    converts(f"max_pool{_dims}d")(_max_pool(_dims, indices=False))
    converts(f"max_pool{_dims}d_with_indices")(_max_pool(_dims, indices=True))


def _avg_pool(spatial: int) -> Converter:
    def convert(site: Site) -> Value:
        x, batched = _batched(site, site.value("self"), spatial)
        attributes = _window(site, spatial)
        divisor = site.get("divisor_override")
        if divisor is None:
            result = site.op(AvgPool, x, count_include_pad=bool(site["count_include_pad"]), **attributes)
        else:
            element = wide(x.tensor.element)
            sums = site.op(SumPool, cast(site, x, element), **attributes)
            result = cast(site, site.op(Div, sums, number(site, divisor, element)), x.tensor.element)
        return result if batched else squeeze(site, result, (0,))

    return convert


for _dims in (1, 2, 3):
    converts(f"avg_pool{_dims}d")(_avg_pool(_dims))


def _bounds(size: int, count: int) -> list[tuple[int, int]]:
    """The windows of adaptive pooling: from floor(i size / count) to ceil((i + 1) size / count)."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive_average(spatial: int) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("self")
        element = x.tensor.element
        sizes = _wanted(site, x, spatial)
        first = rank_of(x) - spatial
        if all(size == 1 for size in sizes):
            return site.op(ReduceMean, x, axes=tuple(range(first, first + spatial)), keep_dims=True)
        own = cast(site, x, wide(element))
        for axis, count in enumerate(sizes, first):
            size = site.size(x, axis)
            if count == size:
                continue
            parts = [
                site.op(ReduceMean, cut(site, own, axis, start, end), axes=(axis,), keep_dims=True)
                for start, end in _bounds(size, count)
            ]
            own = concat(site, parts, axis) if parts else cut(site, own, axis, 0, 0)
        return cast(site, own, element)

    return convert


def _wanted(site: Site, x: Value, spatial: int) -> list[int]:
    """The sizes that adaptive pooling gives; None keeps a size."""
    found = site["output_size"]
    sizes = [found] * spatial if isinstance(found, int) else list(found)
    first = rank_of(x) - spatial
    return [site.size(x, first + i) if size is None else site.integer(size) for i, size in enumerate(sizes)]


for _dims in (1, 2, 3):
    converts(f"adaptive_avg_pool{_dims}d", *([f"_adaptive_avg_pool{_dims}d"] if _dims > 1 else []))(
        _adaptive_average(_dims)
    )


def _adaptive_maximum(spatial: int) -> Converter:
    def convert(site: Site) -> list[Value]:
        x = site.value("self")
        sizes = _wanted(site, x, spatial)
        first = rank_of(x) - spatial
        values = x
        places: Value | None = None
        # From the last axis on, so that of equal elements the first in row-major order is found.
        stride = 1
        for axis in reversed(range(first, first + spatial)):
            values, places = _axis_maximum(site, values, places, axis, sizes[axis - first], stride)
            stride *= site.size(x, axis)
        assert places is not None
        return [values, places]

    return convert


def _axis_maximum(
    site: Site, values: Value, places: Value | None, axis: int, count: int, stride: int
) -> tuple[Value, Value]:
    """Maxima of windows along one axis and where they are, given where the elements come from within inner axes."""
    kept: list[Value] = []
    found: list[Value] = []
    for start, end in _bounds(site.size(values, axis), count):
        part = cut(site, values, axis, start, end)
        at = site.op(ArgMax, part, axis=axis, keep_dims=True)
        kept.append(site.op(ReduceMax, part, axes=(axis,), keep_dims=True))
        own = site.op(Mul, site.op(Add, at, number(site, start, I64)), number(site, stride, I64))
        if places is not None:
            own = site.op(Add, own, site.op(GatherElements, cut(site, places, axis, start, end), at, axis=axis))
        found.append(own)
    return concat(site, kept, axis), concat(site, found, axis)


for _dims in (1, 2, 3):
    converts(f"adaptive_max_pool{_dims}d")(_adaptive_maximum(_dims))


def _unpool(spatial: int) -> Converter:
    def convert(site: Site) -> Value:
        """Elements at their places in planes of zeros."""
        from compiler.frontends.torch.converters.common import reshape
        from compiler.ops.creation import Fill
        from compiler.ops.indexing import ScatterElements

        x, places = site.value("self"), cast(site, site.value("indices"), I64)
        sizes = [site.integer(size) for size in site["output_size"]]
        lead = site.sizes(x)[: rank_of(x) - spatial]
        plane = 1
        for size in sizes:
            plane *= size
        empty = site.op(Fill, site.integers(*lead, plane), number(site, 0, x.tensor.element))
        own, where = (reshape(site, value, [*lead, -1]) for value in (x, places))
        return reshape(site, site.op(ScatterElements, empty, where, own, axis=len(lead)), [*lead, *sizes])

    return convert


for _dims in (2, 3):
    converts(f"max_unpool{_dims}d")(_unpool(_dims))


@converts("im2col")
def im2col(site: Site) -> Value:
    """Windows as columns: [N, C kh kw, windows]."""
    from compiler.frontends.torch.converters.common import reshape, transpose
    from compiler.frontends.torch.converters.padding import padded
    from compiler.ops.indexing import Gather

    x, batched = _batched(site, site.value("self"), 2)
    kernel, dilation, padding, stride = (
        _per_dim(site[name], 2) for name in ("kernel_size", "dilation", "padding", "stride")
    )
    own = padded(site, x, [padding[1], padding[1], padding[0], padding[0]], "constant")
    for axis, (k, d, s) in enumerate(zip(kernel, dilation, stride, strict=True)):
        place = 2 + 2 * axis
        count = (site.size(own, place) - d * (k - 1) - 1) // s + 1
        taps = np.arange(k)[:, None] * d + np.arange(count) * s
        own = site.op(Gather, own, site.b.constant(taps.astype(np.int64)), axis=place)
    batch, channels, kh, oh, kw, ow = site.sizes(own)
    result = reshape(site, transpose(site, own, (0, 1, 2, 4, 3, 5)), [batch, channels * kh * kw, oh * ow])
    return result if batched else squeeze(site, result, (0,))


@converts("col2im")
def col2im(site: Site) -> Value:
    """Columns summed at the places of their windows: the inverse of im2col where windows do not overlap."""
    from compiler.frontends.torch.converters.common import reshape
    from compiler.ops.creation import Fill
    from compiler.ops.indexing import ScatterNd

    x = site.value("self")
    batched = rank_of(x) == 3
    x = x if batched else unsqueeze(site, x, (0,))
    kernel, dilation, padding, stride = (
        _per_dim(site[name], 2) for name in ("kernel_size", "dilation", "padding", "stride")
    )
    height, width = (site.integer(size) for size in site["output_size"])
    rows, columns = height + 2 * padding[0], width + 2 * padding[1]
    counts = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, d, s in zip((rows, columns), kernel, dilation, stride, strict=True)
    ]
    batch, joint, _ = site.sizes(x)
    channels = joint // (kernel[0] * kernel[1])
    taps = [
        np.arange(k)[:, None] * d + np.arange(n) * s
        for k, d, n, s in zip(kernel, dilation, counts, stride, strict=True)
    ]
    places = taps[0][:, None, :, None] * columns + taps[1][None, :, None, :]
    planes = np.arange(batch * channels)[:, None] * (rows * columns) + places.reshape(1, -1)
    flat = site.op(Fill, site.integers(batch * channels * rows * columns), number(site, 0, x.tensor.element))
    index = site.b.constant(planes.reshape(-1, 1).astype(np.int64))
    summed = site.op(ScatterNd, flat, index, reshape(site, x, [-1]), reduction="add")
    result = reshape(site, summed, [batch, channels, rows, columns])
    result = cut(site, cut(site, result, 2, padding[0], padding[0] + height), 3, padding[1], padding[1] + width)
    return result if batched else squeeze(site, result, (0,))
