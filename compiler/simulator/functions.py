"""The scalar functions of the vector unit: what they compute and how they round.

A function is computed at least as exactly as its result type can hold and then rounded once. Exact operations (IEEE
754's basic ones) run in the result's own type, or in float32 for 16-bit floats, where rounding twice is harmless
because float32 has more than twice their precision (Figueroa, 1995). Others run in float64 for float32 results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from compiler.ir import BF16, BOOL, F16, F32, element_of
from compiler.simulator.convert import convert, is_plain, saturate, storage_int

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array, ElementType

Compute: TypeAlias = "Callable[[Sequence[Array], ElementType], Array]"


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """``compute(operands, element)`` gives arrays of ``element``, for operands that broadcast against each other.

    ``ufunc`` is numpy's function that gives the same where all operands have the result's type and numpy knows it.
    """

    compute: Compute
    ufunc: np.ufunc | None = None


def _wide(operands: Sequence[Array], element: ElementType, *, transcendental: bool) -> np.dtype[Any]:
    narrow = all(operand.dtype.itemsize <= 2 for operand in operands) and element.bits <= 16
    if transcendental:
        return np.dtype(np.float32 if narrow else np.float64)
    if any(operand.dtype.kind in "iu" and operand.dtype.itemsize > 2 for operand in operands):
        return np.dtype(np.float64)
    return np.dtype(np.float64 if any(operand.dtype == np.float64 for operand in operands) else np.float32)


def _direct(operands: Sequence[Array], element: ElementType) -> bool:
    if element.bits < 8 or not (is_plain(element) or element is BF16):
        return False
    return all(operand.dtype == element.dtype for operand in operands)


def _integers(operands: Sequence[Array], element: ElementType) -> list[Array]:
    work = storage_int(element)
    for operand in operands:
        source = element_of(operand.dtype)
        if source.is_integer:
            work = max(work, storage_int(source), key=lambda dtype: dtype.itemsize)
    return [operand.astype(work, copy=False) for operand in operands]


def exact(ufunc: np.ufunc, integer: Callable[..., Any] | None = None) -> ScalarFunction:
    """A function that IEEE 754 rounds correctly; ``integer`` computes it for integers where numpy's means another."""

    def compute(operands: Sequence[Array], element: ElementType) -> Array:
        if element.is_integer or element is BOOL:
            values = _integers(operands, element) if element.is_integer else list(operands)
            return convert(np.asarray((integer or ufunc)(*values)), element)
        if _direct(operands, element):
            return np.asarray(ufunc(*operands))
        wide = _wide(operands, element, transcendental=False)
        return convert(np.asarray(ufunc(*(operand.astype(wide) for operand in operands))), element)

    return ScalarFunction(compute, None if integer else ufunc)


def rounded(function: Callable[..., Any]) -> ScalarFunction:
    """A function computed in a wider type and rounded."""

    def compute(operands: Sequence[Array], element: ElementType) -> Array:
        wide = _wide(operands, element, transcendental=True)
        return convert(np.asarray(function(*(operand.astype(wide) for operand in operands))), element)

    return ScalarFunction(compute)


def predicate(ufunc: np.ufunc) -> ScalarFunction:
    """A comparison or test of the operands in their own type."""

    def compute(operands: Sequence[Array], element: ElementType) -> Array:
        values = [
            operand.astype(storage_int(kind))
            if (kind := element_of(operand.dtype)).bits < 8 and kind.is_integer
            else operand
            for operand in operands
        ]
        return convert(np.asarray(ufunc(*values)), element)

    return ScalarFunction(compute)


def _identity(values: Array) -> Array:
    return values


def _truncating_division(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, np.zeros_like(quotient), quotient)


def _remainder(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, safe))


def _modulus(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.mod(a, safe))


def _integer_power(a: Array, b: Array) -> Array:
    if b.dtype.kind == "u":
        return np.asarray(np.power(a, b))
    positive = np.power(a, np.maximum(b, 0))
    negative = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)) if a.dtype.kind == "i" else a == 1
    return np.asarray(np.where(b < 0, negative, positive)).astype(a.dtype)


def _mod_float(a: Array, b: Array) -> Array:
    return np.asarray(np.mod(a, b))


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _erf(x: Array) -> Array:
    from scipy import special

    return np.asarray(special.erf(x))


def _with_integers(floats: ScalarFunction, integer: Callable[..., Any]) -> ScalarFunction:
    def compute(operands: Sequence[Array], element: ElementType) -> Array:
        if element.is_float:
            return floats.compute(operands, element)
        return convert(np.asarray(integer(*_integers(operands, element))), element)

    return ScalarFunction(compute)


def _logical(ufunc: np.ufunc) -> ScalarFunction:
    return ScalarFunction(lambda operands, element: convert(np.asarray(ufunc(*(x != 0 for x in operands))), element))


def _bitwise(function: Callable[..., Any]) -> ScalarFunction:
    def compute(operands: Sequence[Array], element: ElementType) -> Array:
        if element is BOOL:
            return np.asarray(function(*operands))
        return convert(np.asarray(function(*_integers(operands, element))), element)

    return ScalarFunction(compute)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, b: Array) -> Array:
        bits = a.dtype.itemsize * 8
        inside = (b >= 0) & (b < bits)
        amount = np.where(inside, b, 0).astype(a.dtype)
        shifted = np.left_shift(a, amount) if left else np.right_shift(a, amount)
        beyond = (
            np.zeros_like(a) if left or a.dtype.kind == "u" else np.where(a < 0, -np.ones_like(a), np.zeros_like(a))
        )
        return np.where(inside, shifted, beyond)

    return shift


def _popcount(operands: Sequence[Array], element: ElementType) -> Array:
    source = element_of(operands[0].dtype)
    bits = operands[0].astype(storage_int(source))
    codes = bits.view(np.dtype(f"u{bits.dtype.itemsize}"))
    if source.bits < 8:
        codes = codes & np.uint8((1 << source.bits) - 1)
    return convert(np.asarray(np.bitwise_count(codes)), element)


def _bitcast(operands: Sequence[Array], element: ElementType) -> Array:
    return np.ascontiguousarray(operands[0]).reshape(operands[0].shape).view(element.dtype)


def _select(operands: Sequence[Array], element: ElementType) -> Array:
    condition, then, otherwise = operands
    chosen = convert(then, element), convert(otherwise, element)
    if is_plain(element):
        return np.where(condition != 0, *chosen)
    shape = np.broadcast_shapes(condition.shape, then.shape, otherwise.shape)
    result = np.empty(shape, element.dtype)
    np.copyto(result, chosen[1])
    np.copyto(result, chosen[0], where=condition != 0)
    return result


def _cast(operands: Sequence[Array], element: ElementType) -> Array:
    return convert(operands[0], element)


def _cast_saturate(operands: Sequence[Array], element: ElementType) -> Array:
    return saturate(operands[0], element, element_of(operands[0].dtype))


FUNCTIONS: Final[dict[str, ScalarFunction]] = {
    "neg": exact(np.negative), "abs": exact(np.absolute), "sign": exact(np.sign),
    "floor": exact(np.floor, _identity), "ceil": exact(np.ceil, _identity),
    "round": exact(np.rint, _identity), "trunc": exact(np.trunc, _identity),
    "sqrt": exact(np.sqrt),
    "rsqrt": rounded(lambda x: 1 / np.sqrt(x)),
    "reciprocal": _with_integers(exact(np.reciprocal), lambda x: _truncating_division(np.ones_like(x), x)),
    "exp": rounded(np.exp), "expm1": rounded(np.expm1), "log": rounded(np.log), "log1p": rounded(np.log1p),
    "sin": rounded(np.sin), "cos": rounded(np.cos), "tan": rounded(np.tan),
    "asin": rounded(np.arcsin), "acos": rounded(np.arccos), "atan": rounded(np.arctan),
    "sinh": rounded(np.sinh), "cosh": rounded(np.cosh), "tanh": rounded(np.tanh),
    "asinh": rounded(np.arcsinh), "acosh": rounded(np.arccosh), "atanh": rounded(np.arctanh),
    "erf": rounded(_erf), "logistic": rounded(_logistic), "atan2": rounded(np.arctan2),
    "add": exact(np.add), "sub": exact(np.subtract), "mul": exact(np.multiply),
    "div": exact(np.divide, _truncating_division),
    "mod": _with_integers(rounded(_mod_float), _modulus),
    "rem": _with_integers(rounded(np.fmod), _remainder),
    "pow": _with_integers(rounded(np.float_power), _integer_power),
    "max": exact(np.maximum), "min": exact(np.minimum),
    "eq": predicate(np.equal), "ne": predicate(np.not_equal), "lt": predicate(np.less), "le": predicate(np.less_equal),
    "gt": predicate(np.greater), "ge": predicate(np.greater_equal),
    "isnan": predicate(np.isnan), "isinf": predicate(np.isinf), "isfinite": predicate(np.isfinite),
    "and": _logical(np.logical_and), "or": _logical(np.logical_or), "xor": _logical(np.logical_xor),
    "not": _logical(np.logical_not),
    "bitand": _bitwise(np.bitwise_and), "bitor": _bitwise(np.bitwise_or), "bitxor": _bitwise(np.bitwise_xor),
    "bitnot": _bitwise(np.invert), "shift_left": _bitwise(_shift(left=True)),
    "shift_right": _bitwise(_shift(left=False)),
    "popcount": ScalarFunction(_popcount), "bitcast": ScalarFunction(_bitcast),
    "select": ScalarFunction(_select), "cast": ScalarFunction(_cast), "cast_saturate": ScalarFunction(_cast_saturate),
}  # fmt: skip
"""By the names of ``compiler.ops.work.SCALAR_FUNCTIONS``."""

DIRECT: Final = frozenset({F32, F16})
"""Types in which a ufunc may write its result straight into a memory."""
