"""Convolutions, their transposes and the gradients of their filters. Images are [N, *S, C] or [N, C, *S]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.frontends.assembly import cast, cut, reshape, transpose
from compiler.frontends.tensorflow.converters.common import (
    as_images,
    is_channels_first,
    to_channels_first,
    to_channels_last,
)
from compiler.frontends.tensorflow.converters.movement import mirrored
from compiler.frontends.tensorflow.converters.windows import Windows, static_sizes
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ir import I64
from compiler.ops.contraction import Conv
from compiler.ops.conv_transpose import ConvTranspose

if TYPE_CHECKING:
    from compiler.ir import Value


def _channels(site: Site, x: Value, *, first: bool) -> int:
    return site.size(x, 1 if first else site.rank(x) - 1)


def filter_first(site: Site, w: Value) -> Value:
    """[*K, in, out] -> [out, in, *K]."""
    rank = site.rank(w)
    return transpose(site, w, (rank - 1, rank - 2, *range(rank - 2)))


@converts("Conv2D", "Conv3D", "Conv")
def conv(site: Site) -> Value:
    """Groups are what the channels of the images and of the filter make."""
    if site.has("batch_dims") and int(site.attr("batch_dims")) != 1:
        site.refuse("several batch dims have no conversion", "batch_dims")
    x, w = site.values
    return _convolved(site, x, w)


@converts("FusedPadConv2D")
def padded_conv(site: Site) -> Value:
    """Mirrored padding before a convolution of channels last."""
    x, w = site.value(0), site.value(2)
    steps = tuple(site.numbers("strides")[1:-1])
    windows = Windows(steps, (1, 1), None if site.attr("padding") == "SAME" else ((0, 0), (0, 0)))
    images = to_channels_first(site, mirrored(site, x, 1))
    return to_channels_last(site, site.op(Conv, images, filter_first(site, w), **windows.attributes()))


def _convolved(site: Site, x: Value, w: Value) -> Value:
    channels = _channels(site, x, first=is_channels_first(site))
    groups = channels // max(site.size(w, site.rank(w) - 2), 1) if channels else 1
    windows = Windows.of(site)
    return as_images(
        site, x, lambda images: site.op(Conv, images, filter_first(site, w), groups=groups, **windows.attributes())
    )


@converts("DepthwiseConv2dNative")
def depthwise(site: Site) -> Value:
    """Filter [*K, C, M]: each channel makes M of its own."""
    x, w = site.values
    windows = Windows.of(site)
    kernel, channels = _depthwise_filter(site, w)
    return as_images(site, x, lambda images: site.op(Conv, images, kernel, groups=channels, **windows.attributes()))


def _depthwise_filter(site: Site, w: Value) -> tuple[Value, int]:
    """[*K, C, M] -> [C * M, 1, *K], and C."""
    height, width, channels, many = site.sizes(w)
    return reshape(site, transpose(site, w, (2, 3, 0, 1)), [channels * many, 1, height, width]), channels


def transposed_conv(
    site: Site, gradient: Value, kernel: Value, windows: Windows, sizes: list[int], groups: int
) -> Value:
    """The transpose of a convolution of images [N, M, *sizes]: gradient [N, C, *O], kernel [C, M / groups, *K]."""
    taps = site.sizes(kernel)[2:]
    pads = windows.around(sizes, taps)
    outer = []
    for axis, (size, (low, high)) in enumerate(zip(sizes, pads, strict=True)):
        reach = (taps[axis] - 1) * windows.dilations[axis] + 1
        least = (site.size(gradient, axis + 2) - 1) * windows.strides[axis] + reach - low - high
        outer.append(size - least)
    cuts = [min(extra, 0) for extra in outer]
    result = site.op(
        ConvTranspose,
        gradient,
        kernel,
        strides=windows.strides,
        dilations=windows.dilations,
        pads=tuple(pair[0] for pair in pads) + tuple(pair[1] for pair in pads),
        output_padding=tuple(max(extra, 0) for extra in outer),
        groups=groups,
    )
    for axis, extra in enumerate(cuts):
        result = cut(site, result, axis + 2, 0, sizes[axis]) if extra else result
    return result


def _spatial_sizes(site: Site, index: int, *, first: bool) -> list[int]:
    """The spatial sizes of the result; input ``index`` has all of them, or the spatial ones alone."""
    sizes = static_sizes(site, index)
    rank = site.rank(site.value(2))
    spatial = sizes if len(sizes) == rank - 2 else sizes[2:] if first else sizes[1:-1]
    found = [size for size in spatial if size is not None]
    if len(found) != rank - 2:
        site.undecided("the sizes of the result decide what is computed, and are not known", site.value(index))
    return found


@converts("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_input(site: Site) -> Value:
    """The transposed convolution: what flows back to images whose sizes are given."""
    first = is_channels_first(site)
    w, gradient = site.value(1), site.value(2)
    sizes = _spatial_sizes(site, 0, first=first)
    rank = site.rank(w)
    groups = _groups(site, w, first=first)
    kernel = transpose(site, w, (rank - 1, rank - 2, *range(rank - 2)))
    images = gradient if first else to_channels_first(site, gradient)
    result = transposed_conv(site, images, kernel, Windows.of(site), sizes, groups)
    return result if first else to_channels_last(site, result)


def _groups(site: Site, w: Value, *, first: bool) -> int:
    """How often the channels that a filter makes one group of are in the result."""
    sizes = static_sizes(site, 0)
    channels = (sizes[1] if first else sizes[-1]) if len(sizes) == site.rank(w) else None
    return 1 if channels is None else max(channels // max(site.size(w, site.rank(w) - 2), 1), 1)


@converts("DepthwiseConv2dNativeBackpropInput")
def depthwise_input(site: Site) -> Value:
    """The same, of a filter [*K, C, M]."""
    first = is_channels_first(site)
    kernel, channels = _depthwise_filter(site, site.value(1))
    gradient = site.value(2) if first else to_channels_first(site, site.value(2))
    sizes = _spatial_sizes(site, 0, first=first)
    result = transposed_conv(site, gradient, kernel, Windows.of(site), sizes, channels)
    return result if first else to_channels_last(site, result)


def _filter_gradient(site: Site, x: Value, gradient: Value, windows: Windows, taps: list[int], groups: int) -> Value:
    """x [A, G * B, *S] with gradient [M, B, *O] as its filter -> [A, M, *K]: strides and dilations change places."""
    sizes = list(site.sizes(x)[2:])
    pads = windows.around(sizes, taps)
    result = site.op(
        Conv,
        x,
        gradient,
        strides=windows.dilations,
        dilations=windows.strides,
        pads=tuple(pair[0] for pair in pads) + tuple(pair[1] for pair in pads),
        groups=groups,
    )
    for axis, size in enumerate(taps):
        result = cut(site, result, axis + 2, 0, size)
    return result


@converts("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_filter(site: Site) -> Value:
    """What flows back to the filter: images and gradients with batch and channels exchanged."""
    first = is_channels_first(site)
    x, gradient = (site.value(i) if first else to_channels_first(site, site.value(i)) for i in (0, 2))
    sizes = [size or 0 for size in static_sizes(site, 1)]
    if sizes[-2] != site.size(x, 1):
        site.refuse("groups of channels have no conversion here")
    rank = len(sizes)
    swapped = (1, 0, *range(2, rank))
    result = _filter_gradient(
        site, transpose(site, x, swapped), transpose(site, gradient, swapped), Windows.of(site), sizes[:-2], 1
    )
    return transpose(site, result, (*range(2, rank), 0, 1))


@converts("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter(site: Site) -> Value:
    """The same, channel by channel."""
    first = is_channels_first(site)
    x, gradient = (site.value(i) if first else to_channels_first(site, site.value(i)) for i in (0, 2))
    height, width, channels, many = (size or 0 for size in static_sizes(site, 1))
    batch, _, *size = site.sizes(x)
    x = reshape(site, transpose(site, x, (1, 0, 2, 3)), [1, channels * batch, *size])
    result = _filter_gradient(
        site, x, transpose(site, gradient, (1, 0, 2, 3)), Windows.of(site), [height, width], channels
    )
    return transpose(site, reshape(site, result, [channels, many, height, width]), (2, 3, 0, 1))


@converts("Dilation2D")
def dilation(site: Site) -> Value:
    """The greatest of the sums of windows and a filter [*K, C], padding never being it."""
    from compiler.ops.compose import Emit

    x, w = site.values
    strides, rates = site.numbers("strides")[1:-1], site.numbers("rates")[1:-1]
    windows = Windows(tuple(strides), tuple(rates), None if site.attr("padding") == "SAME" else ((0, 0), (0, 0)))
    sizes, taps = list(site.sizes(x)[1:3]), list(site.sizes(w)[:2])
    pads = windows.around(sizes, taps)
    e = Emit(site.b)
    amounts = site.integers(0, *(pair[0] for pair in pads), 0, 0, *(pair[1] for pair in pads), 0)
    element = x.tensor.element
    if element.is_float:
        lowest = e.scalar(float("-inf"), element)
    else:
        # Wide, so that the least number stays the least when a filter is added.
        x, w = cast(site, x, I64), cast(site, w, I64)
        lowest = e.scalar(-(2**62), I64)
    padded = e("pad", x, amounts, lowest, None)
    counts = [
        (size + sum(pair) - (tap - 1) * rate - 1) // stride + 1
        for size, pair, tap, rate, stride in zip(sizes, pads, taps, rates, strides, strict=True)
    ]
    result: Value | None = None
    for row in range(taps[0]):
        for column in range(taps[1]):
            part = padded
            for axis, place in ((1, row * rates[0]), (2, column * rates[1])):
                step = strides[axis - 1]
                part = cut(site, part, axis, place, place + (counts[axis - 1] - 1) * step + 1, step)
            tap = reshape(site, cut(site, cut(site, w, 0, row, row + 1), 1, column, column + 1), [-1])
            found = e("add", part, tap)
            result = found if result is None else e("max", result, found)
    assert result is not None
    return cast(site, result, element)
