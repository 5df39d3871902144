"""Resizing and sampling of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.frontends.torch.converters.common import cast, rank_of, vector
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.grid_sample import AffineGrid, GridSample
from compiler.ops.resize import Resize

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter

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
    if exact:
        return lambda site: _resized(site, mode="nearest", coordinates="half_pixel", nearest_mode="round_prefer_ceil")
    return lambda site: _resized(site, mode="nearest", coordinates="asymmetric", nearest_mode="floor")


for _dims in (1, 2, 3):
    for _prefix, _exact in (("upsample_nearest", False), ("_upsample_nearest_exact", True)):
        converts(f"{_prefix}{_dims}d.vec", f"{_prefix}{_dims}d")(_nearest(exact=_exact))


def _smooth(mode: str, *, antialias: bool = False) -> Converter:
    def convert(site: Site) -> Value:
        coordinates = "align_corners" if site["align_corners"] else "half_pixel"
        attributes: dict[str, Any] = {"mode": mode, "coordinates": coordinates}
        if mode == "cubic":
            attributes["cubic_coefficient"] = -0.5 if antialias else -0.75
        if antialias:
            attributes |= {"antialias": True, "exclude_outside": True}
        return _resized(site, **attributes)

    return convert


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
