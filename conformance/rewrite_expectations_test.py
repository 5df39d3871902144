import pytest

from conformance.expectations import Expectation, Expectations, load_expectations
from conformance.rewrite_expectations import entries_for, main, rewrite
from reports.record import Outcome, Record, Stage

IDS = ["onnx-Add-1", "onnx-Add-2", "onnx-Conv-1-a", "onnx-Conv-1-b", "onnx-Conv-2-a"]


def record(case, outcome="passed", stage="compare", target="npu", reason=None, diagnosis=None):
    return Record(
        run="r", suite_hash="h", backend="b", target=target, case_id=case, framework="onnx", suite="operators",
        operator="o", stage=stage, outcome=outcome, reason=reason, diagnosis=diagnosis,
    )  # fmt: skip


def cases_of(records, old=(), ids=IDS):
    return [(entry.case, str(entry.outcome)) for entry in entries_for(records, ids, Expectations(tuple(old)))]


def red(case, **fields):
    return record(case, "unsupported", "lower", **fields)


def test_cases_that_all_end_alike_become_one_pattern():
    records = [record("onnx-Add-1"), record("onnx-Add-2"), *(red(case) for case in IDS[2:])]
    assert cases_of(records) == [("onnx-Conv-*", "unsupported")]


def test_a_pattern_covers_no_case_that_ends_otherwise():
    records = [red("onnx-Conv-1-a"), red("onnx-Conv-1-b"), record("onnx-Conv-2-a")]
    assert cases_of(records) == [("onnx-Conv-1-*", "unsupported")]
    records[1] = record("onnx-Conv-1-b", "error", "lower")
    assert cases_of(records) == [("onnx-Conv-1-a", "unsupported"), ("onnx-Conv-1-b", "error")]


def test_a_pattern_covers_no_case_that_was_not_in_the_run():
    assert cases_of([red("onnx-Conv-1-a")]) == [("onnx-Conv-1-a", "unsupported")]


def test_green_and_grey_cases_get_no_entry_and_lose_the_old_one():
    old = [
        Expectation("onnx-Add-1", Outcome.ERROR, Stage.LOWER, "r"),
        Expectation("gone", Outcome.ERROR, Stage.LOWER, "r"),
    ]
    records = [record("onnx-Add-1"), record("onnx-Add-2", "folded"), record("onnx-Conv-1-a", "not_run")]
    assert cases_of(records, old) == [("gone", "error")]


def test_a_reason_that_a_person_wrote_is_kept_while_outcome_and_stage_stay():
    old = Expectations((Expectation("onnx-Conv-*", Outcome.UNSUPPORTED, Stage.LOWER, "by design"),))
    records = [red(case, reason="whatever") for case in IDS[2:]]
    assert [entry.reason for entry in entries_for(records, IDS, old)] == ["by design"]
    records = [record(case, "error", "lower", reason="new", diagnosis="D") for case in IDS[2:]]
    assert [entry.reason for entry in entries_for(records, IDS, old)] == ["D: new"]


def test_other_targets_keep_their_entries():
    old = Expectations((Expectation("onnx-Add-1", Outcome.ERROR, Stage.LOWER, "r", target="edge"),))
    assert [entry.target for entry in entries_for([red("onnx-Add-1")], IDS, old)] == ["edge", "npu"]


def test_what_is_written_is_what_the_run_was(tmp_path):
    path = tmp_path / "b.yaml"
    path.write_text("models: [{case: m, outcome: error, stage: lower, reason: r}]\n")
    records = [red("onnx-Nonsense-1"), red("onnx-Nonsense-2"), record("onnx-Other-1")]
    assert rewrite(records, path) == {"operators": 1}
    found = load_expectations(path)
    assert set(found) == {"models", "operators"}
    for entry in records:
        surprise = found["operators"].judge(entry.case_id, "npu", entry.outcome, entry.stage)
        assert not surprise.unexpected


def test_a_missing_run_is_one_line_and_status_2(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("outcome", ["passed", "folded", "unverified", "not_run"])
def test_nothing_red_leaves_no_entry(outcome):
    assert cases_of([record("onnx-Add-1", outcome)]) == []
