"""Activations from their formulas, in whatever order factors come.

1. 1 / (1 + exp(-x)) => logistic(x)
2. x * logistic(a x), x / (1 + exp(-x)) => silu(x)
3. x * 1/2 * (1 + erf(x / sqrt 2)), or 1 - erf(-x / sqrt 2) => gelu(x)
4. x * 1/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) => gelu(x) by tanh

Constants count to the rounding of their type; 0.797 for sqrt(2 / pi) in float32 is another function, left alone.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from compiler.ops.activation import Gelu, Silu
from compiler.ops.elementwise import Add, Div, Erf, Exp, Logistic, Mul, Neg, Reciprocal, Sub, Tanh
from compiler.ops.error_function import Erfc
from compiler.passes.canonical.shapes import same_shape
from compiler.passes.recognition.pieces import (
    Product,
    defined_by,
    is_near,
    product_of,
    require_unshared,
    scalar,
    sum_with_scalar,
)
from compiler.rewrite import REASSOCIATE, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Op, Value
    from compiler.rewrite import Rule

_CUBIC: Final = 0.044715
_SQRT_HALF: Final = math.sqrt(0.5)
_SQRT_2_OVER_PI: Final = math.sqrt(2 / math.pi)


def _under_denominator(value: Value) -> Value | None:
    """x, where the value is 1 + exp(-x)."""
    parts = sum_with_scalar(value)
    power = None if parts is None or parts[1] != 1 else defined_by(parts[0], Exp)
    negated = None if power is None else defined_by(power.operand(0), Neg)
    return None if negated is None else negated.operand(0)


@rule(operation(Reciprocal, operation(Add, anything(), anything(), name="sum")), REASSOCIATE)
def logistic_reciprocal(match: Match) -> Value:
    """1 / (1 + exp(-x)) => logistic(x)."""
    return _logistic(match, match["sum"])


@rule(operation(Div, anything("one"), operation(Add, anything(), anything(), name="sum")), REASSOCIATE)
def logistic_quotient(match: Match) -> Value:
    """1 / (1 + exp(-x)) => logistic(x); x / (1 + exp(-x)) => silu(x)."""
    if scalar(match["one"]) == 1:
        return _logistic(match, match["sum"])
    x = _under_denominator(match["sum"])
    match.require(x is match["one"], "the divisor is not 1 + exp(-x) of the dividend")
    assert x is not None
    require_unshared(match, [x])
    return match.build(Silu, x)


def _logistic(match: Match, denominator: Value) -> Value:
    x = _under_denominator(denominator)
    match.require(x is not None, "the divisor is not 1 + exp(-x)")
    assert x is not None
    match.require(same_shape(x, match.root.result), "broadcasting changes the shape")
    require_unshared(match, [x])
    return match.build(Logistic, x)


@rule(operation(Mul, anything("x"), operation(Logistic, anything("inner"), single_use=True)), REASSOCIATE)
def silu_product(match: Match) -> Value:
    """x * logistic(alpha x) => silu(x)."""
    x, inner = match["x"], match["inner"]
    if inner is x:
        return match.build(Silu, x)
    found = product_of(inner, stop=x)
    match.require(found.factors == [x], "the logistic function is of something else")
    match.require(math.isfinite(found.number) and same_shape(x, inner), "the factor is not finite")
    require_unshared(match, [x])
    return match.build(Silu, x, alpha=found.number)


@rule(operation(Mul, anything(), anything()), REASSOCIATE)
def gelu_product(match: Match) -> Value:
    """x / 2 * (1 + erf(x / sqrt 2)), or by tanh => gelu(x)."""
    root = match.root.result
    whole = product_of(root)
    sums = [value for value in whole.factors if _one_plus(value) is not None]
    match.require(len(sums) == 1, "no factor is 1 + erf or 1 + tanh")
    found_sum = _one_plus(sums[0])
    assert found_sum is not None
    function, sign = found_sum
    is_erf, argument = isinstance(function.definition, (Erf, Erfc)), function.operand(0)
    verified = _is_erf_argument if is_erf else _is_tanh_argument
    for x in whole.steps:
        if x is root or x is sums[0] or not same_shape(x, root):
            continue
        found = product_of(root, stop=x)
        if _is(found, 0.5, (x, sums[0]), root) and verified(argument, x, sign):
            require_unshared(match, [x])
            return match.build(Gelu, x, approximate="none" if is_erf else "tanh")
    reason = "the factors are not x, 1/2 and the function of x"
    raise NoMatch(reason)


def _one_plus(value: Value) -> tuple[Op, float] | None:
    """(f, 1) where the value is 1 + f(y), (f, -1) where it is 1 - f(y) or erfc(y), f being odd."""
    parts = sum_with_scalar(value)
    if parts is not None and parts[1] == 1:
        function = defined_by(parts[0], Erf, Tanh)
        return None if function is None else (function, 1.0)
    complement = defined_by(value, Erfc)
    if complement is not None:
        return complement, -1.0
    difference = defined_by(value, Sub)
    if difference is None or scalar(difference.operand(0)) != 1:
        return None
    function = defined_by(difference.operand(1), Erf, Tanh)
    return None if function is None else (function, -1.0)


def _is(found: Product, number: float, factors: tuple[Value, ...], root: Value) -> bool:
    return is_near(found.number, number, root) and Counter(found.factors) == Counter(factors)


def _is_erf_argument(value: Value, x: Value, sign: float) -> bool:
    return _is(product_of(value, stop=x), sign * _SQRT_HALF, (x,), value)


def _is_tanh_argument(value: Value, x: Value, sign: float) -> bool:
    """sqrt(2 / pi) (x + c x^3), or with x taken out of the sum."""
    found = product_of(value, stop=x)
    if not is_near(found.number, sign * _SQRT_2_OVER_PI, value):
        return False
    others = [factor for factor in found.factors if factor is not x]
    if len(others) != 1:
        return False
    if len(found.factors) == 2:
        parts = sum_with_scalar(others[0])
        return parts is not None and parts[1] == 1 and _is(product_of(parts[0], stop=x), _CUBIC, (x, x), value)
    op = defined_by(others[0], Add)
    if op is None or len(found.factors) != 1:
        return False
    a, b = op.operand(0), op.operand(1)
    cubic = b if a is x else a if b is x else None
    return cubic is not None and _is(product_of(cubic, stop=x), _CUBIC, (x, x, x), value)


RULES: Final[tuple[Rule, ...]] = (logistic_reciprocal, logistic_quotient, silu_product, gelu_product)
