"""Draws of input values. These functions stand in every reproducer too, so they use numpy and ml_dtypes alone.

Each takes the generator, a shape and a numpy dtype and gives an array of them. Values that the type lacks are rounded
or clipped to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]


def is_float(dtype: DTypeLike) -> bool:
    """Whether a dtype is a floating type of numpy or ml_dtypes."""
    return np.dtype(dtype).kind == "f" or "float" in np.dtype(dtype).name


def form(dtype: DTypeLike) -> Any:  # noqa: ANN401 - ml_dtypes has no annotations
    """What a real dtype can hold, in the manner of np.finfo and np.iinfo."""
    info: Any = ml_dtypes.finfo if is_float(dtype) else ml_dtypes.iinfo
    return info(np.dtype(dtype))


def bounds(dtype: DTypeLike) -> tuple[Any, Any]:
    """Least and greatest finite value of a real dtype."""
    kind = float if is_float(dtype) else int
    return kind(form(dtype).min), kind(form(dtype).max)


def cast(values: ArrayLike, dtype: DTypeLike) -> Array:
    """Values as the dtype, clipped to what it can hold (NaN and infinities stay)."""
    if np.dtype(dtype).kind in "cbO":
        return np.asarray(values).astype(dtype)
    low, high = bounds(dtype)
    values = np.asarray(values)
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        values = np.where(finite, np.clip(values, low, high), values)
        if not is_float(dtype):
            values = np.round(np.where(finite, values, 0.0))
            values = np.where(values >= 2.0**62, 2.0**62, values) if high >= 2**63 - 1 else values
    return np.asarray(values).astype(dtype)


def random(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Signed values around one, over several binades; integers in [-100, 100]; true and false; short words."""
    kind = np.dtype(dtype).kind
    if kind == "O":
        return np.asarray(rng.choice(np.array(["", "a", "B", "straße", "two words", "日本"], object), shape), object)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if is_float(dtype):
        return cast(rng.standard_normal(shape) * np.exp2(rng.integers(-3, 4, shape)), dtype)
    low, high = bounds(dtype)
    return np.asarray(rng.integers(max(low, -100), min(high, 100), shape, np.int64, endpoint=True)).astype(dtype)


def mixed(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Small beside large: every other value is about 2^10 times the rest."""
    values = random(rng, shape, np.float64) * np.exp2(rng.choice([-5.0, 5.0], shape))
    return cast(values, dtype) if np.dtype(dtype).kind != "c" else np.asarray(values * (1 + 1j)).astype(dtype)


def zeros(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Half of the values are zero."""
    return np.where(rng.integers(0, 2, shape) == 1, random(rng, shape, dtype), np.zeros((), dtype)).astype(dtype)


def large(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Floats over most of the exponent range; integers over the whole range of the type."""
    low, high = bounds(dtype)
    if is_float(dtype):
        top = np.floor(np.log2(high)) - 1
        return cast(rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(-top, top, shape)), dtype)
    return np.asarray(rng.integers(low, high, shape, np.uint64 if low == 0 else np.int64, endpoint=True), dtype)


def boundary(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Values beside which kernels go wrong: limits of the type, halves, neighbours of one."""
    low, high = bounds(dtype)
    if is_float(dtype):
        info = form(dtype)
        tiny, eps = float(info.smallest_normal), float(info.eps)
        steps = [low, high, tiny, -tiny, 1 + eps, 1 - eps / 2, 0.5, -0.5, 1.5, 2.5, -2.5, 0.0, 1.0, -1.0]
        return np.asarray(rng.choice(np.array(steps), shape)).astype(dtype)
    steps = [low, high, low + 1, high - 1, 0, 1, 2, -1] if low else [low, high, high - 1, 0, 1, 2]
    return np.asarray(rng.choice(np.array(steps, np.uint64 if low == 0 else np.int64), shape)).astype(dtype)


def special(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """NaN, infinities, both zeros and denormals among common values.

    Not the type's limits: sums of them overflow or not by the width of the accumulator.
    """
    info = form(dtype)
    tiny = float(info.smallest_subnormal)
    steps = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 3 * tiny, 1.0, -2.5, 3.0, 0.5]
    values = np.array(steps).astype(dtype)
    count = int(np.prod(shape))
    return rng.permutation(np.resize(values, count)).reshape(shape)


def ties(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """Few distinct values, so that many are equal; -0.0 beside 0.0 in floats."""
    if np.dtype(dtype).kind == "c":
        return np.asarray(rng.choice(np.array([0, 1, 1j, 1 + 1j], dtype), shape))
    low = -1.0 if is_float(dtype) or bounds(dtype)[0] else 0.0
    return cast(rng.choice(np.array([low, -0.0, 0.0, 1.0, 1.0]), shape), dtype)


def uniform(rng: Generator, shape: Shape, dtype: DTypeLike, low: float, high: float) -> Array:
    """Evenly spread in [low, high]."""
    if np.dtype(dtype).kind == "c":
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    if is_float(dtype):
        return within(cast(rng.uniform(low, high, shape), dtype), low, high)
    return integers(rng, shape, dtype, int(low), int(high) + 1)


def gaussian(rng: Generator, shape: Shape, dtype: DTypeLike, deviation: float) -> Array:
    """Normal with mean 0: what activations and weights look like."""
    return cast(rng.standard_normal(shape) * deviation, dtype)


def integers(rng: Generator, shape: Shape, dtype: DTypeLike, low: int, high: int) -> Array:
    """Whole numbers in [low, high), within what the type holds."""
    if np.dtype(dtype).kind not in "bcO":
        low, high = max(low, int(bounds(dtype)[0])), min(high, int(bounds(dtype)[1]) + 1)
    return np.asarray(rng.integers(low, max(high, low + 1), shape, np.int64)).astype(dtype)


def distinct(rng: Generator, shape: Shape, dtype: DTypeLike, low: int, high: int, axis: int = -1) -> Array:
    """Whole numbers in [low, high), none twice along ``axis``; shape[axis] may be at most high - low."""
    moved = [dim for index, dim in enumerate(shape) if index != axis % len(shape)]
    lanes = [rng.permutation(np.arange(low, high))[: shape[axis]] for _ in range(int(np.prod(moved)))]
    return np.moveaxis(np.array(lanes, np.int64).reshape([*moved, shape[axis]]), -1, axis).astype(dtype)


def ascending(rng: Generator, shape: Shape, dtype: DTypeLike, low: float, high: float) -> Array:
    """Ascending along the last axis, in [low, high]."""
    return np.sort(cast(rng.uniform(low, high, shape), dtype), axis=-1)


def mask(rng: Generator, shape: Shape, dtype: DTypeLike) -> Array:
    """True and false."""
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype)


def choice(rng: Generator, shape: Shape, dtype: DTypeLike, values: Sequence[Any]) -> Array:
    """Each one of the given values."""
    return np.asarray(rng.choice(np.array(values), shape)).astype(dtype)


def repeat(shape: Shape, dtype: DTypeLike, values: Sequence[Any]) -> Array:
    """The given values in order, from the start again when used up."""
    return np.resize(np.array(values), int(np.prod(shape))).reshape(shape).astype(dtype)


def bitmap(rng: Generator, height: int, width: int) -> Array:
    """The bytes of an uncompressed image file: BMP, 24 bits a pixel, rows from the bottom up, padded to 4 bytes."""
    row = -(-3 * width // 4) * 4
    head = (
        np.array([0x4D42], "<u2").tobytes() + np.array([54 + row * height, 0, 54, 40, width, height], "<u4").tobytes()
    )
    head += np.array([1, 24], "<u2").tobytes() + np.array([0, row * height, 2835, 2835, 0, 0], "<u4").tobytes()
    pixels = np.zeros((height, row), np.uint8)
    pixels[:, : 3 * width] = rng.integers(0, 256, (height, 3 * width))
    return np.concatenate([np.frombuffer(head, np.uint8), pixels.ravel()])


def within(values: Array, low: float, high: float) -> Array:
    """Finite values folded into [low, high]; NaN and infinities stay, and so do texts and complex numbers."""
    if values.dtype.kind in "Oc" or values.size == 0:
        return values
    if not is_float(values.dtype):
        low, high = max(low, bounds(values.dtype)[0]), min(high, bounds(values.dtype)[1])
        return np.asarray(np.clip(values, int(low), int(high))).astype(values.dtype)
    wide = values.astype(np.float64)
    return np.where(np.isfinite(wide), np.clip(wide, low, high), wide).astype(values.dtype)


def nonzero(values: Array) -> Array:
    """Zeros become ones."""
    return np.where(values == 0, np.ones((), values.dtype), values).astype(values.dtype)


def flushed(values: Array) -> Array:
    """Denormals become zeros: for references that take them for zeros."""
    if not is_float(values.dtype):
        return values
    wide = np.abs(values.astype(np.float64))
    return np.where(wide < float(form(values.dtype).smallest_normal), np.zeros((), values.dtype), values)


def ordered(values: Array) -> Array:
    """NaN become ones: for operators that compare, since no rule orders a NaN."""
    if not is_float(values.dtype):
        return values
    return np.where(np.isnan(values.astype(np.float64)), np.ones((), values.dtype), values).astype(values.dtype)
