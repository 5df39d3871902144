"""What became of the faults: records, the table, and the rates."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.mutation.edits import Fault


class Status(StrEnum):
    """Who saw a fault first."""

    SUITE = "killed by suite"
    UNIT_TESTS = "killed by unit tests"
    FIGURES = "seen in the figures"
    EQUIVALENT = "equivalent"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """One line of records.jsonl.

    `reached`: some case of the pool runs its lines; `figures_changed`: cycles, traffic, energy, memory or placement
    differ though outcomes do not.
    """

    id: str
    set: str
    package: str
    file: str
    line: int
    kind: str
    diff: list[str]
    breaks: str
    status: Status
    seen_by: str
    reason: str
    cases_tried: int
    reached: bool
    figures_changed: bool
    cpu_seconds: float


_SEEN = (Status.SUITE, Status.UNIT_TESTS, Status.FIGURES)


def record_of(fault: Fault, package: str, status: Status, **found: object) -> FaultRecord:
    """Return the record of a fault."""
    return FaultRecord(
        id=fault.id,
        set="handwritten" if fault.kind == "handwritten" else "generated",
        package=package,
        file=fault.path,
        line=fault.lines[0],
        kind=fault.kind,
        diff=fault.diff(),
        breaks=fault.breaks,
        status=status,
        **found,  # type: ignore[arg-type]  # the rest of the fields, by name
    )


def rate(records: Sequence[FaultRecord], statuses: Iterable[Status]) -> tuple[int, int]:
    """Return how many faults that change anything have one of the statuses, and how many those are."""
    wanted = set(statuses)
    counted = [record for record in records if record.status is not Status.EQUIVALENT]
    return sum(record.status in wanted for record in counted), len(counted)


class RecordWriter:
    """Writes records.jsonl anew, a line as each fault is done, so that an interrupted run keeps what it found."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "records.jsonl"
        self._path.write_text("", encoding="utf-8")

    def write(self, record: FaultRecord) -> None:
        """Append a record."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(record)) + "\n")


def write_summary(records: Sequence[FaultRecord], folder: Path) -> None:
    """Write summary.json."""
    (folder / "summary.json").write_text(json.dumps(summary(records), indent=2) + "\n", encoding="utf-8")


def summary(records: Sequence[FaultRecord]) -> dict[str, object]:
    """Return counts by set, package and status, and the ids of the survivors."""
    found: dict[str, object] = {}
    for name in sorted({record.set for record in records}):
        mine = [record for record in records if record.set == name]
        suite, counted = rate(mine, [Status.SUITE])
        both, _ = rate(mine, [Status.SUITE, Status.UNIT_TESTS])
        seen, _ = rate(mine, _SEEN)
        found[name] = {
            "faults": len(mine),
            "equivalent": len(mine) - counted,
            "killed_by_suite": suite,
            "killed_by_suite_or_unit_tests": both,
            "seen_at_all": seen,
            "rate_of_suite": round(suite / max(counted, 1), 4),
            "rate": round(both / max(counted, 1), 4),
            "rate_with_figures": round(seen / max(counted, 1), 4),
            "by_package": {
                package: dict(Counter(str(record.status) for record in mine if record.package == package))
                for package in sorted({record.package for record in mine})
            },
            "only_in_figures": [record.id for record in mine if record.status is Status.FIGURES],
            "survivors": [record.id for record in mine if record.status is Status.SURVIVED],
        }
    return found


_LINES_OF_DEFENCE: Mapping[str, Sequence[Status]] = {
    "suite": (Status.SUITE,),
    "suite or unit tests": (Status.SUITE, Status.UNIT_TESTS),
    "suite, unit tests or figures of a run": _SEEN,
}
"""Who can see a fault. Figures are a line of their own: a fault that changes costs alone makes no result wrong."""


def print_report(records: Sequence[FaultRecord], console: Console) -> None:
    """Print a table a set, and every survivor with its diff."""
    for name in sorted({record.set for record in records}):
        mine = [record for record in records if record.set == name]
        table = Table(title=f"{name} faults")
        table.add_column("package")
        for status in Status:
            table.add_column(str(status), justify="right")
        for package in sorted({record.package for record in mine}):
            counts = Counter(record.status for record in mine if record.package == package)
            table.add_row(package, *(str(counts[status]) for status in Status))
        console.print(table)
        for label, statuses in _LINES_OF_DEFENCE.items():
            killed, counted = rate(mine, statuses)
            console.print(f"{name}: {killed} of {counted} seen by the {label} ({killed / max(counted, 1):.1%})")
    for record in sorted(records, key=lambda record: str(record.status)):
        if record.status in (Status.SURVIVED, Status.FIGURES):
            reached = "" if record.reached else ", and no case runs its line"
            console.print(f"{record.status}: {record.id}{reached}", style="bold", markup=False)
            for line in record.diff:
                console.print(f"    {line}", markup=False, highlight=False)
