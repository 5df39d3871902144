"""Samples of images at points and in regions of interest."""

from __future__ import annotations

from typing import Final

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports
from compiler.ir import Op
from compiler.ops import deform_conv, grid_sample, roi
from compiler.ops.compose import known_sizes, padded
from compiler.ops.windows import WindowPlan

_PLANE_MODES: Final = {"linear": "bilinear", "cubic": "bicubic"}


@exports(grid_sample.GridSample)
def emit_grid_sample(op: Op, e: Emit) -> None:
    """Elements at the points of a grid; operator sets below 20 have other names for two of the modes."""
    call = op.call()
    mode = call.text("mode")
    e.op(
        op,
        "GridSample",
        mode=mode if e.model.opset >= 20 else _PLANE_MODES.get(mode, mode),
        padding_mode=call.text("padding"),
        align_corners=int(call.flag("align_corners")),
    )


@exports(roi.RoiAlign)
def roi_align(op: Op, e: Emit) -> None:
    """Interpolated samples of regions; below operator set 16 they always count from the edge."""
    call = op.call()
    half = "half_pixel" if call.flag("half_pixel") else "output_half_pixel"
    if e.model.opset < 16 and call.flag("half_pixel"):
        raise NoForm("RoiAlign's regions count from the edge of the first element")
    e.op(
        op,
        "RoiAlign",
        output_height=call.integer("height"),
        output_width=call.integer("width"),
        spatial_scale=call.number("spatial_scale"),
        mode=call.text("mode"),
        sampling_ratio=call.integer("sampling_ratio"),
        coordinate_transformation_mode=half if e.model.opset >= 16 else None,
    )


@exports(roi.MaxRoiPool)
def max_roi_pool(op: Op, e: Emit) -> None:
    """Maxima in the bins of regions."""
    call = op.call()
    shape = [call.integer("height"), call.integer("width")]
    e.op(op, "MaxRoiPool", pooled_shape=shape, spatial_scale=call.number("spatial_scale"))


@exports(deform_conv.DeformConv)
def emit_deform_conv(op: Op, e: Emit) -> None:
    """A convolution whose taps are moved, without a bias; the operator has no automatic padding."""
    call = op.call()
    kernel, spatial = call.shape(1)[2:], range(2, call.tensor(0).rank)
    windows = WindowPlan.of(op.name, call, kernel).windows(known_sizes(call.tensor(0), spatial))
    x, w, offset, mask = (e.name(value) for value in padded(op.operands, 4))
    e.op(
        op,
        "DeformConv",
        *[x, w, offset, "", mask] if mask else [x, w, offset],
        group=call.integer("groups"),
        offset_group=call.integer("offset_groups"),
        strides=[window.stride for window in windows],
        dilations=[window.dilation for window in windows],
        pads=[*(window.low for window in windows), *(window.high for window in windows)],
    )
