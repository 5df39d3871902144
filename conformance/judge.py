"""One case from its description to what the record says of it; runs inside the process that may be lost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from conformance import widening
from conformance.backends import BackendUnderTest, CaseFailure, Program, Report
from conformance.case import CaseInfo, Composites, LoadedCase, Suite
from conformance.comparison import Evidence, Output, Verdict, compare
from conformance.errors import Unavailable
from conformance.oracles import (
    EXPECTED,
    NATIVE,
    NATIVE_WIDENED,
    ONNXRUNTIME,
    ONNXRUNTIME_WIDENED,
    ORACLES,
    REFERENCE,
    TWIN,
    Answer,
    Question,
    ask,
    gather_evidence,
)
from conformance.tolerance import MissingEvidence, ToleranceClass
from conformance.tolerance_names import parse_tolerance
from conformance.vote import Judgement, judge_outputs
from reports.record import Outcome, Placement, Stage

OWN_EVALUATION = "own-evaluate"
"""Name under which the compiler's own interpreter is recorded.

It never votes for a result. Where it contradicts one that passes, a meaning of the compiler is wrong: that of constant
folding and of the host.
"""

Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out of a case, in the fields of a record."""

    outcome: Outcome
    stage: Stage
    diagnosis: str | None = None
    reason: str | None = None
    judgement: Judgement | None = None
    report: Report = field(default_factory=Report)
    tolerance: str = ""
    rule: str | None = None
    stage_ms: dict[str, float] = field(default_factory=dict)
    reached: tuple[str, ...] = ()


class _Stopwatch:
    """Wall milliseconds by part of the work."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.milliseconds[name] = round((time.perf_counter() - start) * 1e3, 3)


def judge_case(
    info: CaseInfo, suite: Suite, backend: BackendUnderTest, announce: Announce, crashed: frozenset[str] = frozenset()
) -> Finding:
    """Load, run and judge a case. `announce` hears each part before it starts, so that a crash has a place."""
    watch = _Stopwatch()
    announce(Stage.GENERATE)
    try:
        with watch.part("generate"):
            case = suite.load(info)
            tolerance = parse_tolerance(case.tolerance)
    except Unavailable as reason:
        return Finding(Outcome.NOT_RUN, Stage.GENERATE, "Unavailable", str(reason))
    except Exception as error:  # noqa: BLE001 - whatever the generator raises is a fault of the suite, and the case shows it
        return Finding(Outcome.ERROR, Stage.GENERATE, type(error).__name__, _first_line(error))
    run = _Run(case, backend, tolerance, announce, watch, crashed)
    found = run.refusal_wanted() if case.must_fail else run.estimated() if case.timing_only else run.judged()
    return Finding(
        found.outcome,
        found.stage,
        found.diagnosis,
        found.reason,
        found.judgement,
        found.report,
        case.tolerance,
        case.rule,
        {**watch.milliseconds, **found.report.stage_ms},
        () if case.native is None else case.native.operators(),
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]


@dataclass(frozen=True, slots=True)
class _Run:
    case: LoadedCase
    backend: BackendUnderTest
    tolerance: ToleranceClass
    announce: Announce
    watch: _Stopwatch
    crashed: frozenset[str]

    def refusal_wanted(self) -> Finding:
        """Judge a broken model: right is a refusal with a name; an accepted model or a stray exception is wrong."""
        if self.case.files is not None and not hasattr(self.backend, "compile_file"):
            return Finding(Outcome.NOT_RUN, Stage.IMPORT, "Unavailable", f"{self.backend.name} opens no files")
        ran = self._run_backend()
        if isinstance(ran, _Outputs):
            return Finding(
                Outcome.WRONG_RESULT, Stage.COMPARE, None, "the broken model was accepted", report=ran.report
            )
        wanted = self.case.diagnosis if getattr(self.backend, "names_diagnoses", False) else None
        if ran.named and wanted not in (None, ran.diagnosis):
            reason = f"refused as {ran.diagnosis}, expected {wanted}: {ran.reason}"
            return Finding(Outcome.WRONG_RESULT, ran.stage, ran.diagnosis, reason)
        if ran.outcome is Outcome.UNSUPPORTED or ran.named:
            return Finding(Outcome.PASSED, ran.stage, ran.diagnosis, ran.reason)
        return Finding(ran.outcome, ran.stage, ran.diagnosis, ran.reason)

    def judged(self) -> Finding:
        """Run the backend, and only if it gave outputs the oracles."""
        ran = self._run_backend()
        if not isinstance(ran, _Outputs):
            return Finding(ran.outcome, ran.stage, ran.diagnosis, ran.reason)
        question = Question(
            self.case.model, self.case.inputs, self.case.twin, self.case.expected, self.crashed, self.case.native
        )
        with self.watch.part("oracles"):
            answers = ask(question, self._oracles(), lambda name: self.announce(f"oracle:{name}"))
        self.announce(Stage.COMPARE)
        with self.watch.part("compare"):
            evidence = gather_evidence(question, self.tolerance, answers)
            judgement = self._judgement(ran, answers, evidence)
            if judgement.outcome is Outcome.WRONG_RESULT and self.case.computed is not None:
                judgement = self._judged_by_computed_class(self.case.computed, ran, question, answers, judgement)
        with self.watch.part("own_evaluate"):
            judgement = self._with_own_evaluation(ran, judgement, evidence)
        if judgement.outcome is Outcome.PASSED and self.case.composites is not None:
            judgement = self._as_composites(self.case.composites, ran, answers, evidence, judgement)
        outcome = judgement.outcome
        if outcome in (Outcome.PASSED, Outcome.QUALITY_WARNING) and ran.report.placement is Placement.FOLDED:
            outcome = Outcome.FOLDED
        reason = judgement.reason
        if outcome is Outcome.WRONG_RESULT and self.case.native is not None:
            reason += _located(judgement)
        return Finding(outcome, Stage.COMPARE, None, reason or None, judgement, ran.report)

    def estimated(self) -> Finding:
        """Costs without values: nothing can be verified of them here, so the case stays grey."""
        self.announce(Stage.IMPORT)
        stage = Stage.IMPORT
        try:
            program: Any = self._compile()
            if not hasattr(program, "estimate"):
                return Finding(Outcome.NOT_RUN, stage, "Unavailable", f"{self.backend.name} estimates no costs")
            stage = Stage.SIMULATE
            self.announce(stage)
            with self.watch.part("estimate"):
                program.estimate()
        except Exception as error:  # noqa: BLE001 - the code under test may raise anything
            failure = self.backend.explain(error, stage)
            return Finding(failure.outcome, failure.stage, failure.diagnosis, failure.reason)
        return Finding(Outcome.UNVERIFIED, stage, None, "timing only: no values to compare", report=program.report)

    def _as_composites(
        self,
        wanted: Composites,
        ran: _Outputs,
        answers: Sequence[Answer],
        evidence: Evidence,
        judgement: Judgement,
    ) -> Judgement:
        """The judgement of a passing run, after a look at what was recognized and a second run in pieces."""
        program: Any = ran.program
        if hasattr(program, "composites"):
            problem = wanted.problem(program.composites(self.case.inputs))
            if problem:
                return replace(judgement, outcome=Outcome.QUALITY_WARNING, reason=problem)
        if not hasattr(program, "run_decomposed"):
            return judgement
        with self.watch.part("decomposed"):
            try:
                outputs = [_array(output) for output in program.run_decomposed(self.case.inputs)]
            except Exception as error:  # noqa: BLE001 - the code under test may raise anything
                failure = self.backend.explain(error, Stage.SIMULATE)
                return replace(judgement, outcome=failure.outcome, reason=f"decomposed: {failure.reason}")
        second = self._judgement(replace(ran, values=outputs), answers, evidence)
        if second.outcome is Outcome.PASSED:
            return judgement
        return replace(second, reason=f"decomposed: {second.reason}")

    def _judgement(self, ran: _Outputs, answers: Sequence[Answer], evidence: Evidence) -> Judgement:
        types = self._types()
        if self.case.original is not None:
            found = judge_outputs(ran.values, answers, self.tolerance, evidence, types=types, ruling=self.case.original)
            if found.outcome is Outcome.PASSED:
                return found
        return judge_outputs(ran.values, answers, self.tolerance, evidence, types=types, ruling=self.case.ruling)

    def _judged_by_computed_class(
        self, name: str, ran: _Outputs, question: Question, answers: Sequence[Answer], before: Judgement
    ) -> Judgement:
        """Return the vote of all oracles in the computed class if that passes, else the judgement `before`."""
        tolerance = parse_tolerance(name)
        evidence = gather_evidence(question, tolerance, answers)
        types = self._types()
        found = judge_outputs(ran.values, answers, tolerance, evidence, types=types)
        if found.outcome is not Outcome.PASSED or not any(answer.exact for answer in answers):
            return before
        return replace(
            found, reason=f"within {name} of the exact value; by the rule of the suite alone {before.reason}"
        )

    def _types(self) -> list[np.dtype[np.generic] | None]:
        if self.case.native is not None:
            return self.case.native.types()
        assert self.case.model is not None
        return widening.output_types(self.case.model)

    def _oracles(self) -> list[str]:
        absent = {TWIN} if self.case.twin is None else set()
        absent |= {EXPECTED} if self.case.expected is None else set()
        absent |= {NATIVE, NATIVE_WIDENED} if self.case.native is None else {ONNXRUNTIME_WIDENED, REFERENCE}
        return [name for name in ORACLES if name not in absent and name not in self.backend.shares]

    def _run_backend(self) -> _Outputs | CaseFailure:
        self.announce(Stage.IMPORT)
        stage = Stage.IMPORT
        try:
            with self.watch.part("compile"):
                program = self._compile()
            stage = Stage.SIMULATE
            self.announce(stage)
            with self.watch.part("run"):
                outputs = [_array(output) for output in program.run(self.case.inputs)]
        except MemoryError as error:
            return CaseFailure(Outcome.CRASH, stage, "MemoryError", _first_line(error))
        except Unavailable as reason:
            return CaseFailure(Outcome.UNVERIFIED, stage, "Unavailable", str(reason))
        except Exception as error:  # noqa: BLE001 - the code under test may raise anything
            return self.backend.explain(error, stage)
        return _Outputs(outputs, getattr(program, "report", Report()), program)

    def _compile(self) -> Program:
        if self.case.program is not None:
            return self.case.program
        if self.case.native is not None:
            if not getattr(self.backend, "takes_native", False):
                return self.backend.compile(self.case.native.model())
            if self.case.native.inputs is None:
                return self.backend.compile(self.case.native.program)
            untraced: Program = cast("Any", self.backend).compile_module(
                self.case.native.program, self.case.native.inputs
            )
            return untraced
        if self.case.files is None:
            assert self.case.model is not None
            return self.backend.compile(self.case.model)
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "model"
            folder.mkdir()
            for name, data in self.case.files.items():
                (folder / name).write_bytes(data)
            program: Program = cast("Any", self.backend).compile_file(folder / "model.onnx")
            return program

    def _with_own_evaluation(self, ran: _Outputs, judgement: Judgement, evidence: Evidence) -> Judgement:
        if getattr(ran.program, "evaluate", None) is None:
            return judgement
        try:
            differs = own_difference(ran.program, self.case.inputs, ran.values, self.tolerance, evidence)
        except MissingEvidence:
            return judgement
        judgement.oracles[OWN_EVALUATION] = "differs" if differs else "agrees"
        if differs and judgement.outcome is Outcome.PASSED:
            return replace(judgement, outcome=Outcome.WRONG_RESULT, reason=differs)
        return judgement


def own_difference(
    program: Program, inputs: Sequence[Output], outputs: Sequence[Output], tolerance: ToleranceClass, evidence: Evidence
) -> str:
    """Return how a program's own interpreter, if it has one, contradicts its outputs; "" where it does not.

    Raises `MissingEvidence` when the class needs a run that `evidence` does not hold.
    """
    evaluate = getattr(program, "evaluate", None)
    if evaluate is None:
        return ""
    try:
        own = evaluate(inputs)
    except Exception as error:  # noqa: BLE001 - what has run may not be refused
        return f"{OWN_EVALUATION}: {type(error).__name__}: {_first_line(error)}"
    found = compare(outputs, own, tolerance, evidence, between_implementations=True)
    return f"{found.problem} by {OWN_EVALUATION}" if found.verdict is Verdict.DIFFERENT else ""


_PLACES = {
    "agrees": "; onnxruntime gives the same for the imported graph: the fault is in the frontend",
    "differs": "; onnxruntime gives something else for the imported graph: the fault is behind the frontend",
}
"""By what onnxruntime says of the graph as it was imported and written back to ONNX."""


def _located(judgement: Judgement) -> str:
    """Where the fault of a program of another framework is, as far as the exported graph tells."""
    return _PLACES.get(judgement.oracles.get(ONNXRUNTIME, ""), "")


@dataclass(frozen=True, slots=True)
class _Outputs:
    values: list[Output]
    report: Report
    program: Program


def _array(value: Any) -> Output:  # noqa: ANN401 - a foreign backend may return any array-like
    if isinstance(value, list | tuple):
        return [_array(part) for part in value]
    if value is None or isinstance(value, dict):
        return value
    return np.asarray(value)
