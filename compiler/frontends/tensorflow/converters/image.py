"""Resizing of images, parts of them, and their colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.assembly import cast, concat, cut, number, pick, reshape, swap, unsqueeze
from compiler.frontends.tensorflow.converters.common import computed
from compiler.frontends.tensorflow.converters.windows import Windows
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ir import F32, I32, I64, Value
from compiler.ops.compose import Emit
from compiler.ops.contraction import MatMul
from compiler.ops.detection import NonMaxSuppression
from compiler.ops.indexing import Gather
from compiler.ops.padding import Pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_SPATIAL: Final = (1, 2)


def _scale(size: int, out: int, *, aligned: bool) -> np.float32:
    """CalculateResizeScale of tensorflow/core/util/image_resizer_state.h, in float32 as there."""
    if aligned and out > 1:
        return np.float32((size - 1) / np.float32(out - 1))
    return np.float32(np.float32(size) / np.float32(out))


def _places(site: Site, size: int, out: int) -> Array:
    """Where the elements of the result lie in the image, in float32."""
    scale = _scale(size, out, aligned=bool(site.attr("align_corners")))
    steps = np.arange(out, dtype=np.float32)
    if site.attr("half_pixel_centers"):
        return np.asarray((steps + np.float32(0.5)) * scale - np.float32(0.5))
    return np.asarray(steps * scale)


@converts("ResizeNearestNeighbor")
def nearest(site: Site) -> Value:
    """The element at the place rounded down, or with aligned corners rounded to the nearest."""
    x = site.value(0)
    for axis, out in zip(_SPATIAL, site.ints(1, "the size"), strict=True):
        size, aligned = site.size(x, axis), bool(site.attr("align_corners"))
        steps = np.arange(out, dtype=np.float32)
        centred = (steps + np.float32(0.5)) if site.attr("half_pixel_centers") else steps
        found = centred * _scale(size, out, aligned=aligned)
        rounded = np.floor(found + np.float32(0.5)) if aligned else np.floor(found)
        places = np.clip(rounded.astype(np.int64), 0, size - 1)
        x = site.op(Gather, x, site.b.constant(places), axis=axis)
    return x


def by_matrices(site: Site, matrices: Sequence[Array]) -> Value:
    """The image times a matrix [out, size] along each spatial dim, in float32."""
    x = cast(site, site.value(0), F32)
    for axis, matrix in zip(_SPATIAL, matrices, strict=True):
        weights = site.constant(matrix.T, F32)
        x = swap(site, site.op(MatMul, swap(site, x, axis, 3), weights), axis, 3)
    return cast(site, x, site.element())


def _linear(places: Array, size: int) -> Array:
    lower = np.floor(places)
    share = places - lower
    matrix = np.zeros((len(places), size), np.float32)
    rows = np.arange(len(places))
    np.add.at(matrix, (rows, np.clip(lower, 0, size - 1).astype(np.int64)), 1 - share)
    np.add.at(matrix, (rows, np.clip(np.ceil(places), 0, size - 1).astype(np.int64)), share)
    return matrix


@converts("ResizeBilinear")
def bilinear(site: Site) -> Value:
    """Between the two nearest elements of each spatial dim."""
    x = site.value(0)
    sizes = [(site.size(x, axis), out) for axis, out in zip(_SPATIAL, site.ints(1, "the size"), strict=True)]
    return by_matrices(site, [_linear(_places(site, size, out), size) for size, out in sizes])


_TABLE_SIZE: Final = 1024
"""Cubic weights come from a table of so many steps between two elements (resize_bicubic_op.cc)."""


def _cubic(places: Array, size: int, *, keys: bool) -> Array:
    """Weights of four neighbours; with ``keys`` those outside count for nothing, else the border is repeated."""
    a = -0.5 if keys else -0.75
    lower = np.floor(places).astype(np.int64)
    near = np.rint((places - lower.astype(np.float32)) * _TABLE_SIZE) / _TABLE_SIZE
    matrix = np.zeros((len(places), size), np.float64)
    for offset, distance in ((-1, near + 1), (0, near), (1, 1 - near), (2, 2 - near)):
        inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weight = inner if offset in {0, 1} else outer
        index = lower + offset
        inside = (index >= 0) & (index < size)
        np.add.at(matrix, (np.arange(len(places)), np.clip(index, 0, size - 1)), weight * (inside if keys else 1))
    total = matrix.sum(axis=1, keepdims=True)
    return matrix / np.where(np.abs(total) > 1e-30, total, 1) if keys else matrix


@converts("ResizeBicubic")
def bicubic(site: Site) -> Value:
    """Between four neighbours of each spatial dim."""
    x, keys = site.value(0), bool(site.attr("half_pixel_centers"))
    sizes = [(site.size(x, axis), out) for axis, out in zip(_SPATIAL, site.ints(1, "the size"), strict=True)]
    return by_matrices(site, [_cubic(_places(site, size, out), size, keys=keys) for size, out in sizes])


@converts("ResizeArea")
def area(site: Site) -> Value:
    """The mean of what a new element covers of the old ones."""
    x, aligned = site.value(0), bool(site.attr("align_corners"))
    matrices = []
    for axis, out in zip(_SPATIAL, site.ints(1, "the size"), strict=True):
        size = site.size(x, axis)
        scale = float(_scale(size, out, aligned=aligned))
        starts = np.arange(out)[:, None] * scale
        cells = np.arange(size + 1 + int(np.ceil(scale)))[None, :]
        held = np.clip(np.minimum(cells + 1, starts + scale) - np.maximum(cells, starts), 0, None)
        matrix = np.zeros((out, size))
        np.add.at(matrix.T, np.minimum(cells[0], size - 1), held.T)
        matrices.append(matrix / scale)
    return by_matrices(site, matrices)


@converts("CropAndResize")
def crop_and_resize(site: Site) -> Value:
    """A box of an image resampled; what lies outside of the image is a number."""
    image, boxes, entries = site.value(0), site.value(1), site.as_int64(site.value(2))
    height, width = site.ints(3, "the size of the crop")
    _, rows, columns, _ = site.sizes(image)
    e = Emit(site.b)
    source = cast(site, image, F32)
    ys = _samples(site, boxes, (0, 2), rows, height)
    xs = _samples(site, boxes, (1, 3), columns, width)
    inside = e(
        "and",
        unsqueeze(site, e("and", e("ge", ys, 0.0), e("le", ys, float(rows - 1))), (2,)),
        unsqueeze(site, e("and", e("ge", xs, 0.0), e("le", xs, float(columns - 1))), (1,)),
    )
    if site.attr("method") == "nearest":
        # Halves away from zero, as C's round.
        found = _pixels(site, source, entries, e("floor", e("add", ys, 0.5)), e("floor", e("add", xs, 0.5)))
    else:
        found = _bilinear_pixels(site, source, entries, ys, xs)
    outside = number(site, float(site.attr("extrapolation_value")), F32)
    return e("select", unsqueeze(site, inside, (3,)), found, outside)


def _samples(site: Site, boxes: Value, ends: tuple[int, int], size: int, count: int) -> Value:
    """[boxes, count]: where the samples lie along one dim."""
    e = Emit(site.b)
    low, high = (cut(site, boxes, 1, end, end + 1) for end in ends)
    if count == 1:
        return e("mul", e("mul", e("add", low, high), 0.5), float(size - 1))
    step = e("div", e("mul", e("sub", high, low), float(size - 1)), float(count - 1))
    return e("add", e("mul", low, float(size - 1)), e("mul", step, site.constant(np.arange(count), F32)))


def _pixels(site: Site, image: Value, entries: Value, ys: Value, xs: Value) -> Value:
    """image[entry, y, x] for each box, row and column; places outside are moved to the border."""
    e = Emit(site.b)
    _, rows, columns, channels = site.sizes(image)
    own = [cast(site, e("clamp", value, 0.0, float(size - 1)), I64) for value, size in ((ys, rows), (xs, columns))]
    line = e("add", e("mul", unsqueeze(site, entries, (1,)), rows), own[0])
    places = e("add", e("mul", unsqueeze(site, line, (2,)), columns), unsqueeze(site, own[1], (1,)))
    return site.op(Gather, reshape(site, image, [-1, channels]), places, axis=0)


def _bilinear_pixels(site: Site, image: Value, entries: Value, ys: Value, xs: Value) -> Value:
    e = Emit(site.b)
    top, left = e("floor", ys), e("floor", xs)
    bottom, right = e("ceil", ys), e("ceil", xs)
    down = unsqueeze(site, e("sub", ys, top), (2, 3))
    along = unsqueeze(site, e("sub", xs, left), (1, 3))
    lines = []
    for row in (top, bottom):
        first, second = (_pixels(site, image, entries, row, column) for column in (left, right))
        lines.append(e("add", first, e("mul", e("sub", second, first), along)))
    return e("add", lines[0], e("mul", e("sub", lines[1], lines[0]), down))


def _suppressed(site: Site, most: Value, iou: Value, score: Value | None) -> Value:
    boxes, scores = (unsqueeze(site, cast(site, site.value(i), F32), axes) for i, axes in ((0, (0,)), (1, (0, 1))))
    limits = [None if limit is None else reshape(site, cast(site, limit, F32), [1]) for limit in (iou, score)]
    found = site.op(NonMaxSuppression, boxes, scores, reshape(site, site.as_int64(most), [1]), *limits)
    return cast(site, pick(site, found, 1, 2), I32)


@converts("NonMaxSuppression")
def suppression(site: Site) -> Value:
    """Overlap is an attribute."""
    return _suppressed(site, site.value(2), number(site, float(site.attr("iou_threshold")), F32), None)


@converts("NonMaxSuppressionV2")
def suppression_by_overlap(site: Site) -> Value:
    """Overlap is an input."""
    return _suppressed(site, site.value(2), site.value(3), None)


@converts("NonMaxSuppressionV3")
def suppression_by_score(site: Site) -> Value:
    """Boxes go by their score too."""
    return _suppressed(site, site.value(2), site.value(3), site.value(4))


@converts("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def suppression_padded(site: Site) -> Results:
    """Filled up with 0 to the number asked for, and how many were selected."""
    soft = site.operator == "NonMaxSuppressionV5"
    if soft:
        sigma = site.data(5, "the softness")
        if sigma.reshape(-1)[0] != 0:
            site.refuse("soft suppression has no conversion", "soft_nms_sigma")
    found = _suppressed(site, site.value(2), site.value(3), site.value(4))
    e = Emit(site.b)
    count = cast(site, e("size_of", found), I32)
    scores = [site.op(Gather, site.value(1), found, axis=0)] if soft else []
    if site.attr("pad_to_max_output_size"):
        most = site.whole(2, "the number of boxes")
        found = cut(site, concat(site, [found, site.constant(np.zeros(most), I32)], 0), 0, 0, most)
        scores = [
            cut(site, concat(site, [value, site.constant(np.zeros(most), value.tensor.element)], 0), 0, 0, most)
            for value in scores
        ]
    return [found, *scores, count]


@converts("ExtractImagePatches", "ExtractVolumePatches")
def patches(site: Site) -> Value:
    """The elements of each window side by side in the channels."""
    x = site.value(0)
    kernel, steps = tuple(site.numbers("ksizes")[1:-1]), tuple(site.numbers("strides")[1:-1])
    rates = tuple(site.numbers("rates")[1:-1]) if site.has("rates") else (1,) * len(kernel)
    windows = Windows(steps, rates, None if site.attr("padding") == "SAME" else ((0, 0),) * len(kernel))
    sizes = site.sizes(x)[1:-1]
    pads = windows.around(sizes, kernel)
    amounts = [0, *(pair[0] for pair in pads), 0, 0, *(pair[1] for pair in pads), 0]
    padded = site.op(Pad, x, site.integers(*amounts), None, None)
    counts = [
        (size + sum(pair) - (taps - 1) * rate - 1) // step + 1
        for size, pair, taps, rate, step in zip(sizes, pads, kernel, rates, steps, strict=True)
    ]
    parts = []
    for offsets in np.ndindex(*kernel):
        part = padded
        for axis, (offset, rate, step, count) in enumerate(zip(offsets, rates, steps, counts, strict=True), 1):
            start = offset * rate
            part = cut(site, part, axis, start, start + (count - 1) * step + 1, step)
        parts.append(part)
    return concat(site, parts, site.rank(x) - 1)


def _channels(site: Site, x: Value) -> list[Value]:
    last = site.rank(x) - 1
    return [cut(site, x, last, place, place + 1) for place in range(3)]


def _to_hsv(site: Site, e: Emit, rgb: Value) -> list[Value]:
    """Hue, saturation and value, each from 0 to 1 (adjust_hsv_gpu.cu.h and colorspace_op.h)."""
    r, g, b = _channels(site, rgb)
    top = e("max", e("max", r, g), b)
    reach = e("sub", top, e("min", e("min", r, g), b))
    saturation = e("select", e("gt", top, 0), e("div", reach, top), 0)
    unit = e("div", e.scalar(1 / 6, rgb.tensor.element), reach)
    hue = e(
        "select",
        e("eq", r, top),
        e("mul", unit, e("sub", g, b)),
        e(
            "select",
            e("eq", g, top),
            e("add", e("mul", unit, e("sub", b, r)), 2 / 6),
            e("add", e("mul", unit, e("sub", r, g)), 4 / 6),
        ),
    )
    hue = e("select", e("gt", reach, 0), hue, 0)
    return [e("select", e("lt", hue, 0), e("add", hue, 1.0), hue), saturation, top]


def _to_rgb(site: Site, e: Emit, hue: Value, saturation: Value, value: Value) -> Value:
    dh = e("mul", hue, 6.0)
    parts = [
        e("clamp", e("sub", e("abs", e("sub", dh, 3.0)), 1.0), 0.0, 1.0),
        e("clamp", e("sub", 2.0, e("abs", e("sub", dh, 2.0))), 0.0, 1.0),
        e("clamp", e("sub", 2.0, e("abs", e("sub", dh, 4.0))), 0.0, 1.0),
    ]
    pale = e("sub", 1.0, saturation)
    colours = [e("mul", e("add", pale, e("mul", saturation, part)), value) for part in parts]
    return concat(site, colours, site.rank(hue) - 1)


@converts("RGBToHSV")
def rgb_to_hsv(site: Site) -> Value:
    """Colours by hue, saturation and value."""
    return computed(site, lambda e, x: concat(site, _to_hsv(site, e, x), site.rank(x) - 1))


@converts("HSVToRGB")
def hsv_to_rgb(site: Site) -> Value:
    """The other way."""
    return computed(site, lambda e, x: _to_rgb(site, e, *_channels(site, x)))


@converts("AdjustHue")
def adjust_hue(site: Site) -> Value:
    """The hue moved round the circle."""

    def formula(e: Emit, x: Value, delta: Value) -> Value:
        hue, saturation, value = _to_hsv(site, e, x)
        moved = e("add", hue, delta)
        return _to_rgb(site, e, e("sub", moved, e("floor", moved)), saturation, value)

    return computed(site, formula)


@converts("AdjustSaturation")
def adjust_saturation(site: Site) -> Value:
    """The saturation multiplied, at most 1."""

    def formula(e: Emit, x: Value, scale: Value) -> Value:
        hue, saturation, value = _to_hsv(site, e, x)
        return _to_rgb(site, e, hue, e("clamp", e("mul", saturation, scale), 0.0, 1.0), value)

    return computed(site, formula)


@converts("AdjustContrastv2")
def adjust_contrast(site: Site) -> Value:
    """The distance from each channel's mean multiplied."""
    rank = site.rank(site.value(0))

    def formula(e: Emit, x: Value, factor: Value) -> Value:
        mean = e("reduce_mean", x, axes=(rank - 3, rank - 2))
        return e("add", e("mul", e("sub", x, mean), factor), mean)

    return computed(site, formula)
