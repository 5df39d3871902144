import math

import pytest

from reports.errors import BadQuery, ReportError
from reports.query import _COLUMNS, Database
from reports.record import Errors, HostOperator, Record
from reports.record_test import MINIMAL


def test_the_table_has_a_column_for_each_field_of_a_record():
    fields = [field.alias or name for name, field in Record.model_fields.items()]
    assert list(_COLUMNS) == fields


def test_values_arrive_in_their_types():
    record = Record(
        **MINIMAL,
        errors=Errors(max_ulp=math.inf, max_rel=math.nan),
        oracles={"onnxruntime": "agrees"},
        host_operators=[HostOperator(operator="sort", reason="no instruction")],
        stage_ms={"import": 1.5},
        cycles=2**70,
    )
    with Database([record]) as database:
        [(ulp, rel, verdict, reason, milliseconds, cycles)] = database.rows(
            "SELECT errors.max_ulp, errors.max_rel, oracles['onnxruntime'], host_operators[1].reason, "
            "stage_ms['import'], cycles FROM records"
        )
    assert (ulp, verdict, reason, milliseconds, cycles) == (math.inf, "agrees", "no instruction", 1.5, 2**70)
    assert math.isnan(rel)


def test_broken_cases_are_those_that_ran_and_did_not_pass():
    outcomes = ["passed", "folded", "not_run", "unsupported", "quality_warning"]
    records = [Record(**{**MINIMAL, "case_id": name, "outcome": name}) for name in outcomes]
    with Database(records) as database:
        found = database.counts("SELECT outcome, count(*) FROM broken GROUP BY 1 ORDER BY 1")
    assert found == {"quality_warning": 1, "unsupported": 1}


def test_no_records_are_an_empty_table():
    with Database([]) as database:
        assert database.rows("SELECT count(*) FROM records") == [(0,)]


def test_anyone_can_ask_and_a_wrong_question_is_one_line():
    with Database([Record(**MINIMAL)]) as database:
        assert database.named_rows("SELECT operator, count(*) AS cases FROM records GROUP BY 1") == [
            {"operator": "Add", "cases": 1}
        ]
        with pytest.raises(BadQuery, match=r"the query is refused: .*colour"):
            database.named_rows("SELECT colour FROM records")


def test_no_question_is_refused():
    with Database([]) as database, pytest.raises(BadQuery, match="the query is empty"):
        database.named_rows("  ")


def test_a_number_beyond_all_columns_is_one_line():
    with pytest.raises(ReportError, match="a value that no column holds") as refusal:
        Database([Record(**MINIMAL).model_copy(update={"cycles": 10**40})])
    assert "\n" not in str(refusal.value)
