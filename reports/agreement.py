"""Whether the outputs of a whole model agree with a reference, by the noise that the reference itself has.

For a float output y, onnxruntime's result `ort` and the exact value `exact` (the model in float64):
max |y - exact| <= 4 max |ort - exact| + 4 ulp(max |exact|), and likewise the root mean squares. So a model that
amplifies rounding is given what its own reference needs, and one that does not is held tightly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

FACTOR = 4.0
"""How many times the reference's own error a result may have."""

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """One output beside its reference. Figures are None for types that must be equal."""

    name: str
    type: str
    agrees: bool
    max_abs: float | None = None
    max_abs_allowed: float | None = None
    rms: float | None = None
    rms_allowed: float | None = None
    note: str = ""


def compare_output(name: str, found: Any, reference: Any, exact: Any = None) -> Agreement:  # noqa: ANN401 - outputs of any kind
    """Compare one output. Without `exact` the reference stands for it, and only rounding of the type is allowed."""
    if not (isinstance(found, np.ndarray) and isinstance(reference, np.ndarray)):
        agrees = _same_structure(found, reference)
        return Agreement(name, type(found).__name__, agrees, note="" if agrees else "a sequence or optional differs")
    kind = f"{found.dtype}{list(found.shape)}"
    if found.dtype != reference.dtype or found.shape != reference.shape:
        return Agreement(name, kind, agrees=False, note=f"expected {reference.dtype}{list(reference.shape)}")
    if found.dtype.kind == "c":
        return compare_output(name, _parts(found), _parts(reference), None if exact is None else _parts(exact))
    if not _is_float(found.dtype):
        different = int(np.count_nonzero(np.asarray(found != reference)))
        note = f"{different} of {found.size} elements differ" if different else ""
        return Agreement(name, kind, agrees=not different, note=note)
    truth = reference if exact is None or np.shape(exact) != found.shape else np.asarray(exact)
    return _compare_floats(name, kind, found, reference.astype(np.float64), truth.astype(np.float64))


def _compare_floats(name: str, kind: str, found: NDArray[Any], reference: Float64, exact: Float64) -> Agreement:
    values = found.astype(np.float64)
    if not _same_special_values(values, reference):
        return Agreement(name, kind, agrees=False, note="NaN or infinity at other places than in the reference")
    finite = np.isfinite(reference) & np.isfinite(exact)
    size = exact[finite]
    errors, noise = values[finite] - size, reference[finite] - size
    max_abs, max_allowed = _largest(errors), FACTOR * (_largest(noise) + spacing(_largest(size), found.dtype))
    rms, rms_allowed = _rms(errors), FACTOR * (_rms(noise) + spacing(_rms(size), found.dtype))
    agrees = max_abs <= max_allowed and rms <= rms_allowed
    return Agreement(name, kind, agrees, max_abs, max_allowed, rms, rms_allowed)


def is_plausible(exact: Any, reference: Any) -> bool:  # noqa: ANN401 - outputs of any kind
    """Tell whether `exact` can be the exact value of what `reference` rounds: half of its digits must agree.

    The reference implementations err too (onnx.reference takes training statistics for BatchNormalization below
    version 14), and an exact value that is none would excuse every result.
    """
    if not isinstance(reference, np.ndarray) or np.shape(exact) != reference.shape or not _is_float(reference.dtype):
        return True
    bits = ml_dtypes.finfo(reference.dtype).nmant  # type: ignore[no-untyped-call] # it has no annotations
    values, truth = reference.astype(np.float64), np.asarray(exact, np.float64)
    finite = np.isfinite(values) & np.isfinite(truth)
    return bool(_largest(values[finite] - truth[finite]) <= 2.0 ** (-bits / 2) * _largest(truth[finite]))


def spacing(value: float, dtype: np.dtype[Any]) -> float:
    """Return one ulp of `dtype` at |value|: 2^floor(log2 |value|) * 2^-p, at least that of the smallest normal."""
    form = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call] # it has no annotations
    magnitude = max(abs(value), float(form.smallest_normal))
    _, exponent = np.frexp(magnitude)
    return float(np.ldexp(1.0, int(exponent) - 1 - form.nmant))


def _is_float(dtype: np.dtype[Any]) -> bool:
    try:
        ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call] # it has no annotations
    except ValueError:
        return False
    return True


def _parts(values: Any) -> NDArray[Any]:  # noqa: ANN401 - any complex array
    array = np.asarray(values)
    return np.stack([array.real, array.imag], axis=-1)


def _same_special_values(one: Float64, other: Float64) -> bool:
    same_nan = np.array_equal(np.isnan(one), np.isnan(other))
    infinite = np.isinf(one) | np.isinf(other)
    return bool(same_nan and np.array_equal(one[infinite], other[infinite]))


def _same_structure(found: Any, reference: Any) -> bool:  # noqa: ANN401 - outputs of any kind
    if isinstance(found, list | tuple) and isinstance(reference, list | tuple):
        pairs = zip(found, reference, strict=False)
        return len(found) == len(reference) and all(_same_structure(one, other) for one, other in pairs)
    if isinstance(found, np.ndarray) and isinstance(reference, np.ndarray):
        return compare_output("", found, reference).agrees
    return bool(found == reference)


def _largest(values: Float64) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _rms(values: Float64) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
