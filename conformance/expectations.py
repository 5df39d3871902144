"""What is known to be red, and why: one YAML file a backend, and what a run says about it.

    operators:                       # the suite
      - case: onnx-Conv-*            # an id, or a pattern where * stands for any text
        outcome: unsupported
        stage: lower
        reason: no kernel for grouped transposed convolution
        target: edge-npu             # optional: every target without it

An exact id wins over patterns; of patterns the first that matches. A known red never becomes green: its record keeps
the outcome, pytest shows it as an expected failure. What fails a run is a case that passes though it is expected not
to, a red that is not in the file, another outcome or stage than the file says, and (in a run without any filter) an
entry that matches no case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml

from conformance.errors import BadExpectations
from reports.record import Outcome, Stage

FOLDER = Path(__file__).parent / "expectations"
GREY = frozenset({Outcome.FOLDED, Outcome.UNVERIFIED, Outcome.NOT_RUN})
"""Outcomes that say nothing against the backend and need no entry; never green either."""

_Choice = TypeVar("_Choice", Outcome, Stage)

_KEYS = frozenset({"case", "outcome", "stage", "reason", "target"})
_REQUIRED = ("case", "outcome", "stage", "reason")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry: which cases, and how each of them ends."""

    case: str
    outcome: Outcome
    stage: Stage
    reason: str
    target: str | None = None

    def applies_to(self, target: str) -> bool:
        """Whether the entry speaks of `target`."""
        return self.target in (None, target)


@dataclass(frozen=True, slots=True)
class Surprise:
    """Whether and how a case ended otherwise than expected."""

    unexpected: bool
    reason: str = ""
    expected: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Expectations:
    """The entries of one suite, by exact id and by pattern."""

    entries: tuple[Expectation, ...] = ()
    _exact: Mapping[str, list[Expectation]] = field(init=False, repr=False, compare=False)
    _patterns: tuple[tuple[re.Pattern[str], Expectation], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact: dict[str, list[Expectation]] = {}
        patterns = []
        for entry in self.entries:
            if "*" in entry.case:
                patterns.append((as_regex(entry.case), entry))
            else:
                exact.setdefault(entry.case, []).append(entry)
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_patterns", tuple(patterns))

    def find(self, case_id: str, target: str) -> Expectation | None:
        """Return the entry for a case on a target, or None."""
        for entry in self._exact.get(case_id, ()):
            if entry.applies_to(target):
                return entry
        return next((e for regex, e in self._patterns if e.applies_to(target) and regex.fullmatch(case_id)), None)

    def judge(self, case_id: str, target: str, outcome: Outcome, stage: Stage) -> Surprise:
        """Return whether an outcome is as expected."""
        entry = self.find(case_id, target)
        if entry is None:
            if outcome is Outcome.PASSED or outcome in GREY:
                return Surprise(unexpected=False)
            return Surprise(unexpected=True, reason=f"{outcome} at {stage}, expected to pass")
        if outcome is entry.outcome and stage is entry.stage:
            return Surprise(unexpected=False, expected=entry.outcome)
        return Surprise(
            unexpected=True,
            reason=f"{outcome} at {stage}, expected {entry.outcome} at {entry.stage}",
            expected=entry.outcome,
        )

    def stale(self, case_ids: Iterable[str], targets: Iterable[str]) -> list[Expectation]:
        """Return the entries for these targets that match none of the ids. Only a run without filter may ask."""
        ids, present = set(case_ids), tuple(targets)
        return [
            entry
            for entry in self.entries
            if any(entry.applies_to(target) for target in present) and not _matches_any(entry, ids)
        ]


def _matches_any(entry: Expectation, ids: set[str]) -> bool:
    if "*" not in entry.case:
        return entry.case in ids
    regex = as_regex(entry.case)
    return any(regex.fullmatch(case_id) for case_id in ids)


def as_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern whose only special character is `*`."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))


def expectations_path(backend: str) -> Path:
    """Return the file of a backend."""
    return FOLDER / f"{backend}.yaml"


def load_expectations(path: Path) -> dict[str, Expectations]:
    """Return the expectations of each suite; none without a file. Raises `BadExpectations` with one line."""
    if not path.exists():
        return {}
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadExpectations(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadExpectations(f"{path}: found {type(data).__name__}, expected suites with lists of entries")
    return {str(suite): _suite(path, str(suite), entries) for suite, entries in data.items()}


def _suite(path: Path, suite: str, entries: object) -> Expectations:
    if not isinstance(entries, list):
        raise BadExpectations(f"{path}: {suite}: found {type(entries).__name__}, expected a list of entries")
    read = [_entry(f"{path}: {suite}[{index}]", entry) for index, entry in enumerate(entries)]
    seen: set[tuple[str, str | None]] = set()
    for entry in read:
        if (entry.case, entry.target) in seen:
            raise BadExpectations(f"{path}: {suite}: {entry.case} stands there twice")
        seen.add((entry.case, entry.target))
    return Expectations(tuple(read))


def _entry(place: str, entry: object) -> Expectation:
    if not isinstance(entry, dict):
        raise BadExpectations(f"{place}: found {entry!r:.60}, expected the keys {', '.join(_REQUIRED)}")
    missing = [key for key in _REQUIRED if not entry.get(key)]
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if missing or unknown:
        problem = f"{missing[0]} is missing" if missing else f"unknown key {unknown[0]}"
        raise BadExpectations(f"{place}: {problem}; keys are {', '.join(sorted(_KEYS))}")
    outcome = _member(place, "outcome", Outcome, entry["outcome"])
    if outcome is Outcome.PASSED:
        raise BadExpectations(f"{place}: outcome passed needs no entry")
    stage = _member(place, "stage", Stage, entry["stage"])
    target = entry.get("target")
    return Expectation(
        str(entry["case"]), outcome, stage, str(entry["reason"]), None if target is None else str(target)
    )


def _member(place: str, key: str, kind: type[_Choice], found: object) -> _Choice:
    try:
        return kind(str(found))
    except ValueError as error:
        raise BadExpectations(f"{place}: {key} {found!r}, expected one of {', '.join(kind)}") from error
