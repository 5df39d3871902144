"""Samples of images at points and in regions of interest."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops import deform_conv, detection, grid_sample, roi
from compiler.ops.compose import known_sizes, padded
from compiler.ops.windows import WindowPlan


@exports(grid_sample.GridSample)
def emit_grid_sample(op: Op, e: Emit) -> None:
    """Elements at the points of a grid."""
    call = op.call()
    e.op(
        op,
        "GridSample",
        mode=call.text("mode"),
        padding_mode=call.text("padding"),
        align_corners=int(call.flag("align_corners")),
    )


@exports(grid_sample.AffineGrid)
def affine_grid(op: Op, e: Emit) -> None:
    """The points that affine maps make of a regular grid."""
    e.op(op, "AffineGrid", align_corners=int(op.call().flag("align_corners")))


@exports(roi.RoiAlign)
def roi_align(op: Op, e: Emit) -> None:
    """Interpolated samples of regions."""
    call = op.call()
    e.op(
        op,
        "RoiAlign",
        output_height=call.integer("height"),
        output_width=call.integer("width"),
        spatial_scale=call.number("spatial_scale"),
        mode=call.text("mode"),
        sampling_ratio=call.integer("sampling_ratio"),
        coordinate_transformation_mode="half_pixel" if call.flag("half_pixel") else "output_half_pixel",
    )


@exports(roi.MaxRoiPool)
def max_roi_pool(op: Op, e: Emit) -> None:
    """Maxima in the bins of regions."""
    call = op.call()
    shape = [call.integer("height"), call.integer("width")]
    e.op(op, "MaxRoiPool", pooled_shape=shape, spatial_scale=call.number("spatial_scale"))


@exports(detection.NonMaxSuppression)
def non_max_suppression(op: Op, e: Emit) -> None:
    """Boxes without much overlap."""
    e.op(op, "NonMaxSuppression", center_point_box=int(op.call().flag("center")))


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
