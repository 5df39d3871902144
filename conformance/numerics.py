"""Formats of numbers: mantissa bits, limits and units in the last place, for numpy's types and those of ml_dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]


class Kind(Enum):
    """How values of a type are compared."""

    FLOAT = auto()
    COMPLEX = auto()
    INTEGER = auto()
    BOOL = auto()
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: stored mantissa bits, limits of its normal numbers, whether it has infinities."""

    name: str
    mantissa_bits: int
    smallest_normal: float
    largest: float
    has_infinity: bool


_FLOATS = frozenset(
    np.dtype(getattr(ml_dtypes, name)) for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))
) | {np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)}
_SMALL_INTEGERS = frozenset(
    np.dtype(getattr(ml_dtypes, name))
    for name in ("int1", "uint1", "int2", "uint2", "int4", "uint4")
    if hasattr(ml_dtypes, name)
)
_KINDS = {
    "b": Kind.BOOL,
    "i": Kind.INTEGER,
    "u": Kind.INTEGER,
    "c": Kind.COMPLEX,
    "O": Kind.TEXT,
    "U": Kind.TEXT,
    "S": Kind.TEXT,
    "T": Kind.TEXT,
}


@cache
def kind_of(dtype: np.dtype[np.generic]) -> Kind:
    """Return how values of `dtype` are compared. Raises TypeError for a type that no framework model uses."""
    if dtype in _FLOATS:
        return Kind.FLOAT
    if dtype in _SMALL_INTEGERS:
        return Kind.INTEGER
    if dtype.kind in _KINDS:
        return _KINDS[dtype.kind]
    raise TypeError(f"values of type {dtype} cannot be compared")


@cache
def format_of(dtype: np.dtype[np.generic]) -> Format:
    """Return the format of a float type, or of the parts of a complex one."""
    if dtype.kind == "c":
        return format_of(np.dtype(np.float32 if dtype.itemsize == 8 else np.float64))
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        has_infinity = bool(np.isinf(np.array(np.inf).astype(dtype).astype(np.float64)))
    return Format(
        name=dtype.name,
        mantissa_bits=int(limits.nmant),
        smallest_normal=float(limits.smallest_normal),
        largest=float(limits.max),
        has_infinity=has_infinity,
    )


def widen(array: NDArray[np.generic]) -> Float64Array:
    """Return real values as float64, complex ones as a last axis (real, imaginary)."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64)


def binade(magnitude: Float64Array | float, form: Format) -> Float64Array:
    """Return max(2^floor(log2 |value|), smallest normal): the scale that an error bound is a multiple of.

    The exponent comes from `frexp`, which is exact where log2 rounds up just below a power of two.
    """
    finite = np.where(np.isfinite(magnitude), np.abs(magnitude), 0.0)
    _, exponent = np.frexp(finite)
    scale = np.where(finite == 0, 0.0, np.ldexp(1.0, exponent - 1))
    return np.asarray(np.maximum(scale, form.smallest_normal), np.float64)


def ulp(magnitude: Float64Array | float, form: Format) -> Float64Array:
    """Return the unit in the last place of `form` at each magnitude; that of the smallest normal below it."""
    return binade(magnitude, form) * 2.0**-form.mantissa_bits


def finite_or_zero(values: Float64Array) -> Float64Array:
    """Return the values with 0 in place of NaN and infinities."""
    return np.where(np.isfinite(values), values, 0.0)


def largest(values: Float64Array) -> float:
    """Return the largest magnitude of the finite values; 0 without one."""
    return float(np.max(np.abs(finite_or_zero(values)), initial=0.0))
