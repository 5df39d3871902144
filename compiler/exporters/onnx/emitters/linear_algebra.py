"""Determinants and encoded images."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops.image import DecodeImage
from compiler.ops.linear_algebra import Determinant


@exports(Determinant)
def determinant(op: Op, e: Emit) -> None:
    """Determinants."""
    e.op(op, "Det")


@exports(DecodeImage)
def decode_image(op: Op, e: Emit) -> None:
    """Pixels."""
    e.op(op, "ImageDecoder", pixel_format=op.call().text("format"))
