"""Resizing and sampling of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.frontends.torch.converters.common import cast, rank_of, swap, vector
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.contraction import MatMul
from compiler.ops.grid_sample import AffineGrid, GridSample
from compiler.ops.indexing import Gather
from compiler.ops.resize import Resize

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter
    from compiler.ir import Array

_LINEAR: Final = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _resized(site: Site, **attributes: Any) -> Value:  # noqa: ANN401
    """By a size or by factors, which then give the places as they are: not rounded to the sizes' ratio."""
    x = site.value("input" if "input" in site.arguments else "self")
    rank = rank_of(x)
    axes = tuple(range(2, rank))
    element = x.tensor.element
    factors = _factors(site, len(axes))
    own = x if element.is_float else cast(site, x, wide(site.element()))
    if factors is not None and attributes.get("coordinates") == "align_corners":
        # The ends of both images meet, so that only the sizes matter.
        sizes = [int(site.size(x, axis) * factor) for axis, factor in zip(axes, factors, strict=True)]
        result = site.op(Resize, own, None, None, site.integers(*sizes), axes=axes, **attributes)
    elif factors is not None:
        scales = site.b.constant(np.array(factors, np.float32))
        result = site.op(Resize, own, None, scales, None, axes=axes, **attributes)
    else:
        result = site.op(Resize, own, None, None, vector(site, list(site["output_size"])), axes=axes, **attributes)
    return cast(site, result, element)


def _factors(site: Site, count: int) -> list[float] | None:
    if site.get("output_size") is not None and "scale_factors" in site.arguments:
        return None
    found = site.get("scale_factors")
    if found is not None:
        return [float(factor) for factor in found]
    names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[count]
    factors = [site.get(name) for name in names]
    if any(factor is None for factor in factors):
        return None
    sizes, x = site["output_size"], site.value("self")
    if any(
        int(site.size(x, 2 + i) * factor) != size for i, (factor, size) in enumerate(zip(factors, sizes, strict=True))
    ):
        return None
    return [float(factor) for factor in factors]


def _nearest(*, exact: bool) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("input" if "input" in site.arguments else "self")
        spatial = rank_of(x) - 2
        factors = _factors(site, spatial)
        known = x.tensor.is_static and not any(isinstance(size, Value) for size in site.get("output_size") or ())
        if not known or _is_whole(site, x, factors):
            mode = ("half_pixel", "round_prefer_ceil") if exact else ("asymmetric", "floor")
            return _resized(site, mode="nearest", coordinates=mode[0], nearest_mode=mode[1])
        for axis, (count, scale) in enumerate(_places(site, x, factors), 2):
            # In float32 throughout, as torch computes it: other roundings take a neighbour.
            steps = np.arange(count, dtype=np.float32) + np.float32(0.5 if exact else 0)
            source = np.minimum(np.floor(steps * scale).astype(np.int64), site.size(x, axis) - 1)
            x = site.op(Gather, x, site.b.constant(source), axis=axis)
        return x

    return convert


def _places(site: Site, x: Value, factors: list[float] | None) -> list[tuple[int, np.float32]]:
    """The size of each dim of the result, and how far its elements lie apart in the image."""
    sizes = site.sizes(x)[2:]
    if factors is not None:
        return [(int(size * factor), np.float32(1 / factor)) for size, factor in zip(sizes, factors, strict=True)]
    wanted = [site.integer(size) for size in site["output_size"]]
    return [(out, np.float32(size) / np.float32(out)) for size, out in zip(sizes, wanted, strict=True)]


def _is_whole(site: Site, x: Value, factors: list[float] | None) -> bool:
    """Whether every element of the image is repeated as often."""
    if factors is not None:
        return all(float(factor).is_integer() for factor in factors)
    return all(site.integer(out) % size == 0 for out, size in zip(site["output_size"], site.sizes(x)[2:], strict=True))


for _dims in (1, 2, 3):
    for _prefix, _exact in (("upsample_nearest", False), ("_upsample_nearest_exact", True)):
        converts(f"{_prefix}{_dims}d.vec", f"{_prefix}{_dims}d")(_nearest(exact=_exact))


def _smooth(mode: str, *, antialias: bool = False) -> Converter:
    def convert(site: Site) -> Value:
        if antialias and any(site.get(name) is not None for name in ("scales_h", "scales_w")):
            site.refuse("scales of their own, beside the sizes", "scales_h")
        coordinates = "align_corners" if site["align_corners"] else "half_pixel"
        attributes: dict[str, Any] = {"mode": mode, "coordinates": coordinates}
        if mode == "cubic":
            attributes["cubic_coefficient"] = -0.5 if antialias else -0.75
        if antialias and site["align_corners"]:
            return _by_weights(site, mode)
        if antialias:
            attributes |= {"antialias": True, "exclude_outside": True}
        return _resized(site, **attributes)

    return convert


def _by_weights(site: Site, mode: str) -> Value:
    """Antialiased resizing whose corners are aligned: only the scale knows of corners, so no other form says it."""
    x = site.value("input" if "input" in site.arguments else "self")
    element = x.tensor.element
    result = cast(site, x, wide(element))
    for axis, (out, _) in enumerate(_places(site, x, _factors(site, 2)), 2):
        weights = site.constant(_aligned_weights(site.size(x, axis), out, mode), result.tensor.element)
        result = site.op(MatMul, result, swap(site, weights, 0, 1)) if axis == 3 else site.op(MatMul, weights, result)
    return cast(site, result, element)


def _aligned_weights(size: int, out: int, mode: str) -> Array:
    """The matrix [out, size] of torch's antialiased kernels (aten/src/ATen/native/cpu/UpSampleKernel.cpp)."""
    scale = (size - 1) / (out - 1) if out > 1 else 0.0
    reach = {"linear": 1.0, "cubic": 2.0}[mode]
    support, inverse = (reach * scale, 1 / scale) if scale >= 1 else (reach, 1.0)
    matrix = np.zeros((out, size))
    for row in range(out):
        center = scale * (row + 0.5)
        first, last = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
        weights = _KERNELS[mode](np.abs((np.arange(first, last) - center + 0.5) * inverse))
        matrix[row, first:last] = weights / weights.sum()
    return matrix


def _triangle(distance: Array) -> Array:
    triangle: Array = np.maximum(1 - distance, 0)
    return triangle


def _cubic(distance: Array) -> Array:
    """Keys' kernel with a = -0.5, which antialiasing uses (Pillow's)."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance < 1, near, np.where(distance < 2, far, 0))


_KERNELS: Final = {"linear": _triangle, "cubic": _cubic}


for _name, _dims in _LINEAR.items():
    converts(f"upsample_{_name}{_dims}d.vec", f"upsample_{_name}{_dims}d")(_smooth("linear"))
converts("upsample_bicubic2d.vec", "upsample_bicubic2d")(_smooth("cubic"))
converts("_upsample_bilinear2d_aa.vec", "_upsample_bilinear2d_aa")(_smooth("linear", antialias=True))
converts("_upsample_bicubic2d_aa.vec", "_upsample_bicubic2d_aa")(_smooth("cubic", antialias=True))

_SAMPLING: Final = ("linear", "nearest", "cubic")
_OUTSIDE: Final = ("zeros", "border", "reflection")


@converts("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler")
def grid_sampler(site: Site) -> Value:
    """Samples at the places of a grid."""
    return site.op(
        GridSample,
        site.value("input"),
        site.value("grid"),
        mode=_SAMPLING[site["interpolation_mode"]],
        padding=_OUTSIDE[site["padding_mode"]],
        align_corners=bool(site["align_corners"]),
    )


@converts("affine_grid_generator")
def affine_grid(site: Site) -> Value:
    """The grid of an affine map."""
    return site.op(
        AffineGrid, site.value("theta"), vector(site, list(site["size"])), align_corners=site["align_corners"]
    )
