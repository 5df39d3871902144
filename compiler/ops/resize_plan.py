"""Where each element of a resized axis comes from: source coordinates, neighbours and weights. Source: ONNX Resize-19.

Coordinates are computed in float64. Interpolation is separable, so an axis is planned alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Array


@dataclass(frozen=True, slots=True)
class Sampling:
    """How coordinates and weights are made: the attributes of a resize."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: ``size`` elements become ``out``; ``scale`` * size is the ideal, perhaps fractional, new size."""

    axis: int
    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    @property
    def ideal(self) -> float:
        """The new size before rounding."""
        return self.scale * self.size

    def is_identity(self, sampling: Sampling) -> bool:
        """Whether every element is its own source."""
        cropped = sampling.coordinates == "tf_crop_and_resize" and (self.start, self.end) != (0.0, 1.0)
        return self.scale == 1 and self.out == self.size and not cropped


@dataclass(frozen=True, slots=True)
class Taps:
    """For each new element the ``indices`` [out, n] of its sources and their ``weights`` [out, n] in float64.

    ``weights`` None: one source each, taken as it is. ``outside`` [out] marks elements that are extrapolated.
    """

    indices: Array
    weights: Array | None
    outside: Array | None


def _half_pixel(y: Array, axis: Axis) -> Array:
    return (y + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(y: Array, axis: Axis) -> Array:
    return np.full(y.shape, -0.5) if axis.ideal == 1 else _half_pixel(y, axis)


def _half_pixel_symmetric(y: Array, axis: Axis) -> Array:
    return axis.size / 2 * (1 - axis.out / axis.ideal) + _half_pixel(y, axis)


def _asymmetric(y: Array, axis: Axis) -> Array:
    return y / axis.scale


def _align_corners(y: Array, axis: Axis) -> Array:
    return np.zeros(y.shape) if axis.ideal == 1 else y * (axis.size - 1) / (axis.ideal - 1)


def _crop(y: Array, axis: Axis) -> Array:
    last = axis.size - 1
    if axis.ideal == 1:
        return np.full(y.shape, (axis.start + axis.end) * last / 2)
    return y * (axis.end - axis.start) * last / (axis.ideal - 1) + axis.start * last


COORDINATES: Final[dict[str, Callable[[Array, Axis], Array]]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "asymmetric": _asymmetric,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop,
}

NEAREST: Final[dict[str, Callable[[Array], Array]]] = {
    "round_prefer_floor": lambda x: np.asarray(np.ceil(x - 0.5)),
    "round_prefer_ceil": lambda x: np.asarray(np.floor(x + 0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _linear(distance: Array, a: float) -> Array:
    """The triangle of Bartlett's window."""
    del a
    return np.asarray(np.clip(1 - np.abs(distance), 0, 1))


def _cubic(distance: Array, a: float) -> Array:
    """Keys' cubic convolution kernel (1981) with parameter a."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


_KERNELS: Final[dict[str, tuple[Callable[[Array, float], Array], int]]] = {"linear": (_linear, 1), "cubic": (_cubic, 2)}
"""Kernel and its half width."""


def taps(axis: Axis, sampling: Sampling) -> Taps:
    """The sources and weights of one axis. Neighbours beyond an end are the end itself, or left out."""
    x = COORDINATES[sampling.coordinates](np.arange(axis.out, dtype=np.float64), axis)
    last = axis.size - 1
    outside = (x < 0) | (x > last) if sampling.coordinates == "tf_crop_and_resize" else None
    if outside is not None and not outside.any():
        outside = None
    if sampling.mode == "nearest":
        nearest = NEAREST[sampling.nearest](x)
        return Taps(np.clip(nearest, 0, last).astype(np.int64)[:, None], None, outside)
    kernel, half = _KERNELS[sampling.mode]
    stretch = min(axis.scale, 1.0) if sampling.antialias else 1.0
    first = int(np.floor(-half / stretch)) + 1
    # The base is the neighbour before x, so that the distance to it lies in (0, 1].
    base = np.ceil(x) - 1
    places = base[:, None] + np.arange(first, 2 - first)
    weights = kernel((places - x[:, None]) * stretch, sampling.cubic)
    if sampling.exclude_outside:
        weights = np.where((places < 0) | (places > last), 0.0, weights)
    if sampling.exclude_outside or sampling.antialias:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    used = np.any(weights != 0, axis=0)
    used[0] |= not used.any()
    indices = np.clip(places, 0, last).astype(np.int64)
    return Taps(indices[:, used], weights[:, used], outside)
