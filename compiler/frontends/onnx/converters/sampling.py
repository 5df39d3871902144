"""Samples of images at given points and in given regions."""

from __future__ import annotations

from typing import Final

from compiler.frontends.onnx.converters.common import as_int64
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Value
from compiler.ops.grid_sample import AffineGrid, GridSample
from compiler.ops.roi import MaxRoiPool, RoiAlign

_MODES: Final = {
    "nearest": "nearest",
    "bilinear": "linear",
    "linear": "linear",
    "bicubic": "cubic",
    "cubic": "cubic",
}
"""Version 16 spells two modes for images, which 20 renames."""


@converts("GridSample")
def grid_sample(site: Site) -> Value:
    """Elements at the points of a grid."""
    mode, padding = site.attribute("mode"), site.attribute("padding_mode")
    if mode not in _MODES or padding not in {"zeros", "border", "reflection"}:
        site.bad_attribute(f"attributes 'mode' and 'padding_mode' are '{mode}' and '{padding}'; expected known ones")
    align = bool(site.attribute("align_corners"))
    return site.b(GridSample, site.input(0), site.input(1), mode=_MODES[mode], padding=padding, align_corners=align)


@converts("AffineGrid")
def affine_grid(site: Site) -> Value:
    """The points that affine maps make of a regular grid."""
    align = bool(site.attribute("align_corners"))
    return site.b(AffineGrid, site.input(0), as_int64(site, site.input(1)), align_corners=align)


@converts("RoiAlign")
def roi_align(site: Site) -> Value:
    """Interpolated samples of regions, whose coordinates are not shifted before version 16."""
    return site.b(
        RoiAlign,
        *site.given,
        height=site.attribute("output_height"),
        width=site.attribute("output_width"),
        spatial_scale=site.attribute("spatial_scale"),
        mode=site.attribute("mode"),
        sampling_ratio=site.attribute("sampling_ratio"),
        half_pixel=site.attribute("coordinate_transformation_mode") == "half_pixel",
    )


@converts("MaxRoiPool")
def max_roi_pool(site: Site) -> Value:
    """Maxima in the bins of regions."""
    height, width = site.attribute("pooled_shape")
    scale = site.attribute("spatial_scale")
    return site.b(MaxRoiPool, *site.given, height=height, width=width, spatial_scale=scale)
