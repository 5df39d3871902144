"""Activation functions: composites of one operand (PRelu: of two), elementwise, any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.ir import Call, Kind, Type, Value
from compiler.ops.compose import COMPUTE_TYPE, Emit, Pointwise, Rounded
from compiler.ops.registry import FLOAT, NUMBER, REAL, Attribute, Operand, Variable, choice, register
from compiler.ops.scalars import apply_scalar
from compiler.ops.shapes import broadcast_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_F = Variable("T", FLOAT)
_R = Variable("T", REAL)
_X: Final = (Operand("x", _F),)

SELU_ALPHA: Final = 1.67326319217681884765625
SELU_GAMMA: Final = 1.05070102214813232421875
_SQRT_HALF: Final = 0.7071067811865476
_SQRT_2_OVER_PI: Final = 0.7978845608028654


def _number(name: str, default: float, doc: str) -> Attribute:
    return Attribute(name, NUMBER, default, doc)


def _logistic(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow: e^-|x| is at most 1."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), x.dtype)


def softplus(emit: Emit, x: Value) -> Value:
    """max(x, 0) + log1p(e^-|x|), which neither overflows nor cancels."""
    tail = emit("log1p", emit("exp", emit("neg", emit("abs", x))))
    return emit("add", emit("max", x, 0.0), tail)


@register
class Relu(Pointwise):
    """max(x, 0); NaN stays NaN."""

    name: ClassVar[str] = "relu"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _R),)
    idempotent: ClassVar[bool] = True

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        return emit("max", x, 0)

    def values(self, call: Call, x: Array) -> Array:
        del call
        return np.asarray(np.maximum(x, np.asarray(0, x.dtype)))


@register
class LeakyRelu(Pointwise):
    """x for x >= 0, else alpha * x. Source: ONNX LeakyRelu."""

    name: ClassVar[str] = "leaky_relu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_number("alpha", 0.01, "slope below 0"), COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        return emit("select", emit("lt", x, 0.0), emit("mul", x, call.number("alpha")), x)

    def values(self, call: Call, x: Array) -> Array:
        return np.where(x < 0, x * np.asarray(call.number("alpha"), x.dtype), x)


@register
class PRelu(Rounded):
    """x for x >= 0, else slope * x, slope broadcast to x's shape. Source: ONNX PRelu."""

    name: ClassVar[str] = "prelu"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _R), Operand("slope", _R))

    def infer(self, call: Call) -> tuple[Type, ...]:
        x = call.tensor(0)
        return (x.with_dims(broadcast_dims("prelu", [x, call.tensor(1)])).with_element(x.element),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        del call
        x, slope = operands
        assert x is not None
        assert slope is not None
        return (emit("select", emit("lt", x, 0), emit("mul", x, slope), x),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        del call
        x, slope = operands
        return (np.where(x < 0, x * slope, x),)


@register
class Elu(Pointwise):
    """x for x >= 0, else alpha * (e^x - 1)."""

    name: ClassVar[str] = "elu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_number("alpha", 1.0, "minus the limit at -inf"), COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        return emit("select", emit("lt", x, 0.0), emit("mul", emit("expm1", x), call.number("alpha")), x)

    def values(self, call: Call, x: Array) -> Array:
        return np.where(x < 0, np.expm1(x) * np.asarray(call.number("alpha"), x.dtype), x)


@register
class Selu(Pointwise):
    """gamma * x for x > 0, else gamma * alpha * (e^x - 1). Defaults: ONNX Selu's."""

    name: ClassVar[str] = "selu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _number("alpha", SELU_ALPHA, "minus the limit at -inf, over gamma"),
        _number("gamma", SELU_GAMMA, "slope above 0"),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        low = emit("mul", emit("expm1", x), call.number("alpha"))
        return emit("mul", emit("select", emit("lt", x, 0.0), low, x), call.number("gamma"))

    def values(self, call: Call, x: Array) -> Array:
        alpha, gamma = (np.asarray(call.number(name), x.dtype) for name in ("alpha", "gamma"))
        return np.asarray(gamma * np.where(x < 0, alpha * np.expm1(x), x))


@register
class Celu(Pointwise):
    """max(0, x) + min(0, alpha * (e^(x / alpha) - 1)). Source: ONNX Celu."""

    name: ClassVar[str] = "celu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_number("alpha", 1.0, "scale of the exponential part"), COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        alpha = call.number("alpha")
        low = emit("min", emit("mul", emit("expm1", emit("div", x, alpha)), alpha), 0.0)
        return emit("add", emit("max", x, 0.0), low)

    def values(self, call: Call, x: Array) -> Array:
        alpha = np.asarray(call.number("alpha"), x.dtype)
        zero = np.asarray(0, x.dtype)
        return np.asarray(np.maximum(x, zero) + np.minimum(alpha * np.expm1(x / alpha), zero))


@register
class ThresholdedRelu(Pointwise):
    """x for x > alpha, else 0 (also for NaN). Source: ONNX ThresholdedRelu."""

    name: ClassVar[str] = "thresholded_relu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_number("alpha", 1.0, "threshold"), COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        return emit("select", emit("gt", x, call.number("alpha")), x, 0.0)

    def values(self, call: Call, x: Array) -> Array:
        return np.where(x > np.asarray(call.number("alpha"), x.dtype), x, np.asarray(0, x.dtype))


@register
class HardSigmoid(Pointwise):
    """max(0, min(1, alpha * x + beta)). Source: ONNX HardSigmoid."""

    name: ClassVar[str] = "hard_sigmoid"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _number("alpha", 0.2, "slope"),
        _number("beta", 0.5, "value at 0"),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        line = emit("add", emit("mul", x, call.number("alpha")), call.number("beta"))
        return emit("max", emit("min", line, 1.0), 0.0)

    def values(self, call: Call, x: Array) -> Array:
        alpha, beta = (np.asarray(call.number(name), x.dtype) for name in ("alpha", "beta"))
        return np.asarray(np.clip(alpha * x + beta, 0, 1).astype(x.dtype))


@register
class HardSwish(Pointwise):
    """x * max(0, min(1, x / 6 + 1 / 2)). Source: ONNX HardSwish."""

    name: ClassVar[str] = "hard_swish"
    operands: ClassVar[tuple[Operand, ...]] = _X

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        line = emit("add", emit("mul", x, 1 / 6), 0.5)
        return emit("mul", x, emit("max", emit("min", line, 1.0), 0.0))

    def values(self, call: Call, x: Array) -> Array:
        del call
        return np.asarray(x * np.clip(x * np.asarray(1 / 6, x.dtype) + np.asarray(0.5, x.dtype), 0, 1).astype(x.dtype))


@register
class Softplus(Pointwise):
    """log(1 + e^x), computed as max(x, 0) + log1p(e^-|x|)."""

    name: ClassVar[str] = "softplus"
    operands: ClassVar[tuple[Operand, ...]] = _X

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        return softplus(emit, x)

    def values(self, call: Call, x: Array) -> Array:
        del call
        return _softplus(x)


@register
class Softsign(Pointwise):
    """x / (1 + |x|)."""

    name: ClassVar[str] = "softsign"
    operands: ClassVar[tuple[Operand, ...]] = _X

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        return emit("div", x, emit("add", emit("abs", x), 1.0))

    def values(self, call: Call, x: Array) -> Array:
        del call
        return np.asarray(x / (np.asarray(1, x.dtype) + np.abs(x)))


@register
class Mish(Pointwise):
    """x * tanh(softplus(x))."""

    name: ClassVar[str] = "mish"
    operands: ClassVar[tuple[Operand, ...]] = _X

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        return emit("mul", x, emit("tanh", softplus(emit, x)))

    def values(self, call: Call, x: Array) -> Array:
        del call
        return x * np.tanh(_softplus(x))


@register
class Gelu(Pointwise):
    """x * Phi(x), Phi the normal distribution: by erf, or approximately by tanh. Source: ONNX Gelu."""

    name: ClassVar[str] = "gelu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("approximate", choice("none", "tanh"), "none", "how Phi is computed"),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        if call.text("approximate") == "none":
            inner = emit("erf", emit("mul", x, _SQRT_HALF))
        else:
            cube = emit("mul", emit("mul", emit("mul", x, x), x), 0.044715)
            inner = emit("tanh", emit("mul", emit("add", x, cube), _SQRT_2_OVER_PI))
        return emit("mul", emit("mul", x, 0.5), emit("add", inner, 1.0))

    def values(self, call: Call, x: Array) -> Array:
        if call.text("approximate") == "none":
            inner = apply_scalar("erf", x * np.asarray(_SQRT_HALF, x.dtype))
        else:
            cubic = x + np.asarray(0.044715, x.dtype) * x**3
            inner = np.tanh(np.asarray(_SQRT_2_OVER_PI, x.dtype) * cubic)
        half, one = np.asarray(0.5, x.dtype), np.asarray(1, x.dtype)
        return np.asarray(half * x * (one + inner))


@register
class Silu(Pointwise):
    """x * logistic(alpha * x), also called swish. Source: ONNX Swish-24."""

    name: ClassVar[str] = "silu"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _number("alpha", 1.0, "factor inside the logistic function"),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        alpha = call.number("alpha")
        return emit("mul", x, emit("logistic", x if alpha == 1 else emit("mul", x, alpha)))

    def values(self, call: Call, x: Array) -> Array:
        return x * _logistic(np.asarray(call.number("alpha"), x.dtype) * x)


@register
class Shrink(Pointwise):
    """x + bias for x < -lambd, x - bias for x > lambd, else 0. Source: ONNX Shrink (integers and floats)."""

    name: ClassVar[str] = "shrink"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _R),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _number("bias", 0.0, "how far values are moved towards 0"),
        _number("lambd", 0.5, "what is not beyond it becomes 0"),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        bias, lambd = call.number("bias"), call.number("lambd")
        if not x.tensor.element.is_float:
            # An integer is beyond a fractional threshold where it is beyond the threshold's whole part.
            bias, lambd = int(bias), int(np.floor(lambd))
            return self._branches(emit, x, bias, lambd, int(np.ceil(-call.number("lambd"))))
        return self._branches(emit, x, bias, lambd, -lambd)

    @staticmethod
    def _branches(emit: Emit, x: Value, bias: float, high: float, low: float) -> Value:
        zero = emit.scalar(0, x.tensor.element)
        above = emit("select", emit("gt", x, high), emit("sub", x, bias), zero)
        if x.tensor.element.kind is Kind.UNSIGNED and low <= 0:
            return above
        return emit("select", emit("lt", x, low), emit("add", x, bias), above)

    def values(self, call: Call, x: Array) -> Array:
        bias, lambd = np.asarray(call.number("bias"), x.dtype), call.number("lambd")
        wide = x.astype(np.float64)
        outside = np.where(wide > lambd, x - bias, np.asarray(0, x.dtype))
        return np.where(wide < -lambd, x + bias, outside).astype(x.dtype)
