"""The numpy meaning of the scalar functions of :data:`compiler.ops.work.SCALAR_FUNCTIONS`, for every element type.

numpy has no arithmetic of its own for the narrow types: floats of 16 bits and fewer are computed in float32 and rounded
once, integers narrower than a byte in int32 and wrapped. Warnings are silenced, since NaN and infinities are results
like any other here.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import ml_dtypes
import numpy as np

from compiler.ir import Array, ElementType, Kind, element_of

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_PASS_BITS: Final = 16
"""Floats of this many bits and fewer are computed in float32."""


def compute_dtype(element: ElementType) -> np.dtype[Any]:
    """The numpy type in which arithmetic on ``element`` is done before the one rounding back."""
    if element.is_float and element.bits <= _LAST_PASS_BITS:
        return np.dtype(np.float32)
    if element.is_integer and element.bits < 8:
        return np.dtype(np.int32)
    return element.dtype


@cache
def limits(element: ElementType) -> tuple[int | float, int | float]:
    """Least and greatest value of a real type: infinities where it has them. Bools are 0 and 1."""
    if element.kind is Kind.BOOL:
        return 0, 1
    if element.is_integer:
        if element.kind is Kind.UNSIGNED:
            return 0, 2**element.bits - 1
        return -(2 ** (element.bits - 1)), 2 ** (element.bits - 1) - 1
    low, high = finite_limits(element)
    with np.errstate(all="ignore"):
        infinity = float(np.asarray(np.inf, np.float32).astype(element.dtype))
    if math.isinf(infinity):
        return -infinity, infinity
    return low, high


@cache
def finite_limits(element: ElementType) -> tuple[float, float]:
    """Least and greatest finite value of a float type."""
    info = ml_dtypes.finfo(element.dtype)  # type: ignore[no-untyped-call] # the package is half annotated
    return float(info.min), float(info.max)


def _is_integer(array: Array) -> bool:
    return array.dtype.kind in "iu"


def _divide(a: Array, b: Array) -> Array:
    if not _is_integer(a):
        return cast("Array", np.true_divide(a, b))
    floor = np.floor_divide(a, b)
    inexact = (b != 0) & (a - floor * b != 0) & ((a < 0) != (b < 0))
    return cast("Array", floor + inexact.astype(a.dtype))


def _power(a: Array, b: Array) -> Array:
    if not _is_integer(a):
        # np.power takes the square root for an exponent of one element that is 0.5, which errs at -0.0 and -infinity.
        return cast("Array", np.float_power(a, b))
    whole = np.power(a, np.maximum(b, 0))
    if b.dtype.kind == "u":
        return cast("Array", whole)
    odd = (b & 1) != 0
    of_negative = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0)).astype(a.dtype)
    return np.where(b < 0, of_negative, whole)


def _outside_width(a: Array, b: Array) -> Array:
    return cast("Array", (b < 0) | (b >= 8 * a.dtype.itemsize))


def _shift_left(a: Array, b: Array) -> Array:
    outside = _outside_width(a, b)
    return np.where(outside, np.zeros_like(a), np.left_shift(a, np.where(outside, 0, b).astype(b.dtype)))


def _shift_right(a: Array, b: Array) -> Array:
    outside = _outside_width(a, b)
    sign = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.where(outside, sign, np.right_shift(a, np.where(outside, 0, b).astype(b.dtype)))


def _erf(x: Array) -> Array:
    flat = np.fromiter(map(math.erf, x.astype(np.float64).ravel().tolist()), np.float64, x.size)
    return flat.reshape(x.shape)


def _logistic(x: Array) -> Array:
    wide = x.astype(np.float64)
    small = np.exp(-np.abs(wide))
    return cast("Array", np.where(wide < 0, small, 1.0) / (1.0 + small))


def _rsqrt(x: Array) -> Array:
    return cast("Array", 1.0 / np.sqrt(x.astype(np.float64)))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "neg": np.negative, "abs": np.absolute, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "trunc": np.trunc, "sqrt": np.sqrt, "rsqrt": _rsqrt, "reciprocal": np.reciprocal, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": _erf, "logistic": _logistic,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "mod": np.remainder, "rem": np.fmod,
    "pow": _power, "atan2": np.arctan2, "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor, "bitnot": np.invert,
    "shift_left": _shift_left, "shift_right": _shift_right,
    "select": np.where,
}  # fmt: skip

PREDICATES: Final = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "and", "or", "xor", "not")
)
"""The functions whose result is a bool."""


def apply_scalar(function: str, *operands: Array) -> Array:
    """The function at every element, operands broadcast; the result has the last operand's type (bool: predicates)."""
    arrays = [np.asarray(operand) for operand in operands]
    result_dtype = np.dtype(np.bool_) if function in PREDICATES else arrays[-1].dtype
    with np.errstate(all="ignore"):
        widened = [widen(array) for array in arrays]
        return np.asarray(FUNCTIONS[function](*widened)).astype(result_dtype, copy=False)


def widen(array: Array) -> Array:
    """The array in the type in which arithmetic on it is done."""
    if array.dtype.kind in "OUS":
        return array
    return array.astype(compute_dtype(element_of(array.dtype)), copy=False)


def python_number(array: Array) -> bool | int | float | complex:
    """The first element as a Python number."""
    found: bool | int | float | complex = widen(array).reshape(-1)[0].item()
    return found
