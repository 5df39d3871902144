"""One case of the pool against the compiler as it is in this process. Imports what may be faulty: for children only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from compiler.targets import load_target
from conformance import widening
from conformance.backends import CaseFailure
from conformance.backends.opatlas import Opatlas, _Simulated, create
from conformance.comparison import Evidence
from conformance.judge import own_difference
from conformance.mutation.pool import DEFAULT_TARGET, SMALL_TARGET, PoolCase
from conformance.oracles import Answer
from conformance.tolerance_names import parse_tolerance
from conformance.vote import judge_outputs
from reports.record import Outcome, Placement, Stage


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a case: outcome, one line of reason, what it cost (`FIGURES`), and the outputs."""

    outcome: str
    reason: str
    figures: tuple[object, ...] = ()
    outputs: Sequence[Any] | None = None


FIGURES = ("placement", "cycles", "traffic_bytes", "compulsory_bytes", "peak_sram_bytes", "energy_pj", "utilization")
"""Fields of a report that a record keeps: what `opatlas report` shows and runs are compared by."""

_SMALL_ARRAY, _SMALL_SRAM, _FEW_BANKS = 4, 2048, 4


@cache
def _backend(target: str) -> Opatlas:
    return create(target) if target != SMALL_TARGET else _Small(DEFAULT_TARGET)


class _Small(Opatlas):
    """The default target with an array of 4 x 4 and 2 KiB of SRAM."""

    def compile(self, model: Any) -> Any:  # noqa: ANN401 - as the base
        return _Simulated(model, _small_target())


@cache
def _small_target() -> Any:  # noqa: ANN401 - a Target
    usual = load_target(DEFAULT_TARGET)
    matrix = usual.matrix.model_copy(update={"rows": _SMALL_ARRAY, "columns": _SMALL_ARRAY})
    sram = usual.sram.model_copy(update={"bytes": _SMALL_SRAM, "banks": _FEW_BANKS})
    return usual.model_copy(update={"name": SMALL_TARGET, "matrix": matrix, "sram": sram})


def judge(case: PoolCase) -> Judged:
    """Compile, run and judge a case as the suite does."""
    stage = Stage.IMPORT
    try:
        program = _backend(case.target).compile(onnx.load_from_string(case.model))
        stage = Stage.SIMULATE
        outputs = [_array(output) for output in program.run(case.inputs)]
    except Exception as error:  # noqa: BLE001 - a faulty compiler may raise anything
        return _failed(case, _backend(case.target).explain(error, stage))
    report = program.report
    figures = tuple(_figure(getattr(report, name)) for name in FIGURES)
    if case.must_fail:
        return Judged(str(Outcome.WRONG_RESULT), "the broken model was accepted", figures)
    outcome, reason = verdict(case, outputs)
    if outcome == str(Outcome.PASSED):
        differs = own_difference(program, case.inputs, outputs, parse_tolerance(case.tolerance), _evidence(case))
        if differs:
            return Judged(str(Outcome.WRONG_RESULT), differs, figures)
        if report.placement is Placement.FOLDED:
            outcome = str(Outcome.FOLDED)
    return Judged(outcome, reason, figures, outputs)


def _figure(value: object) -> object:
    """Return a figure in a form that compares by value and keeps as plain data."""
    if isinstance(value, Mapping):
        return tuple(sorted(value.items()))
    return str(value) if isinstance(value, Placement) else value


def _failed(case: PoolCase, failure: CaseFailure) -> Judged:
    as_wanted = case.diagnosis in (None, failure.diagnosis)
    if case.must_fail and as_wanted and (failure.outcome is Outcome.UNSUPPORTED or failure.named):
        return Judged(str(Outcome.PASSED), failure.reason)
    return Judged(str(failure.outcome), f"{failure.diagnosis}: {failure.reason}")


def verdict(case: PoolCase, outputs: Sequence[Any]) -> tuple[str, str]:
    """Return what the oracles say of these outputs: outcome and reason."""
    answers = [Answer(oracle, values, why, exact) for oracle, values, why, exact in case.answers]
    types = widening.output_types(onnx.load_from_string(case.model))
    found = judge_outputs(
        outputs, answers, parse_tolerance(case.tolerance), _evidence(case), types=types, ruling=case.ruling
    )
    return str(found.outcome), found.reason


def _evidence(case: PoolCase) -> Evidence:
    return Evidence(inputs=case.inputs, **case.evidence)


def _array(value: Any) -> Any:  # noqa: ANN401 - tensors, sequences, maps
    if isinstance(value, list | tuple):
        return [_array(part) for part in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value)
