"""Functions of one tensor, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import cast, number, reshape
from compiler.frontends.tensorflow.converters.common import computed, direct, formulas
from compiler.frontends.tensorflow.site import Converter, Site, converts
from compiler.ir import BOOL, Kind, Value
from compiler.ops import activation, compare, elementwise, logic, softmax
from compiler.ops.compose import Emit
from compiler.ops.convert import BitCast, Cast
from compiler.ops.error_function import Erfc

if TYPE_CHECKING:
    from compiler.ir import Definition, ElementType

direct(
    {
        "Abs": elementwise.Abs,
        "Neg": elementwise.Neg,
        "Sign": elementwise.Sign,
        "Sqrt": elementwise.Sqrt,
        "Rsqrt": elementwise.Rsqrt,
        "Exp": elementwise.Exp,
        "Expm1": elementwise.Expm1,
        "Log": elementwise.Log,
        "Log1p": elementwise.Log1p,
        "Sin": elementwise.Sin,
        "Cos": elementwise.Cos,
        "Tan": elementwise.Tan,
        "Asin": elementwise.Asin,
        "Acos": elementwise.Acos,
        "Atan": elementwise.Atan,
        "Sinh": elementwise.Sinh,
        "Cosh": elementwise.Cosh,
        "Tanh": elementwise.Tanh,
        "Asinh": elementwise.Asinh,
        "Acosh": elementwise.Acosh,
        "Atanh": elementwise.Atanh,
        "Erf": elementwise.Erf,
        "Erfc": Erfc,
        "Sigmoid": elementwise.Logistic,
        "IsNan": compare.IsNan,
        "IsInf": compare.IsInf,
        "IsFinite": compare.IsFinite,
        "LogicalNot": logic.Not,
        "Invert": logic.BitNot,
        "Relu": activation.Relu,
        "Elu": activation.Elu,
        "Softplus": activation.Softplus,
        "Softsign": activation.Softsign,
        "Softmax": softmax.Softmax,
        "LogSoftmax": softmax.LogSoftmax,
    }
)

formulas(
    {
        "Square": lambda e, x: e("mul", x, x),
        "Relu6": lambda e, x: e("clamp", x, 0, 6),
    }
)


def _rounded(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value(0)
        return site.op(definition, x) if x.tensor.element.is_float else x

    return convert


converts("Round", "Rint")(_rounded(elementwise.Round))
converts("Floor")(_rounded(elementwise.Floor))
converts("Ceil")(_rounded(elementwise.Ceil))


@converts("Reciprocal", "Inv")
def reciprocal(site: Site) -> Value:
    """1 / x; of integers the truncated quotient."""
    x = site.value(0)
    if x.tensor.element.is_float:
        return site.op(elementwise.Reciprocal, x)
    return site.op(elementwise.Div, number(site, 1, x.tensor.element), x)


@converts("LeakyRelu")
def leaky_relu(site: Site) -> Value:
    """x for x > 0, else alpha * x."""
    return site.op(activation.LeakyRelu, site.value(0), alpha=float(site.attr("alpha")))


@converts("Cast")
def convert_type(site: Site) -> Value:
    """To another type as the processor does it: truncated, integers wrapped; what is not 0 is true."""
    x, element = site.value(0), site.element()
    own = x.tensor.element
    if own is element:
        return x
    if site.attr("Truncate") and own.is_float and element.is_float and element.bits < own.bits:
        site.refuse(f"rounding towards zero from {own} to {element} has no conversion", "Truncate")
    if element is BOOL:
        return site.op(compare.Ne, x, number(site, 0, x.tensor.element))
    return site.op(Cast, x, to=element)


@converts("Bitcast")
def bitcast(site: Site) -> Value:
    """The same bits. Other widths add or take a last dim, whose first part has the least significant bits."""
    x, element = site.value(0), site.element()
    own = x.tensor.element
    if own is element:
        return x
    if own.bits == element.bits:
        return site.op(BitCast, x, to=element)
    data = site.known(x)
    if data is not None:
        last = (*data.shape, -1) if own.bits > element.bits else data.shape[:-1]
        raw = np.ascontiguousarray(data).reshape(-1).view(element.dtype)
        return site.b.constant(raw.reshape(last) if own.bits > element.bits else raw.reshape(data.shape[:-1]))
    if Kind.COMPLEX in {own.kind, element.kind}:
        site.refuse(f"from {own} to {element}, parts of complex numbers")
    return _narrower(site, x, element) if own.bits > element.bits else _wider(site, x, element)


def _unsigned(element: ElementType) -> ElementType:
    from compiler.ir import U8, U16, U32, U64

    return {8: U8, 16: U16, 32: U32, 64: U64}[element.bits]


def _narrower(site: Site, x: Value, element: ElementType) -> Value:
    own, part = _unsigned(x.tensor.element), _unsigned(element)
    bits = x if x.tensor.element is own else site.op(BitCast, x, to=own)
    column = reshape(site, bits, [*_sizes(site, x), 1])
    shifts = site.b.constant(np.arange(0, own.bits, part.bits).astype(own.dtype))
    parts = cast(site, site.op(logic.ShiftRight, column, shifts), part)
    return parts if part is element else site.op(BitCast, parts, to=element)


def _wider(site: Site, x: Value, element: ElementType) -> Value:
    from compiler.ops.reduce import ReduceSum

    own, whole = _unsigned(x.tensor.element), _unsigned(element)
    bits = cast(site, x if x.tensor.element is own else site.op(BitCast, x, to=own), whole)
    shifts = site.b.constant(np.arange(0, whole.bits, own.bits).astype(whole.dtype))
    moved = site.op(logic.ShiftLeft, bits, shifts)
    joined = site.op(ReduceSum, moved, axes=(site.rank(x) - 1,), keep_dims=False)
    return joined if whole is element else site.op(BitCast, joined, to=element)


def _sizes(site: Site, x: Value) -> list[int]:
    return list(site.sizes(x))


@converts("PopulationCount")
def population_count(site: Site) -> Value:
    """The number of bits that are set, as uint8: sums of neighbouring groups of 1, 2, 4 ... bits."""
    x = site.value(0)
    own = _unsigned(x.tensor.element)
    e = Emit(site.b)
    bits = x if x.tensor.element is own else site.op(BitCast, x, to=own)
    width = 1
    while width < own.bits:
        mask = sum(((1 << width) - 1) << place for place in range(0, own.bits, 2 * width))
        low, moved = number(site, mask, own), e("shift_right", bits, number(site, width, own))
        bits = e("add", e("bitand", bits, low), e("bitand", moved, low))
        width *= 2
    return cast(site, bits, site.element())


def _horner(e: Emit, x: Value, coefficients: tuple[float, ...]) -> Value:
    """A polynomial, the coefficient of the greatest power first."""
    result = e("add", e("mul", x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        result = e("add", e("mul", result, x), coefficient)
    return result


_ERFINV_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _erfinv(e: Emit, x: Value) -> Value:
    """Mike Giles, "Approximating the erfinv function" (2011), for float32, with one Newton step: also good for float64.

    Infinite at -1 and 1, NaN outside.
    """
    w = e("neg", e("log1p", e("neg", e("mul", x, x))))
    near = _horner(e, e("sub", w, 2.5), _ERFINV_NEAR)
    far = _horner(e, e("sub", e("sqrt", w), 3.0), _ERFINV_FAR)
    guess = e("mul", e("select", e("lt", w, 5.0), near, far), x)
    ends = e("eq", e("abs", x), 1.0)
    if x.tensor.element.bits > 32:
        for _ in range(2):
            slope = e("mul", e("exp", e("neg", e("mul", guess, guess))), 2 / math.sqrt(math.pi))
            guess = e("sub", guess, e("div", e("sub", e("erf", guess), x), slope))
    return e("select", ends, e("mul", x, math.inf), guess)


_LANCZOS = (
    676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
    -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707,
    9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip
_LANCZOS_G = 7.0
"""Lanczos' approximation of the gamma function with g = 7 and n = 9, as StableHLO's chlo.lgamma has it."""


def _lgamma(e: Emit, x: Value) -> Value:
    """log |gamma(x)|, below 1/2 by the reflection gamma(x) gamma(1 - x) = pi / sin(pi x)."""
    small = e("lt", x, 0.5)
    z = e("select", small, e("neg", x), e("sub", x, 1.0))
    total = e("add", e("mul", z, 0.0), 0.99999999999980993227684700473478)
    for place, coefficient in enumerate(_LANCZOS):
        total = e("add", total, e("div", e.scalar(coefficient, z.tensor.element), e("add", z, place + 1.0)))
    t = e("add", z, _LANCZOS_G + 0.5)
    log_t = e("add", e("log1p", e("mul", z, 1 / (_LANCZOS_G + 0.5))), math.log(_LANCZOS_G + 0.5))
    scaled = e("mul", e("sub", e("add", z, 0.5), e("div", t, log_t)), log_t)
    own = e("add", e("add", scaled, 0.5 * math.log(2 * math.pi)), e("log", total))
    part = e("sub", e("abs", x), e("floor", e("abs", x)))
    folded = e("select", e("gt", part, 0.5), e("sub", 1.0, part), part)
    reflected = e("sub", e("sub", math.log(math.pi), e("log", e("sin", e("mul", folded, math.pi)))), own)
    result = e("select", small, e("select", e("eq", part, 0), e("add", e("mul", x, 0.0), math.inf), reflected), own)
    return e("select", e("isinf", x), e("abs", x), result)


def _digamma(e: Emit, x: Value) -> Value:
    """The derivative of log gamma: the same approximation; below 1/2 psi(1 - x) - pi / tan(pi x). NaN at poles."""
    small = e("lt", x, 0.5)
    z = e("select", small, e("neg", x), e("sub", x, 1.0))
    above = e("mul", z, 0.0)
    below = e("add", above, 0.99999999999980993227684700473478)
    for place, coefficient in enumerate(_LANCZOS):
        far = e("add", z, place + 1.0)
        share = e("div", e.scalar(coefficient, z.tensor.element), far)
        above, below = e("sub", above, e("div", share, far)), e("add", below, share)
    t = e("add", z, _LANCZOS_G + 0.5)
    log_t = e("add", e("log1p", e("mul", z, 1 / (_LANCZOS_G + 0.5))), math.log(_LANCZOS_G + 0.5))
    own = e("sub", e("add", log_t, e("div", above, below)), e("div", e.scalar(_LANCZOS_G, t.tensor.element), t))
    part = e("add", x, e("abs", e("floor", e("add", x, 0.5))))
    angle = e("mul", part, math.pi)
    bend = e("div", e("mul", e("cos", angle), math.pi), e("sin", angle))
    reflected = e("sub", own, bend)
    pole = e("and", e("le", x, 0), e("eq", x, e("floor", x)))
    nan = e("add", e("mul", x, 0.0), math.nan)
    found = e("select", pole, nan, e("select", small, reflected, own))
    return e("select", e("isinf", x, detect_negative=False), x, found)


formulas(
    {
        "Erfinv": _erfinv,
        "Ndtri": lambda e, x: e("mul", _erfinv(e, e("sub", e("mul", x, 2.0), 1.0)), math.sqrt(2)),
        "Lgamma": _lgamma,
        "Digamma": _digamma,
    }
)


@converts("Relu6Grad")
def relu6_grad(site: Site) -> Value:
    """The gradient where 0 < feature < 6, else 0."""
    return computed(
        site,
        lambda e, g, x: e("select", e("and", e("gt", x, 0), e("lt", x, 6)), g, 0),
    )


@converts("LeakyReluGrad")
def leaky_relu_grad(site: Site) -> Value:
    """The gradient, times alpha where the feature is not above 0."""
    alpha = float(site.attr("alpha"))
    return computed(site, lambda e, g, x: e("select", e("gt", x, 0), g, e("mul", g, alpha)))


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALED_ALPHA = 1.7580993408473768599402175208123


@converts("Selu")
def selu(site: Site) -> Value:
    """Scaled elu, with the constants in full: those of the IR's definition are rounded to float32."""
    return site.op(activation.Selu, site.value(0), alpha=_SELU_ALPHA, gamma=_SELU_SCALE)


formulas(
    {
        "ReluGrad": lambda e, g, x: e("select", e("gt", x, 0), g, 0),
        "EluGrad": lambda e, g, y: e("select", e("lt", y, 0), e("mul", g, e("add", y, 1.0)), g),
        "SeluGrad": lambda e, g, y: e(
            "mul", g, e("select", e("lt", y, 0), e("add", y, _SELU_SCALED_ALPHA), _SELU_SCALE)
        ),
        "SoftplusGrad": lambda e, g, x: e("div", g, e("add", e("exp", e("neg", x)), 1.0)),
        "SoftsignGrad": lambda e, g, x: _over_square(e, g, e("add", e("abs", x), 1.0)),
        "SigmoidGrad": lambda e, y, g: e("mul", e("mul", g, y), e("sub", 1.0, y)),
        "TanhGrad": lambda e, y, g: e("mul", g, e("sub", 1.0, e("mul", y, y))),
        "SqrtGrad": lambda e, y, g: e("div", e("mul", g, 0.5), y),
        "RsqrtGrad": lambda e, y, g: e("mul", e("mul", g, -0.5), e("mul", e("mul", y, y), y)),
        "ReciprocalGrad": lambda e, y, g: e("mul", e("neg", g), e("mul", y, y)),
        "InvGrad": lambda e, y, g: e("mul", e("neg", g), e("mul", y, y)),
    }
)


def _over_square(e: Emit, g: Value, x: Value) -> Value:
    return e("div", g, e("mul", x, x))
