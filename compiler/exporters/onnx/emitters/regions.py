"""Samples of images at points and in regions of interest."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops import detection, grid_sample, roi


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
