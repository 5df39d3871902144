"""Quantization: linear, dynamic, and operators on quantized tensors."""

from __future__ import annotations

from typing import Any

from compiler.frontends.onnx.converters.common import cast, reshape
from compiler.frontends.onnx.converters.contraction import add_bias, check_kernel
from compiler.frontends.onnx.converters.windows import window_attributes
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import F32, ElementType, Value
from compiler.onnx_types import element_from
from compiler.ops.contraction import MatMul
from compiler.ops.elementwise import Mul
from compiler.ops.integer_contraction import ConvInteger, MatMulInteger
from compiler.ops.quantization import Dequantize, DynamicQuantize, Quantize


def _layout(site: Site) -> dict[str, int]:
    """Axis and block; the first version has neither, and its scales are single numbers."""
    found: dict[str, int] = {}
    axis, block = site.attribute("axis"), site.attribute("block_size")
    dims = site.tensor(0).dims
    if axis is not None and site.tensor(1).dims not in {(), (1,)} and dims is not None:
        found["axis"] = site.axis(axis, len(dims))
    if block:
        found["block"] = block
    return found


def _named_type(site: Site, attribute: str) -> ElementType | None:
    number = site.attribute(attribute)
    return element_from(number, f"attribute '{attribute}' of node '{site.node}'") if number else None


@converts("QuantizeLinear")
def quantize_linear(site: Site) -> Value:
    """The quotient is taken in the type of ``precision``, by default that of the scale."""
    attributes: dict[str, Any] = dict(_layout(site))
    to, precision = _named_type(site, "output_dtype"), _named_type(site, "precision")
    zero = site.optional(2)
    if to is not None and zero is not None and zero.tensor.element is not to:
        site.bad_attribute(
            f"attribute 'output_dtype' is {to} and the zero point {zero.tensor.element}; expected one type"
        )
    if to is not None:
        attributes["to"] = to
    saturate = site.attribute("saturate")
    if saturate is not None:
        attributes["saturate"] = bool(saturate)
    scale = site.input(1)
    if not scale.tensor.element.is_float:
        scale = cast(site, scale, F32)
    attributes["compute_type"] = precision or scale.tensor.element
    return site.b(Quantize, site.input(0), scale, zero, **attributes)


@converts("DequantizeLinear")
def dequantize_linear(site: Site) -> Value:
    """The result has the scale's type, or that of ``output_dtype``."""
    attributes: dict[str, Any] = dict(_layout(site))
    to = _named_type(site, "output_dtype")
    if to is not None:
        attributes["to"] = to
    return site.b(Dequantize, site.input(0), site.input(1), site.optional(2), **attributes)


@converts("DynamicQuantizeLinear")
def dynamic_quantize_linear(site: Site) -> Results:
    """By the operand's own range."""
    return site.b.op(DynamicQuantize, [site.input(0)])


@converts("MatMulInteger")
def matmul_integer(site: Site) -> Value:
    """Exact products of small integers less their zero points."""
    return site.b(MatMulInteger, site.input(0), site.input(1), site.optional(2), site.optional(3))


def _column(site: Site, value: Value, rank: int) -> Value:
    """One number a row: a vector becomes a column."""
    return reshape(site, value, (-1, 1)) if rank > 1 and len(value.tensor.known_dims) == 1 else value


@converts("QLinearMatMul")
def qlinear_matmul(site: Site) -> Value:
    """The product of the real numbers, quantized."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = site.given
    rank = site.rank(a)
    if a.tensor.element.is_float or b.tensor.element.is_float:
        left = site.b(Dequantize, a, a_scale, a_zero, axis=max(rank - 2, 0))
        right = site.b(Dequantize, b, b_scale, b_zero, axis=site.rank(b) - 1)
        real = site.b(MatMul, left, right)
    else:
        product = site.b(MatMulInteger, a, b, a_zero, b_zero)
        scale = site.b(Mul, _column(site, cast(site, a_scale, F32), rank), cast(site, b_scale, F32))
        real = site.b(Mul, cast(site, product, F32), scale)
    axis = max(site.rank(real) - 2, 0)
    return site.b(Quantize, real, cast(site, y_scale, F32), y_zero, axis=axis)


def _convolved(site: Site, x: Value, x_zero: Value | None, w: Value, w_zero: Value | None) -> Value:
    """The exact int32 convolution."""
    check_kernel(site, w.tensor.known_dims[2:])
    if x_zero is not None and x_zero.tensor.dims == (1,):
        x_zero = site.folded(reshape(site, x_zero, ()))
    attributes = window_attributes(site, site.rank(w) - 2)
    return site.b(ConvInteger, x, w, x_zero, w_zero, groups=site.attribute("group"), **attributes)


@converts("ConvInteger")
def conv_integer(site: Site) -> Value:
    """Convolution of small integers less their zero points."""
    return _convolved(site, site.input(0), site.optional(2), site.input(1), site.optional(3))


@converts("QLinearConv")
def qlinear_conv(site: Site) -> Value:
    """The convolution of the real numbers and the bias (in units of both scales), quantized."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = site.given[:8]
    total = add_bias(site, _convolved(site, x, x_zero, w, w_zero), site.optional(8))
    scale = site.b(Mul, x_scale, w_scale)
    if scale.tensor.rank == 1:
        scale = reshape(site, scale, (-1, *[1] * (site.rank(w) - 2)))
    return site.b(Quantize, site.b(Mul, cast(site, total, F32), scale), y_scale, y_zero)
