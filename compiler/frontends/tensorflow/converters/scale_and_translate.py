"""Resizing by a kernel that widens where an image shrinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.tensorflow.converters.image import by_matrices
from compiler.frontends.tensorflow.site import Site, converts

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Array, Value


def _cubic(x: Array, b: float, c: float) -> Array:
    """Mitchell and Netravali's family of cubic kernels; x is not negative."""
    near = ((12 - 9 * b - 6 * c) * x + (-18 + 12 * b + 6 * c)) * x * x + (6 - 2 * b)
    far = (((-b - 6 * c) * x + (6 * b + 30 * c)) * x + (-12 * b - 48 * c)) * x + (8 * b + 24 * c)
    return np.where(x < 1, near, np.where(x < 2, far, 0)) / 6


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        return np.where(x > radius, 0, np.sinc(x) * np.sinc(x / radius))

    return kernel


_KERNELS: Final[dict[str, tuple[float, Callable[[Array], Array]]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "triangle": (1.0, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2.0, lambda x: _cubic(x, 0.0, 0.5)),
    "mitchellcubic": (2.0, lambda x: _cubic(x, 1 / 3, 1 / 3)),
}
"""Radius and form of each kernel: tensorflow/core/kernels/image/sampling_kernels.h."""


def _weights(site: Site, size: int, out: int, scale: float, translation: float) -> Array:
    """[out, size]: ComputeSpansCore of tensorflow/core/kernels/image/scale_and_translate_op.cc."""
    name = site.attr("kernel_type")
    if name not in _KERNELS:
        site.refuse(f"kernel {name} has no conversion; expected one of {', '.join(_KERNELS)}", "kernel_type")
    radius, kernel = _KERNELS[name]
    inverse = np.float32(1) / np.float32(scale)
    wide = max(float(inverse), 1.0) if site.attr("antialias") else 1.0
    places = (np.arange(out) + np.float32(0.5)) * inverse - inverse * np.float32(translation)
    centres = np.arange(size) + 0.5
    distance = np.abs(centres[None, :] - places[:, None])
    matrix = np.where(distance <= radius * wide, kernel(distance / wide), 0)
    total = matrix.sum(axis=1, keepdims=True)
    matrix = matrix / np.where(np.abs(total) > 1e-35, total, 1)
    return np.where(((places < 0) | (places > size))[:, None], 0, matrix)


@converts("ScaleAndTranslate")
def scale_and_translate(site: Site) -> Value:
    """Scaled and moved images, 0 where a new element lies outside of the old image."""
    x, sizes = site.value(0), site.ints(1, "the size")
    scales, moves = (site.data(index, what).reshape(-1) for index, what in ((2, "the scale"), (3, "the translation")))
    return by_matrices(
        site, [_weights(site, site.size(x, axis + 1), sizes[axis], scales[axis], moves[axis]) for axis in (0, 1)]
    )
