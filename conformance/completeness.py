"""Which of the chosen cases have no record: those of a run that was interrupted, or lost a worker or its disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.files import atomic_text
from reports.record import Record

MISSING = "missing.txt"
_SHOWN = 3


def missing_cases(chosen: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return the names of chosen cases without a record; a case on one of several targets is named `id@target`."""
    found = {name for record in records for name in (record.case_id, f"{record.case_id}@{record.target}")}
    return [name for name in chosen if name not in found]


def write_missing(folder: Path, missing: Sequence[str]) -> list[str]:
    """Write the names to `missing.txt`, or remove it if there are none, and return the line that says so."""
    path = folder / MISSING
    if not missing:
        path.unlink(missing_ok=True)
        return []
    with atomic_text(path) as stream:
        stream.writelines(f"{name}\n" for name in missing)
    shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    return [f"{len(missing)} chosen cases have no record ({path}): {shown}"]
