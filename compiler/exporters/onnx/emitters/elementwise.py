"""Elementwise operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Definition, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import activation, compare, convert, elementwise, logic

if TYPE_CHECKING:
    from compiler.exporters.onnx.emit import Emitter

_SAME: Final[dict[type[Definition], str]] = {
    activation.HardSwish: "HardSwish",
    activation.Mish: "Mish",
    activation.PRelu: "PRelu",
    activation.Relu: "Relu",
    activation.Softplus: "Softplus",
    activation.Softsign: "Softsign",
    compare.Eq: "Equal",
    compare.Ge: "GreaterOrEqual",
    compare.Gt: "Greater",
    compare.IsNan: "IsNaN",
    compare.Le: "LessOrEqual",
    compare.Lt: "Less",
    compare.Select: "Where",
    elementwise.Abs: "Abs",
    elementwise.Acos: "Acos",
    elementwise.Acosh: "Acosh",
    elementwise.Add: "Add",
    elementwise.Asin: "Asin",
    elementwise.Asinh: "Asinh",
    elementwise.Atan: "Atan",
    elementwise.Atanh: "Atanh",
    elementwise.Ceil: "Ceil",
    elementwise.Cos: "Cos",
    elementwise.Cosh: "Cosh",
    elementwise.Div: "Div",
    elementwise.Erf: "Erf",
    elementwise.Exp: "Exp",
    elementwise.Floor: "Floor",
    elementwise.Log: "Log",
    elementwise.Logistic: "Sigmoid",
    elementwise.Max: "Max",
    elementwise.Min: "Min",
    elementwise.Mul: "Mul",
    elementwise.Neg: "Neg",
    elementwise.Pow: "Pow",
    elementwise.Reciprocal: "Reciprocal",
    elementwise.Round: "Round",
    elementwise.Sign: "Sign",
    elementwise.Sin: "Sin",
    elementwise.Sinh: "Sinh",
    elementwise.Sqrt: "Sqrt",
    elementwise.Sub: "Sub",
    elementwise.Tan: "Tan",
    elementwise.Tanh: "Tanh",
    logic.And: "And",
    logic.BitAnd: "BitwiseAnd",
    logic.BitNot: "BitwiseNot",
    logic.BitOr: "BitwiseOr",
    logic.BitXor: "BitwiseXor",
    logic.Not: "Not",
    logic.Or: "Or",
    logic.Xor: "Xor",
}
"""Operators that ONNX has with the same operands and without attributes."""


def _same(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        e.op(op, operator)

    return emit


for _definition, _operator in _SAME.items():
    exports(_definition)(_same(_operator))

_WITH_NUMBERS: Final[dict[type[Definition], tuple[str, tuple[str, ...]]]] = {
    activation.Celu: ("Celu", ("alpha",)),
    activation.Elu: ("Elu", ("alpha",)),
    activation.HardSigmoid: ("HardSigmoid", ("alpha", "beta")),
    activation.LeakyRelu: ("LeakyRelu", ("alpha",)),
    activation.Selu: ("Selu", ("alpha", "gamma")),
    activation.Shrink: ("Shrink", ("lambd", "bias")),
    activation.ThresholdedRelu: ("ThresholdedRelu", ("alpha",)),
}


def _with_numbers(operator: str, names: tuple[str, ...]) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        call = op.call()
        e.op(op, operator, **{name: call.number(name) for name in names})

    return emit


for _definition, (_operator, _names) in _WITH_NUMBERS.items():
    exports(_definition)(_with_numbers(_operator, _names))


@exports(activation.Gelu)
def gelu(op: Op, e: Emit) -> None:
    """Exact or by tanh."""
    e.op(op, "Gelu", approximate=op.call().text("approximate"))


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


@exports(compare.IsInf)
def is_inf(op: Op, e: Emit) -> None:
    """With the signs that count."""
    call = op.call()
    e.op(
        op,
        "IsInf",
        detect_negative=int(call.flag("detect_negative")),
        detect_positive=int(call.flag("detect_positive")),
    )


@exports(compare.IsFinite)
def is_finite(op: Op, e: Emit) -> None:
    """Neither infinite nor NaN."""
    (x,) = e.inputs(op)
    e.op(op, "Not", e.new("Or", e.new("IsInf", x), e.new("IsNaN", x)))


@exports(logic.ShiftLeft)
def shift_left(op: Op, e: Emit) -> None:
    """To higher bits."""
    e.op(op, "BitShift", direction="LEFT")


@exports(logic.ShiftRight)
def shift_right(op: Op, e: Emit) -> None:
    """To lower bits."""
    e.op(op, "BitShift", direction="RIGHT")


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


@exports(convert.BitCast)
def bit_cast(op: Op, e: Emit) -> None:
    """The same bits."""
    e.op(op, "BitCast", to=DATA_TYPES[op.call().element("to")])
