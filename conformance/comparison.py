"""Outputs against a reference, in one tolerance class: number, shapes, types, special values, errors.

Nothing is dropped on the way: a missing or an additional output, a list of another length and an absent optional are
differences of their own. An element is named by output and index where it is worst.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from conformance.numerics import Float64Array, Format, Kind, format_of, kind_of, ulp, widen
from conformance.tolerance import SECOND_TIER, Reference, ToleranceClass

Output = NDArray[np.generic] | list["Output"] | dict[object, "Output"] | None
"""What a model returns: a tensor, a sequence, a map, or an optional without a value."""


class Verdict(IntEnum):
    """How far apart: within the class, within its second tier, or further."""

    WITHIN = 0
    SECOND_TIER = 1
    DIFFERENT = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """Largest errors over all float outputs: in units of the last place, absolute, relative.

    `bias` is the mean signed error in units of the class's bound. None where no float output had a finite pair.
    """

    max_ulp: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    bias: float | None = None

    def worst_with(self, other: Figures) -> Figures:
        """Return the larger of each figure."""
        return Figures(
            _larger(self.max_ulp, other.max_ulp),
            _larger(self.max_abs, other.max_abs),
            _larger(self.max_rel, other.max_rel),
            self.bias if abs(self.bias or 0) >= abs(other.bias or 0) else other.bias,
        )


def _larger(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict, the error figures, and what is wrong (empty when within); `worst` names output and index."""

    verdict: Verdict
    figures: Figures = field(default_factory=Figures)
    problem: str = ""
    worst: tuple[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the extra runs of a case found, aligned with its outputs; see `Reference` for their meaning."""

    absolute: Sequence[Output] | None = None
    ones: Sequence[Output] | None = None
    baseline: Sequence[Output] | None = None
    exact: Sequence[Output] | None = None
    inputs: Sequence[Output] = ()

    def float_inputs(self) -> tuple[Float64Array, ...]:
        """Return the real float tensors among the inputs, widened."""
        arrays = (value for value in self.inputs if isinstance(value, np.ndarray))
        return tuple(widen(array) for array in arrays if kind_of(array.dtype) is Kind.FLOAT)


def compare(
    outputs: Sequence[Output],
    reference: Sequence[Output],
    tolerance: ToleranceClass,
    evidence: Evidence | None = None,
    *,
    types: Sequence[np.dtype[np.generic] | None] | None = None,
    between_implementations: bool = False,
) -> Comparison:
    """Hold `outputs` against `reference` in the class `tolerance`.

    `types` are the element types that the outputs must have (None: not known, the reference's or a narrower float).
    A reference in float64 beside a narrower type is the exact value; `between_implementations` says that the reference
    is itself a result in the output's type, which widens the class as it defines. Raises `MissingEvidence` when the
    class needs a run that `evidence` does not hold.
    """
    evidence = evidence or Evidence()
    if len(outputs) != len(reference):
        return Comparison(Verdict.DIFFERENT, problem=f"{len(outputs)} outputs, expected {len(reference)}")
    scale = tolerance.between_implementations() if between_implementations else 1.0
    found = Comparison(Verdict.WITHIN)
    for index, (output, expected) in enumerate(zip(outputs, reference, strict=True)):
        element_type = types[index] if types is not None else None
        leaf = _Leaf(f"output {index}", tolerance, scale, evidence, index, element_type)
        for part in _compare_value(output, expected, leaf):
            found = _worse(found, part)
    return found


def _worse(one: Comparison, other: Comparison) -> Comparison:
    leading = other if other.verdict > one.verdict else one
    return replace(leading, figures=one.figures.worst_with(other.figures))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Where a value stands among the outputs and what it is held to."""

    place: str
    tolerance: ToleranceClass
    scale: float
    evidence: Evidence
    index: int
    element_type: np.dtype[np.generic] | None
    nested: bool = False

    def inside(self, place: str) -> _Leaf:
        return replace(self, place=f"{self.place}{place}", nested=True)


def _different(leaf: _Leaf, text: str) -> Comparison:
    return Comparison(Verdict.DIFFERENT, problem=f"{leaf.place}: {text}", worst=(leaf.place, ()))


def _compare_value(output: Output, expected: Output, leaf: _Leaf) -> Iterator[Comparison]:
    """Yield one comparison a tensor, or one difference of structure."""
    if expected is None or output is None:
        if expected is not None or output is not None:
            yield _different(leaf, f"{_described(output)}, expected {_described(expected)}")
    elif isinstance(expected, list | tuple):
        if not isinstance(output, list | tuple) or len(output) != len(expected):
            yield _different(leaf, f"{_described(output)}, expected {_described(expected)}")
            return
        for position, (part, expected_part) in enumerate(zip(output, expected, strict=True)):
            yield from _compare_value(part, expected_part, leaf.inside(f"[{position}]"))
    elif isinstance(expected, dict):
        if not isinstance(output, dict) or output.keys() != expected.keys():
            yield _different(leaf, f"map {output!r:.80}, expected {expected!r:.80}")
            return
        for key, expected_part in expected.items():
            yield from _compare_value(output[key], expected_part, leaf.inside(f"[{key!r}]"))
    elif isinstance(output, list | tuple | dict):
        yield _different(leaf, f"{_described(output)}, expected {_described(expected)}")
    else:
        yield _compare_tensor(np.asarray(output), np.asarray(expected), leaf)


def _described(value: Output) -> str:
    if value is None:
        return "no value"
    if isinstance(value, list | tuple):
        return f"a sequence of {len(value)}"
    if isinstance(value, dict):
        return f"a map of {len(value)}"
    array = np.asarray(value)
    return f"a tensor of {array.dtype} {list(array.shape)}"


def _compare_tensor(output: NDArray[np.generic], expected: NDArray[np.generic], leaf: _Leaf) -> Comparison:
    if not _same_type(output.dtype, expected.dtype, leaf.element_type):
        return _different(leaf, f"type {output.dtype}, expected {leaf.element_type or expected.dtype}")
    if output.shape != expected.shape:
        return _different(leaf, f"shape {list(output.shape)}, expected {list(expected.shape)}")
    if not leaf.tolerance.values_matter or output.size == 0:
        return Comparison(Verdict.WITHIN)
    if kind_of(output.dtype) in (Kind.FLOAT, Kind.COMPLEX):
        return _compare_floats(output, expected, leaf)
    return _compare_exactly(output, expected, leaf)


_OF_ANY_WIDTH = (Kind.FLOAT, Kind.COMPLEX, Kind.TEXT)


def _same_type(
    found: np.dtype[np.generic], expected: np.dtype[np.generic], declared: np.dtype[np.generic] | None
) -> bool:
    """Return whether the type is the declared one; where none is declared, the reference's (it may be wider)."""
    if declared is not None and kind_of(declared) is not Kind.TEXT:
        return found == declared and kind_of(found) is kind_of(expected)
    return found == expected or (kind_of(found) is kind_of(expected) and kind_of(found) in _OF_ANY_WIDTH)


def _compare_exactly(output: NDArray[np.generic], expected: NDArray[np.generic], leaf: _Leaf) -> Comparison:
    kind = kind_of(output.dtype)
    if kind is Kind.TEXT:
        different = np.array([_text(a) != _text(b) for a, b in zip(output.flat, expected.flat, strict=True)], bool)
        different = different.reshape(output.shape)
    elif kind is Kind.INTEGER and leaf.tolerance.integer_steps:
        a, b = output.astype(object), expected.astype(object)
        different = np.asarray(np.abs(a - b) > leaf.tolerance.integer_steps, bool)
    elif kind is Kind.INTEGER and output.dtype != expected.dtype:
        # A reference may compute in a wider type: a value that does not fit the output's is no value of its.
        different = np.asarray(output.astype(object) != expected.astype(object), bool)
    else:
        different = np.asarray(output != expected.astype(output.dtype), bool)
    if not different.any():
        return Comparison(Verdict.WITHIN)
    worst = tuple(int(i) for i in np.argwhere(different)[0])
    return Comparison(
        Verdict.DIFFERENT,
        problem=f"{leaf.place}{list(worst)}: {output[worst]!r:.60}, expected {expected[worst]!r:.60} "
        f"({int(different.sum())} of {different.size} differ)",
        worst=(leaf.place, worst),
    )


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _compare_floats(output: NDArray[np.generic], expected: NDArray[np.generic], leaf: _Leaf) -> Comparison:
    form = format_of(output.dtype)
    with np.errstate(all="ignore"):
        if leaf.tolerance.rounds_reference:
            expected = expected.astype(output.dtype)
        got, reference = widen(output), _reference_of(expected, output, form, leaf)
        bound = np.broadcast_to(leaf.tolerance.bound(reference), reference.values.shape) * leaf.scale
        special = _wrong_special(got, reference.values, bound, form, signed_zero=leaf.tolerance.signed_zero)
        finite = np.isfinite(got) & np.isfinite(reference.values)
        errors = np.where(finite, got - reference.values, 0.0)
        figures = _figures(errors, reference.values, bound, finite, form)
        if special.any():
            return _at_worst(special, got, reference.values, leaf, figures, "special value")
        verdict = _verdict(errors, bound, form, reference.values, leaf.tolerance)
        excess = np.abs(errors) - bound
        whole = leaf.tolerance.over_all(errors / leaf.scale, reference)
        if whole:
            relaxed = leaf.tolerance.over_all(errors / (leaf.scale * SECOND_TIER), reference)
            verdict = max(
                verdict, Verdict.DIFFERENT if relaxed or not leaf.tolerance.second_tier else Verdict.SECOND_TIER
            )
    if verdict is Verdict.WITHIN:
        return Comparison(verdict, figures)
    located = _at_worst(excess == excess.max(), got, reference.values, leaf, figures, leaf.tolerance.name)
    return replace(located, verdict=verdict, problem="; ".join([located.problem, *whole]))


def _reference_of(expected: NDArray[np.generic], output: NDArray[np.generic], form: Format, leaf: _Leaf) -> Reference:
    evidence = leaf.evidence
    inputs = evidence.float_inputs()
    values = widen(expected)
    absolute, ones = _evidence_for(evidence.absolute, leaf), _evidence_for(evidence.ones, leaf)
    baseline = _evidence_for(evidence.baseline, leaf)
    largest_input = max((array.size for array in inputs), default=0)
    return Reference(
        values=values,
        form=form,
        absolute=None if absolute is None or absolute.shape != values.shape else np.abs(absolute),
        terms=None if ones is None or not ones.size else _ceiling(float(np.max(np.abs(ones)))),
        inputs=inputs,
        baseline=baseline,
        exact=_evidence_for(evidence.exact, leaf),
        elements_per_output=-(-largest_input // max(output.size, 1)),
    )


def _ceiling(value: float) -> int | None:
    return int(np.ceil(value)) if np.isfinite(value) else None


def _evidence_for(outputs: Sequence[Output] | None, leaf: _Leaf) -> Float64Array | None:
    if outputs is None or leaf.nested or leaf.index >= len(outputs):
        return None
    value = outputs[leaf.index]
    return widen(value) if isinstance(value, np.ndarray) and kind_of(value.dtype) is not Kind.TEXT else None


def _wrong_special(
    got: Float64Array, expected: Float64Array, bound: Float64Array, form: Format, *, signed_zero: bool
) -> NDArray[np.bool_]:
    """Return where NaN, infinities or signs of zero are not what they must be.

    A finite reference that rounds beyond the largest number may give infinity (NaN in a format without infinities), and
    an infinite result where the reference is finite and in range is wrong.
    """
    reach = np.abs(expected) + np.where(np.isfinite(bound), bound, 0.0)
    may_overflow = reach >= form.largest + 0.5 * ulp(form.largest, form)
    overflowed = np.isnan(got) if not form.has_infinity else np.isinf(got) & (np.sign(got) == np.sign(expected))
    accepted_overflow = np.isfinite(expected) & may_overflow & overflowed
    wrong = np.isnan(got) != np.isnan(expected)
    infinite = np.isinf(got) | np.isinf(expected)
    wrong |= infinite & (got != expected) & ~np.isnan(got) & ~np.isnan(expected)
    wrong &= ~accepted_overflow
    if not form.has_infinity:
        wrong &= ~(np.isinf(expected) & np.isnan(got))
    if signed_zero:
        wrong |= (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    return np.asarray(wrong, bool)


def _verdict(
    errors: Float64Array, bound: Float64Array, form: Format, expected: Float64Array, tolerance: ToleranceClass
) -> Verdict:
    size = np.abs(errors)
    flushed = (np.abs(errors + expected) == 0) & (np.abs(expected) - bound < form.smallest_normal) & (bound > 0)
    outside = (size > bound) & ~flushed
    if not outside.any():
        return Verdict.WITHIN
    if tolerance.second_tier and not (outside & (size > SECOND_TIER * bound)).any():
        return Verdict.SECOND_TIER
    return Verdict.DIFFERENT


def _figures(
    errors: Float64Array, expected: Float64Array, bound: Float64Array, finite: NDArray[np.bool_], form: Format
) -> Figures:
    if not finite.any():
        return Figures()
    size, reference = np.abs(errors[finite]), expected[finite]
    nonzero = reference != 0
    limits = bound[finite]
    measured = np.isfinite(limits) & (limits > 0)
    return Figures(
        max_ulp=float(np.max(size / ulp(reference, form))),
        max_abs=float(np.max(size)),
        max_rel=float(np.max(size[nonzero] / np.abs(reference[nonzero]))) if nonzero.any() else None,
        bias=float(np.mean(errors[finite][measured] / limits[measured])) if measured.any() else None,
    )


def _at_worst(
    where: NDArray[np.bool_], got: Float64Array, expected: Float64Array, leaf: _Leaf, figures: Figures, rule: str
) -> Comparison:
    index = tuple(int(i) for i in np.argwhere(where)[0])
    problem = f"{leaf.place}{list(index)}: {got[index]:.9g}, expected {expected[index]:.9g} ({rule})"
    return Comparison(Verdict.DIFFERENT, figures, problem, (leaf.place, index))
