import json
import math

import numpy as np
import pytest
from pydantic import ValidationError

from reports.record import Errors, HostOperator, Outcome, Record, Stage

MINIMAL = {
    "run": "r1",
    "suite_hash": "abc",
    "backend": "opatlas",
    "target": "reference-npu",
    "case_id": "onnx/Add-14/float32",
    "framework": "onnx",
    "suite": "operators",
    "operator": "Add",
    "stage": "compare",
    "outcome": "passed",
}


def test_a_record_survives_its_line_of_json():
    record = Record(
        **MINIMAL,
        attributes={"axis": -1, "pads": (0, 1)},
        shapes=[(2, 3), ()],
        errors=Errors(max_ulp=1.5, bias=-0.25),
        host_operators=[HostOperator(operator="non_zero", reason="output size depends on data", location="n0")],
        stage_ms={"import": 0.5},
    )
    assert Record.model_validate_json(record.to_line()) == record


def test_a_line_is_strict_json_even_with_figures_that_are_not_finite():
    record = Record(
        **MINIMAL,
        attributes={"alpha": [math.nan, math.inf, -math.inf]},
        errors=Errors(max_abs=math.inf, bias=-math.inf, max_rel=math.nan),
    )

    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads(record.to_line(), parse_constant=refuse)
    assert data["errors"] == {"max_ulp": None, "max_abs": "Infinity", "max_rel": "NaN", "bias": "-Infinity"}
    assert data["attributes"] == {"alpha": ["NaN", "Infinity", "-Infinity"]}
    again = Record.model_validate(data)
    assert again.errors.max_abs == math.inf
    assert math.isnan(again.errors.max_rel)


def test_numpy_values_become_plain_data():
    record = Record(
        **MINIMAL, attributes={"value": np.array([[1, 2]], np.int8), "scale": np.float32(0.5), "mode": b"x"}
    )
    assert record.attributes == {"value": [[1, 2]], "scale": 0.5, "mode": "x"}


def test_a_reason_of_several_lines_becomes_one_line():
    assert Record(**MINIMAL, reason="first\n   second").reason == "first second"


@pytest.mark.parametrize(("field", "value"), [("outcome", "green"), ("stage", "linking"), ("colour", "red")])
def test_unknown_values_and_fields_are_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        Record(**{**MINIMAL, field: value})


def test_the_line_says_its_schema():
    line = json.loads(Record(**MINIMAL).to_line())
    assert line["schema"] == 1
    with pytest.raises(ValidationError, match="schema 2"):
        Record(**MINIMAL, schema=2)


def test_stages_are_declared_in_the_order_of_the_data():
    assert [stage.value for stage in Stage] == [
        "generate",
        "import",
        "verify",
        "optimize",
        "lower",
        "simulate",
        "compare",
    ]
    assert Outcome("passed") is Outcome.PASSED
