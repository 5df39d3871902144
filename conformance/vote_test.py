"""The truth table of the vote: who is available, who agrees, what the manifest rules."""

import numpy as np
import pytest

from conformance.comparison import Evidence
from conformance.oracles import Answer
from conformance.tolerance_names import parse_tolerance
from conformance.vote import judge_outputs
from reports.record import Outcome

TYPES = [np.dtype(np.float32)]
ONE, TWO = 1.0, 2.0
ULP = 2.0**-23


def answer(name, value, *, exact=False):
    if value is None:
        return Answer(name, why="not here")
    return Answer(name, [np.array([value], np.float64 if exact else np.float32)], exact=exact)


def judge(output, ort, reference, ruling=None, tolerance="ulp(1)"):
    answers = [answer("onnxruntime", ort), answer("reference", reference, exact=True)]
    outputs = [np.array([output], np.float32)]
    return judge_outputs(outputs, answers, parse_tolerance(tolerance), Evidence(), types=TYPES, ruling=ruling)


@pytest.mark.parametrize(
    ("ort", "reference", "outcome", "words"),
    [
        (ONE, ONE, Outcome.PASSED, ("agrees", "agrees")),
        (ONE, None, Outcome.PASSED, ("agrees", "unavailable")),
        (None, ONE, Outcome.PASSED, ("unavailable", "agrees")),
        (None, None, Outcome.UNVERIFIED, ("unavailable", "unavailable")),
        (TWO, TWO, Outcome.WRONG_RESULT, ("differs", "differs")),
        (TWO, None, Outcome.WRONG_RESULT, ("differs", "unavailable")),
        (None, TWO, Outcome.WRONG_RESULT, ("unavailable", "differs")),
        (ONE, TWO, Outcome.ORACLE_DISAGREEMENT, ("agrees", "differs")),
        (TWO, ONE, Outcome.ORACLE_DISAGREEMENT, ("differs", "agrees")),
        (TWO, 4.0, Outcome.WRONG_RESULT, ("differs", "differs")),
    ],
)
def test_truth_table_without_a_ruling(ort, reference, outcome, words):
    found = judge(ONE, ort, reference)
    assert found.outcome is outcome
    assert tuple(found.oracles.values()) == words


@pytest.mark.parametrize(
    ("ort", "reference", "ruling", "outcome"),
    [
        (ONE, TWO, "onnxruntime", Outcome.PASSED),
        (ONE, TWO, "reference", Outcome.WRONG_RESULT),
        (TWO, ONE, "reference", Outcome.PASSED),
        (TWO, ONE, "onnxruntime", Outcome.WRONG_RESULT),
        (ONE, None, "reference", Outcome.UNVERIFIED),
        (ONE, ONE, "twin", Outcome.UNVERIFIED),
    ],
)
def test_a_ruling_gives_the_vote_to_the_oracle_that_it_names_alone(ort, reference, ruling, outcome):
    assert judge(ONE, ort, reference, ruling).outcome is outcome


def test_between_the_tiers_is_a_quality_warning_never_passed():
    assert judge(ONE + 8 * ULP, ONE, ONE).outcome is Outcome.QUALITY_WARNING
    assert judge(ONE + 40 * ULP, ONE, ONE).outcome is Outcome.WRONG_RESULT


def test_the_strict_class_is_measured_from_the_exact_reference():
    # onnxruntime's own error of one unit does not add to that of the result.
    assert judge(ONE - ULP, ONE + ULP, ONE).outcome is Outcome.PASSED
    assert judge(ONE - 2 * ULP, ONE - 2 * ULP, ONE).outcome is Outcome.QUALITY_WARNING


def test_figures_are_those_against_the_leading_oracle():
    assert judge(ONE + 2 * ULP, ONE, ONE).figures.max_ulp == 2


def test_a_missing_output_is_wrong_whatever_the_class():
    answers = [answer("onnxruntime", ONE)]
    for tolerance in ("shape_only", "ulp(1)", "exact"):
        found = judge_outputs([], answers, parse_tolerance(tolerance), Evidence(), types=TYPES)
        assert found.outcome is Outcome.WRONG_RESULT


def test_a_class_without_its_evidence_leaves_the_case_unverified():
    found = judge(ONE, ONE, ONE, tolerance="dot_product")
    assert found.outcome is Outcome.UNVERIFIED
    assert "dot_product" in found.reason


# a reference that takes denormals for zero

DENORMAL, SMALLEST = 2.0**-140, 2.0**-126


def judge_against_a_flushing_reference(output, reference, exact=None):
    answers = [Answer("native", [np.array([reference], np.float32)], flushes=True)]
    answers += [] if exact is None else [answer("native-widened", exact, exact=True)]
    outputs = [np.array([output], np.float32)]
    return judge_outputs(outputs, answers, parse_tolerance("exact"), Evidence(), types=TYPES).outcome


@pytest.mark.parametrize(
    ("output", "reference", "exact", "outcome"),
    [
        (DENORMAL, 0.0, None, Outcome.PASSED),
        (SMALLEST, 0.0, None, Outcome.PASSED),
        (2 * SMALLEST, 0.0, None, Outcome.WRONG_RESULT),
        (DENORMAL, ONE, None, Outcome.WRONG_RESULT),
        (0.0, DENORMAL, None, Outcome.WRONG_RESULT),
        (DENORMAL, 0.0, DENORMAL, Outcome.PASSED),
        (0.0, 0.0, DENORMAL, Outcome.ORACLE_DISAGREEMENT),
    ],
)
def test_a_zero_of_a_flushing_reference_is_no_word_against_a_denormal(output, reference, exact, outcome):
    assert judge_against_a_flushing_reference(output, reference, exact) is outcome
