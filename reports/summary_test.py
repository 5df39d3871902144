import json

from reports.matrix import CellKey
from reports.matrix_test import record
from reports.record import HostOperator
from reports.summary import Reach, Summary, summarize

MIXED = [
    record("a", placement="accelerator", cpu_ms=10, stage_ms={"import": 1, "lower": 2}, versions={"onnx": "1.23.2"}),
    record(
        "b",
        placement="mixed",
        cpu_ms=30,
        stage_ms={"import": 3},
        versions={"onnx": "1.22.0"},
        host_operators=[HostOperator(operator="sort", reason="no instruction", location=f"n{i}") for i in range(2)],
    ),
    record("c", operator="Sub", outcome="unsupported", stage="import", diagnosis="UnsupportedOperator", reason="no"),
    record("d", operator="Sub", outcome="unsupported", stage="import", diagnosis="UnsupportedOperator", reason="no"),
    record(
        "e", operator="Mul", outcome="oracle_disagreement", oracles={"onnxruntime": "differs", "reference": "agrees"}
    ),
    record("f", operator="Div", outcome="not_run", stage="generate"),
]


def test_figures_of_a_mixed_run():
    summary = summarize(MIXED)
    assert summary.cases == 6
    assert summary.passed == 2
    assert summary.outcomes == {"passed": 2, "unsupported": 2, "oracle_disagreement": 1, "not_run": 1}
    assert summary.placements == {"accelerator": 1, "mixed": 1}
    assert summary.broken_at == {"import": 2, "compare": 1}
    assert summary.operators == Reach(passed=1, tried=3, total=4)
    assert [(reason.diagnosis, reason.cases, reason.example) for reason in summary.reasons] == [
        ("UnsupportedOperator", 2, "c"),
        ("", 1, "e"),
    ]
    assert summary.versions == {"onnx": "1.22.0, 1.23.2"}
    assert summary.cost.cpu_ms == 40
    assert summary.cost.cpu_ms_per_case == 8
    assert summary.cost.stage_ms == {"import": 4, "lower": 2}


def test_a_host_operator_counts_once_a_case():
    [reason] = summarize(MIXED).host_reasons
    assert (reason.operator, reason.reason, reason.cases) == ("sort", "no instruction", 1)


def test_the_denominator_counts_what_was_never_tried():
    cells = [CellKey("onnx", "ai.onnx", "Add", 14, dtype) for dtype in ("float32", "int8")]
    cells += [CellKey("onnx", "ai.onnx", "Add", 7, "float32"), CellKey("onnx", "ai.onnx", "Abs", 13, "float32")]
    summary = summarize(MIXED[:2], cells)
    assert summary.operators == Reach(passed=1, tried=1, total=2)
    assert summary.pairs == Reach(passed=1, tried=1, total=3)
    assert summary.cells == Reach(passed=1, tried=1, total=4)


def test_a_whole_model_is_a_case_but_no_operator_that_exists():
    cells = [CellKey("onnx", "ai.onnx", "Add", 14, "float32")]
    summary = summarize([record("a"), record("m", operator="resnet50", since_version=0)], cells)
    assert summary.cases == 2
    assert summary.operators == Reach(passed=1, tried=1, total=1)


def test_a_ruled_disagreement_of_references_is_listed_although_the_case_passed():
    ruled = record("r", oracles={"onnxruntime": "agrees", "reference": "differs"}, ruling="Slice-13: ends are clamped")
    [entry] = summarize([ruled]).disagreements
    assert (entry.case_id, entry.ruling) == ("r", "Slice-13: ends are clamped")


def test_rulings_say_who_follows_the_specification_by_which_rule():
    differ = {"onnxruntime": "agrees", "reference": "differs"}
    records = [record(name, oracles=differ, ruling="onnxruntime: ends are clamped") for name in ("a", "b")]
    open_case = record("c", oracles=differ, outcome="oracle_disagreement")
    unruled, ruled = summarize([*records, open_case]).rulings
    assert (ruled.follows, ruled.rule, ruled.cases, ruled.example) == ("onnxruntime", "ends are clamped", 2, "a")
    assert (unruled.follows, unruled.rule, unruled.example) == ("", "", "c")


def test_the_compilers_own_evaluation_is_no_reference_that_could_disagree():
    own = record("o", oracles={"onnxruntime": "agrees", "own-evaluate": "differs"})
    assert summarize([own]).disagreements == []


def test_cases_that_ended_otherwise_than_expected_are_listed():
    [entry] = summarize([record("u", outcome="passed", expected="unsupported", unexpected=True)]).unexpected
    assert (entry.expected, entry.found) == ("unsupported", "passed")


def test_reasons_that_differ_in_numbers_and_quoted_names_only_are_one_reason():
    texts = ["31 ulp at 'y'[31], 2 allowed", "7 ulp at 'output_0'[7], 2 allowed", "7 ulp at 'y'[7], none allowed"]
    broken = [record(text, outcome="wrong_result", reason=text) for text in texts]
    found = [(reason.cases, reason.reason) for reason in summarize(broken).reasons]
    assert found == [(2, texts[0]), (1, texts[2])]


def test_a_run_of_nothing_has_no_shares():
    summary = summarize([])
    assert summary.cases == 0
    assert summary.share(0) == 0


def test_the_json_form_reads_back():
    summary = summarize(MIXED)
    text = summary.model_dump_json(by_alias=True)
    assert json.loads(text)["schema"] == 1
    assert Summary.model_validate_json(text) == summary
