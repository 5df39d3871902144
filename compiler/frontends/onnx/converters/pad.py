"""Padding: widths are an attribute at first, an input later, for chosen axes since version 18."""

from __future__ import annotations

from compiler.frontends.onnx.converters.common import as_int64, reshape, squeeze
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Value
from compiler.ops.padding import Pad

_MODES = ("constant", "reflect", "edge", "wrap")


def _padded(site: Site, pads: Value, fill: Value | None, axes: Value | None = None) -> Value:
    mode = site.attribute("mode")
    if mode not in _MODES or (mode == "wrap" and site.version < 19):
        site.bad_attribute(
            f"attribute 'mode' is '{mode}'; expected constant, reflect or edge (or wrap since version 19)"
        )
    return site.b(Pad, site.input(0), pads, fill, axes, mode=mode)


@converts("Pad", until=10)
def pad_by_attributes(site: Site) -> Value:
    """Widths and the fill value are attributes; the first version spells the widths 'paddings'."""
    widths = site.attribute("paddings" if site.version < 2 else "pads")
    rank = site.rank(site.input(0))
    if len(widths) != 2 * rank:
        site.bad_shape(f"{len(widths)} pads for rank {rank}; expected {2 * rank}")
    return _padded(site, site.integers(*widths), site.scalar_like(site.attribute("value"), site.input(0)))


@converts("Pad", since=11)
def pad(site: Site) -> Value:
    """Widths, the fill value and, since version 18, the axes are inputs."""
    pads = as_int64(site, site.input(1))
    if pads.tensor.dims is not None and len(pads.tensor.dims) == 2:
        pads = reshape(site, pads, (-1,))
    fill = site.optional(2)
    if fill is not None and fill.tensor.dims != ():
        fill = squeeze(site, fill, (0,)) if fill.tensor.dims == (1,) else fill
    axes = as_int64(site, site.input(3)) if site.has(3) else None
    return _padded(site, pads, fill, axes)
