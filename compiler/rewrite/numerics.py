"""What a rewrite may do to the numbers: four classes, each with the check that holds a result to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from compiler.ir import Kind, element_of

if TYPE_CHECKING:
    from compiler.ir import Array


class Change(Enum):
    """How results may differ."""

    EXACT = "exact"
    """Not at all: the same bits, save that any NaN stands for any other."""
    ULP = "ulp"
    """By some units in the last place of the result."""
    REASSOCIATE = "reassociate"
    """By the rounding of the same real sum taken in another order or with factors moved."""
    QUANTIZE = "quantize"
    """By one step of a quantized result."""


@dataclass(frozen=True, slots=True)
class Numerics:
    """A class of change, with the number of units in the last place for ULP."""

    change: Change
    ulps: float = 0.0

    def holds(self, before: Array, after: Array, *, roundings: int = 1) -> bool:
        """Whether ``after`` is an allowed replacement of ``before``: type, shape, special values, finite error.

        ``roundings`` are those of the computation (``compiler.passes.roundings``), which bound what another order of it
        may change.
        """
        if before.dtype != after.dtype or before.shape != after.shape:
            return False
        element = element_of(before.dtype)
        if element.is_integer and self.change is Change.QUANTIZE:
            return bool(np.all(np.abs(before.astype(np.int64) - after.astype(np.int64)) <= 1))
        if self.change is Change.EXACT or not (element.is_float or element.kind is Kind.COMPLEX):
            return _equal(before, after)
        wide_before, wide_after = _wide(before), _wide(after)
        finite = np.isfinite(wide_before) & np.isfinite(wide_after)
        special = ~finite
        if not np.array_equal(wide_before[special], wide_after[special], equal_nan=True):
            return False
        error = np.abs(wide_before[finite] - wide_after[finite])
        return bool(np.all(error <= self._bound(before, wide_before[finite], roundings)))

    def _bound(self, before: Array, wide: Array, roundings: int) -> Any:  # noqa: ANN401 - array or scalar
        """The greatest error for finite results ``wide`` of the type of ``before``."""
        info = _finfo(before.dtype)
        magnitude = np.maximum(np.abs(wide), float(info.smallest_normal))
        if self.change is Change.ULP:
            return self.ulps * 2.0 ** np.floor(np.log2(magnitude)) * float(info.eps)
        # Half a unit a rounding, on both sides; another order of a sum can move the error of its greatest term into any
        # element of the result.
        return roundings * float(info.eps) * float(magnitude.max(initial=0.0))

    def __str__(self) -> str:
        return f"ulp({self.ulps:g})" if self.change is Change.ULP else self.change.value


EXACT: Final = Numerics(Change.EXACT)
REASSOCIATE: Final = Numerics(Change.REASSOCIATE)
QUANTIZE: Final = Numerics(Change.QUANTIZE)


def ulp(count: float) -> Numerics:
    """Up to ``count`` units in the last place."""
    return Numerics(Change.ULP, count)


def _finfo(dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - numpy's and ml_dtypes' have no common base
    return np.finfo(dtype) if dtype.kind == "c" else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _equal(before: Array, after: Array) -> bool:
    element = element_of(before.dtype)
    if not (element.is_float or element.kind is Kind.COMPLEX):
        return bool(np.array_equal(before, after))
    a, b = np.ascontiguousarray(before).reshape(-1), np.ascontiguousarray(after).reshape(-1)
    if a.dtype.kind == "c":
        part = np.dtype(f"f{a.dtype.itemsize // 2}")
        a, b = a.view(part), b.view(part)
    bits = f"u{a.dtype.itemsize}"
    return bool(np.all((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))))
