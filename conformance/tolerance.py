"""The named tolerance classes: how far a right result may be from the reference.

Every class gives, for each element of an output, the largest error that it allows, as an absolute number; some add
tests over the whole output. `p` is the number of stored mantissa bits of the output's type and `min` its smallest
normal number. The formulas of `ulp`, `abs_error`, `dot_product`, `reduce_product` and `max_relative` follow the
numerical requirements of the TOSA specification; the two tiers follow the Khronos conformance tests, which tell a
quality warning from a failure.

Classes relative to a magnitude are in tolerance_scales.py; how a class is written in a manifest is in
tolerance_names.py. There is no class by default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from conformance.errors import UnknownToleranceClass
from conformance.numerics import Float64Array, Format, finite_or_zero, largest, ulp

SECOND_TIER = 16.0
"""Factor on every bound within which a result that fails its class is a quality warning instead of wrong."""

ACCUMULATOR_BITS = 23
"""Mantissa bits that sums of types of 16 bits and fewer are expected to be kept in: those of float32."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a class may look at for one output: all in float64, complex values with a last axis of two.

    `absolute` is the run on absolute values (`bnd`); `terms` the number of summed terms of one output element, found
    by a run on ones; `inputs` the float inputs of the case; `baseline` another implementation's result in the output's
    own type, `exact` the exact reference's; `elements_per_output` the ratio of input elements to output elements.
    """

    values: Float64Array
    form: Format
    absolute: Float64Array | None = None
    terms: int | None = None
    inputs: tuple[Float64Array, ...] = ()
    baseline: Float64Array | None = None
    exact: Float64Array | None = None
    elements_per_output: int = 1


class MissingEvidence(UnknownToleranceClass):
    """A class that needs a run which this case can't give: the absolute-value run of a dot product, say."""


class ToleranceClass(ABC):
    """A rule for the errors of float outputs. Outputs of other types are exact in every class but `steps`."""

    name: ClassVar[str]
    signed_zero: ClassVar[bool] = False
    needs_runs: ClassVar[bool] = False
    needs_baseline: ClassVar[bool] = False
    second_tier: ClassVar[bool] = True
    values_matter: ClassVar[bool] = True
    rounds_reference: ClassVar[bool] = False
    integer_steps: int = 0

    @abstractmethod
    def bound(self, reference: Reference) -> Float64Array:
        """Return the largest absolute error allowed, of the reference's shape. Raises `MissingEvidence`."""

    def over_all(self, errors: Float64Array, reference: Reference) -> list[str]:
        """Return what is wrong with the errors as a whole; `errors` are signed, on finite elements only, else 0."""
        del errors, reference
        return []

    def between_implementations(self) -> float:
        """Return the factor on the bound when the reference is itself a result in the output's type, not float64.

        Both may be at opposite ends of the class, hence 2.
        """
        return 2.0


@dataclass(frozen=True, slots=True)
class Exact(ToleranceClass):
    """Equal values, a wider reference being rounded to the output's type first; +0 equals -0."""

    name: ClassVar[str] = "exact"
    second_tier: ClassVar[bool] = False
    rounds_reference: ClassVar[bool] = True

    def bound(self, reference: Reference) -> Float64Array:
        return np.zeros_like(reference.values)


@dataclass(frozen=True, slots=True)
class ExactSignedZero(Exact):
    """Equal values, and zeros of equal sign: data movement, negation, absolute value."""

    name: ClassVar[str] = "exact_signed_zero"
    signed_zero: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Ulp(ToleranceClass):
    """Within n * max(2^floor(log2 |ref|), min) * 2^-p; a reference of 0 must give 0."""

    name: ClassVar[str] = "ulp"
    n: float = 1.0

    def bound(self, reference: Reference) -> Float64Array:
        return np.where(reference.values == 0, 0.0, self.n * ulp(reference.values, reference.form))

    def between_implementations(self) -> float:
        """Two correctly rounded results of one exact value are equal, so half a unit stays half a unit."""
        return 1.0 if self.n <= 0.5 else 2.0


@dataclass(frozen=True, slots=True)
class AbsoluteError(ToleranceClass):
    """Within 2^-p * max(|magnitude|, min) * factor(x), both from the named function's row; x is the float input."""

    name: ClassVar[str] = "abs_error"
    function: str = ""

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise UnknownToleranceClass(f"abs_error({self.function}): expected one of {', '.join(sorted(_FUNCTIONS))}")

    def bound(self, reference: Reference) -> Float64Array:
        x = _first_input(reference)
        scale, factor = _FUNCTIONS[self.function](x, reference)
        largest = np.maximum(np.abs(np.where(np.isfinite(scale), scale, 0.0)), reference.form.smallest_normal)
        return finite_or_zero(2.0**-reference.form.mantissa_bits * largest * factor)


def _sigmoid(x: Float64Array, reference: Reference) -> tuple[Float64Array, Float64Array]:
    return reference.values, 2 * (1 + np.abs(x))


def _tanh(x: Float64Array, reference: Reference) -> tuple[Float64Array, Float64Array]:
    slope = 4 * (3 + 2 * np.abs(x)) if reference.form.mantissa_bits >= 23 else 4 * (1 + 2 * np.abs(x))
    return reference.values, slope


def _exp(x: Float64Array, reference: Reference) -> tuple[Float64Array, Float64Array]:
    return reference.values, 2 * (1 + np.abs(x))


def _periodic(x: Float64Array, reference: Reference) -> tuple[Float64Array, Float64Array]:
    """Sine and cosine: an error of half a unit of the argument passes to the result with slope 1 at most."""
    return np.maximum(np.abs(reference.values), 1.0), 2 * np.maximum(np.minimum(np.abs(x), 2.0), 1.0)


def _log(x: Float64Array, reference: Reference) -> tuple[Float64Array, Float64Array]:
    """Near 1 the logarithm passes through 0: the bound stays at that of 2^-3, as OpenCL's does for half precision."""
    return np.maximum(np.abs(reference.values), 2.0**-3), np.full_like(x, 5.0)


_FUNCTIONS: Mapping[str, Callable[[Float64Array, Reference], tuple[Float64Array, Float64Array]]] = {
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "exp": _exp,
    "sin": _periodic,
    "cos": _periodic,
    "log": _log,
}


def _first_input(reference: Reference) -> Float64Array:
    for values in reference.inputs:
        if values.shape == reference.values.shape:
            return values
    raise MissingEvidence("abs_error needs a float input of the output's shape, and the case has none")


@dataclass(frozen=True, slots=True)
class DotProduct(ToleranceClass):
    """Sums of KS products, held to a bound, a variance and a bias, all relative to the run on absolute values.

    With u = max(bnd * 2^(-1-p), min) and e = (result - ref) / u: |e| <= 2 ksb (6 ksb in float32),
    sum(e^2) <= 1.6 ksb T over the T outputs, and |sum(e)| <= sqrt(10 * 1.6 ksb T) on signed data.
    ksb = ceil(KS / 2^((p_acc - p) / 2)) + (1 with a bias). The last two see accumulation in a shortened mantissa or
    towards zero, which a single bound lets by.
    """

    name: ClassVar[str] = "dot_product"
    needs_runs: ClassVar[bool] = True
    bias: bool

    def bound(self, reference: Reference) -> Float64Array:
        factor = 6 if reference.form.mantissa_bits >= 23 else 2
        return factor * self._terms(reference) * self._unit(reference)

    def over_all(self, errors: Float64Array, reference: Reference) -> list[str]:
        e = errors / self._unit(reference)
        variance_bound = 1.6 * self._terms(reference) * e.size
        problems = []
        squares = float(np.sum(e * e))
        if squares > variance_bound:
            problems.append(f"sum of squared errors {squares:.4g} exceeds {variance_bound:.4g}")
        total, bias_bound = abs(float(np.sum(e))), math.sqrt(10 * variance_bound)
        if total > bias_bound and _is_signed(reference):
            problems.append(f"sum of errors {total:.4g} exceeds {bias_bound:.4g}: they have a bias")
        return problems

    def _unit(self, reference: Reference) -> Float64Array:
        if reference.absolute is None:
            raise MissingEvidence(f"{self.name} needs the run on absolute values, which no oracle could make")
        scaled = reference.absolute * 2.0 ** (-1 - reference.form.mantissa_bits)
        return np.fmax(finite_or_zero(scaled), reference.form.smallest_normal)

    def _count(self, reference: Reference) -> int:
        if reference.terms is None:
            raise MissingEvidence(f"{self.name} needs the number of summed terms, which no oracle could find")
        return max(reference.terms, 1)

    def _terms(self, reference: Reference) -> int:
        spare_bits = max(ACCUMULATOR_BITS - reference.form.mantissa_bits, 0)
        return math.ceil(self._count(reference) / 2 ** (spare_bits / 2)) + int(self.bias)


def _is_signed(reference: Reference) -> bool:
    """Return whether most sums have terms of both signs: elsewhere a bias is no evidence."""
    if reference.absolute is None:
        return False
    mixed = reference.absolute > np.abs(reference.values) * (1 + 1e-9)
    return bool(np.mean(mixed) > 0.5) if mixed.size else False


@dataclass(frozen=True, slots=True)
class ReduceSum(DotProduct):
    """A dot product with ones: sums, means, average pools. KS is at least the input elements an output has."""

    name: ClassVar[str] = "reduce_sum"

    def _count(self, reference: Reference) -> int:
        return max(reference.terms or 1, reference.elements_per_output, 1)


@dataclass(frozen=True, slots=True)
class ReduceProduct(ToleranceClass):
    """Within |ref| * ((1 + 2^(-p-1))^n - 1) of n factors, n from the case, plus a rounding of the result."""

    name: ClassVar[str] = "reduce_product"

    def bound(self, reference: Reference) -> Float64Array:
        factors = max(reference.terms or 2, reference.elements_per_output)
        half_unit = 2.0 ** (-reference.form.mantissa_bits - 1)
        growth = math.expm1(factors * math.log1p(half_unit)) + half_unit
        return np.fmax(np.abs(finite_or_zero(reference.values)) * growth, 0.5 * ulp(reference.values, reference.form))


@dataclass(frozen=True, slots=True)
class Steps(Exact):
    """Integers within n of the reference: quantized results where a definition leaves a tie open. Floats exact."""

    name: ClassVar[str] = "steps"
    integer_steps: int = 1


@dataclass(frozen=True, slots=True)
class SpecialValues(ToleranceClass):
    """Only shape, type, and the places of NaN and of infinities with their signs."""

    name: ClassVar[str] = "special_values"

    def bound(self, reference: Reference) -> Float64Array:
        return np.full_like(reference.values, np.inf)


@dataclass(frozen=True, slots=True)
class ShapeOnly(SpecialValues):
    """Only shape and type: operators whose values are drawn at random."""

    name: ClassVar[str] = "shape_only"
    values_matter: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class WholeGraph(ToleranceClass):
    """A whole model: max |y - ref| <= 4 max |base - ref| + 4 ulp(max |ref|), and likewise the root mean square.

    `base` is an independent implementation of the same model in the same types (onnxruntime without its optimizer):
    what rounding alone does to this model is measured, not guessed. Where `base` and `ref` share less than half of
    their digits that is no rounding: one of the two errs, and what is four times as far from `ref` would pass.
    """

    name: ClassVar[str] = "whole_graph"
    needs_baseline: ClassVar[bool] = True

    def bound(self, reference: Reference) -> Float64Array:
        noise = self._noise(reference)
        unit = float(ulp(largest(reference.values), reference.form))
        return np.full_like(reference.values, 4 * largest(noise) + 4 * unit)

    def over_all(self, errors: Float64Array, reference: Reference) -> list[str]:
        mean, noise = _root_mean_square(errors), _root_mean_square(self._noise(reference))
        allowed = 4 * noise + 4 * float(ulp(_root_mean_square(reference.values), reference.form))
        return [f"root mean square of the errors {mean:.4g} exceeds {allowed:.4g}"] if mean > allowed else []

    def _noise(self, reference: Reference) -> Float64Array:
        if reference.baseline is None or reference.exact is None:
            missing = "a second implementation's result" if reference.baseline is None else "an exact reference"
            raise MissingEvidence(f"whole_graph needs {missing}, and none is available")
        if reference.baseline.shape != reference.exact.shape:
            raise MissingEvidence("whole_graph needs a second implementation whose result has the reference's shape")
        noise = finite_or_zero(reference.baseline - reference.exact)
        found, most = largest(noise), 2.0 ** (-reference.form.mantissa_bits / 2) * largest(reference.exact)
        if found > most:
            raise MissingEvidence(f"whole_graph: its two references differ by {found:.3g}, expected {most:.3g} at most")
        return noise


@dataclass(frozen=True, slots=True)
class OnnxDefault(ToleranceClass):
    """ONNX's own rule for its backend tests, |y - expected| <= atol + rtol * |expected|; for that suite alone.

    For bfloat16 its runner takes an rtol of 2^-6 at least (`onnx.backend.test.runner.Runner.assert_similar_outputs`).
    """

    name: ClassVar[str] = "onnx_rule"
    second_tier: ClassVar[bool] = False
    rtol: float = 1e-3
    atol: float = 1e-7

    def bound(self, reference: Reference) -> Float64Array:
        rtol = max(self.rtol, 2.0**-6) if reference.form.name == "bfloat16" else self.rtol
        return self.atol + rtol * np.abs(finite_or_zero(reference.values))

    def between_implementations(self) -> float:
        """ONNX holds a result against its expected values, which are themselves in the output's type."""
        return 1.0


def _root_mean_square(values: Float64Array) -> float:
    finite = finite_or_zero(values)
    scale = largest(finite)
    return 0.0 if scale == 0 else scale * math.sqrt(float(np.mean((finite / scale) ** 2)))
