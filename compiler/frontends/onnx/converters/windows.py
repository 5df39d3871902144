"""Attributes of sliding windows, which convolution and pooling share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Site

_AUTO_PAD: Final = {"NOTSET": "explicit", "VALID": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}


def auto_pad(site: Site) -> str:
    """The IR's name of the rule; VALID is explicit padding of 0. Raises InvalidModel for another one."""
    rule = site.attribute("auto_pad") or "NOTSET"
    if rule not in _AUTO_PAD:
        site.bad_attribute(f"attribute 'auto_pad' is '{rule}'; expected one of {', '.join(_AUTO_PAD)}")
    return _AUTO_PAD[rule]


def per_dim(site: Site, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute with one entry a spatial dim (two for pads). Raises InvalidModel for another number."""
    found = site.attribute(name)
    if not found:
        return (default,) * count
    if len(found) != count:
        site.bad_attribute(f"attribute '{name}' has {len(found)} entries; expected {count}")
    return tuple(found)


def window_attributes(site: Site, spatial: int) -> dict[str, Any]:
    """Strides, dilations, pads and the rule of automatic padding, as the IR's window operators take them."""
    rule = auto_pad(site)
    explicit = (site.attribute("auto_pad") or "NOTSET") == "NOTSET"
    pads = per_dim(site, "pads", 2 * spatial, 0) if explicit else (0,) * (2 * spatial)
    return {
        "strides": per_dim(site, "strides", spatial, 1),
        "dilations": per_dim(site, "dilations", spatial, 1),
        "pads": pads,
        "auto_pad": rule,
    }


def pool_attributes(site: Site) -> dict[str, Any]:
    """Those and the kernel, and the rounding of the number of windows."""
    kernel = site.attribute("kernel_shape")
    if not kernel:
        site.bad_attribute("attribute 'kernel_shape' is missing")
    attributes = window_attributes(site, len(kernel))
    return {**attributes, "kernel": tuple(kernel), "ceil_mode": bool(site.attribute("ceil_mode"))}
