"""Tolerance classes that allow n units of some magnitude: of the element, of its row, of what it cancels against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from conformance.numerics import Float64Array, Format, finite_or_zero, largest
from conformance.tolerance import ACCUMULATOR_BITS, Reference, ToleranceClass


def _units(n: float, form: Format) -> float:
    """Return n units relative to a magnitude: n * 2^-p, but in types of 16 bits and fewer n * 2^-23 + 2^-p.

    The meaning of an operator in a narrow type is exact arithmetic, or float32's, with one rounding at the result: n
    counts the errors of that float32, and the last unit is the rounding's.
    """
    if form.mantissa_bits >= ACCUMULATOR_BITS:
        return n * 2.0**-form.mantissa_bits
    return min(n, 1.0) * 2.0**-form.mantissa_bits + n * 2.0**-ACCUMULATOR_BITS


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class InputScaled(ToleranceClass):
    """Within n units of max(|ref|, |inputs|, min), element by element: functions that cancel against their input.

    Inputs that do not broadcast to the output's shape are left out. For the unit see `_units`.
    """

    name: ClassVar[str] = "input_scaled"
    n: float = 1.0

    def bound(self, reference: Reference) -> Float64Array:
        scale = np.abs(reference.values)
        for values in reference.inputs:
            if _broadcasts(values.shape, scale.shape):
                scale = np.fmax(scale, np.abs(np.where(np.isfinite(values), values, 0.0)))
        return finite_or_zero(_units(self.n, reference.form) * np.fmax(scale, reference.form.smallest_normal))


@dataclass(frozen=True, slots=True)
class MaxRelative(ToleranceClass):
    """Within n units of max |ref| over the whole output: recurrences, resize. For the unit see `_units`.

    An error of a small element hides behind a large one: where a definition says what an element depends on, there is a
    closer class.
    """

    name: ClassVar[str] = "max_relative"
    n: float = 1.0

    def bound(self, reference: Reference) -> Float64Array:
        scale = max(largest(reference.values), reference.form.smallest_normal)
        return np.full_like(reference.values, _units(self.n, reference.form) * scale)


@dataclass(frozen=True, slots=True)
class RowRelative(ToleranceClass):
    """Within n units of max |ref| over the element's row: the dims from `axis` on. Normalizations, attention.

    Where rows have a single element (an output of statistics, say) the whole output is the row.
    """

    name: ClassVar[str] = "row_relative"
    n: float = 1.0
    axis: int = -1

    def bound(self, reference: Reference) -> Float64Array:
        values = np.abs(finite_or_zero(reference.values))
        first = self.axis % values.ndim if -values.ndim <= self.axis < values.ndim else 0
        if math.prod(values.shape[first:]) == 1:
            first = 0
        greatest = np.max(values, axis=tuple(range(first, values.ndim)), keepdims=True, initial=0.0)
        scale = np.maximum(greatest, reference.form.smallest_normal)
        return np.broadcast_to(_units(self.n, reference.form) * scale, values.shape)


@dataclass(frozen=True, slots=True)
class Relative(ToleranceClass):
    """Within n units of |ref|, element by element: factors and quotients, in which nothing cancels."""

    name: ClassVar[str] = "relative"
    n: float = 1.0

    def bound(self, reference: Reference) -> Float64Array:
        scale = np.maximum(np.abs(finite_or_zero(reference.values)), reference.form.smallest_normal)
        return np.asarray(_units(self.n, reference.form) * scale, np.float64)


@dataclass(frozen=True, slots=True)
class ExpRelative(Relative):
    """Within n units of |ref| (1 + |ln |ref||), element by element: quotients of exponentials, such as softmax.

    exp(x - m) / sum: the argument x - m is rounded, and an absolute error of an argument is a relative one of its
    exponential; |x - m| is at most |ln |ref|| and the logarithm of the number of terms.
    """

    name: ClassVar[str] = "exp_relative"

    def bound(self, reference: Reference) -> Float64Array:
        size = np.maximum(np.abs(finite_or_zero(reference.values)), reference.form.smallest_normal)
        return np.asarray(_units(self.n, reference.form) * size * (1 + np.abs(np.log(size))), np.float64)


@dataclass(frozen=True, slots=True)
class LogSum(ToleranceClass):
    """Within n units of |ref| + max(1, ln K), element by element: logarithms of sums of K exponentials.

    It is m + ln(sum), the largest term m taken out: |m| is at most |ref| + ln K, and a relative error of the sum, which
    is at least 1, is an absolute one of its logarithm.
    """

    name: ClassVar[str] = "log_sum"
    n: float = 1.0

    def bound(self, reference: Reference) -> Float64Array:
        least = max(1.0, math.log(max(reference.elements_per_output, 1)))
        return _units(self.n, reference.form) * (np.abs(finite_or_zero(reference.values)) + least)
