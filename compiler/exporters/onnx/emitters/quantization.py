"""Quantization."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import exports
from compiler.ir import ElementType, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import quantization


@exports(quantization.Quantize)
def quantize(op: Op, e: Emit) -> None:
    """The quotient's type is ONNX's ``precision``."""
    call = op.call()
    to, precision = op.result.tensor.element, call.get("compute_type")
    stated = isinstance(precision, ElementType) and precision is not call.tensor(1).element
    e.op(
        op,
        "QuantizeLinear",
        axis=call.integer("axis"),
        block_size=call.integer("block") or None,
        output_dtype=None if call.has(2) else DATA_TYPES[to],
        saturate=int(call.flag("saturate")) if to.is_float else None,
        precision=DATA_TYPES[precision] if stated and isinstance(precision, ElementType) else None,
    )


@exports(quantization.Dequantize)
def dequantize(op: Op, e: Emit) -> None:
    """A result type other than the scale's is an attribute."""
    call = op.call()
    to = op.result.tensor.element
    e.op(
        op,
        "DequantizeLinear",
        axis=call.integer("axis"),
        block_size=call.integer("block") or None,
        output_dtype=None if to is call.tensor(1).element else DATA_TYPES[to],
    )
