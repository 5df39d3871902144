"""Tests of the page of blocks and models: counts, costs, and what stands between models and a pass."""

from __future__ import annotations

from reports.models import view_of
from reports.record import HostOperator, Outcome, Placement, Record, Stage
from reports.store import write_records
from reports.write import write_reports


def record(name, outcome=Outcome.PASSED, suite="blocks", framework="torch", case="", **more):
    return Record(
        run="r", suite_hash="h", backend="opatlas", target="t", case_id=case or f"{suite}/{framework}-{name}-{outcome}",
        framework=framework, suite=suite, domain=suite, operator=name, dtype="float32",
        stage=Stage.COMPARE, outcome=outcome, **more,
    )  # fmt: skip


REFUSED = "aten.foo.default (node 'foo'): it has no conversion"


def test_other_suites_have_no_such_page():
    assert view_of([record("Add", suite="operators")]) is None


def test_an_operator_is_ranked_by_the_models_that_stop_at_it():
    records = [
        record("a", Outcome.UNSUPPORTED, "models", reason=REFUSED),
        record("b", Outcome.UNSUPPORTED, "models", reason=REFUSED.replace("foo'", "bar'")),
        record("c", Outcome.UNSUPPORTED, "models", "onnx", reason="com.acme.Bar-1, attribute 'x': it is 3"),
        record("c", Outcome.UNSUPPORTED, "models", "onnx", "again", reason="com.acme.Bar-1: it is 4"),
        record("d", Outcome.UNSUPPORTED, "models", reason="a type that no target has"),
    ]
    view = view_of(records)
    assert [(one.operator, len(one.subjects), one.cases) for one in view.refused] == [
        ("aten.foo.default", 2, 2),
        ("com.acme.Bar", 1, 2),
    ]


def test_an_operator_on_the_host_counts_where_it_is_the_only_one():
    one, two = (HostOperator(operator=name, reason="no loops") for name in ("top_k", "sort"))
    records = [
        record("a", placement=Placement.MIXED, host_operators=[one]),
        record("b", placement=Placement.MIXED, host_operators=[one, two]),
    ]
    (unlock,) = view_of(records).hosted
    assert (unlock.operator, unlock.subjects) == ("top_k", ("a (torch)",))


def test_a_row_shows_its_worst_case_and_the_costs_of_its_costliest():
    records = [
        record("a", cycles=10, traffic_bytes=1, compulsory_bytes=1, energy_pj=1.0, placement=Placement.ACCELERATOR),
        record("a", Outcome.WRONG_RESULT, case="x", cycles=90, traffic_bytes=8, compulsory_bytes=4, reason="differs"),
    ]
    (subject,) = view_of(records).subjects
    assert (subject.worst, subject.cases, subject.outcomes["passed"]) == ("wrong_result", 2, 1)
    assert (subject.costs["cycles"], subject.costliest) == (90, "x")


def test_the_page_stands_beside_the_overview_and_goes_with_its_records(tmp_path):
    hidden = "<script>"
    write_records(
        [record("a", Outcome.UNSUPPORTED, "models", reason=f"{REFUSED} {hidden}")], tmp_path / "records.jsonl"
    )
    write_reports(tmp_path / "records.jsonl", tmp_path / "out", [])
    page = (tmp_path / "out" / "models.html").read_text(encoding="utf-8")
    assert "aten.foo.default" in page
    assert hidden not in page.partition("<main>")[2].partition("</main>")[0]
    assert 'href="models.html"' in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    write_records([record("Add", suite="operators")], tmp_path / "records.jsonl")
    write_reports(tmp_path / "records.jsonl", tmp_path / "out", [])
    assert not (tmp_path / "out" / "models.html").exists()
