"""Functions of two tensors or of a tensor and a number, element by element, with torch's promotion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import cast, number, operand
from compiler.frontends.torch.converters.promotion import float_of, promoted
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import BOOL, F64, Value
from compiler.ops.compare import Eq, Ge, Gt, IsInf, IsNan, Le, Lt, Ne, Select
from compiler.ops.elementwise import (
    Abs,
    Add,
    Atan2,
    Clamp,
    Div,
    Exp,
    Floor,
    Log,
    Log1p,
    Max,
    Min,
    Mod,
    Mul,
    Neg,
    Pow,
    Rem,
    Sqrt,
    Sub,
    Trunc,
)
from compiler.ops.logic import And, BitAnd, BitOr, BitXor, Or, ShiftLeft, ShiftRight, Xor

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter
    from compiler.ir import Definition, ElementType


def pair(site: Site, element: ElementType, a: str = "self", b: str = "other") -> tuple[Value, Value]:
    """Two arguments in one element type."""
    return operand(site, site[a], element), operand(site, site[b], element)


def _scaled(site: Site, value: Value, name: str) -> Value:
    """A value times a number argument; itself where that is 1."""
    factor = site.get(name, 1)
    if not isinstance(factor, Value) and factor == 1:
        return value
    if value.tensor.element is BOOL:
        return site.op(And, value, operand(site, factor, BOOL))
    return site.op(Mul, value, operand(site, factor, value.tensor.element))


def _stepwise(site: Site) -> ElementType:
    """The type for several steps: wider than the result where torch computes in float32."""
    return wide(site.element())


@converts("add.Tensor", "add.Scalar")
def add(site: Site) -> Value:
    """a + alpha * b; of bools: or."""
    element = site.element()
    if element is BOOL:
        a, b = pair(site, BOOL)
        return site.op(Or, a, _scaled(site, b, "alpha"))
    inner = element if site.get("alpha", 1) == 1 else _stepwise(site)
    a, b = (cast(site, value, inner) for value in pair(site, element))
    return cast(site, site.op(Add, a, _scaled(site, b, "alpha")), element)


@converts("sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar", "subtract.Tensor", "subtract.Scalar")
def sub(site: Site) -> Value:
    """a - alpha * b; rsub: b - alpha * a."""
    element = site.element()
    inner = element if site.get("alpha", 1) == 1 else _stepwise(site)
    a, b = (cast(site, value, inner) for value in pair(site, element))
    if site.operator.startswith("aten.rsub"):
        a, b = b, a
    return cast(site, site.op(Sub, a, _scaled(site, b, "alpha")), element)


@converts("mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar")
def mul(site: Site) -> Value:
    """a * b; of bools: and."""
    a, b = pair(site, site.element())
    return site.op(And if site.element() is BOOL else Mul, a, b)


@converts("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar", "divide.Tensor", "divide.Scalar")
def div(site: Site) -> Value:
    """a / b in floats."""
    return site.op(Div, *pair(site, site.element()))


@converts("div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode", "divide.Scalar_mode")
def div_mode(site: Site) -> Value:
    """a / b, rounded to zero or down."""
    mode = site["rounding_mode"]
    if mode is None:
        return div(site)
    return _rounded_quotient(site, down=mode == "floor")


@converts("floor_divide", "floor_divide.Scalar")
def floor_divide(site: Site) -> Value:
    """floor(a / b)."""
    return _rounded_quotient(site, down=True)


def _rounded_quotient(site: Site, *, down: bool) -> Value:
    element = site.element()
    a, b = pair(site, element)
    if not element.is_float:
        return _floored_integers(site, a, b) if down else site.op(Div, a, b)
    inner = wide(element)
    a, b = cast(site, a, inner), cast(site, b, inner)
    result = _floored_floats(site, a, b) if down else site.op(Trunc, site.op(Div, a, b))
    return cast(site, result, element)


def _floored_integers(site: Site, a: Value, b: Value) -> Value:
    """The truncated quotient, one less where the remainder and the divisor have different signs."""
    element = a.tensor.element
    quotient = site.op(Div, a, b)
    zero = number(site, 0, element)
    remainder = site.op(Rem, a, b)
    crosses = site.op(Ne, site.op(Lt, remainder, zero), site.op(Lt, b, zero))
    below = site.op(And, crosses, site.op(Ne, remainder, zero))
    return site.op(Sub, quotient, cast(site, below, element))


def _floored_floats(site: Site, a: Value, b: Value) -> Value:
    """As torch does (c10::div_floor_floating): exact for quotients that a division would round up to an integer.

    mod = fmod(a, b); div = (a - mod) / b, less 1 where mod and b differ in sign; rounded to the nearest integer.
    """
    element = a.tensor.element
    zero, one, half = (number(site, value, element) for value in (0.0, 1.0, 0.5))
    remainder = site.op(Rem, a, b)
    quotient = site.op(Div, site.op(Sub, a, remainder), b)
    crosses = site.op(Ne, site.op(Lt, remainder, zero), site.op(Lt, b, zero))
    below = site.op(And, crosses, site.op(Ne, remainder, zero))
    quotient = site.op(Select, below, site.op(Sub, quotient, one), quotient)
    floored = site.op(Floor, quotient)
    up = site.op(Gt, site.op(Sub, quotient, floored), half)
    floored = site.op(Select, up, site.op(Add, floored, one), floored)
    plain = site.op(Div, a, b)
    signed_zero = site.op(Mul, plain, zero)
    result = site.op(Select, site.op(Eq, quotient, zero), signed_zero, floored)
    return site.op(Select, site.op(Eq, b, zero), plain, result)


@converts("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(site: Site) -> Value:
    """a - floor(a / b) * b: it has the divisor's sign."""
    element = site.element()
    inner = wide(element)
    a, b = (cast(site, value, inner) for value in pair(site, element))
    return cast(site, site.op(Mod, a, b), element)


@converts("fmod.Tensor", "fmod.Scalar")
def fmod(site: Site) -> Value:
    """The remainder with the dividend's sign."""
    return site.op(Rem, *pair(site, site.element()))


@converts("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(site: Site) -> Value:
    """a^b, with the exact forms that torch has for some exponents."""
    element = site.element()
    exponent = site["exponent"]
    a = operand(site, site["self"], element)
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        if exponent == 2:
            return site.op(Mul, a, a)
        if exponent == 1:
            return a
        if exponent == 0.5 and element.is_float:
            return site.op(Sqrt, a)
    return site.op(Pow, a, operand(site, exponent, element))


@converts("float_power.Tensor_Tensor", "float_power.Tensor_Scalar", "float_power.Scalar")
def float_power(site: Site) -> Value:
    """a^b in float64."""
    return site.op(Pow, operand(site, site["self"], F64), operand(site, site["exponent"], F64))


_EXTREMES: Final[dict[str, type[Definition]]] = {
    "maximum": Max,
    "max.other": Max,
    "minimum": Min,
    "min.other": Min,
    "fmax": Max,
    "fmin": Min,
}
"""NaN wins, but in fmax and fmin it loses."""


def _extreme(name: str, definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        element = site.element()
        a, b = pair(site, element)
        if element is BOOL:
            return site.op(Or if definition is Max else And, a, b)
        result = site.op(definition, a, b)
        if name.startswith("f") and element.is_float:
            result = site.op(Select, site.op(IsNan, a), b, site.op(Select, site.op(IsNan, b), a, result))
        return result

    return convert


for _name, _definition in _EXTREMES.items():
    converts(_name)(_extreme(_name, _definition))


@converts("atan2", "arctan2")
def atan2(site: Site) -> Value:
    """The angle of (other, self)."""
    return site.op(Atan2, *pair(site, site.element()))


@converts("hypot")
def hypot(site: Site) -> Value:
    """sqrt(a^2 + b^2), scaled by the greater so that neither square overflows."""
    return hypotenuse(site, *pair(site, site.element()))


def hypotenuse(site: Site, a: Value, b: Value) -> Value:
    """sqrt(a^2 + b^2) of two values of one type."""
    element = a.tensor.element
    inner = F64 if element.bits == 32 else wide(element)
    a, b = (site.op(Abs, cast(site, value, inner)) for value in (a, b))
    great, small = site.op(Max, a, b), site.op(Min, a, b)
    ratio = site.op(Div, small, great)
    ratio = site.op(Select, site.op(Eq, great, number(site, 0, inner)), number(site, 0, inner), ratio)
    root = site.op(Sqrt, site.op(Add, number(site, 1, inner), site.op(Mul, ratio, ratio)))
    result = site.op(Mul, great, root)
    infinite = site.op(Or, site.op(IsInf, a), site.op(IsInf, b))
    result = site.op(Select, infinite, number(site, math.inf, inner), result)
    return cast(site, result, element)


@converts("copysign.Tensor", "copysign.Scalar")
def copysign(site: Site) -> Value:
    """|a| with the sign of b, of -0.0 and NaN too."""
    element = site.element()
    a, b = pair(site, element)
    from compiler.ir import I16, I32, I64
    from compiler.ops.convert import BitCast

    bits = {64: I64, 32: I32, 16: I16}[element.bits]
    negative = site.op(Lt, site.op(BitCast, b, to=bits), number(site, 0, bits))
    size = site.op(Abs, a)
    return site.op(Select, negative, site.op(Neg, size), size)


_BITS: Final[dict[str, tuple[type[Definition], type[Definition]]]] = {
    "and": (BitAnd, And),
    "or": (BitOr, Or),
    "xor": (BitXor, Xor),
}


def _bitwise(definition: type[Definition], logical: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        element = site.element()
        return site.op(logical if element is BOOL else definition, *pair(site, element))

    return convert


def _logical(definition: type[Definition]) -> Converter:
    return lambda site: site.op(definition, *pair(site, BOOL))


for _name, (_definition, _logical_definition) in _BITS.items():
    _overloads = ("Tensor", "Scalar", "Scalar_Tensor")
    _names = [f"bitwise_{_name}.{overload}" for overload in _overloads]
    _names += [f"__{_name}__.{overload}" for overload in _overloads[:2]]
    converts(*_names)(_bitwise(_definition, _logical_definition))
    converts(f"logical_{_name}")(_logical(_logical_definition))


def _shift(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        """By a count that is negative or not below the width: 0, or -1 for a negative number shifted right."""
        element = site.element()
        a, b = pair(site, element)
        if element.is_float:
            site.refuse("shifts of floats")
        zero, last = number(site, 0, element), number(site, element.bits - 1, element)
        inside = site.op(And, site.op(Ge, b, zero), site.op(Le, b, last))
        safe = site.op(Select, inside, b, zero)
        beyond = zero
        if definition is ShiftRight and element.dtype.kind == "i":
            beyond = site.op(Select, site.op(Lt, a, zero), number(site, -1, element), zero)
        return site.op(Select, inside, site.op(definition, a, safe), beyond)

    return convert


for _name, _definition in (("left", ShiftLeft), ("right", ShiftRight)):
    converts(
        *[f"bitwise_{_name}_shift.{overload}" for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")],
        *[f"__{_name[0]}shift__.{overload}" for overload in ("Tensor", "Scalar")],
    )(_shift(_definition))


_COMPARISONS: Final[dict[str, type[Definition]]] = {"eq": Eq, "ne": Ne, "lt": Lt, "le": Le, "gt": Gt, "ge": Ge}
_LONG_NAMES: Final = {"ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _comparison(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        element = promoted(site, "self", "other")
        return site.op(definition, *pair(site, element))

    return convert


for _name, _definition in _COMPARISONS.items():
    _bases = [_name, *([_LONG_NAMES[_name]] if _name in _LONG_NAMES else [])]
    converts(*[f"{base}.{overload}" for base in _bases for overload in ("Tensor", "Scalar")])(_comparison(_definition))


@converts("isclose")
def is_close(site: Site) -> Value:
    """|a - b| <= atol + rtol * |b|, or equal; NaN equals NaN where asked."""
    a, b = pair(site, promoted(site, "self", "other"))
    element = float_of(a.tensor.element)
    x, y = cast(site, a, element), cast(site, b, element)
    allowed = site.op(
        Add, number(site, site["atol"], element), site.op(Abs, site.op(Mul, number(site, site["rtol"], element), y))
    )
    error = site.op(Abs, site.op(Sub, x, y))
    finite = site.op(Lt, error, number(site, math.inf, element))
    close = site.op(Or, site.op(Eq, a, b), site.op(And, finite, site.op(Le, error, allowed)))
    if site["equal_nan"]:
        close = site.op(Or, close, site.op(And, site.op(IsNan, x), site.op(IsNan, y)))
    return close


@converts("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other", "special_xlogy", "special_xlogy.other_scalar")
def xlogy(site: Site) -> Value:
    """a log(b), 0 where a is 0 and b is no NaN."""
    element = site.element()
    a, b = pair(site, element)
    zero = number(site, 0, element)
    result = site.op(Mul, a, site.op(Log, b))
    result = site.op(Select, site.op(Eq, a, zero), zero, result)
    return site.op(Select, site.op(IsNan, b), b, result)


def _log_sum(base: float | None) -> Converter:
    def convert(site: Site) -> Value:
        element = site.element()
        inner = wide(element)
        a, b = (cast(site, value, inner) for value in pair(site, element))
        great = site.op(Max, a, b)
        distance = site.op(Neg, site.op(Abs, site.op(Sub, a, b)))
        if base is None:
            tail = site.op(Log1p, site.op(Exp, distance))
        else:
            scale = number(site, math.log(base), inner)
            tail = site.op(Div, site.op(Log1p, site.op(Exp, site.op(Mul, distance, scale))), scale)
        same = site.op(And, site.op(IsInf, a), site.op(Eq, a, b))
        return cast(site, site.op(Select, same, a, site.op(Add, great, tail)), element)

    return convert


converts("logaddexp")(_log_sum(None))
converts("logaddexp2")(_log_sum(2.0))


@converts("addcmul", "addcdiv")
def add_combined(site: Site) -> Value:
    """self + value * tensor1 (* or /) tensor2."""
    element = site.element()
    inner = wide(element)
    x, a, b = (cast(site, operand(site, site[name], element), inner) for name in ("self", "tensor1", "tensor2"))
    if site.operator.startswith("aten.addcmul"):
        combined = site.op(Mul, _scaled(site, a, "value"), b)
    else:
        combined = site.op(Div, _scaled(site, a, "value"), b)
    return cast(site, site.op(Add, x, combined), element)


@converts("lerp.Scalar", "lerp.Tensor")
def lerp(site: Site) -> Value:
    """start + w (end - start), from the end for |w| >= 0.5, as torch does."""
    element = site.element()
    inner = wide(element)
    a, b, w = (cast(site, operand(site, site[name], element), inner) for name in ("self", "end", "weight"))
    difference = site.op(Sub, b, a)
    near = site.op(Add, a, site.op(Mul, w, difference))
    far = site.op(Sub, b, site.op(Mul, difference, site.op(Sub, number(site, 1, inner), w)))
    small = site.op(Lt, site.op(Abs, w), number(site, 0.5, inner))
    return cast(site, site.op(Select, small, near, far), element)


@converts("ldexp.Tensor")
def ldexp(site: Site) -> Value:
    """a * 2^b."""
    element = site.element()
    a, b = pair(site, element)
    return site.op(Mul, a, site.op(Pow, number(site, 2, element), b))


@converts("clamp", "clamp.Tensor", "clip", "clip.Tensor")
def clamp(site: Site) -> Value:
    """min(max(x, low), high): high wins where they cross."""
    return _clamped(site, site["min"], site["max"])


@converts("clamp_min", "clamp_min.Tensor")
def clamp_min(site: Site) -> Value:
    """max(x, low)."""
    return _clamped(site, site["min"], None)


@converts("clamp_max", "clamp_max.Tensor")
def clamp_max(site: Site) -> Value:
    """min(x, high)."""
    return _clamped(site, None, site["max"])


@converts("hardtanh")
def hardtanh(site: Site) -> Value:
    """x clamped to -1 .. 1, or to the bounds given."""
    return _clamped(site, site["min_val"], site["max_val"])


@converts("relu6")
def relu6(site: Site) -> Value:
    """x clamped to 0 .. 6."""
    return _clamped(site, 0, 6)


def _clamped(site: Site, low: Any, high: Any) -> Value:  # noqa: ANN401 - tensors, numbers or None
    element = site.element()
    x = operand(site, site["self"], element)
    if all(not isinstance(bound, Value) or bound.tensor.rank == 0 for bound in (low, high)):
        bounds = [None if bound is None else operand(site, bound, element) for bound in (low, high)]
        return site.op(Clamp, x, *bounds)
    if low is not None:
        x = site.op(Max, x, operand(site, low, element))
    return x if high is None else site.op(Min, x, operand(site, high, element))


@converts("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(site: Site) -> Value:
    """One or the other."""
    element = site.element()
    a, b = pair(site, element)
    return site.op(Select, cast(site, site.value("condition"), BOOL), a, b)
