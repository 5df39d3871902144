"""Object detection."""

from __future__ import annotations

from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Value
from compiler.ops.detection import NonMaxSuppression


@converts("NonMaxSuppression")
def non_max_suppression(site: Site) -> Value:
    """The best boxes that do not overlap."""
    return site.b(NonMaxSuppression, *site.inputs, center=bool(site.attribute("center_point_box")))
