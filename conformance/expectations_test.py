import pytest

from conformance.errors import BadExpectations
from conformance.expectations import Expectation, Expectations, load_expectations
from reports.record import Outcome, Stage

REFUSED = Expectation("onnx-Conv-*", Outcome.UNSUPPORTED, Stage.LOWER, "no kernel")
ONE = Expectation("onnx-Conv-11-float32-a", Outcome.WRONG_RESULT, Stage.COMPARE, "padding")


def judged(case, outcome, stage, *entries, target="npu"):
    return Expectations(entries).judge(case, target, outcome, stage)


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FOLDED, Outcome.UNVERIFIED, Outcome.NOT_RUN])
def test_green_and_grey_need_no_entry(outcome):
    assert not judged("x", outcome, Stage.COMPARE).unexpected


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in ("passed", "folded", "unverified", "not_run")])
def test_every_red_without_an_entry_is_unexpected(outcome):
    assert judged("x", outcome, Stage.COMPARE).reason == f"{outcome} at compare, expected to pass"


def test_a_red_as_expected_is_fine_and_stays_red():
    found = judged("onnx-Conv-1", Outcome.UNSUPPORTED, Stage.LOWER, REFUSED)
    assert not found.unexpected
    assert found.expected is Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [
        (Outcome.PASSED, Stage.COMPARE),
        (Outcome.FOLDED, Stage.COMPARE),
        (Outcome.UNSUPPORTED, Stage.IMPORT),
        (Outcome.CRASH, Stage.LOWER),
    ],
)
def test_another_outcome_or_stage_than_expected_is_unexpected(outcome, stage):
    found = judged("onnx-Conv-1", outcome, stage, REFUSED)
    assert found.unexpected
    assert found.reason == f"{outcome} at {stage}, expected unsupported at lower"


def test_an_exact_id_wins_over_a_pattern():
    assert not judged(ONE.case, Outcome.WRONG_RESULT, Stage.COMPARE, REFUSED, ONE).unexpected
    assert judged(ONE.case, Outcome.UNSUPPORTED, Stage.LOWER, REFUSED, ONE).unexpected


def test_only_the_star_is_special_in_patterns():
    entry = Expectation("a[0]+.b*", Outcome.ERROR, Stage.LOWER, "r")
    assert judged("a[0]+.b-anything", Outcome.ERROR, Stage.LOWER, entry).expected is Outcome.ERROR
    assert judged("a0xb", Outcome.PASSED, Stage.COMPARE, entry).expected is None


def test_an_entry_speaks_of_its_target_only():
    entry = Expectation("x", Outcome.ERROR, Stage.LOWER, "r", target="edge")
    assert judged("x", Outcome.ERROR, Stage.LOWER, entry, target="npu").unexpected
    assert not judged("x", Outcome.ERROR, Stage.LOWER, entry, target="edge").unexpected


def test_stale_entries_are_those_that_match_no_case_on_a_target_of_the_run():
    other = Expectation("gone", Outcome.ERROR, Stage.LOWER, "r", target="edge")
    expectations = Expectations((REFUSED, ONE, other))
    assert expectations.stale(["onnx-Conv-1"], ["npu"]) == [ONE]
    assert expectations.stale(["onnx-Add-1"], ["npu"]) == [REFUSED, ONE]
    assert expectations.stale([ONE.case], ["edge"]) == [other]


def write(tmp_path, text):
    path = tmp_path / "backend.yaml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path):
    entry = "operators: [{case: onnx-Conv-*, outcome: unsupported, stage: lower, reason: no kernel}]"
    assert load_expectations(write(tmp_path, entry))["operators"].entries == (REFUSED,)
    assert load_expectations(tmp_path / "none.yaml") == {}
    assert load_expectations(write(tmp_path, "")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operators: [{case: a, outcome: unsupported, stage: lower}]", "reason is missing"),
        ("operators: [{case: a, outcome: sad, stage: lower, reason: r}]", "outcome 'sad', expected one of passed,"),
        ("operators: [{case: a, outcome: error, stage: nowhere, reason: r}]", "stage 'nowhere'"),
        ("operators: [{case: a, outcome: error, stage: lower, reason: r, why: w}]", "unknown key why"),
        ("operators: [{case: a, outcome: passed, stage: compare, reason: r}]", "passed needs no entry"),
        ("operators: {case: a}", "expected a list"),
        ("- a", "expected suites"),
        ("operators: [a]", "expected the keys"),
        ("a: [", "no valid YAML"),
        ("o: [{case: a, outcome: error, stage: lower, reason: r}, {case: a, outcome: error, stage: lower, reason: s}]",
         "stands there twice"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(BadExpectations, match=message) as found:
        load_expectations(write(tmp_path, text))
    assert "\n" not in str(found.value)
    assert "backend.yaml" in str(found.value)
