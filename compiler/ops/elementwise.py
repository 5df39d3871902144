"""Elementwise arithmetic: one scalar function a point, operands broadcast against each other as numpy does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from compiler.ir import F8E8M0FNU, STRING, ElementType, TensorType, Type
from compiler.ops.registry import FLOAT, NUMERIC, REAL, Operand, Operator, Variable, register
from compiler.ops.scalars import apply_scalar, limits
from compiler.ops.shapes import broadcast_dims
from compiler.ops.work import Apply, Arg, Expression, Loops, broadcast_access, identity_access, nests, parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work


def unary(allowed: frozenset[ElementType]) -> tuple[Operand, ...]:
    """The signature of one operand ``x``."""
    return (Operand("x", Variable("T", allowed)),)


def binary(allowed: frozenset[ElementType]) -> tuple[Operand, ...]:
    """The signature of two operands ``a`` and ``b`` of one element type."""
    type_ = Variable("T", allowed)
    return (Operand("a", type_), Operand("b", type_))


class Elementwise(Operator):
    """Base: the result has the broadcast dims; ``function`` is the scalar function, by default the operator's name."""

    function: ClassVar[str] = ""

    def result_element(self, call: Call) -> ElementType:
        """Element type of the result: that of the last operand, unless a subclass says otherwise."""
        return given_tensors(call)[-1].element

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Broadcast dims. Raises TypeMismatch where two sizes differ and neither is 1."""
        types = given_tensors(call)
        return (types[0].with_dims(broadcast_dims(self.name, types)).with_element(self.result_element(call)),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The scalar function at every point."""
        return (apply_scalar(self.function or self.name, *operands),)

    def scalar(self, call: Call, operands: tuple[Arg, ...]) -> Expression:
        """The body of the loops; ``operands`` are the reads of the operands that are given."""
        return Apply(self.function or self.name, operands, self.result_element(call))

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over the result. None for strings, which have no scalar functions."""
        result = results[0]
        assert isinstance(result, TensorType)
        given = [index for index in range(len(call.types)) if call.has(index)]
        types = [call.tensor(index) for index in given]
        if any(type_.element is STRING for type_ in types):
            return None
        arguments = tuple(Arg(read, type_.element) for read, type_ in enumerate(types))
        reads = tuple(
            broadcast_access(index, type_.shape, result.rank) for index, type_ in zip(given, types, strict=True)
        )
        body = self.scalar(call, arguments)
        return nests(Loops(parallel(result.shape), reads, body, identity_access(0, result.rank)))


def given_tensors(call: Call) -> list[TensorType]:
    """The types of the operands that are not omitted."""
    return [call.tensor(index) for index in range(len(call.types)) if call.has(index)]


@register
class Add(Elementwise):
    """Sum, IEEE 754's; integers wrap."""

    name: ClassVar[str] = "add"
    operands: ClassVar[tuple[Operand, ...]] = binary(NUMERIC)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """-0.0 for floats: x + 0.0 turns -0.0 into 0.0. Powers of two have no zero."""
        if element is F8E8M0FNU:
            return None
        return -0.0 if element.is_float else 0


@register
class Sub(Elementwise):
    """Difference a - b, IEEE 754's; integers wrap."""

    name: ClassVar[str] = "sub"
    operands: ClassVar[tuple[Operand, ...]] = binary(NUMERIC)

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """+0: even -0.0 - 0.0 is -0.0. Powers of two have no zero."""
        return None if element is F8E8M0FNU else 0


@register
class Mul(Elementwise):
    """Product, IEEE 754's; integers wrap."""

    name: ClassVar[str] = "mul"
    operands: ClassVar[tuple[Operand, ...]] = binary(NUMERIC)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """One."""
        return 1


@register
class Div(Elementwise):
    """Quotient a / b: IEEE 754's for floats; integers truncate towards zero as in C.

    Where C leaves it open: an integer divided by 0 is 0, and the least integer divided by -1 is itself (it wraps).
    """

    name: ClassVar[str] = "div"
    operands: ClassVar[tuple[Operand, ...]] = binary(NUMERIC)

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """One."""
        return 1


@register
class Mod(Elementwise):
    """Remainder of the floored quotient: it has the divisor's sign (ONNX Mod with fmod = 0, Python's %).

    The remainder of an integer by 0 is 0.
    """

    name: ClassVar[str] = "mod"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL)


@register
class Rem(Elementwise):
    """Remainder of the truncated quotient: it has the dividend's sign (ONNX Mod with fmod = 1, C's % and fmod).

    The remainder of an integer by 0 is 0, that of a float by 0 NaN; x rem infinity is x.
    """

    name: ClassVar[str] = "rem"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL)


@register
class Pow(Elementwise):
    """a to the power b, C99's pow for floats (x^0 = 1 even for NaN).

    Integers wrap; with a negative exponent the exact value is truncated: 1 and -1 keep their powers, all else gives 0
    (0 too, where the exact value would be infinite).
    """

    name: ClassVar[str] = "pow"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL)

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002
        """One."""
        return 1


@register
class Max(Elementwise):
    """The greater; NaN if either is NaN. Which zero is greater, -0.0 or 0.0, is not fixed."""

    name: ClassVar[str] = "max"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def commutes(self, element: ElementType) -> bool:
        """Not for floats: the order may decide the sign of a zero."""
        return not element.is_float

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """The least value of the type."""
        return limits(element)[0]


@register
class Min(Elementwise):
    """The lesser; NaN if either is NaN. Which zero is less, -0.0 or 0.0, is not fixed."""

    name: ClassVar[str] = "min"
    operands: ClassVar[tuple[Operand, ...]] = binary(REAL)
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def commutes(self, element: ElementType) -> bool:
        """Not for floats: the order may decide the sign of a zero."""
        return not element.is_float

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """The greatest value of the type."""
        return limits(element)[1]


@register
class Atan2(Elementwise):
    """Angle in radians of the point (b, a), in -pi..pi; C99's atan2, signed zeros included."""

    name: ClassVar[str] = "atan2"
    operands: ClassVar[tuple[Operand, ...]] = binary(FLOAT)


@register
class Neg(Elementwise):
    """-x: the sign bit flipped for floats; integers wrap (the least one stays)."""

    name: ClassVar[str] = "neg"
    operands: ClassVar[tuple[Operand, ...]] = unary(NUMERIC)
    involution: ClassVar[bool] = True


@register
class Abs(Elementwise):
    """Magnitude; the least integer stays, since it has no positive counterpart."""

    name: ClassVar[str] = "abs"
    operands: ClassVar[tuple[Operand, ...]] = unary(REAL)
    idempotent: ClassVar[bool] = True


@register
class Sign(Elementwise):
    """-1, 0 or 1 by the sign; NaN stays NaN."""

    name: ClassVar[str] = "sign"
    operands: ClassVar[tuple[Operand, ...]] = unary(REAL)
    idempotent: ClassVar[bool] = True


@register
class Floor(Elementwise):
    """Greatest whole number not above x."""

    name: ClassVar[str] = "floor"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)
    idempotent: ClassVar[bool] = True


@register
class Ceil(Elementwise):
    """Least whole number not below x; -0.5 gives -0.0."""

    name: ClassVar[str] = "ceil"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)
    idempotent: ClassVar[bool] = True


@register
class Round(Elementwise):
    """Nearest whole number, the even one of two (0.5 gives 0, 1.5 gives 2), as ONNX Round."""

    name: ClassVar[str] = "round"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)
    idempotent: ClassVar[bool] = True


@register
class Trunc(Elementwise):
    """Nearest whole number towards zero."""

    name: ClassVar[str] = "trunc"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)
    idempotent: ClassVar[bool] = True


@register
class Sqrt(Elementwise):
    """Square root; NaN below zero, -0.0 at -0.0."""

    name: ClassVar[str] = "sqrt"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Rsqrt(Elementwise):
    """1 / sqrt(x), rounded once; infinite at 0, NaN below."""

    name: ClassVar[str] = "rsqrt"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Reciprocal(Elementwise):
    """1 / x; infinite with x's sign at a zero."""

    name: ClassVar[str] = "reciprocal"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Exp(Elementwise):
    """e to the power x."""

    name: ClassVar[str] = "exp"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Expm1(Elementwise):
    """e to the power x, minus 1, exact near 0."""

    name: ClassVar[str] = "expm1"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Log(Elementwise):
    """Natural logarithm; -infinity at 0, NaN below."""

    name: ClassVar[str] = "log"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Log1p(Elementwise):
    """Natural logarithm of 1 + x, exact near 0; -infinity at -1, NaN below."""

    name: ClassVar[str] = "log1p"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Sin(Elementwise):
    """Sine of x radians; NaN at infinities."""

    name: ClassVar[str] = "sin"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Cos(Elementwise):
    """Cosine of x radians; NaN at infinities."""

    name: ClassVar[str] = "cos"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Tan(Elementwise):
    """Tangent of x radians; NaN at infinities."""

    name: ClassVar[str] = "tan"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Asin(Elementwise):
    """Arc sine in radians, in -pi/2..pi/2; NaN outside -1..1."""

    name: ClassVar[str] = "asin"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Acos(Elementwise):
    """Arc cosine in radians, in 0..pi; NaN outside -1..1."""

    name: ClassVar[str] = "acos"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Atan(Elementwise):
    """Arc tangent in radians, in -pi/2..pi/2."""

    name: ClassVar[str] = "atan"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Sinh(Elementwise):
    """Hyperbolic sine."""

    name: ClassVar[str] = "sinh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Cosh(Elementwise):
    """Hyperbolic cosine."""

    name: ClassVar[str] = "cosh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Tanh(Elementwise):
    """Hyperbolic tangent."""

    name: ClassVar[str] = "tanh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Asinh(Elementwise):
    """Inverse hyperbolic sine."""

    name: ClassVar[str] = "asinh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Acosh(Elementwise):
    """Inverse hyperbolic cosine; NaN below 1."""

    name: ClassVar[str] = "acosh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Atanh(Elementwise):
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""

    name: ClassVar[str] = "atanh"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Erf(Elementwise):
    """Gauss error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

    name: ClassVar[str] = "erf"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Logistic(Elementwise):
    """1 / (1 + exp(-x)), the sigmoid, without overflow on either side."""

    name: ClassVar[str] = "logistic"
    operands: ClassVar[tuple[Operand, ...]] = unary(FLOAT)


@register
class Clamp(Elementwise):
    """min(max(x, low), high), each bound optional and broadcast; NaN stays, ``high`` wins if low > high (ONNX Clip)."""

    name: ClassVar[str] = "clamp"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", REAL)),
        Operand("low", Variable("T", REAL), optional=True),
        Operand("high", Variable("T", REAL), optional=True),
    )

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The bounds that are given, the lower first."""
        bounded = operands[0]
        for function, bound in zip(("max", "min"), operands[1:], strict=False):
            if bound is not None:
                bounded = apply_scalar(function, bounded, bound)
        return (bounded,)

    def scalar(self, call: Call, operands: tuple[Arg, ...]) -> Expression:
        """Nested max and min."""
        body: Expression = operands[0]
        bounds = iter(operands[1:])
        for index, function in ((1, "max"), (2, "min")):
            if call.has(index):
                body = Apply(function, (body, next(bounds)), operands[0].element)
        return body
