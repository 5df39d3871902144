"""Runs with different versions of frameworks side by side: a column a run, and what changed from each to the next.

Which versions are wanted stands in `versions.yaml`; those without records are columns too, marked as not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.diff import Difference, compare
from reports.files import atomic_text
from reports.html import MEANINGS, environment
from reports.matrix import State, build_matrix, worst
from reports.record import Outcome, Record
from reports.store import read_records, require

DECLARED = Path(__file__).with_name("versions.yaml")
_NOT_AMONG = "not among these records"
_SHOWN = 12


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Declared(_Model):
    """Versions that results are wanted for: the tox environment that makes them, or why there is none."""

    packages: dict[str, str]
    environment: str | None = None
    not_run: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Declared:
        if (self.environment is None) is (self.not_run is None):
            raise ValueError(f"{self.packages}: found both or neither of environment and not_run, expected one of them")
        return self


class Column(_Model):
    """One run, or versions without one. ``versions`` are those of all packages, as the records have them."""

    name: str
    versions: dict[str, str]
    cases: int = 0
    outcomes: dict[str, int] = Field(default_factory=dict)
    not_run: str | None = None


class Row(_Model):
    """An operator version: its state in each column (None: not run), and cases that passed of those there are."""

    framework: str
    domain: str
    operator: str
    since_version: int
    states: list[str | None]
    passed: list[int]
    cases: list[int]

    @property
    def differs(self) -> bool:
        """Whether two columns with cases have different states or counts."""
        seen = {pair for pair in zip(self.states, self.passed, strict=True) if pair[0] not in {None, State.UNREACHED}}
        return len(seen) > 1


class Step(_Model):
    """What changed from one column to the next."""

    old: str
    new: str
    difference: Difference


class VersionMatrix(_Model):
    """All columns, operator versions and changes; ``differing`` names the packages whose versions differ."""

    columns: list[Column]
    differing: list[str]
    rows: list[Row]
    steps: list[Step]


@cache
def declared_versions(path: Path = DECLARED) -> tuple[Declared, ...]:
    """The versions that results are wanted for, in order."""
    return TypeAdapter(tuple[Declared, ...]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))


def compare_versions(runs: Mapping[str, Sequence[Record]], declared: Iterable[Declared] = ()) -> VersionMatrix:
    """Return runs by name side by side, in their order, and behind them what is declared and not among them."""
    columns = [_column(name, records) for name, records in runs.items()]
    found = {column.name for column in columns}
    columns += [
        Column(
            name=one.environment or ", ".join(f"{package} {version}" for package, version in one.packages.items()),
            versions=one.packages,
            not_run=one.not_run or _NOT_AMONG,
        )
        for one in declared
        if one.environment not in found
    ]
    names = list(runs)
    steps = [Step(old=a, new=b, difference=compare(runs[a], runs[b])) for a, b in pairwise(names)]
    return VersionMatrix(
        columns=columns, differing=_differing(columns), rows=_rows(runs, len(columns) - len(names)), steps=steps
    )


def _column(name: str, records: Sequence[Record]) -> Column:
    versions: dict[str, set[str]] = {}
    outcomes = dict.fromkeys(Outcome, 0)
    for record in records:
        outcomes[record.outcome] += 1
        for package, version in record.versions.items():
            versions.setdefault(package, set()).add(version)
    return Column(
        name=name,
        versions={package: ", ".join(sorted(seen)) for package, seen in sorted(versions.items())},
        cases=len(records),
        outcomes={outcome.value: number for outcome, number in outcomes.items() if number},
    )


def _differing(columns: Iterable[Column]) -> list[str]:
    """Packages whose versions differ between the columns that ran."""
    seen: dict[str, set[str]] = {}
    for column in columns:
        for package, version in column.versions.items() if column.not_run is None else ():
            seen.setdefault(package, set()).add(version)
    return sorted(package for package, versions in seen.items() if len(versions) > 1)


def _rows(runs: Mapping[str, Sequence[Record]], empty: int) -> list[Row]:
    by_column = []
    for records in runs.values():
        counts: dict[tuple[str, str, str, int], list[tuple[State, int, int]]] = {}
        for key, cell in build_matrix(records).items():
            counts.setdefault(key[:4], []).append((cell.state, cell.outcomes[Outcome.PASSED], cell.cases))
        by_column.append(counts)
    rows = []
    for version in sorted({key for counts in by_column for key in counts}):
        found = [counts.get(version, []) for counts in by_column]
        rows.append(
            Row(
                framework=version[0],
                domain=version[1],
                operator=version[2],
                since_version=version[3],
                states=[worst(state for state, _, _ in cells).value for cells in found] + [None] * empty,
                passed=[sum(passed for _, passed, _ in cells) for cells in found] + [0] * empty,
                cases=[sum(cases for _, _, cases in cells) for cells in found] + [0] * empty,
            )
        )
    return rows


def write_versions(
    paths: Sequence[Path], out: Path, declared: Iterable[Declared] | None = None
) -> tuple[VersionMatrix, Path]:
    """Write `versions.json` and `versions.html` of the records at several paths; return the figures and the page.

    A run is called by its folder, or by its file where that is named otherwise than records are. Raises `ReportError`
    where a path has no records.
    """
    runs: dict[str, Sequence[Record]] = {}
    for path in paths:
        name = path.parent.name if path.name == "records.jsonl" else path.name
        while name in runs:
            name += "'"
        runs[name] = require(read_records(path), path).records
    matrix = compare_versions(runs, declared_versions() if declared is None else declared)
    with atomic_text(out / "versions.json") as stream:
        stream.write(matrix.model_dump_json(indent=1) + "\n")
    page = (
        environment()
        .get_template("versions.html.jinja")
        .render(matrix=matrix, shown=_SHOWN * 10, signs=[state.value for state in State if state.value in MEANINGS])
    )
    with atomic_text(out / "versions.html") as stream:
        stream.write(page)
    return matrix, out / "versions.html"


def versions_text(matrix: VersionMatrix) -> RenderableType:
    """Return the terminal form: a line a column, then what changed from each to the next."""
    table = Table(box=None, pad_edge=False)
    for label in ("run", *matrix.differing, "cases", "passed", "red", "not run"):
        table.add_column(label, justify="right" if label in {"cases", "passed", "red"} else "left", overflow="fold")
    for column in matrix.columns:
        versions = [column.versions.get(package, "") for package in matrix.differing]
        numbers = ("", "", "") if column.not_run else (f"{column.cases:,}", *(f"{one:,}" for one in _counts(column)))
        table.add_row(column.name, *versions, *numbers, column.not_run or "")
    parts: list[RenderableType] = [table]
    for step in matrix.steps:
        change = step.difference
        parts.append(
            Text(
                f"{step.old} -> {step.new}: {len(change.regressions):,} regressions, {len(change.fixed):,} fixed, "
                f"{len(change.other_changes):,} other changes, {len(change.suite_changes):,} with another suite, "
                f"{len(change.added):,} added, {len(change.removed):,} removed"
            )
        )
        parts.extend(Text(f"  {one.case_id}: {one.old} -> {one.new}") for one in change.regressions[:_SHOWN])
    return Group(*parts)


def _counts(column: Column) -> tuple[int, int]:
    passed = column.outcomes.get(Outcome.PASSED, 0)
    grey = (Outcome.FOLDED, Outcome.UNVERIFIED, Outcome.NOT_RUN)
    return passed, column.cases - passed - sum(column.outcomes.get(one, 0) for one in grey)
