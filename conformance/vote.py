"""What the oracles say together.

`passed` means: within the class of every independent oracle that is available. Oracles that differ from each other
beyond the class leave no verdict (`oracle_disagreement`), unless the manifest rules which one follows the
specification; a result that no oracle agrees with is wrong whichever of them is right. No oracle: `unverified`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from conformance.comparison import Comparison, Evidence, Figures, Output, Verdict, compare
from conformance.numerics import Kind, format_of, kind_of, widen
from conformance.oracles import Answer, as_declared
from conformance.tolerance import MissingEvidence, ToleranceClass
from reports.record import OracleVerdict, Outcome


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome with its reason, the figures against the leading oracle, and each oracle's own word."""

    outcome: Outcome
    reason: str = ""
    figures: Figures = field(default_factory=Figures)
    oracles: dict[str, OracleVerdict] = field(default_factory=dict)


def judge_outputs(
    outputs: Sequence[Output],
    answers: Sequence[Answer],
    tolerance: ToleranceClass,
    evidence: Evidence,
    *,
    types: Sequence[np.dtype[np.generic] | None],
    ruling: str | None = None,
) -> Judgement:
    """Return what `answers` say of `outputs`.

    With a `ruling` only oracles whose name starts with it vote: the others are known to err there, so that without an
    answer from it nothing is verified.
    """
    words: dict[str, OracleVerdict] = {answer.oracle: "unavailable" for answer in answers}
    available = [answer for answer in answers if answer.available]
    if not available:
        reasons = "; ".join(f"{answer.oracle}: {answer.why}" for answer in answers if answer.why)
        return Judgement(Outcome.UNVERIFIED, f"no independent oracle: {reasons}", oracles=words)
    ballot = _Ballot(outputs, tolerance, evidence, types)
    try:
        results = {answer.oracle: ballot.against(answer) for answer in available}
        voters = [answer for answer in available if ruling is None or answer.oracle.startswith(ruling)]
        if not voters:
            return Judgement(
                Outcome.UNVERIFIED, f"the oracle that the ruling names, {ruling}, has no answer", oracles=words
            )
        disputes = ballot.disputes(voters)
    except MissingEvidence as error:
        return Judgement(Outcome.UNVERIFIED, str(error), oracles=words)
    for name, result in results.items():
        words[name] = "differs" if result.verdict is Verdict.DIFFERENT else "agrees"
    return _decide([(answer, results[answer.oracle]) for answer in _leading_first(voters)], disputes, words)


def _decide(
    results: list[tuple[Answer, Comparison]], disputes: list[str], words: dict[str, OracleVerdict]
) -> Judgement:
    leader, led = results[0]
    differing = [(answer, result) for answer, result in results if result.verdict is Verdict.DIFFERENT]
    if len(differing) == len(results):
        return Judgement(Outcome.WRONG_RESULT, f"{led.problem} by {leader.oracle}", led.figures, words)
    if disputes or differing:
        reason = "; ".join(disputes) or "; ".join(
            f"{result.problem} by {answer.oracle}" for answer, result in differing
        )
        return Judgement(Outcome.ORACLE_DISAGREEMENT, reason, led.figures, words)
    if led.verdict is Verdict.SECOND_TIER:
        return Judgement(Outcome.QUALITY_WARNING, f"{led.problem} by {leader.oracle}", led.figures, words)
    return Judgement(Outcome.PASSED, "", led.figures, words)


def _leading_first(answers: Sequence[Answer]) -> list[Answer]:
    """Put exact references first: they carry no rounding of their own, so the strict class is measured from them."""
    return sorted(answers, key=lambda answer: not answer.exact)


def unflushed(value: Output, like: Output) -> Output:
    """Return `value` with the denormals of `like` where it has zeros: what flushes denormals can't tell them apart."""
    if not (isinstance(value, np.ndarray) and isinstance(like, np.ndarray)) or value.shape != like.shape:
        return value
    if kind_of(value.dtype) is not Kind.FLOAT or kind_of(like.dtype) is not Kind.FLOAT:
        return value
    wide = widen(like)
    denormal = (widen(value) == 0) & (np.abs(wide) <= format_of(value.dtype).smallest_normal)
    return np.where(denormal, wide.astype(value.dtype), value)


@dataclass(frozen=True, slots=True)
class _Ballot:
    outputs: Sequence[Output]
    tolerance: ToleranceClass
    evidence: Evidence
    types: Sequence[np.dtype[np.generic] | None]

    def against(self, answer: Answer) -> Comparison:
        return self._compare(self.outputs, answer, self.types)

    def disputes(self, voters: Sequence[Answer]) -> list[str]:
        """Return where oracles differ from the leading one by more than the second tier of the class."""
        leader, *others = _leading_first(voters)
        found = []
        for other in others:
            outputs = self._declared(other)
            if other.flushes:
                outputs = [unflushed(value, like) for value, like in zip_longest(outputs, leader.outputs or [])]
            result = self._compare(outputs, leader, self.types)
            if result.verdict is Verdict.DIFFERENT:
                found.append(f"{other.oracle} and {leader.oracle} differ: {result.problem}")
        return found

    def _declared(self, answer: Answer) -> list[Output]:
        outputs = answer.outputs or []
        if len(outputs) != len(self.types):
            return list(outputs)
        return [as_declared(value, dtype) for value, dtype in zip(outputs, self.types, strict=True)]

    def _compare(
        self, outputs: Sequence[Output], answer: Answer, types: Sequence[np.dtype[np.generic] | None]
    ) -> Comparison:
        reference = answer.outputs or []
        if answer.flushes and len(reference) == len(outputs):
            reference = [unflushed(value, like) for value, like in zip(reference, outputs, strict=True)]
        return compare(
            outputs,
            reference,
            self.tolerance,
            self.evidence,
            types=types,
            between_implementations=not answer.exact,
        )
