"""Elementwise operators: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.onnx.converters.common import aligned, cast
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import F32, F64, Definition, Value
from compiler.ops import compare, elementwise, logic

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.frontends.onnx.site import Converter

_UNARY: Final[dict[str, type[Definition]]] = {
    "Abs": elementwise.Abs,
    "Acos": elementwise.Acos,
    "Acosh": elementwise.Acosh,
    "Asin": elementwise.Asin,
    "Asinh": elementwise.Asinh,
    "Atan": elementwise.Atan,
    "Atanh": elementwise.Atanh,
    "BitwiseNot": logic.BitNot,
    "Ceil": elementwise.Ceil,
    "Cos": elementwise.Cos,
    "Cosh": elementwise.Cosh,
    "Exp": elementwise.Exp,
    "Floor": elementwise.Floor,
    "IsNaN": compare.IsNan,
    "Log": elementwise.Log,
    "Neg": elementwise.Neg,
    "Not": logic.Not,
    "Reciprocal": elementwise.Reciprocal,
    "Round": elementwise.Round,
    "Sigmoid": elementwise.Logistic,
    "Sign": elementwise.Sign,
    "Sin": elementwise.Sin,
    "Sinh": elementwise.Sinh,
    "Sqrt": elementwise.Sqrt,
    "Tan": elementwise.Tan,
    "Tanh": elementwise.Tanh,
}

_BINARY: Final[dict[str, type[Definition]]] = {
    "Add": elementwise.Add,
    "And": logic.And,
    "BitwiseAnd": logic.BitAnd,
    "BitwiseOr": logic.BitOr,
    "BitwiseXor": logic.BitXor,
    "Div": elementwise.Div,
    "Equal": compare.Eq,
    "Greater": compare.Gt,
    "GreaterOrEqual": compare.Ge,
    "Less": compare.Lt,
    "LessOrEqual": compare.Le,
    "Mul": elementwise.Mul,
    "Or": logic.Or,
    "Sub": elementwise.Sub,
    "Xor": logic.Xor,
}
"""Operators on two operands; before version 7 some of them have attributes that say how b is aligned with a."""


def _unary(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        return site.b(definition, site.input(0))

    return convert


def _binary(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        a, b = site.input(0), site.input(1)
        return site.b(definition, a, aligned(site, a, b) if "broadcast" in site.attributes else b)

    return convert


@converts("Erf")
def error_function(site: Site) -> Value:
    """Of an integer in float32, where it is 1 from 4 on; the result truncates."""
    x = site.input(0)
    element = x.tensor.element
    if element.is_float:
        return site.b(elementwise.Erf, x)
    return cast(site, site.b(elementwise.Erf, cast(site, x, F32)), element)


for _name, _definition in _UNARY.items():
    converts(_name)(_unary(_definition))
for _name, _definition in _BINARY.items():
    converts(_name)(_binary(_definition))


@converts("Pow", until=6)
def aligned_power(site: Site) -> Value:
    """Pow with the old alignment of b."""
    return site.b(elementwise.Pow, site.input(0), aligned(site, site.input(0), site.input(1)))


@converts("Pow", since=7)
def power(site: Site) -> Value:
    """Base and exponent may differ in type since version 12; the result has the base's.

    Mixed types are computed in the wider one, and an integer base with a float exponent in the exponent's type, but
    float32 at the least: float16 holds no integer beyond 2048.
    """
    base, exponent = site.input(0), site.input(1)
    element, other = base.tensor.element, exponent.tensor.element
    if element is other:
        return site.b(elementwise.Pow, base, exponent)
    if element.is_float and not other.is_float:
        common = element
    elif other.is_float and not element.is_float:
        common = other if other.bits >= F32.bits else F32
    elif element.is_float or element.bits >= other.bits:
        common = element if element.bits >= other.bits else other
    else:
        common = other
    raised = site.b(elementwise.Pow, cast(site, base, common), cast(site, exponent, common))
    return cast(site, raised, element)


def _folded(combine: Callable[[Site, Value, Value], Value]) -> Converter:
    def convert(site: Site) -> Value:
        values = site.given
        if site.version < 8 and len({value.tensor.dims for value in values}) > 1:
            static = [value.tensor.shape for value in values if value.tensor.is_static]
            if len(set(static)) > 1:
                site.bad_shape(
                    f"shapes {[list(shape) for shape in static]} differ; before version 8 nothing broadcasts"
                )
        return reduce(lambda a, b: combine(site, a, b), values)

    return convert


converts("Max")(_folded(lambda site, a, b: site.b(elementwise.Max, a, b)))
converts("Min")(_folded(lambda site, a, b: site.b(elementwise.Min, a, b)))
converts("Sum")(_folded(lambda site, a, b: site.b(elementwise.Add, a, b)))


@converts("Mean")
def mean(site: Site) -> Value:
    """The sum of all inputs over their number."""
    values = site.given
    if len(values) == 1:
        return values[0]
    element = values[0].tensor.element
    wide = F32 if element.bits < F32.bits else element
    total = reduce(lambda a, b: site.b(elementwise.Add, a, b), [cast(site, value, wide) for value in values])
    return cast(site, site.b(elementwise.Div, total, site.scalar(len(values), wide)), element)


@converts("Mod")
def modulo(site: Site) -> Value:
    """``fmod`` chooses the dividend's sign over the divisor's."""
    fmod, element = site.attribute("fmod"), site.tensor(0).element
    if fmod not in {0, 1}:
        site.bad_attribute(f"attribute 'fmod' is {fmod}; expected 0 or 1")
    if not fmod and element.is_float and site.version < 28:
        site.invalid(f"operands are {element} and attribute 'fmod' is 0; floats need 1")
    return site.b(elementwise.Rem if fmod else elementwise.Mod, site.input(0), site.input(1))


@converts("BitShift")
def bit_shift(site: Site) -> Value:
    """The direction is an attribute."""
    directions = {"LEFT": logic.ShiftLeft, "RIGHT": logic.ShiftRight}
    direction = site.attribute("direction")
    if direction not in directions:
        site.bad_attribute(f"attribute 'direction' is '{direction}'; expected LEFT or RIGHT")
    return site.b(directions[direction], site.input(0), site.input(1))


@converts("IsInf")
def is_inf(site: Site) -> Value:
    """Which signs count are attributes."""
    return site.b(
        compare.IsInf,
        site.input(0),
        detect_negative=bool(site.attribute("detect_negative")),
        detect_positive=bool(site.attribute("detect_positive")),
    )


@converts("Where")
def where(site: Site) -> Value:
    """Choice by a condition; all three broadcast."""
    return site.b(compare.Select, site.input(0), site.input(1), site.input(2))


@converts("Clip", until=10)
def clip_by_attributes(site: Site) -> Value:
    """Bounds are attributes. Those that version 6 has by default, the least and greatest float32, bound float64 too."""
    bounds: list[Value | None] = []
    narrow = site.tensor(0).element is not F64
    for name, none in (("min", np.finfo(np.float32).min), ("max", np.finfo(np.float32).max)):
        bound = site.attribute(name)
        unbounded = bound is None or (narrow and bound == float(none))
        bounds.append(None if unbounded else site.scalar_like(bound, site.input(0)))
    return site.b(elementwise.Clamp, site.input(0), *bounds)


@converts("Clip", since=11)
def clip(site: Site) -> Value:
    """Bounds are optional inputs."""
    return site.b(elementwise.Clamp, site.input(0), site.optional(1), site.optional(2))
