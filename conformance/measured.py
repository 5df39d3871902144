"""Tolerance classes that are measured where nothing says beforehand how far rounding leads: beside `whole_graph`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from conformance.numerics import Float64Array, ulp
from conformance.tolerance import Reference, WholeGraph


@dataclass(frozen=True, slots=True)
class MeasuredUlp(WholeGraph):
    """An operator that works element by element: each within 4 + 4 n units of its own last place.

    n is the largest error of the independent implementation, in units of the last place of the exact result. Where n
    has more than half of the type's digits its errors are not relative to the result (near a zero of the function,
    say), and the rule of `whole_graph` holds.
    """

    name: ClassVar[str] = "measured_ulp"

    def bound(self, reference: Reference) -> Float64Array:
        units = self._noise_in_units(reference)
        if units > 2.0 ** (reference.form.mantissa_bits / 2):
            return WholeGraph.bound(self, reference)
        return 4 * (1 + units) * ulp(reference.values, reference.form)

    def over_all(self, errors: Float64Array, reference: Reference) -> list[str]:
        del errors, reference
        return []

    def _noise_in_units(self, reference: Reference) -> float:
        noise = np.abs(self._noise(reference))
        assert reference.exact is not None
        return float(np.max(noise / ulp(reference.exact, reference.form), initial=0.0))
