"""Resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports, rewrites
from compiler.ir import Op, Value
from compiler.ops.compose import Emit as Compose
from compiler.ops.resize import Resize
from compiler.ops.shapes import normalize_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder


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


@rewrites(Resize)
def resize_all_dims(op: Op, builder: Builder) -> Sequence[Value]:
    """Scales of 1, or the sizes as they are, for the dims that stay."""
    call, emit = op.call(), Compose(builder)
    x, roi, scales, sizes = [*op.operands, None, None, None][:4]
    if x is None or not call.integers("axes") or call.text("policy") != "stretch" or _counts(roi):
        raise NoForm("Resize has no attribute 'axes'")
    rank = x.tensor.rank
    axes = emit.integers(normalize_axes(op.name, call.integers("axes"), rank))
    if _counts(sizes):
        scales, sizes = None, _placed(emit, emit("shape_of", x), axes, sizes)
    else:
        scales, sizes = _placed(emit, emit.constant(np.ones(rank, np.float32)), axes, scales), None
    attributes: dict[str, Any] = {**op.attributes, "axes": ()}
    return builder.op(op.definition, [x, None, scales, sizes], **attributes).results


def _counts(value: Value | None) -> bool:
    """Whether an operand is given; an empty one counts as omitted."""
    return value is not None and value.tensor.dims != (0,)


def _placed(emit: Compose, whole: Value, axes: Value, chosen: Value | None) -> Value:
    return emit("scatter_elements", whole, axes, chosen, axis=0, reduction="none")
