import pytest

from reports.diff import compare, diff
from reports.errors import ReportError
from reports.matrix_test import record
from reports.store import write_records


def ids(changes):
    return [change.case_id for change in changes]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("passed", "wrong_result", "regressions"),
        ("passed", "unsupported", "regressions"),
        ("passed", "quality_warning", "regressions"),
        ("passed", "unverified", "regressions"),
        ("quality_warning", "error", "regressions"),
        ("unsupported", "wrong_result", "regressions"),
        ("unsupported", "crash", "regressions"),
        ("unsupported", "passed", "fixed"),
        ("wrong_result", "passed", "fixed"),
        ("quality_warning", "passed", "fixed"),
        ("wrong_result", "unsupported", "fixed"),
        ("passed", "folded", "other_changes"),
        ("passed", "not_run", "other_changes"),
        ("not_run", "wrong_result", "other_changes"),
        ("timeout", "crash", "other_changes"),
    ],
)
def test_kinds_of_change(old, new, kind):
    found = compare([record("a", outcome=old)], [record("a", outcome=new)])
    lists = {name: ids(getattr(found, name)) for name in ("regressions", "fixed", "other_changes", "suite_changes")}
    assert lists == {name: ["a"] if name == kind else [] for name in lists}
    assert found.is_regression == (kind == "regressions")


def test_a_change_of_the_suite_is_no_regression():
    found = compare([record("a", suite_hash="1")], [record("a", suite_hash="2", outcome="wrong_result")])
    assert found.suite_changed
    assert ids(found.suite_changes) == ["a"]
    assert not found.is_regression


def test_cases_of_one_run_only_are_named():
    found = compare([record("a"), record("b")], [record("b"), record("c")])
    assert (found.added, found.removed, found.same) == (["c"], ["a"], 1)


def test_the_same_case_on_another_target_is_another_case():
    found = compare([record("a", target="t1")], [record("a", target="t2", outcome="wrong_result")])
    assert not found.is_regression
    assert (found.added, found.removed) == (["a"], ["a"])


def test_cycles_are_compared_only_where_both_runs_pass():
    old = [record("a", cycles=100), record("b", cycles=100), record("c", cycles=100), record("d", cycles=100)]
    new = [
        record("a", cycles=150),
        record("b", cycles=50),
        record("c", cycles=101),
        record("d", cycles=900, outcome="wrong_result"),
    ]
    found = compare(old, new)
    assert [(change.case_id, change.old, change.new) for change in found.slower] == [("a", 100, 150)]
    assert ids(found.faster) == ["b"]


def test_an_empty_run_is_refused(tmp_path):
    write_records([record()], tmp_path / "old.jsonl")
    (tmp_path / "new.jsonl").touch()
    with pytest.raises(ReportError, match=r"new\.jsonl: holds no record"):
        diff(tmp_path / "old.jsonl", tmp_path / "new.jsonl")
