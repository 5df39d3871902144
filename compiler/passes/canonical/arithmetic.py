"""Exact rules of arithmetic and logic. They ask for algebraic facts; a constant matches by its bits alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.ir import Definition, Kind, attributes_key
from compiler.ops.compare import Eq, Ge, Gt, Le, Lt, Ne, Select
from compiler.ops.elementwise import Abs, Add, Div, Mul, Neg, Sub
from compiler.ops.logic import Not
from compiler.ops.registry import Operator
from compiler.passes.canonical.shapes import keeps_shape, same_shape
from compiler.rewrite import EXACT, Match, anything, constant, operation, rule, same_bits

if TYPE_CHECKING:
    from compiler.ir import Value
    from compiler.rewrite import Rule


def has_identity(definition: Operator) -> bool:
    """An operator with an identity element."""
    return type(definition).identity_element is not Operator.identity_element


def involutive(definition: Operator) -> bool:
    """An involution."""
    return definition.involution


def idempotent_of_one(definition: Operator) -> bool:
    """An idempotent operator of one operand."""
    return definition.idempotent and len(definition.operands) == 1


def idempotent_of_two(definition: Operator) -> bool:
    """An idempotent operator of two operands."""
    return definition.idempotent and len(definition.operands) == 2


def regroupable(definition: Operator) -> bool:
    """A commutative and associative operator."""
    return definition.commutative and definition.associative


@rule(operation(has_identity, anything("x"), constant("e")), EXACT)
def identity_element(match: Match) -> Value:
    """f(x, e) => x, where e is f's identity element: x + (-0.0), x * 1, x and true."""
    definition, element = match.root.definition, match.tensor("x").element
    assert isinstance(definition, Operator)
    # A complex product or sum rounds signed zeros and infinities of its parts otherwise.
    match.require(element.kind is not Kind.COMPLEX, "complex numbers have no exact identity element")
    wanted = definition.identity_element(element)
    match.require(
        wanted is not None and same_bits(match.array("e"), wanted),
        f"the constant is not the identity element {wanted!r} to the bit",
    )
    match.require(keeps_shape(match["x"], match["e"], match.root.result), "broadcasting changes the shape")
    return match["x"]


@rule(operation(involutive, operation(involutive, anything("x"), name="inner")), EXACT)
def involution(match: Match) -> Value:
    """f(f(x)) => x, where f is its own inverse: neg, not, reverse."""
    match.require(_same_function(match), "two different functions")
    return match["x"]


@rule(operation(idempotent_of_one, operation(idempotent_of_one, anything("x"), name="inner")), EXACT)
def idempotent(match: Match) -> Value:
    """f(f(x)) => f(x): abs, floor, relu."""
    match.require(_same_function(match), "two different functions")
    return match["inner"]


def _same_function(match: Match) -> bool:
    inner, root = match.defining("inner"), match.root
    return inner.definition is root.definition and attributes_key(inner.attributes) == attributes_key(root.attributes)


@rule(operation(idempotent_of_two, anything("x"), anything("x")), EXACT)
def with_itself(match: Match) -> Value:
    """f(x, x) => x: max, min, and, or."""
    return match["x"]


@rule(operation(Sub, anything("x"), operation(Neg, anything("y"))), EXACT)
def subtract_negated(match: Match) -> Value:
    """x - (-y) => x + y."""
    return match.build(Add, match["x"], match["y"])


@rule(operation(Add, anything("x"), operation(Neg, anything("y"))), EXACT)
def add_negated(match: Match) -> Value:
    """x + (-y) => x - y."""
    return match.build(Sub, match["x"], match["y"])


@rule(operation(Mul, anything("x"), constant("c")), EXACT)
def times_minus_one(match: Match) -> Value:
    """x * -1 => -x."""
    element = match.tensor("x").element
    match.require(element.is_float or element.kind is Kind.SIGNED, "the type has no exact -1")
    match.require(same_bits(match.array("c"), -1), "the constant is not -1 to the bit")
    match.require(keeps_shape(match["x"], match["c"], match.root.result), "broadcasting changes the shape")
    return match.build(Neg, match["x"])


@rule(operation(Mul, operation(Neg, anything("x")), operation(Neg, anything("y"))), EXACT)
def times_negated(match: Match) -> Value:
    """(-x) * (-y) => x * y."""
    match.require(match.tensor("x").element.kind is not Kind.COMPLEX, "signs of zero parts would differ")
    return match.build(Mul, match["x"], match["y"])


@rule(operation(Abs, operation(Neg, anything("x"))), EXACT)
def abs_of_negated(match: Match) -> Value:
    """|-x| => |x|, where numbers have a sign: without one, -x is 2^n - x and its own magnitude."""
    match.require(match.tensor("x").element.kind is not Kind.UNSIGNED, "the type has no sign")
    return match.build(Abs, match["x"])


@rule(operation(Div, anything("x"), constant("c")), EXACT)
def divide_by_power_of_two(match: Match) -> Value:
    """x / 2^k => x * 2^-k, where both powers are normal numbers: scaling by a power of two rounds alike."""
    element, divisor = match.tensor("x").element, match.array("c")
    match.require(element.is_float and element.bits >= 16 and divisor.size > 0, "no float type of 16 bits or more")
    wide = divisor.astype(np.float64)
    mantissa, exponent = np.frexp(np.abs(wide))
    # Exponents -13..13 are normal, with their negatives, in every float type of 16 bits or more.
    normal = (mantissa == 0.5) & (np.abs(exponent - 1) <= 13)
    match.require(bool(np.all(normal)), "a divisor is not a power of two between 2^-13 and 2^13")
    match.require(not same_bits(divisor, 1), "the divisor is 1")
    return match.build(Mul, match["x"], match.constant((1 / wide).astype(divisor.dtype)))


@rule(operation(regroupable, operation(regroupable, anything("x"), constant("a"), name="inner"), constant("b")), EXACT)
def regroup_constants(match: Match) -> Value:
    """f(f(x, a), b) => f(x, f(a, b)) for integers and bools, where it is exact and does not grow a constant."""
    definition, element = match.root.definition, match.tensor("x").element
    match.require(match.defining("inner").definition is definition, "two different functions")
    match.require(element.is_integer or element.kind is Kind.BOOL, "it rounds otherwise for this type")
    a, b = match.array("a"), match.array("b")
    match.require(np.broadcast(a, b).size <= max(a.size, b.size), "the joined constant would be larger")
    return match.build(definition, match["x"], match.build(definition, match["a"], match["b"]))


_COMPLEMENT: Final[dict[type[Definition], type[Definition]]] = {Eq: Ne, Ne: Eq}
_INTEGER_COMPLEMENT: Final[dict[type[Definition], type[Definition]]] = {Lt: Ge, Ge: Lt, Gt: Le, Le: Gt}


@rule(operation(Not, operation((Eq, Ne, Lt, Le, Gt, Ge), anything("a"), anything("b"), name="inner")), EXACT)
def negated_comparison(match: Match) -> Value:
    """not (a = b) => a != b for all types, not (a < b) => a >= b where there is no NaN."""
    inner = match.defining("inner")
    kind = type(inner.definition)
    opposite = _COMPLEMENT.get(kind)
    if opposite is None:
        match.require(not match.tensor("a").element.is_float, "NaN is neither less nor not less")
        opposite = _INTEGER_COMPLEMENT[kind]
    return match.build(opposite, *inner.operands)


@rule(operation(Select, anything("condition"), anything("x"), anything("x")), EXACT)
def select_equal(match: Match) -> Value:
    """select(c, x, x) => x."""
    match.require(keeps_shape(match["x"], match["condition"], match.root.result), "the condition broadcasts x")
    return match["x"]


@rule(operation(Select, constant("condition"), anything("a"), anything("b")), EXACT)
def select_decided(match: Match) -> Value:
    """select(true, a, b) => a, select(false, a, b) => b."""
    condition, result = match.array("condition"), match.root.result
    match.require(condition.size > 0 and bool(np.all(condition == condition.flat[0])), "the condition is mixed")
    chosen = match["a" if condition.flat[0] else "b"]
    match.require(same_shape(chosen, result), "broadcasting changes the shape")
    return chosen


@rule(operation(Select, operation(Not, anything("condition")), anything("a"), anything("b")), EXACT)
def select_negated(match: Match) -> Value:
    """select(not c, a, b) => select(c, b, a)."""
    return match.build(Select, match["condition"], match["b"], match["a"])


RULES: Final[tuple[Rule, ...]] = (
    identity_element,
    involution,
    idempotent,
    with_itself,
    times_minus_one,
    times_negated,
    subtract_negated,
    add_negated,
    abs_of_negated,
    divide_by_power_of_two,
    regroup_constants,
    negated_comparison,
    select_equal,
    select_decided,
    select_negated,
)
