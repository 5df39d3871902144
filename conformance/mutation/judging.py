"""One case of the pool against the compiler as it is in this process. Imports what may be faulty: for children only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from conformance import widening
from conformance.backends import CaseFailure
from conformance.backends.opatlas import Opatlas, create
from conformance.comparison import Evidence
from conformance.mutation.pool import PoolCase
from conformance.oracles import Answer
from conformance.tolerance_names import parse_tolerance
from conformance.vote import judge_outputs
from reports.record import Outcome, Placement, Stage


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a case: outcome, one line of reason, placement, cycles and traffic, and the outputs."""

    outcome: str
    reason: str
    figures: tuple[object, ...] = ()
    outputs: Sequence[Any] | None = None


@cache
def _backend() -> Opatlas:
    return create("reference-npu")


def judge(case: PoolCase) -> Judged:
    """Compile, run and judge a case as the suite does."""
    stage = Stage.IMPORT
    try:
        program = _backend().compile(onnx.load_from_string(case.model))
        stage = Stage.SIMULATE
        outputs = [_array(output) for output in program.run(case.inputs)]
    except Exception as error:  # noqa: BLE001 - a faulty compiler may raise anything
        return _failed(case, _backend().explain(error, stage))
    report = program.report
    figures = (str(report.placement), report.cycles, report.traffic_bytes)
    if case.must_fail:
        return Judged(str(Outcome.WRONG_RESULT), "the broken model was accepted", figures)
    outcome, reason = verdict(case, outputs)
    if outcome == str(Outcome.PASSED) and report.placement is Placement.FOLDED:
        outcome = str(Outcome.FOLDED)
    return Judged(outcome, reason, figures, outputs)


def _failed(case: PoolCase, failure: CaseFailure) -> Judged:
    if case.must_fail and (failure.outcome is Outcome.UNSUPPORTED or failure.named):
        return Judged(str(Outcome.PASSED), failure.reason)
    return Judged(str(failure.outcome), f"{failure.diagnosis}: {failure.reason}")


def verdict(case: PoolCase, outputs: Sequence[Any]) -> tuple[str, str]:
    """Return what the oracles say of these outputs: outcome and reason."""
    answers = [Answer(oracle, values, why, exact) for oracle, values, why, exact in case.answers]
    evidence = Evidence(inputs=case.inputs, **case.evidence)
    types = widening.output_types(onnx.load_from_string(case.model))
    found = judge_outputs(outputs, answers, parse_tolerance(case.tolerance), evidence, types=types, ruling=case.ruling)
    return str(found.outcome), found.reason


def _array(value: Any) -> Any:  # noqa: ANN401 - tensors, sequences, maps
    if isinstance(value, list | tuple):
        return [_array(part) for part in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value)
