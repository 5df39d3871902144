"""Functions of one tensor, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from compiler.frontends.torch.converters.common import cast, number
from compiler.frontends.torch.site import Site, converts
from compiler.ir import BOOL, F32, Value
from compiler.ops.activation import Relu
from compiler.ops.compare import Eq, Gt, IsFinite, IsInf, IsNan, Le, Lt, Select
from compiler.ops.convert import BitCast
from compiler.ops.elementwise import (
    Abs,
    Acos,
    Acosh,
    Add,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Div,
    Erf,
    Exp,
    Expm1,
    Floor,
    Log,
    Log1p,
    Logistic,
    Max,
    Mul,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Sub,
    Tan,
    Tanh,
    Trunc,
)
from compiler.ops.logic import BitNot, Not

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter
    from compiler.ir import Definition, ElementType

_REAL: Final[dict[str, type[Definition]]] = {
    "acos": Acos,
    "acosh": Acosh,
    "asin": Asin,
    "asinh": Asinh,
    "atan": Atan,
    "atanh": Atanh,
    "cos": Cos,
    "cosh": Cosh,
    "erf": Erf,
    "special_erf": Erf,
    "exp": Exp,
    "expm1": Expm1,
    "special_expm1": Expm1,
    "log": Log,
    "log1p": Log1p,
    "special_log1p": Log1p,
    "reciprocal": Reciprocal,
    "rsqrt": Rsqrt,
    "sigmoid": Logistic,
    "special_expit": Logistic,
    "sin": Sin,
    "sinh": Sinh,
    "sqrt": Sqrt,
    "tan": Tan,
    "tanh": Tanh,
}
"""Functions of real numbers: integers and bools are floats first."""

_SAME: Final[dict[str, type[Definition]]] = {"abs": Abs, "neg": Neg}
"""Functions that integers have too."""

_ROUNDINGS: Final[dict[str, type[Definition]]] = {
    "ceil": Ceil,
    "floor": Floor,
    "trunc": Trunc,
    "fix": Trunc,
    "round": Round,
}
"""Roundings, which leave integers alone."""

_OTHER_NAMES: Final = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "absolute": "abs",
    "negative": "neg",
}


def x_as_result(site: Site) -> Value:
    """The argument ``self`` in the result's type."""
    return cast(site, site.value("self"), site.element())


def wide(element: ElementType) -> ElementType:
    """The type in which torch computes functions made of several steps: float32 for narrower floats."""
    return F32 if element.is_float and element.bits < 32 else element


def widened(site: Site) -> Value:
    """The argument ``self`` in the type in which torch computes its result."""
    return cast(site, cast(site, site.value("self"), site.element()), wide(site.element()))


def _real(definition: type[Definition]) -> Converter:
    return lambda site: site.op(definition, x_as_result(site))


def _same(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("self")
        if x.tensor.element.kind.value == "complex" and definition is Abs:
            from compiler.frontends.torch.converters.complex_numbers import absolute

            return absolute(site, x)
        return x if x.tensor.element is BOOL else site.op(definition, x)

    return convert


def _rounding(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("self")
        return site.op(definition, x) if x.tensor.element.is_float else x

    return convert


for _table, _make in ((_REAL, _real), (_SAME, _same), (_ROUNDINGS, _rounding)):
    for _name, _definition in _table.items():
        _names = [_name, *(other for other, own in _OTHER_NAMES.items() if own == _name)]
        converts(*_names)(_make(_definition))


@converts("positive")
def positive(site: Site) -> Value:
    """The tensor itself."""
    return site.value("self")


@converts("sign", "sgn")
def sign(site: Site) -> Value:
    """-1, 0 or 1; 0 for NaN."""
    x = site.value("self")
    element = x.tensor.element
    if element is BOOL:
        return x
    found = site.op(Sign, x)
    return site.op(Select, site.op(IsNan, x), number(site, 0, element), found) if element.is_float else found


@converts("round.decimals")
def round_decimals(site: Site) -> Value:
    """round(x * 10^d) / 10^d; for negative d round(x / 10^-d) * 10^-d, as torch has it."""
    x, decimals = site.value("self"), site["decimals"]
    if not x.tensor.element.is_float:
        return x
    element, factor = wide(x.tensor.element), 10.0 ** abs(decimals)
    grow, shrink = (Mul, Div) if decimals >= 0 else (Div, Mul)
    power = number(site, factor, element)
    return cast(
        site, site.op(shrink, site.op(Round, site.op(grow, cast(site, x, element), power)), power), x.tensor.element
    )


def _logarithm(base: float) -> Converter:
    def convert(site: Site) -> Value:
        x = widened(site)
        result = site.op(Mul, site.op(Log, x), number(site, 1 / math.log(base), x.tensor.element))
        return cast(site, result, site.element())

    return convert


converts("log2")(_logarithm(2))
converts("log10")(_logarithm(10))


@converts("exp2", "special_exp2")
def exp2(site: Site) -> Value:
    """2^x."""
    from compiler.ops.elementwise import Pow

    x = widened(site)
    return cast(site, site.op(Pow, number(site, 2, x.tensor.element), x), site.element())


_FRACTIONS: Final = 24
"""Levels of the continued fraction of erfc: enough for float32 from 2 on."""


@converts("erfc", "special_erfc")
def erfc(site: Site) -> Value:
    """1 - erf(x) in float64, and from 2 on, where that cancels, Laplace's continued fraction (Abramowitz 7.1.14)."""
    from compiler.ir import F64

    if site.element() is F64:
        # Neither form is accurate to the last bits of float64.
        from compiler.ops.special_functions import SpecialFunction

        return site.op(SpecialFunction, x_as_result(site), function="erfc")
    x = cast(site, x_as_result(site), F64)
    one, two = number(site, 1, F64), number(site, 2, F64)
    near = site.op(Sub, one, site.op(Erf, x))
    far = site.op(Max, x, two)
    level = far
    for step in range(_FRACTIONS, 0, -1):
        level = site.op(Add, far, site.op(Div, number(site, step / 2, F64), level))
    tail = site.op(Exp, site.op(Neg, site.op(Mul, far, far)))
    tail = site.op(Div, tail, site.op(Mul, level, number(site, math.sqrt(math.pi), F64)))
    return cast(site, site.op(Select, site.op(Lt, x, two), near, tail), site.element())


@converts("square")
def square(site: Site) -> Value:
    """x * x."""
    x = x_as_result(site)
    return site.op(Mul, x, x)


@converts("frac")
def frac(site: Site) -> Value:
    """x - trunc(x)."""
    x = site.value("self")
    return site.op(Sub, x, site.op(Trunc, x))


def _scaled(factor: float) -> Converter:
    def convert(site: Site) -> Value:
        x = x_as_result(site)
        return site.op(Mul, x, number(site, factor, x.tensor.element))

    return convert


converts("deg2rad")(_scaled(math.pi / 180))
converts("rad2deg")(_scaled(180 / math.pi))


@converts("logit", "special_logit")
def logit(site: Site) -> Value:
    """log(x / (1 - x)), x clamped to eps .. 1 - eps where eps is given."""
    from compiler.ops.elementwise import Clamp

    x = widened(site)
    element, eps = x.tensor.element, site.get("eps")
    one = number(site, 1, element)
    if eps is not None:
        x = site.op(Clamp, x, number(site, eps, element), number(site, 1 - eps, element))
    return cast(site, site.op(Log, site.op(Div, x, site.op(Sub, one, x))), site.element())


@converts("sinc", "special_sinc")
def sinc(site: Site) -> Value:
    """sin(pi x) / (pi x), 1 at 0."""
    x = widened(site)
    element = x.tensor.element
    scaled = site.op(Mul, x, number(site, math.pi, element))
    zero = site.op(Eq, x, number(site, 0, element))
    result = site.op(Select, zero, number(site, 1, element), site.op(Div, site.op(Sin, scaled), scaled))
    return cast(site, result, site.element())


@converts("isnan")
def is_nan(site: Site) -> Value:
    """False for what cannot be NaN."""
    x = site.value("self")
    return site.op(IsNan, _as_float(site, x))


@converts("isinf")
def is_inf(site: Site) -> Value:
    """Either infinity."""
    return site.op(IsInf, _as_float(site, site.value("self")))


@converts("isposinf")
def is_positive_inf(site: Site) -> Value:
    """Infinity."""
    return site.op(IsInf, _as_float(site, site.value("self")), detect_negative=False)


@converts("isneginf")
def is_negative_inf(site: Site) -> Value:
    """Negative infinity."""
    return site.op(IsInf, _as_float(site, site.value("self")), detect_positive=False)


@converts("isfinite")
def is_finite(site: Site) -> Value:
    """Neither infinite nor NaN."""
    return site.op(IsFinite, _as_float(site, site.value("self")))


def _as_float(site: Site, x: Value) -> Value:
    """Floats as they are, other types as float32: their values are finite there."""
    return x if x.tensor.element.is_float else cast(site, x, F32)


@converts("signbit")
def sign_bit(site: Site) -> Value:
    """Whether the sign is negative: of -0.0 too, which 1 / x tells."""
    x = site.value("self")
    element = x.tensor.element
    if element is BOOL:
        return site.op(Lt, cast(site, x, F32), number(site, 0, F32))
    if not element.is_float:
        return site.op(Lt, x, number(site, 0, element))
    from compiler.ir import I16, I32, I64

    bits = {64: I64, 32: I32, 16: I16}.get(element.bits)
    if bits is None:
        site.refuse(f"type {element}")
    return site.op(Lt, site.op(BitCast, x, to=bits), number(site, 0, bits))


@converts("logical_not")
def logical_not(site: Site) -> Value:
    """Not, of whether it is 0."""
    return site.op(Not, cast(site, site.value("self"), BOOL))


@converts("bitwise_not")
def bitwise_not(site: Site) -> Value:
    """Not, bit by bit; of bools the logical one."""
    x = site.value("self")
    return site.op(Not if x.tensor.element is BOOL else BitNot, x)


@converts("relu")
def relu(site: Site) -> Value:
    """max(x, 0)."""
    x = site.value("self")
    if x.tensor.element.is_float:
        return site.op(Relu, x)
    return site.op(Max, x, number(site, 0, x.tensor.element))


@converts("nan_to_num")
def nan_to_num(site: Site) -> Value:
    """NaN and the infinities replaced; by 0 and the greatest finite values where nothing is given."""
    x = site.value("self")
    element = x.tensor.element
    if not element.is_float:
        return x
    from compiler.ops.scalars import finite_limits

    low, high = finite_limits(element)
    above = site.op(IsInf, x, detect_negative=False)
    below = site.op(IsInf, x, detect_positive=False)
    result = site.op(Select, site.op(IsNan, x), number(site, site.get("nan", 0.0), element), x)
    result = site.op(Select, above, number(site, site.get("posinf", high), element), result)
    return site.op(Select, below, number(site, site.get("neginf", low), element), result)


@converts("log_sigmoid", "log_sigmoid_forward")
def log_sigmoid(site: Site) -> Value | list[Value]:
    """min(x, 0) - log1p(exp(-|x|))."""
    x = site.value("self")
    element = wide(x.tensor.element)
    own = cast(site, x, element)
    from compiler.ops.elementwise import Min

    smaller = site.op(Min, own, number(site, 0, element))
    tail = site.op(Log1p, site.op(Exp, site.op(Neg, site.op(Abs, own))))
    result = cast(site, site.op(Sub, smaller, tail), x.tensor.element)
    return [result, x] if site.operator.startswith("aten.log_sigmoid_forward") else result


@converts("threshold")
def threshold(site: Site) -> Value:
    """The value where x <= threshold; NaN stays."""
    x = site.value("self")
    element = x.tensor.element
    below = site.op(Le, x, number(site, site["threshold"], element))
    return site.op(Select, below, number(site, site["value"], element), x)


@converts("heaviside")
def heaviside(site: Site) -> Value:
    """0 below 0, 1 above, ``values`` at 0."""
    x, values = site.value("self"), site.value("values")
    element = x.tensor.element
    zero = number(site, 0, element)
    step = cast(site, site.op(Gt, x, zero), element)
    if element.is_float:
        step = site.op(Select, site.op(IsNan, x), zero, step)
    return site.op(Select, site.op(Eq, x, zero), values, step)


@converts("angle")
def angle(site: Site) -> Value:
    """0 for positive numbers, pi for negative ones; NaN stays. Of complex numbers that from the real axis."""
    if site.value("self").tensor.element.kind.value == "complex":
        from compiler.frontends.torch.converters.complex_numbers import angle as of_complex

        return of_complex(site, site.value("self"))
    x = x_as_result(site)
    element = x.tensor.element
    negative = site.op(Lt, x, number(site, 0, element))
    result = site.op(Select, negative, number(site, math.pi, element), number(site, 0, element))
    return site.op(Select, site.op(IsNan, x), x, result)
