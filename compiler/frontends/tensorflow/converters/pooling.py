"""Pooling, where the greatest elements were, and what flows back through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.assembly import cast, flat, number, reshape, reshape_to
from compiler.frontends.tensorflow.converters.common import (
    as_images,
    is_channels_first,
    spatial,
    to_channels_first,
    to_channels_last,
)
from compiler.frontends.tensorflow.converters.convolution import transposed_conv
from compiler.frontends.tensorflow.converters.windows import Windows, static_sizes
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ir import I64, Value
from compiler.ops.elementwise import Add, Div, Mod, Mul
from compiler.ops.indexing import ScatterElements
from compiler.ops.pooling import AvgPool, MaxPool, MaxPoolIndices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array


def _kernel(site: Site, sizes: Sequence[int] | None = None) -> tuple[int, ...]:
    given = site.numbers("ksize") if sizes is None else sizes
    return spatial(site, given, "ksize", first=is_channels_first(site))


def _attributes(windows: Windows, kernel: tuple[int, ...]) -> dict[str, Any]:
    return {"kernel": kernel, **windows.attributes()}


@converts("MaxPool", "MaxPool3D")
def max_pool(site: Site) -> Value:
    """The greatest of each window."""
    attributes = _attributes(Windows.of(site), _kernel(site))
    return as_images(site, site.value(0), lambda x: site.op(MaxPool, x, **attributes))


@converts("MaxPoolV2")
def max_pool_by_inputs(site: Site) -> Value:
    """Window and strides are inputs."""
    windows = Windows.of(site, site.ints(2, "the strides"))
    attributes = _attributes(windows, _kernel(site, site.ints(1, "the window")))
    return as_images(site, site.value(0), lambda x: site.op(MaxPool, x, **attributes))


@converts("AvgPool", "AvgPool3D")
def average_pool(site: Site) -> Value:
    """The mean of each window, padding not counted."""
    attributes = _attributes(Windows.of(site), _kernel(site))
    return as_images(site, site.value(0), lambda x: site.op(AvgPool, x, **attributes))


@converts("MaxPoolWithArgmax")
def max_pool_places(site: Site) -> Results:
    """Also where: counted through [S, C] of an entry, or of the whole batch."""
    x = to_channels_first(site, site.value(0))
    kernel = tuple(site.numbers("ksize")[1:-1])
    steps = tuple(site.numbers("strides")[1:-1])
    windows = Windows(steps, (1, 1), None if site.attr("padding") == "SAME" else ((0, 0), (0, 0)))
    values, places = site.b.op(MaxPoolIndices, [x], **_attributes(windows, kernel)).results
    batch, channels, *size = site.sizes(x)
    area = int(np.prod(size))
    inside = site.op(Mul, site.op(Mod, places, site.constant(area, I64)), site.constant(channels, I64))
    found = site.op(Add, inside, site.constant(np.arange(channels).reshape(1, channels, 1, 1), I64))
    if site.attr("include_batch_in_index"):
        starts = np.arange(batch).reshape(batch, 1, 1, 1) * area * channels
        found = site.op(Add, found, site.constant(starts, I64))
    return [to_channels_last(site, values), cast(site, to_channels_last(site, found), site.element(1))]


@converts("AvgPoolGrad", "AvgPool3DGrad")
def average_pool_gradient(site: Site) -> Value:
    """Each gradient spread evenly over the elements of its window."""
    first = is_channels_first(site)
    gradient = site.value(1) if first else to_channels_first(site, site.value(1))
    kernel, windows = _kernel(site), Windows.of(site)
    sizes = [size or 0 for size in static_sizes(site, 0)]
    spatial_sizes = sizes[2:] if first else sizes[1:-1]
    counts = _counts(windows, spatial_sizes, kernel, site.sizes(gradient)[2:])
    element = gradient.tensor.element
    shares = site.op(Div, gradient, site.constant(counts, element))
    batch, channels, *outer = site.sizes(shares)
    ones = site.constant(np.ones((1, 1, *kernel)), element)
    columns = reshape(site, shares, [batch * channels, 1, *outer])
    spread = transposed_conv(site, columns, ones, windows, list(spatial_sizes), 1)
    result = reshape(site, spread, [batch, channels, *spatial_sizes])
    return result if first else to_channels_last(site, result)


def _counts(windows: Windows, sizes: Sequence[int], kernel: Sequence[int], outer: Sequence[int]) -> Array:
    """How many elements of the image each window holds."""
    total = np.ones((), np.float64)
    for axis, (low, _) in enumerate(windows.around(sizes, kernel)):
        starts = np.arange(outer[axis]) * windows.strides[axis] - low
        held = np.minimum(starts + kernel[axis], sizes[axis]) - np.maximum(starts, 0)
        total = total[..., None] * held
    return np.asarray(total)


@converts("MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradV2")
def max_pool_gradient(site: Site) -> Value:
    """Each gradient added where the greatest element of its window stands."""
    first = is_channels_first(site)
    by_inputs = site.operator == "MaxPoolGradV2"
    x, gradient = (site.value(i) if first else to_channels_first(site, site.value(i)) for i in (0, 2))
    kernel = _kernel(site, site.ints(3, "the window") if by_inputs else None)
    windows = Windows.of(site, site.ints(4, "the strides") if by_inputs else None)
    places = site.b.op(MaxPoolIndices, [x], **_attributes(windows, kernel)).results[1]
    element = x.tensor.element
    from compiler.frontends.assembly import shape_of
    from compiler.ops.creation import Fill

    zeros = flat(site, site.op(Fill, shape_of(site, x), number(site, 0, element)))
    found = site.op(ScatterElements, zeros, flat(site, places), flat(site, gradient), axis=0, reduction="add")
    result = reshape_to(site, found, shape_of(site, x))
    return result if first else to_channels_last(site, result)
