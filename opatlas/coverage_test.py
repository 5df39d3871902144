"""Figures of a run that is made by hand: what a case reaches, and what a red one takes away."""

from pathlib import Path

import pytest

import generators
import opsets
from opatlas.coverage import coverage
from reports.record import Outcome, Record, Stage


def record(case, outcome):
    return Record(
        run="r", suite_hash="h", backend="b", target="t", case_id=case.id, framework="onnx", suite="operators",
        domain=case.domain, operator=case.operator, since_version=case.since_version, dtype=case.dtype,
        data_class=case.data_class, tolerance_class="exact", stage=Stage.COMPARE, outcome=outcome, reason="why",
    )  # fmt: skip


@pytest.fixture(scope="module")
def relu():
    return list(generators.expand(opsets.find_item("onnx", "ai.onnx", "Relu", 14)))


def figures(path, records):
    path.write_text("".join(one.to_line() + "\n" for one in records))
    return {figure.name: figure for figure in coverage(Path(path))}


def test_the_totals_are_those_of_the_schema(tmp_path, relu):
    found = figures(tmp_path / "records.jsonl", [record(relu[0], Outcome.PASSED)])
    # onnx 1.23.2, opset 28: counted from onnx.defs without this project
    assert found["ai.onnx: operators"].total == 201
    assert found["ai.onnx: operator versions"].total == 626
    assert found["ai.onnx: cells"].total == 5638
    assert found["ai.onnx: attribute versions"].total == 1122
    assert found["ai.onnx.ml: operators"].total == 17


def test_a_passing_case_counts_for_its_operator_version_and_type(tmp_path, relu):
    found = figures(tmp_path / "records.jsonl", [record(relu[0], Outcome.PASSED)])
    assert (found["ai.onnx: operators"].passed, found["ai.onnx: cells"].passed) == (1, 1)
    assert found["operator cases"].tried == 1
    assert found["ai.onnx: operator versions"].missing["Relu-13"] == "no case of this run reaches it"


def test_a_red_case_beside_a_passing_one_leaves_the_cell_not_whole(tmp_path, relu):
    first, second = [case for case in relu if case.dtype == "float32"][:2]
    found = figures(tmp_path / "records.jsonl", [record(first, Outcome.PASSED), record(second, Outcome.WRONG_RESULT)])
    cells = found["ai.onnx: cells"]
    assert (cells.tried, cells.passed, cells.whole) == (1, 1, 0)
    assert found["operator cases"].missing[second.id] == "wrong result: why"


def test_what_is_computed_while_compiling_is_counted_apart(tmp_path, relu):
    cells = figures(tmp_path / "records.jsonl", [record(relu[0], Outcome.FOLDED)])["ai.onnx: cells"]
    assert (cells.tried, cells.passed, cells.folded, cells.whole) == (1, 0, 1, 1)


def test_a_case_that_did_not_run_reaches_nothing(tmp_path, relu):
    found = figures(tmp_path / "records.jsonl", [record(relu[0], Outcome.NOT_RUN)])
    assert found["ai.onnx: operators"].tried == 0


def test_nan_and_infinity_count_where_a_case_draws_them(tmp_path, relu):
    special = next(case for case in relu if case.data_class == "special" and case.dtype == "float16")
    found = figures(tmp_path / "records.jsonl", [record(special, Outcome.PASSED), record(relu[0], Outcome.PASSED)])
    named = found["ai.onnx: float cells with NaN or infinity"]
    assert named.tried == 1
    assert "Relu-14 float16" not in named.missing
    assert named.missing["Range-27 float32"] == "it has no number of elements then"


def test_a_framework_without_a_schema_of_versions_counts_by_what_its_records_reach(tmp_path):
    common = {"run": "r", "suite_hash": "h", "backend": "b", "target": "t", "framework": "torch", "suite": "operators"}
    made = [
        Record(**common, case_id="a", domain="aten", operator="sum-empty", dtype="float16", stage="compare",
               outcome="passed", reached=["add.Tensor", "sum.dim_IntList"]),
        Record(**common, case_id="b", domain="aten", operator="relu", dtype="float32", stage="import",
               outcome="unsupported", reason="why", reached=["relu.default"]),
    ]  # fmt: skip
    path = tmp_path / "records.jsonl"
    path.write_text("".join(one.to_line() + "\n" for one in made))
    found = {figure.name: figure for figure in coverage(path, "torch")}
    assert (found["aten: core operators"].total, found["aten: core overloads"].total) == (164, 193)
    assert (found["aten: core overloads"].tried, found["aten: core overloads"].passed) == (3, 2)
    assert found["aten: core operators"].missing["relu"] == "unsupported: why"
    assert found["aten: operators"].passed == 2
    assert "add.Tensor" not in found["aten: core overloads"].missing


def test_layers_out_of_scope_are_counted_with_their_reason(tmp_path):
    (tmp_path / "records.jsonl").touch()
    found = {figure.name: figure for figure in coverage(tmp_path, "caffe")}
    assert found["caffe: operators"].total == found["caffe: cells"].total >= 45
    assert found["caffe: out of scope, with a reason"].missing["Accuracy"] == "scores predictions by labels"


def test_what_a_release_of_onnx_did_not_have_is_not_missing_in_its_records(tmp_path, relu):
    older = record(relu[0], Outcome.PASSED).model_copy(update={"versions": {"onnx": "1.18.0"}})
    found = figures(tmp_path / "records.jsonl", [older])
    # onnx 1.18 has operator set 23; counted from its onnx.defs without this project
    assert found["ai.onnx: operators"].total == 194


def test_an_unknown_framework_is_named(tmp_path):
    (tmp_path / "records.jsonl").touch()
    with pytest.raises(opsets.ManifestError, match="found framework 'mxnet', expected one of onnx"):
        coverage(tmp_path, "mxnet")
