"""Resampling: Resize and Upsample."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from compiler.frontends.onnx.converters.common import as_int64
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Value
from compiler.ops.resize import Resize

_OLD_MODES: Final = {"nearest": "nearest", "linear": "linear", "bilinear": "linear"}


def _old_mode(site: Site) -> str:
    mode = site.attribute("mode")
    if mode not in _OLD_MODES:
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected nearest or linear")
    return _OLD_MODES[mode]


def _old(site: Site, x: Value, scales: Value, nearest_mode: str) -> Value:
    """The only coordinates before version 11: place / scale."""
    mode = _old_mode(site)
    return site.b(Resize, x, None, scales, None, mode=mode, coordinates="asymmetric", nearest_mode=nearest_mode)


@converts("Upsample", until=6)
def upsample_image(site: Site) -> Value:
    """Two scales are attributes."""
    scales = np.array([1, 1, site.attribute("height_scale"), site.attribute("width_scale")], np.float32)
    return _old(site, site.input(0), site.b.constant(scales), "floor")


@converts("Upsample", since=7, until=8)
def upsample_by_attribute(site: Site) -> Value:
    """A scale a dim, as an attribute."""
    scales = site.b.constant(np.array(site.attribute("scales"), np.float32))
    return _old(site, site.input(0), scales, "floor")


@converts("Upsample", since=9, until=9)
def upsample(site: Site) -> Value:
    """A scale a dim, as an input."""
    return _old(site, site.input(0), site.folded(site.input(1)), "floor")


@converts("Resize", until=10)
def resize_by_scales(site: Site) -> Value:
    """Nearest places are rounded down where a dim grows, up where it shrinks.

    The text is silent on the rounding; that is what onnxruntime does and what the example of the text shows.
    """
    x = site.input(0)
    if _old_mode(site) != "nearest":
        return _old(site, x, site.folded(site.input(1)), "floor")
    scales = site.needed(1).astype(np.float32)
    for rounding, shrinks in (("floor", False), ("ceil", True)):
        own = np.where((scales < 1) == shrinks, scales, np.float32(1))
        if (own != 1).any():
            x = _old(site, x, site.b.constant(own), rounding)
    return x


@converts("Resize", since=11)
def resize(site: Site) -> Value:
    """Scales or sizes, for chosen axes since version 18; an empty input counts as omitted."""
    x = site.input(0)
    attributes: dict[str, Any] = {
        "mode": site.attribute("mode"),
        "coordinates": site.attribute("coordinate_transformation_mode"),
        "nearest_mode": site.attribute("nearest_mode"),
        "cubic_coefficient": site.attribute("cubic_coeff_a"),
        "exclude_outside": bool(site.attribute("exclude_outside")),
        "extrapolation_value": site.attribute("extrapolation_value"),
        "antialias": bool(site.attribute("antialias")),
        "policy": site.attribute("keep_aspect_ratio_policy") or "stretch",
    }
    axes = site.attribute("axes")
    if axes:
        attributes["axes"] = site.axes(axes, site.rank(x))
    roi = _given(site, 1) if attributes["coordinates"] == "tf_crop_and_resize" else None
    scales, sizes = _given(site, 2), _given(site, 3)
    if (scales is None) == (sizes is None):
        site.invalid("expected exactly one of 'scales' and 'sizes'")
    return site.b(Resize, x, roi, scales, None if sizes is None else as_int64(site, sizes), **attributes)


def _given(site: Site, index: int) -> Value | None:
    value = site.optional(index)
    if value is None or value.tensor.dims == (0,):
        return None
    return site.folded(value)
