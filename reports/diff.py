"""What changed between two runs, told apart from what only the suite changed.

Records carry the hash of the suite that made them. With two different hashes a case of the same name may be another
case, so its change is listed as `suite_changes` and never read as a regression of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from reports.matrix import SEVERITY
from reports.record import Outcome, Record
from reports.store import read_records, require

SLOWER_BY = 1.02
"""Cycles are deterministic, so a small change is a real one; below 2 % it is not worth a line."""

_GOOD = frozenset({Outcome.PASSED, Outcome.QUALITY_WARNING})


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Model):
    """A case that is in both runs and ended differently."""

    case_id: str
    backend: str
    target: str
    old: str
    new: str
    stage: str
    reason: str | None


class CycleChange(_Model):
    """A case that passes in both runs and takes another number of cycles."""

    case_id: str
    target: str
    old: int
    new: int


class Difference(_Model):
    """What changed from the old run to the new one. `added` and `removed` are case ids."""

    old_runs: list[str]
    new_runs: list[str]
    suite_changed: bool
    regressions: list[Change]
    fixed: list[Change]
    other_changes: list[Change]
    suite_changes: list[Change]
    slower: list[CycleChange]
    faster: list[CycleChange]
    added: list[str]
    removed: list[str]
    same: int

    @property
    def is_regression(self) -> bool:
        """Whether the compiler got worse on a case that did not change."""
        return bool(self.regressions)


def diff(old: Path | str, new: Path | str) -> Difference:
    """Compare the records at two paths (files or folders of a run). Raises `ReportError` if either has none."""
    before, after = (require(read_records(path), Path(path)) for path in (old, new))
    return compare(before.records, after.records)


def compare(old: Iterable[Record], new: Iterable[Record]) -> Difference:
    """Compare two sets of records."""
    before = {record.key: record for record in old}
    after = {record.key: record for record in new}
    both = [(before[key], after[key]) for key in sorted(before.keys() & after.keys())]
    changed = [(one, two) for one, two in both if one.outcome is not two.outcome]
    same_suite = [(one, two) for one, two in changed if one.suite_hash == two.suite_hash]
    cycles = [pair for pair in both if _comparable_cycles(*pair)]
    hashes = [{record.suite_hash for record in records.values()} for records in (before, after)]
    return Difference(
        old_runs=sorted({record.run for record in before.values()}),
        new_runs=sorted({record.run for record in after.values()}),
        suite_changed=hashes[0] != hashes[1],
        regressions=[_change(*pair) for pair in same_suite if _is_regression(*pair)],
        fixed=[_change(*pair) for pair in same_suite if _is_regression(*reversed(pair))],
        other_changes=[
            _change(*pair) for pair in same_suite if not _is_regression(*pair) and not _is_regression(*reversed(pair))
        ],
        suite_changes=[_change(one, two) for one, two in changed if one.suite_hash != two.suite_hash],
        slower=[_cycle_change(one, two) for one, two in cycles if _cycles(two) > SLOWER_BY * _cycles(one)],
        faster=[_cycle_change(one, two) for one, two in cycles if _cycles(one) > SLOWER_BY * _cycles(two)],
        added=sorted({key[0] for key in after.keys() - before.keys()}),
        removed=sorted({key[0] for key in before.keys() - after.keys()}),
        same=len(both) - len(changed),
    )


def _is_regression(old: Record, new: Record) -> bool:
    """Whether a case that was usable no longer is, or a pass turned into a warning, or a refusal into a wrong answer.

    A case that did not run this time says nothing.
    """
    if Outcome.NOT_RUN in {old.outcome, new.outcome}:
        return False
    if old.outcome in _GOOD or new.outcome in _GOOD:
        return old.outcome in _GOOD and SEVERITY[new.outcome] < SEVERITY[old.outcome]
    return old.outcome is Outcome.UNSUPPORTED and SEVERITY[new.outcome] < SEVERITY[Outcome.UNSUPPORTED]


def _change(old: Record, new: Record) -> Change:
    return Change(
        case_id=new.case_id,
        backend=new.backend,
        target=new.target,
        old=old.outcome.value,
        new=new.outcome.value,
        stage=new.stage.value,
        reason=new.reason,
    )


def _comparable_cycles(old: Record, new: Record) -> bool:
    passed = old.outcome in _GOOD and new.outcome in _GOOD
    return passed and old.suite_hash == new.suite_hash and old.cycles is not None and new.cycles is not None


def _cycles(record: Record) -> int:
    return record.cycles or 0


def _cycle_change(old: Record, new: Record) -> CycleChange:
    return CycleChange(case_id=new.case_id, target=new.target, old=_cycles(old), new=_cycles(new))
