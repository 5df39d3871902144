"""Resampling."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops.resize import Resize


@exports(Resize)
def resize(op: Op, e: Emit) -> None:
    """Scales or sizes along chosen axes."""
    call = op.call()
    e.op(
        op,
        "Resize",
        mode=call.text("mode"),
        coordinate_transformation_mode=call.text("coordinates"),
        nearest_mode=call.text("nearest_mode"),
        cubic_coeff_a=call.number("cubic_coefficient"),
        antialias=int(call.flag("antialias")) or None,
        exclude_outside=int(call.flag("exclude_outside")) or None,
        extrapolation_value=call.number("extrapolation_value") or None,
        axes=call.integers("axes") or None,
        keep_aspect_ratio_policy=None if call.text("policy") == "stretch" else call.text("policy"),
    )
