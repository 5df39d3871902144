import onnx
import pytest

from reports.matrix import (
    WORST_FIRST,
    Cell,
    CellKey,
    State,
    all_cells,
    build_matrix,
    key_of,
    known_cells,
    unknown_release,
    worst,
)
from reports.record import Outcome, Record
from reports.record_test import MINIMAL

ADD = CellKey("onnx", "ai.onnx", "Add", 14, "float32")


def record(case_id="a", **fields):
    return Record(
        **{**MINIMAL, "domain": "ai.onnx", "since_version": 14, "dtype": "float32", "case_id": case_id, **fields}
    )


def test_every_outcome_is_a_state_and_has_a_rank():
    assert {outcome.value for outcome in Outcome} | {"unreached"} == {state.value for state in WORST_FIRST}


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        (["passed", "passed"], State.PASSED),
        (["passed"] * 99 + ["wrong_result"], State.WRONG_RESULT),
        (["passed", "quality_warning"], State.QUALITY_WARNING),
        (["passed", "unsupported"], State.UNSUPPORTED),
        (["passed", "unverified"], State.UNVERIFIED),
        (["passed", "not_run"], State.NOT_RUN),
        (["passed", "folded"], State.PASSED),
        (["folded"], State.FOLDED),
        ([], State.UNREACHED),
    ],
)
def test_a_cell_is_as_good_as_its_worst_case(outcomes, state):
    cell = Cell(ADD)
    for number, outcome in enumerate(outcomes):
        cell.add(record(str(number), outcome=outcome))
    assert cell.state is state
    assert worst(cell.outcomes) is state


def test_what_no_case_reached_is_in_the_matrix_and_not_green():
    unreached = ADD._replace(dtype="int8")
    matrix = build_matrix([record()], [unreached, ADD])
    assert [(key, cell.state) for key, cell in matrix.items()] == [(ADD, State.PASSED), (unreached, State.UNREACHED)]


def test_a_case_outside_the_denominator_still_shows():
    assert list(build_matrix([record()])) == [ADD]
    assert key_of(record()) == ADD


def test_only_passed_cases_on_the_accelerator_count_as_accelerated():
    cell = Cell(ADD)
    for case_id, outcome, placement in [
        ("a", "passed", "accelerator"),
        ("f", "passed", "accelerator"),
        ("b", "passed", "mixed"),
        ("c", "passed", "host"),
        ("d", "wrong_result", "accelerator"),
        ("e", "folded", "folded"),
    ]:
        cell.add(record(case_id, outcome=outcome, placement=placement))
    assert (cell.cases, cell.accelerated) == (6, 2)


def test_the_denominator_has_the_types_that_the_schema_allows():
    cells = {key.dtype for key in all_cells("onnx", "ai.onnx") if (key.operator, key.since_version) == ("Relu", 6)}
    assert cells == {"float16", "float32", "float64"}


@pytest.mark.skipif(not onnx.__version__.startswith("1.23."), reason="the count is that of ONNX 1.23")
def test_every_operator_version_of_onnx_1_23_has_a_cell():
    assert len({key[:4] for key in all_cells("onnx", "ai.onnx")}) == 626


def test_the_denominator_is_that_of_the_release_that_made_the_records():
    older = [record("a", outcome="passed").model_copy(update={"versions": {"onnx": "1.18.0"}})]
    assert max(cell.since_version for cell in known_cells(older)) == 23  # onnx 1.18 has operator set 23
    assert unknown_release(older) is None
    newer = [record("a", outcome="passed").model_copy(update={"versions": {"onnx": "99.1.0"}})]
    assert max(cell.since_version for cell in known_cells(newer)) == onnx.defs.onnx_opset_version()
    assert unknown_release(newer) == "99.1.0"


def test_each_framework_of_the_records_has_its_rows():
    records = [record("a", outcome="passed", framework=framework) for framework in ("torch", "caffe")]
    cells = known_cells(records)
    assert {cell.framework for cell in cells} == {"torch", "caffe"}
    assert any(cell.operator == "LRN" and cell.dtype == "float32" for cell in cells)
    assert any(cell.operator == "resize_" for cell in cells)
