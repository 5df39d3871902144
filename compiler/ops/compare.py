"""Comparisons and classifications, whose result is a bool, and the choice between two values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.ir import BOOL, STRING, ElementType
from compiler.ops.elementwise import Elementwise, binary, unary
from compiler.ops.registry import ANY, BOOLEAN, FLAG, FLOAT, REAL, Attribute, Operand, Variable, register
from compiler.ops.scalars import widen
from compiler.ops.work import Apply, Arg, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion


class Predicate(Elementwise):
    """Base of the operators whose result is a bool."""

    def result_element(self, call: Call) -> ElementType:  # noqa: ARG002
        """Bool."""
        return BOOL


@register
class Eq(Predicate):
    """a = b: NaN equals nothing, -0.0 equals 0.0; strings by content."""

    name: ClassVar[str] = "eq"
    operands: ClassVar[tuple[Operand, ...]] = binary(ANY)
    commutative: ClassVar[bool] = True


@register
class Ne(Predicate):
    """Not (a = b): true for NaN."""

    name: ClassVar[str] = "ne"
    operands: ClassVar[tuple[Operand, ...]] = binary(ANY)
    commutative: ClassVar[bool] = True


@register
class Lt(Predicate):
    """a < b; false where either is NaN."""

    name: ClassVar[str] = "lt"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL | BOOLEAN)


@register
class Le(Predicate):
    """a <= b; false where either is NaN."""

    name: ClassVar[str] = "le"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL | BOOLEAN)


@register
class Gt(Predicate):
    """a > b; false where either is NaN."""

    name: ClassVar[str] = "gt"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL | BOOLEAN)


@register
class Ge(Predicate):
    """a >= b; false where either is NaN."""

    name: ClassVar[str] = "ge"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL | BOOLEAN)


@register
class IsNan(Predicate):
    """Whether x is not a number."""

    name: ClassVar[str] = "isnan"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class IsFinite(Predicate):
    """Whether x is neither infinite nor NaN."""

    name: ClassVar[str] = "isfinite"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class IsInf(Predicate):
    """Whether x is infinite, with a sign that is looked for (ONNX IsInf)."""

    name: ClassVar[str] = "isinf"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("detect_negative", FLAG, True, "whether -infinity counts"),
        Attribute("detect_positive", FLAG, True, "whether +infinity counts"),
    )

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The signs that are looked for."""
        x = widen(np.asarray(operands[0]))
        negative = call.flag("detect_negative") & (x == -math.inf)
        positive = call.flag("detect_positive") & (x == math.inf)
        return (np.asarray(negative | positive),)

    def scalar(self, call: Call, operands: tuple[Arg, ...]) -> Expression:
        """One test: for both signs, for one, or for none."""
        (x,) = operands
        negative, positive = call.flag("detect_negative"), call.flag("detect_positive")
        if negative and positive:
            return Apply("isinf", (x,), BOOL)
        if not negative and not positive:
            return Literal(False, BOOL)
        test = Apply("gt" if positive else "lt", (x, Literal(0.0, x.element)), BOOL)
        return Apply("and", (Apply("isinf", (x,), BOOL), test), BOOL)


@register
class Select(Elementwise):
    """``then`` where the condition is true, else ``otherwise``, all three broadcast (ONNX Where). Strings too."""

    name: ClassVar[str] = "select"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("condition", Variable("C", BOOLEAN)),
        Operand("then", Variable("T", ANY)),
        Operand("otherwise", Variable("T", ANY)),
    )

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The elements as they are."""
        dtype = object if call.tensor(1).element is STRING else np.asarray(operands[1]).dtype
        return (np.asarray(np.where(*operands)).astype(dtype, copy=False),)
