"""Logic on bools and on the bits of integers."""

from __future__ import annotations

from typing import ClassVar

from compiler.ir import ElementType
from compiler.ops.elementwise import Elementwise, binary, unary
from compiler.ops.registry import BOOLEAN, INTEGER, Operand, register
from compiler.ops.scalars import limits


@register
class And(Elementwise):
    """Both."""

    name: ClassVar[str] = "and"
    operands: ClassVar[tuple[Operand, ...]] = binary(BOOLEAN)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """True."""
        return True


@register
class Or(Elementwise):
    """At least one."""

    name: ClassVar[str] = "or"
    operands: ClassVar[tuple[Operand, ...]] = binary(BOOLEAN)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """False."""
        return False


@register
class Xor(Elementwise):
    """Exactly one."""

    name: ClassVar[str] = "xor"
    operands: ClassVar[tuple[Operand, ...]] = binary(BOOLEAN)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """False."""
        return False


@register
class Not(Elementwise):
    """Negation of a bool."""

    name: ClassVar[str] = "not"
    operands: ClassVar[tuple[Operand, ...]] = unary(BOOLEAN)
    involution: ClassVar[bool] = True


@register
class BitAnd(Elementwise):
    """The bits set in both."""

    name: ClassVar[str] = "bitand"
    operands: ClassVar[tuple[Operand, ...]] = binary(INTEGER)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """All bits set."""
        low, high = limits(element)
        return high if low == 0 else -1


@register
class BitOr(Elementwise):
    """The bits set in at least one."""

    name: ClassVar[str] = "bitor"
    operands: ClassVar[tuple[Operand, ...]] = binary(INTEGER)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """No bit set."""
        return 0


@register
class BitXor(Elementwise):
    """The bits set in exactly one."""

    name: ClassVar[str] = "bitxor"
    operands: ClassVar[tuple[Operand, ...]] = binary(INTEGER)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """No bit set."""
        return 0


@register
class BitNot(Elementwise):
    """Every bit inverted."""

    name: ClassVar[str] = "bitnot"
    operands: ClassVar[tuple[Operand, ...]] = unary(INTEGER)
    involution: ClassVar[bool] = True


@register
class ShiftLeft(Elementwise):
    """a moved b bits up; bits that leave the type are lost, and b at or beyond its width (or negative) gives 0."""

    name: ClassVar[str] = "shift_left"
    operands: ClassVar[tuple[Operand, ...]] = binary(INTEGER)

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """A shift by nothing."""
        return 0


@register
class ShiftRight(Elementwise):
    """a moved b bits down, signed ones keeping their sign; b at or beyond the width (or negative) leaves 0 or -1."""

    name: ClassVar[str] = "shift_right"
    operands: ClassVar[tuple[Operand, ...]] = binary(INTEGER)

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """A shift by nothing."""
        return 0
