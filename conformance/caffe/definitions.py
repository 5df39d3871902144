"""Caffe's layers from their definition, in float64: the code of BVLC Caffe 1.0 and of the SSD branch, read as formulas.

A function takes the layer's options as a manifest gives them, its bottoms and its weights, and gives its tops. None of
it is the compiler's: windows are loops over places, and nothing is shared with the frontend.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from conformance.caffe import detection

Array: TypeAlias = Any
"""A float64 array; numpy's stubs lose the type in most expressions here."""


@dataclass(frozen=True, slots=True)
class Options:
    """The fields that a case sets; the rest have the format's defaults, given where they are read."""

    fields: dict[str, Any] = field(default_factory=dict)
    tops: int = 1
    weights: Sequence[Array] = ()

    def get(self, name: str, default: Any) -> Any:  # noqa: ANN401
        """A field, or its default."""
        return self.fields.get(name, default)

    def listed(self, name: str, default: int, count: int) -> list[int]:
        """A field that is given once for all dims, once for each, or with _h and _w."""
        pair = [self.fields.get(f"{name.removesuffix('_size')}_{side}") for side in "hw"]
        if None not in pair:
            return [int(value) for value in pair if value is not None]
        found = self.fields.get(name, (default,))
        values = list(found) if isinstance(found, tuple) else [found]
        return values * count if len(values) == 1 else values


Layer = Callable[[Options, list[Array]], list[Array]]


def _pointwise(function: Callable[[Options, Array], Array]) -> Layer:
    return lambda options, bottoms: [function(options, bottoms[0])]


def _relu(options: Options, x: Array) -> Array:
    return np.maximum(x, 0) + options.get("negative_slope", 0.0) * np.minimum(x, 0)


def _prelu(options: Options, x: Array) -> Array:
    slope = options.weights[0].reshape((-1,) + (1,) * (x.ndim - 2))
    return np.maximum(x, 0) + slope * np.minimum(x, 0)


def _elu(options: Options, x: Array) -> Array:
    return np.where(x > 0, x, options.get("alpha", 1.0) * np.expm1(np.minimum(x, 0)))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _power(options: Options, x: Array) -> Array:
    return np.power(options.get("shift", 0.0) + options.get("scale", 1.0) * x, options.get("power", 1.0))


def _exp(options: Options, x: Array) -> Array:
    base = options.get("base", math.e)
    return np.power(base, options.get("shift", 0.0) + options.get("scale", 1.0) * x)


def _log(options: Options, x: Array) -> Array:
    return np.log(options.get("shift", 0.0) + options.get("scale", 1.0) * x) / math.log(options.get("base", math.e))


def _places(counts: Sequence[int]) -> Any:  # noqa: ANN401
    return itertools.product(*(range(count) for count in counts))


def _convolution(options: Options, bottoms: list[Array]) -> list[Array]:
    axis = options.get("axis", 1)
    lead, x = bottoms[0].shape[:axis], bottoms[0].reshape(-1, *bottoms[0].shape[axis:])
    columns, counts = _columns(options, x, list(options.weights[0].shape[2:]))
    group, weights = options.get("group", 1), options.weights[0]
    parts = np.split(columns, group, axis=1), np.split(weights, group, axis=0)
    batch = len(columns)
    done = [w.reshape(len(w), -1) @ x.reshape(batch, w[0].size, -1) for x, w in zip(*parts, strict=True)]
    y = np.concatenate(done, axis=1).reshape(batch, -1, *counts)
    y = y if options.get("bias_term", True) is False else y + _channels(options.weights[1], len(counts))
    return [y.reshape(*lead, *y.shape[1:])]


def _channels(vector: Array, spatial: int) -> Array:
    return vector.reshape((-1,) + (1,) * spatial)


def _columns(options: Options, x: Array, kernel: list[int]) -> tuple[Array, list[int]]:
    """[N, C, kernel, *counts]: what each window sees."""
    rank = x.ndim - 2
    pads, strides = options.listed("pad", 0, rank), options.listed("stride", 1, rank)
    dilations = options.listed("dilation", 1, rank)
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
    parts = zip(x.shape[2:], kernel, strides, dilations, strict=True)
    counts = [(size - (d * (k - 1) + 1)) // s + 1 for size, k, s, d in parts]
    y = np.zeros((*x.shape[:2], int(np.prod(kernel)), *counts))
    for place in _places(counts):
        starts = [i * s for i, s in zip(place, strides, strict=True)]
        cuts = [slice(b, b + d * (k - 1) + 1, d) for b, k, d in zip(starts, kernel, dilations, strict=True)]
        y[(..., *place)] = x[(..., *cuts)].reshape(*x.shape[:2], -1)
    return y, counts


def _im2col(options: Options, bottoms: list[Array]) -> list[Array]:
    x = bottoms[0]
    columns, counts = _columns(options, x, options.listed("kernel_size", 1, x.ndim - 2))
    return [columns.reshape(x.shape[0], -1, *counts)]


def _deconvolution(options: Options, bottoms: list[Array]) -> list[Array]:
    """Each value of x scatters its weights over the output, whose padding is cut off."""
    x, weights, group = bottoms[0], options.weights[0], options.get("group", 1)
    kernel, rank = weights.shape[2:], x.ndim - 2
    pads, strides = options.listed("pad", 0, rank), options.listed("stride", 1, rank)
    sizes = [s * (n - 1) + k for n, k, s in zip(x.shape[2:], kernel, strides, strict=True)]
    own = weights.shape[1]
    y: Array = np.zeros((x.shape[0], own * group, *sizes))
    for channel in range(x.shape[1]):
        start = channel // (x.shape[1] // group) * own
        for place in _places(x.shape[2:]):
            at = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, strides, kernel, strict=True))
            scattered = x[(slice(None), channel, *place)].reshape((-1, *(1,) * (rank + 1))) * weights[channel]
            y[(slice(None), slice(start, start + own), *at)] += scattered
    y = y[(..., *(slice(p, size - p) for p, size in zip(pads, sizes, strict=True)))]
    return [y if options.get("bias_term", True) is False else y + _channels(options.weights[1], rank)]


def _pooled(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    mode: str,
    rounded: Callable[[float], int] = math.ceil,
) -> Array:
    """PoolingLayer::Reshape and Forward_cpu: sizes round up, no window starts in the padding after the data."""
    counts = []
    for size, k, s, p in zip(x.shape[2:], kernel, strides, pads, strict=True):
        count = rounded((size + 2 * p - k) / s) + 1
        counts.append(count - 1 if any(pads) and (count - 1) * s >= size + p else count)
    y = np.zeros((*x.shape[:2], *counts))
    for place in _places(counts):
        starts = [i * s - p for i, s, p in zip(place, strides, pads, strict=True)]
        ends = [min(b + k, size + p) for b, k, size, p in zip(starts, kernel, x.shape[2:], pads, strict=True)]
        area = float(np.prod([e - b for b, e in zip(starts, ends, strict=True)]))
        cut = (..., *(slice(max(b, 0), min(e, n)) for b, e, n in zip(starts, ends, x.shape[2:], strict=True)))
        part = x[cut].reshape(*x.shape[:2], -1)
        if mode == "MAX":
            y[(..., *place)] = part.max(-1) if part.shape[-1] else np.finfo(np.float32).min
        else:
            with np.errstate(all="ignore"):
                y[(..., *place)] = part.sum(-1) / np.float64(area)
    return y


def _pooling(options: Options, bottoms: list[Array]) -> list[Array]:
    x, mode = bottoms[0], options.get("pool", "MAX")
    kernel, strides, pads = (options.listed(n, d, 2) for n, d in (("kernel_size", 1), ("stride", 1), ("pad", 0)))
    kernel = list(x.shape[2:]) if options.get("global_pooling", False) else kernel
    return [
        _pooled(x, kernel, strides, pads, mode, math.floor if options.get("round_mode", "") == "FLOOR" else math.ceil)
    ]


def _spp(options: Options, bottoms: list[Array]) -> list[Array]:
    x, mode, levels = bottoms[0], options.get("pool", "MAX"), []
    for level in range(options.get("pyramid_height", 1)):
        bins = 2**level
        kernel = [math.ceil(size / bins) for size in x.shape[2:]]
        pads = [(k * bins - size + 1) // 2 for k, size in zip(kernel, x.shape[2:], strict=True)]
        levels.append(_pooled(x, kernel, kernel, pads, mode))
    if len(levels) == 1:
        return levels
    return [np.concatenate([level.reshape(x.shape[0], -1) for level in levels], axis=1)]


def _lrn(options: Options, x: Array) -> Array:
    size, alpha, beta = options.get("local_size", 5), options.get("alpha", 1.0), options.get("beta", 0.75)
    squares, half = x * x, size // 2
    if options.get("norm_region", "ACROSS_CHANNELS") == "WITHIN_CHANNEL":
        mean = _pooled(squares, [size, size], [1, 1], [half, half], "AVE")
        return x * np.power(1 + alpha * mean, -beta)
    channels = x.shape[1]
    sums = [squares[:, max(c - half, 0) : min(c + half + 1, channels)].sum(1) for c in range(channels)]
    return x * np.power(options.get("k", 1.0) + alpha / size * np.stack(sums, 1), -beta)


def _inner_product(options: Options, bottoms: list[Array]) -> list[Array]:
    x, axis, w = bottoms[0], options.get("axis", 1) % bottoms[0].ndim, options.weights[0]
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    y = flat @ (w if options.get("transpose", False) else w.T)
    y = y if options.get("bias_term", True) is False else y + options.weights[1]
    return [y.reshape(*x.shape[:axis], -1)]


def _embed(options: Options, bottoms: list[Array]) -> list[Array]:
    y = options.weights[0][bottoms[0].astype(int)]
    return [y if options.get("bias_term", True) is False else y + options.weights[1]]


def _batch_norm(options: Options, x: Array) -> Array:
    mean, variance, count = options.weights
    if not options.get("use_global_stats", True):
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + options.get("eps", 1e-5))
    factor = 0.0 if count[0] == 0 else 1 / count[0]
    shape = (-1,) + (1,) * (x.ndim - 2)
    deviation = np.sqrt((variance * factor).reshape(shape) + options.get("eps", float(np.float32(1e-5))))
    return (x - (mean * factor).reshape(shape)) / deviation


def _along(x: Array, operand: Array, axis: int) -> Array:
    axis = axis % x.ndim if operand.ndim else 0
    return operand.reshape(*operand.shape, *(1,) * (x.ndim - axis - operand.ndim))


def _scale(options: Options, bottoms: list[Array]) -> list[Array]:
    x, axis = bottoms[0], options.get("axis", 1)
    factor, *bias = [*bottoms[1:], *options.weights]
    y = x * _along(x, factor, axis)
    return [y + _along(x, bias[0], axis) if options.get("bias_term", False) else y]


def _bias(options: Options, bottoms: list[Array]) -> list[Array]:
    operand = bottoms[1] if len(bottoms) == 2 else options.weights[0]
    return [bottoms[0] + _along(bottoms[0], operand, options.get("axis", 1))]


def _mvn(options: Options, x: Array) -> Array:
    axes = tuple(range(1 if options.get("across_channels", False) else 2, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    if not options.get("normalize_variance", True):
        return centred
    return centred / (np.sqrt((centred**2).mean(axes, keepdims=True)) + options.get("eps", 1e-9))


def _normalize(options: Options, x: Array) -> Array:
    axes = tuple(range(1, x.ndim)) if options.get("across_spatial", True) else (1,)
    norm = np.sqrt((x * x).sum(axes, keepdims=True) + options.get("eps", 1e-10))
    return x / norm * options.weights[0].reshape((-1,) + (1,) * (x.ndim - 2))


def _softmax(options: Options, x: Array) -> Array:
    axis = options.get("axis", 1)
    grown = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(grown / grown.sum(axis, keepdims=True))


def _eltwise(options: Options, bottoms: list[Array]) -> list[Array]:
    kind, stacked = options.get("operation", "SUM"), np.stack(bottoms)
    if kind == "SUM":
        factors = options.get("coeff", (1.0,) * len(bottoms))
        return [np.asarray(np.tensordot(np.asarray(factors), stacked, 1))]
    return [np.asarray(stacked.prod(0) if kind == "PROD" else stacked.max(0))]


def _reduction(options: Options, x: Array) -> Array:
    axis = options.get("axis", 0) % x.ndim
    flat = x.reshape(*x.shape[:axis], -1)
    kinds = {
        "SUM": lambda v: v.sum(-1), "ASUM": lambda v: np.abs(v).sum(-1),
        "SUMSQ": lambda v: (v * v).sum(-1), "MEAN": lambda v: v.mean(-1),
    }  # fmt: skip
    return np.asarray(options.get("coeff", 1.0) * kinds[options.get("operation", "SUM")](flat))


def _argmax(options: Options, x: Array) -> Array:
    """Pairs (value, position) sorted from the greatest: of equal values the greater position first."""
    count, out, axis = options.get("top_k", 1), options.get("out_max_val", False), options.get("axis", None)
    lanes = x.reshape(x.shape[0], -1) if axis is None else np.moveaxis(x, axis, -1)
    positions = np.argsort(lanes, -1, kind="stable")[..., ::-1][..., :count]
    values = np.take_along_axis(lanes, positions, -1)
    if axis is not None:
        return np.moveaxis(values if out else positions.astype(np.float64), -1, axis)
    stacked = np.stack([positions.astype(np.float64), values] if out else [positions.astype(np.float64)], 1)
    return stacked.reshape(*stacked.shape, *(1,) * (x.ndim - 3))


def _slice(options: Options, bottoms: list[Array]) -> list[Array]:
    x, axis = bottoms[0], options.get("slice_dim", options.get("axis", 1))
    points = options.get("slice_point", None)
    return [np.asarray(part) for part in np.split(x, options.tops if points is None else list(points), axis)]


def _crop(options: Options, bottoms: list[Array]) -> list[Array]:
    x, like = bottoms
    axis = options.get("axis", 2) % x.ndim
    offsets = options.listed("offset", 0, x.ndim - axis)
    cuts = [slice(o, o + size) for o, size in zip(offsets, like.shape[axis:], strict=True)]
    return [x[(*(slice(None),) * axis, *cuts)]]


def _flatten(options: Options, x: Array) -> Array:
    start, end = options.get("axis", 1) % x.ndim, options.get("end_axis", -1) % x.ndim
    return x.reshape(*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])


def _numbers(text: str) -> list[int]:
    """The dims of `{ dim: 2 dim: -1 }`."""
    return [int(word) for word in text.replace("}", " ").split() if word.lstrip("-").isdigit()]


def _reshape(options: Options, x: Array) -> Array:
    axis, count = options.get("axis", 0), options.get("num_axes", -1)
    start = axis if axis >= 0 else x.ndim + axis + 1
    end = x.ndim if count == -1 else start + count
    wanted = [x.shape[start + i] if size == 0 else size for i, size in enumerate(_numbers(options.get("shape", "")))]
    return x.reshape(*x.shape[:start], *wanted, *x.shape[end:])


def _permute(options: Options, x: Array) -> Array:
    given = list(options.get("order", ()))
    return np.transpose(x, [*given, *(axis for axis in range(x.ndim) if axis not in given)])


def _dummy(options: Options, _bottoms: list[Array]) -> list[Array]:
    if "shape" in options.fields:
        return [np.full(_numbers(options.get("shape", "")), 1.5)]
    return [np.zeros([options.fields[name][0] for name in ("num", "channels", "height", "width")])]


def _lstm(options: Options, bottoms: list[Array]) -> list[Array]:
    x, cont, size, exposed = bottoms[0], bottoms[1], options.get("num_output", 0), options.get("expose_hidden", False)
    weights, bias, *static, recurrent = options.weights
    inputs = x.reshape(*x.shape[:2], -1) @ weights.T + bias
    if static:
        inputs = inputs + bottoms[2] @ static[0].T
    state = np.zeros((x.shape[1], size))
    hidden, cell = (bottoms[-2][0], bottoms[-1][0]) if exposed else (state, state)
    steps = []
    for step, kept in zip(inputs, cont[..., None], strict=True):
        i, f, o, g = np.split(step + (kept * hidden) @ recurrent.T, 4, axis=1)
        cell = kept * _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
        hidden = _sigmoid(o) * np.tanh(cell)
        steps.append(hidden)
    return [np.stack(steps), hidden[None], cell[None]] if exposed else [np.stack(steps)]


def _rnn(options: Options, bottoms: list[Array]) -> list[Array]:
    x, cont, size, exposed = bottoms[0], bottoms[1], options.get("num_output", 0), options.get("expose_hidden", False)
    w, b, r, out, out_bias = options.weights
    inputs = x.reshape(*x.shape[:2], -1) @ w.T + b
    hidden = bottoms[-1][0] if exposed else np.zeros((x.shape[1], size))
    steps = []
    for step, kept in zip(inputs, cont[..., None], strict=True):
        hidden = np.tanh(step + (kept * hidden) @ r.T)
        steps.append(np.tanh(hidden @ out.T + out_bias))
    return [np.stack(steps), hidden[None]] if exposed else [np.stack(steps)]


def _prior_box(options: Options, bottoms: list[Array]) -> list[Array]:
    return [detection.prior_box(options.get, bottoms[0].shape, bottoms[1].shape)]


def _detection_output(options: Options, bottoms: list[Array]) -> list[Array]:
    return [detection.detection_output(options.get, *bottoms)]


DEFINITIONS: dict[str, Layer] = {
    "AbsVal": _pointwise(lambda _, x: np.abs(x)),
    "ArgMax": _pointwise(_argmax),
    "BNLL": _pointwise(lambda _, x: np.logaddexp(0, x)),
    "BatchNorm": _pointwise(_batch_norm),
    "BatchReindex": lambda _, bottoms: [bottoms[0][bottoms[1].astype(int)]],
    "Bias": _bias,
    "Clip": _pointwise(lambda options, x: np.clip(x, options.fields["min"], options.fields["max"])),
    "Concat": lambda o, bottoms: [np.concatenate(bottoms, o.get("concat_dim", o.get("axis", 1)))],
    "Convolution": _convolution,
    "Crop": _crop,
    "Deconvolution": _deconvolution,
    "DetectionOutput": _detection_output,
    "Dropout": _pointwise(lambda _, x: x),
    "DummyData": _dummy,
    "ELU": _pointwise(_elu),
    "Eltwise": _eltwise,
    "Embed": _embed,
    "Exp": _pointwise(_exp),
    "Filter": lambda _, bottoms: [bottoms[0][bottoms[1].reshape(-1) != 0]],
    "Flatten": _pointwise(_flatten),
    "Im2col": _im2col,
    "InnerProduct": _inner_product,
    "Input": lambda _, bottoms: bottoms,
    "LRN": _pointwise(_lrn),
    "LSTM": _lstm,
    "Log": _pointwise(_log),
    "MVN": _pointwise(_mvn),
    "Normalize": _pointwise(_normalize),
    "PReLU": _pointwise(_prelu),
    "Parameter": lambda options, _: [options.weights[0]],
    "Permute": _pointwise(_permute),
    "Pooling": _pooling,
    "Power": _pointwise(_power),
    "PriorBox": _prior_box,
    "RNN": _rnn,
    "ReLU": _pointwise(_relu),
    "Reduction": _pointwise(_reduction),
    "Reshape": _pointwise(_reshape),
    "SPP": _spp,
    "Scale": _scale,
    "Sigmoid": _pointwise(lambda _, x: _sigmoid(x)),
    "Silence": lambda _, bottoms: [2 * bottoms[0]],
    "Slice": _slice,
    "Softmax": _pointwise(_softmax),
    "Split": lambda options, bottoms: bottoms * options.tops,
    "Swish": _pointwise(lambda options, x: x * _sigmoid(options.get("beta", 1.0) * x)),
    "TanH": _pointwise(lambda _, x: np.tanh(x)),
    "Threshold": _pointwise(lambda options, x: (x > options.get("threshold", 0.0)).astype(np.float64)),
    "Tile": _pointwise(lambda options, x: np.concatenate([x] * options.fields["tiles"], options.get("axis", 1))),
}
"""Every layer that a manifest has."""
