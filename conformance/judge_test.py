import numpy as np
import pytest
from onnx import TensorProto, helper

from conformance.backends import Report
from conformance.backends.registry import explain_generic
from conformance.case import CaseInfo, LoadedCase
from conformance.errors import Unavailable
from conformance.judge import OWN_EVALUATION, judge_case
from conformance.recording import RunContext, make_record, suite_hash
from reports.record import Outcome, Placement, Stage

INFO = CaseInfo(id="c", suite="s", operator="Abs", shapes=((4,),))
X = np.array([-1.5, 0.0, 2.5, 3.0], np.float32)


def case(**fields):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return LoadedCase(model, [X], **{"tolerance": "exact", **fields})


class Suite:
    def __init__(self, made):
        self.made = made

    def load(self, info):
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Backend:
    """Gives one result, or raises it; a second time at `run`."""

    name = "test"
    explain = staticmethod(explain_generic)

    def __init__(self, result=None, at_compile=None, report=None, evaluate=None, shares=frozenset()):
        self.result, self.at_compile, self.report, self.evaluate, self.shares = (
            result,
            at_compile,
            report,
            evaluate,
            shares,
        )

    def compile(self, model):
        if self.at_compile is not None:
            raise self.at_compile
        program = type("Program", (), {"run": lambda _, inputs: self.result})()
        if self.report is not None:
            program.report = self.report
        if self.evaluate is not None:
            program.evaluate = self.evaluate
        return program


def judged(made, backend, heard=None):
    return judge_case(INFO, Suite(made), backend, (heard if heard is not None else []).append)


def test_a_right_result_passes_and_every_part_is_announced_in_order():
    heard = []
    found = judged(case(), Backend([np.abs(X)]), heard)
    assert (found.outcome, found.stage) == (Outcome.PASSED, Stage.COMPARE)
    assert heard == ["generate", "import", "simulate", "oracle:onnxruntime", "oracle:onnxruntime-widened",
                     "oracle:reference", "compare"]  # fmt: skip


def test_a_wrong_result_is_wrong():
    assert judged(case(), Backend([X])).outcome is Outcome.WRONG_RESULT


def test_a_right_result_of_nothing_that_ran_is_folded_and_a_wrong_one_wrong():
    folded = Report(placement=Placement.FOLDED)
    assert judged(case(), Backend([np.abs(X)], report=folded)).outcome is Outcome.FOLDED
    assert judged(case(), Backend([X], report=folded)).outcome is Outcome.WRONG_RESULT


def test_a_computed_class_saves_an_exact_result_from_a_rule_about_rounded_values():
    noisy = [np.abs(X) + np.float32(2e-7)]
    rule = {"tolerance": "onnx_rule(0, 1e-7)", "ruling": "expected", "computed": "max_relative(2)"}
    found = judged(case(expected=noisy, **rule), Backend([np.abs(X)]))
    assert found.outcome is Outcome.PASSED
    assert "max_relative(2)" in found.reason
    # Neither when the result is beyond the class, nor when the expected values are no rounding of the exact ones.
    assert judged(case(expected=noisy, **rule), Backend([X])).outcome is Outcome.WRONG_RESULT
    assert judged(case(expected=[X], **rule), Backend([np.abs(X)])).outcome is Outcome.WRONG_RESULT


def test_a_case_that_cannot_be_had_is_not_run_and_a_broken_one_an_error():
    assert judged(Unavailable("no network"), Backend()).outcome is Outcome.NOT_RUN
    found = judged(KeyError("x"), Backend())
    assert (found.outcome, found.stage, found.diagnosis) == (Outcome.ERROR, Stage.GENERATE, "KeyError")
    assert judged(case(tolerance="allclose"), Backend()).outcome is Outcome.ERROR


def test_the_backend_has_no_oracle_of_its_own_code():
    found = judged(case(), Backend([X], shares=frozenset({"onnxruntime", "reference", "onnxruntime-widened"})))
    assert found.outcome is Outcome.UNVERIFIED


def test_the_compilers_own_interpreter_gives_no_vote_to_a_wrong_result():
    found = judged(case(), Backend([X], evaluate=lambda inputs: [X]))
    assert found.outcome is Outcome.WRONG_RESULT
    assert found.judgement.oracles[OWN_EVALUATION] == "agrees"


def _refuses(inputs):
    raise ValueError("cannot")


@pytest.mark.parametrize(
    ("evaluate", "reason"), [(lambda inputs: [X], "by own-evaluate"), (_refuses, "own-evaluate: ValueError: cannot")]
)
def test_a_right_result_that_the_compilers_own_interpreter_contradicts_is_a_fault_of_the_compiler(evaluate, reason):
    found = judged(case(), Backend([np.abs(X)], evaluate=evaluate))
    assert found.outcome is Outcome.WRONG_RESULT
    assert reason in found.reason
    assert found.judgement.oracles[OWN_EVALUATION] == "differs"


@pytest.mark.parametrize(
    ("backend", "outcome"),
    [
        (Backend(at_compile=NotImplementedError("broken")), Outcome.PASSED),
        (Backend(at_compile=Unavailable("a class of its own")), Outcome.PASSED),
        (Backend(at_compile=KeyError("stray")), Outcome.ERROR),
        (Backend([X]), Outcome.WRONG_RESULT),
    ],
)
def test_a_broken_model_must_be_refused_by_name(backend, outcome):
    assert judged(case(must_fail=True), backend).outcome is outcome


@pytest.mark.parametrize(
    ("wanted", "names", "outcome"),
    [
        ("Unavailable", True, Outcome.PASSED),
        ("TypeMismatch", True, Outcome.WRONG_RESULT),
        ("TypeMismatch", False, Outcome.PASSED),  # names of another compiler's refusals say nothing
    ],
)
def test_a_broken_model_may_ask_for_one_diagnosis(wanted, names, outcome):
    backend = Backend(at_compile=Unavailable("a class of its own"))
    backend.names_diagnoses = names
    found = judged(case(must_fail=True, diagnosis=wanted), backend)
    assert found.outcome is outcome
    assert outcome is Outcome.PASSED or found.reason.startswith("refused as Unavailable, expected TypeMismatch: ")


def test_cases_about_files_are_not_run_by_backends_that_open_none():
    assert judged(case(must_fail=True, files={"model.onnx": b""}), Backend([X])).outcome is Outcome.NOT_RUN


def test_a_record_holds_what_was_found():
    report = Report(placement=Placement.HOST, cycles=7, utilization={"matrix": 0.5})
    finding = judged(case(), Backend([X], report=report))
    record = make_record(INFO, finding, RunContext("r", "h", "b"), "t", cpu_ms=1.5)
    assert (record.outcome, record.cycles, record.placement) == ("wrong_result", 7, "host")
    assert record.errors.max_abs == 3.0
    assert record.utilization == {"matrix": 0.5}
    assert record.oracles == {"onnxruntime": "differs", "onnxruntime-widened": "unavailable", "reference": "differs"}
    assert record.shapes == [[4]]


def test_the_suite_hash_follows_what_decides_outcomes_alone(tmp_path):
    for folder in ("opsets", "generators", "conformance/expectations"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "opsets/a.yaml").write_text("a")
    before = suite_hash(tmp_path)
    (tmp_path / "opsets/a_test.py").write_text("a")
    (tmp_path / "conformance/expectations/b.yaml").write_text("a")
    assert suite_hash(tmp_path) == before
    (tmp_path / "opsets/a.yaml").write_text("b")
    assert suite_hash(tmp_path) != before
