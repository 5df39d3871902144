"""Draws of input values. These functions stand in every reproducer too, so they use numpy and ml_dtypes alone.

Each takes the generator, a shape and a numpy dtype and gives an array of them. Values that the type lacks are rounded
or clipped to it.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def is_float(dtype: Any) -> bool:
    """Whether a dtype is a floating type of numpy or ml_dtypes."""
    return np.dtype(dtype).kind == "f" or "float" in np.dtype(dtype).name


def bounds(dtype: Any) -> tuple[float, float]:
    """Least and greatest finite value of a real dtype."""
    info = ml_dtypes.finfo(dtype) if is_float(dtype) else ml_dtypes.iinfo(dtype)
    return (float(info.min), float(info.max)) if is_float(dtype) else (int(info.min), int(info.max))


def cast(values: Any, dtype: Any) -> Any:
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


def random(rng: Any, shape: Any, dtype: Any) -> Any:
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


def mixed(rng: Any, shape: Any, dtype: Any) -> Any:
    """Small beside large: every other value is about 2^10 times the rest."""
    values = random(rng, shape, np.float64) * np.exp2(rng.choice([-5.0, 5.0], shape))
    return cast(values, dtype) if np.dtype(dtype).kind != "c" else np.asarray(values * (1 + 1j)).astype(dtype)


def zeros(rng: Any, shape: Any, dtype: Any) -> Any:
    """Half of the values are zero."""
    return np.where(rng.integers(0, 2, shape) == 1, random(rng, shape, dtype), np.zeros((), dtype)).astype(dtype)


def large(rng: Any, shape: Any, dtype: Any) -> Any:
    """Floats over most of the exponent range; integers over the whole range of the type."""
    low, high = bounds(dtype)
    if is_float(dtype):
        top = np.floor(np.log2(high)) - 1
        return cast(rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(-top, top, shape)), dtype)
    return np.asarray(rng.integers(low, high, shape, np.uint64 if low == 0 else np.int64, endpoint=True), dtype)


def boundary(rng: Any, shape: Any, dtype: Any) -> Any:
    """Values beside which kernels go wrong: limits of the type, halves, neighbours of one."""
    low, high = bounds(dtype)
    if is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        tiny, eps = float(info.smallest_normal), float(info.eps)
        steps = [low, high, tiny, -tiny, 1 + eps, 1 - eps / 2, 0.5, -0.5, 1.5, 2.5, -2.5, 0.0, 1.0, -1.0]
        return np.asarray(rng.choice(np.array(steps), shape)).astype(dtype)
    steps = [low, high, low + 1, high - 1, 0, 1, 2, -1] if low else [low, high, high - 1, 0, 1, 2]
    return np.asarray(rng.choice(np.array(steps, np.uint64 if low == 0 else np.int64), shape)).astype(dtype)


def special(rng: Any, shape: Any, dtype: Any) -> Any:
    """NaN, infinities, both zeros, denormals and the type's limits, among common values."""
    info = ml_dtypes.finfo(dtype)
    tiny = float(info.smallest_subnormal)
    steps = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 3 * tiny, float(info.max), float(info.min), 1.0, -2.5]
    values = np.array(steps).astype(dtype)
    count = int(np.prod(shape))
    return rng.permutation(np.resize(values, count)).reshape(shape)


def ties(rng: Any, shape: Any, dtype: Any) -> Any:
    """Few distinct values, so that many are equal; -0.0 beside 0.0 in floats."""
    if np.dtype(dtype).kind == "c":
        return np.asarray(rng.choice(np.array([0, 1, 1j, 1 + 1j], dtype), shape))
    low = -1.0 if is_float(dtype) or bounds(dtype)[0] else 0.0
    return cast(rng.choice(np.array([low, -0.0, 0.0, 1.0, 1.0]), shape), dtype)


def uniform(rng: Any, shape: Any, dtype: Any, low: float, high: float) -> Any:
    """Evenly spread in [low, high]."""
    if np.dtype(dtype).kind == "c":
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    if is_float(dtype):
        return within(cast(rng.uniform(low, high, shape), dtype), low, high)
    return integers(rng, shape, dtype, int(low), int(high) + 1)


def integers(rng: Any, shape: Any, dtype: Any, low: int, high: int) -> Any:
    """Whole numbers in [low, high), within what the type holds."""
    if np.dtype(dtype).kind not in "bcO":
        low, high = max(low, int(bounds(dtype)[0])), min(high, int(bounds(dtype)[1]) + 1)
    return np.asarray(rng.integers(low, max(high, low + 1), shape, np.int64)).astype(dtype)


def distinct(rng: Any, shape: Any, dtype: Any, low: int, high: int, axis: int = -1) -> Any:
    """Whole numbers in [low, high), none twice along ``axis``; shape[axis] may be at most high - low."""
    moved = [dim for index, dim in enumerate(shape) if index != axis % len(shape)]
    lanes = [rng.permutation(np.arange(low, high))[: shape[axis]] for _ in range(int(np.prod(moved)))]
    return np.moveaxis(np.array(lanes, np.int64).reshape([*moved, shape[axis]]), -1, axis).astype(dtype)


def ascending(rng: Any, shape: Any, dtype: Any, low: float, high: float) -> Any:
    """Ascending along the last axis, in [low, high]."""
    return np.sort(cast(rng.uniform(low, high, shape), dtype), axis=-1)


def mask(rng: Any, shape: Any, dtype: Any) -> Any:
    """True and false."""
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype)


def choice(rng: Any, shape: Any, dtype: Any, values: Any) -> Any:
    """Each one of the given values."""
    return np.asarray(rng.choice(np.array(values), shape)).astype(dtype)


def repeat(shape: Any, dtype: Any, values: Any) -> Any:
    """The given values in order, from the start again when used up."""
    return np.resize(np.array(values), int(np.prod(shape))).reshape(shape).astype(dtype)


def within(values: Any, low: float, high: float) -> Any:
    """Finite values folded into [low, high]; NaN and infinities stay."""
    if values.dtype.kind == "O" or values.size == 0:
        return values
    if not is_float(values.dtype):
        low, high = max(low, bounds(values.dtype)[0]), min(high, bounds(values.dtype)[1])
        return np.asarray(np.clip(values, int(low), int(high)))
    wide = values.astype(np.float64)
    return np.where(np.isfinite(wide), np.clip(wide, low, high), wide).astype(values.dtype)


def nonzero(values: Any) -> Any:
    """Zeros become ones."""
    return np.where(values == 0, np.ones((), values.dtype), values).astype(values.dtype)
