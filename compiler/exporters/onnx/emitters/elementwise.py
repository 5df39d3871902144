"""Elementwise operators that ONNX has in parts, or with other operands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports, rewrites
from compiler.ir import I8, I16, I32, I64, U8, U16, U32, U64, ElementType, Op, Value
from compiler.onnx_types import DATA_TYPES
from compiler.ops import compare, convert, elementwise, logic
from compiler.ops.compose import Emit as Compose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder


_UNSIGNED: Final = {I8: U8, I16: U16, I32: U32, I64: U64}


@exports(elementwise.Mod)
def mod(op: Op, e: Emit) -> None:
    """The divisor's sign."""
    e.op(op, "Mod", fmod=0)


@exports(elementwise.Rem)
def rem(op: Op, e: Emit) -> None:
    """The dividend's sign."""
    e.op(op, "Mod", fmod=1)


@exports(elementwise.Rsqrt)
def rsqrt(op: Op, e: Emit) -> None:
    """1 / root."""
    e.op(op, "Reciprocal", e.new("Sqrt", *e.inputs(op)))


@exports(elementwise.Trunc)
def trunc(op: Op, e: Emit) -> None:
    """Up below zero, down above it; -0.0 and NaN stay."""
    (x,) = e.inputs(op)
    negative = e.new("Less", x, e.scalar(0, op.result.tensor.element))
    e.op(op, "Where", negative, e.new("Ceil", x), e.new("Floor", x))


@exports(elementwise.Log1p)
def log1p(op: Op, e: Emit) -> None:
    """W. Kahan's form: x * log(u) / (u - 1) for u = 1 + x as rounded, x itself where u is 1."""
    (x,), element = e.inputs(op), op.result.tensor.element
    one = e.scalar(1, element)
    u = e.new("Add", x, one)
    log = e.new("Log", u)
    scaled = e.new("Mul", x, e.new("Div", log, e.new("Sub", u, one)))
    # Far from 0 the plain logarithm is exact enough, and has no infinity over infinity.
    near = e.new("Less", e.new("Abs", x), e.scalar(0.5, element))
    e.op(op, "Where", e.new("Equal", u, one), x, e.new("Where", near, scaled, log))


@exports(elementwise.Expm1)
def expm1(op: Op, e: Emit) -> None:
    """W. Kahan's form: x * (u - 1) / log(u) for u = e^x as rounded, x itself where u is 1."""
    (x,), element = e.inputs(op), op.result.tensor.element
    one = e.scalar(1, element)
    u = e.new("Exp", x)
    less = e.new("Sub", u, one)
    scaled = e.new("Mul", x, e.new("Div", less, e.new("Log", u)))
    near = e.new("Less", e.new("Abs", x), e.scalar(0.5, element))
    e.op(op, "Where", e.new("Equal", u, one), x, e.new("Where", near, scaled, less))


@rewrites(elementwise.Atan2)
def atan2(op: Op, builder: Builder) -> Sequence[Value]:
    """The angle of (|x|, |y|), turned into the quadrant by the signs, those of zeros included (C99, F.9.1.4)."""
    emit = Compose(builder)
    y, x = op.operand(0), op.operand(1)
    high, wide = emit("abs", y), emit("abs", x)
    ratio = emit("div", high, wide)
    ratio = emit("select", emit("and", emit("eq", high, 0.0), emit("eq", wide, 0.0)), 0.0, ratio)
    ratio = emit("select", emit("and", emit("isinf", high), emit("isinf", wide)), 1.0, ratio)
    angle = emit("atan", ratio)
    angle = emit("select", _is_negative(emit, x), emit("sub", math.pi, angle), angle)
    # A factor, because onnxruntime's Where loses the sign of a zero.
    sign = emit("select", _is_negative(emit, y), *(emit.scalar(value, y.tensor.element) for value in (-1, 1)))
    return [emit("mul", angle, sign)]


def _is_negative(emit: Compose, x: Value) -> Value:
    """Whether the sign is set: x < 0, or -0.0, of which 1 / x tells."""
    zero = emit("and", emit("eq", x, 0.0), emit("lt", emit("reciprocal", x), 0.0))
    return emit("or", emit("lt", x, 0.0), zero)


@exports(elementwise.Clamp)
def clamp(op: Op, e: Emit) -> None:
    """Clip takes scalar bounds; others become Max and Min."""
    x, *bounds = [*e.inputs(op), "", ""][:3]
    scalars = all(operand is None or operand.tensor.dims == () for operand in op.operands[1:])
    if scalars:
        e.op(op, "Clip", x, *bounds)
        return
    for operator, bound in zip(("Max", "Min"), bounds, strict=True):
        x = e.new(operator, x, bound) if bound else x
    e.op(op, "Identity", x)


@exports(compare.Ne)
def ne(op: Op, e: Emit) -> None:
    """Not equal."""
    e.op(op, "Not", e.new("Equal", *e.inputs(op)))


@rewrites(compare.IsFinite)
def is_finite(op: Op, builder: Builder) -> Sequence[Value]:
    """Neither infinite nor NaN."""
    emit = Compose(builder)
    x = op.operand(0)
    return [emit("not", emit("or", emit("isinf", x), emit("isnan", x)))]


@exports(logic.ShiftLeft)
def shift_left(op: Op, e: Emit) -> None:
    """To higher bits."""
    e.op(op, "BitShift", direction="LEFT")


@exports(logic.ShiftRight)
def shift_right(op: Op, e: Emit) -> None:
    """To lower bits."""
    e.op(op, "BitShift", direction="RIGHT")


@rewrites(logic.ShiftLeft)
def shift_left_signed(op: Op, builder: Builder) -> Sequence[Value]:
    """The same bits of the unsigned type."""
    emit = Compose(builder)
    element = op.result.tensor.element
    unsigned = _unsigned(element)
    shifted = emit("shift_left", emit.cast(op.operand(0), unsigned), emit.cast(op.operand(1), unsigned))
    return [emit.cast(shifted, element)]


@rewrites(logic.ShiftRight)
def shift_right_signed(op: Op, builder: Builder) -> Sequence[Value]:
    """Of a negative number what is left of its complement, complemented: -1 - x."""
    emit = Compose(builder)
    element = op.result.tensor.element
    unsigned, x = _unsigned(element), op.operand(0)
    negative = emit("lt", x, 0)
    kept = emit("select", negative, emit("sub", -1, x), x)
    shifted = emit("shift_right", emit.cast(kept, unsigned), emit.cast(op.operand(1), unsigned))
    found = emit.cast(shifted, element)
    return [emit("select", negative, emit("sub", -1, found), found)]


def _unsigned(element: ElementType) -> ElementType:
    found = _UNSIGNED.get(element)
    if found is None:
        raise NoForm("it is unsigned already")
    return found


@rewrites(logic.BitNot)
def bit_not(op: Op, builder: Builder) -> Sequence[Value]:
    """The greatest number less x, or -1 - x: neither borrows."""
    emit, x = Compose(builder), op.operand(0)
    element = x.tensor.element
    return [emit("sub", -1 if element in _UNSIGNED else 2**element.bits - 1, x)]


@exports(convert.Cast)
def cast(op: Op, e: Emit) -> None:
    """``saturate`` is ONNX's own default, so that it is written where it is off."""
    call = op.call()
    to, mode = call.element("to"), call.text("round_mode")
    e.op(
        op,
        "Cast",
        to=DATA_TYPES[to],
        saturate=int(call.flag("saturate")) if to.is_float and to.bits == 8 else None,
        round_mode=None if mode == "nearest" else mode,
    )
