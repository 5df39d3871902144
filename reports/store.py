"""Records on disk: JSON lines, appended and flushed as each case ends, so that an interrupted run loses nothing.

Each worker writes a file of its own (`records-<worker>.jsonl`); `merge` makes one file of them. A line that can't be
read (the last one of a killed run, say) is kept apart and reported, never fatal and never silently dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from reports.errors import NoRecords, ReportError, UnknownSchema
from reports.files import atomic_text
from reports.record import SCHEMA, Record

MERGED = "records.jsonl"
_WORKER_FILES = "records-*.jsonl"


class RecordWriter:
    """Appends records to one file, each flushed to the operating system before `write` returns.

    Appending to a file whose last line was cut off starts a new line first: the torn line stays a torn line and does
    not swallow the next record.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = _is_torn(self.path)
        self._stream = self.path.open("a", encoding="utf-8", newline="")
        if torn:
            self._stream.write("\n")

    @classmethod
    def for_worker(cls, folder: Path | str, worker: str) -> RecordWriter:
        """Return the writer of one worker's own file in `folder`; `worker` is its name, such as `gw0`."""
        return cls(Path(folder) / f"records-{worker}.jsonl")

    def write(self, record: Record) -> None:
        """Append one record."""
        self._stream.write(record.to_line() + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file. A closed writer writes no more."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_torn(path: Path) -> bool:
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no record: where it stands and what is wrong with it."""

    path: Path
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one or more files, the last of duplicates only, and what could not be read."""

    records: tuple[Record, ...]
    bad_lines: tuple[BadLine, ...] = ()
    duplicates: int = 0

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


def read_records(paths: Path | str | Iterable[Path | str]) -> Records:
    """Read records from files and folders (a folder stands for its merged file, or its workers' files if newer).

    Of several records of one case, backend and target the last wins: a case that was run again counts once. Order is
    that of first appearance. Raises `UnknownSchema` for records of a newer release and `NoRecords` for a missing path.
    """
    latest: dict[tuple[str, str, str], Record] = {}
    bad_lines: list[BadLine] = []
    duplicates = 0
    for path in _files([paths] if isinstance(paths, Path | str) else paths):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
            if not line.strip():
                continue
            parsed = _parse(line, path, number)
            if isinstance(parsed, BadLine):
                bad_lines.append(parsed)
                continue
            duplicates += parsed.key in latest
            latest[parsed.key] = parsed
    return Records(tuple(latest.values()), tuple(bad_lines), duplicates)


def _parse(line: str, path: Path, number: int) -> Record | BadLine:
    try:
        data = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return BadLine(path, number, "no complete JSON object; the run was cut off while it wrote this line")
    schema = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
    if isinstance(schema, int) and schema > SCHEMA:
        raise UnknownSchema(f"{path}:{number}: records of schema {schema}, this release reads up to {SCHEMA}")
    try:
        return Record.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "record"
        return BadLine(path, number, f"{place}: {first['msg']}")


def _files(paths: Iterable[Path | str]) -> Iterator[Path]:
    for entry in paths:
        path = Path(entry)
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from _files_of_folder(path)
        else:
            raise NoRecords(f"{path}: no such file or folder")


def _files_of_folder(folder: Path) -> list[Path]:
    """Return the merged file, unless workers wrote after it was made: then a run is going on, or was cut off."""
    merged = folder / MERGED
    workers = sorted(folder.glob(_WORKER_FILES))
    if not merged.exists() and not workers:
        raise NoRecords(f"{folder}: holds neither {MERGED} nor {_WORKER_FILES}")
    if merged.exists():
        made = merged.stat().st_mtime_ns
        if all(worker.stat().st_mtime_ns < made for worker in workers):
            return [merged]
    return workers


def merge(folder: Path | str) -> Path:
    """Make `records.jsonl` of the workers' files in `folder` and return its path; the workers' files stay.

    Lines are sorted by case, backend and target, so that the same outcomes give the same order on any number of
    workers. Lines that could not be read go to `records-unreadable.txt`.
    """
    target = Path(folder)
    workers = sorted(target.glob(_WORKER_FILES))
    if not workers:
        raise NoRecords(f"{target}: holds no {_WORKER_FILES}")
    found = read_records(workers)
    write_records(found.records, target / MERGED)
    unreadable = target / "records-unreadable.txt"
    if found.bad_lines:
        with atomic_text(unreadable) as stream:
            stream.writelines(f"{line}\n" for line in found.bad_lines)
    else:
        unreadable.unlink(missing_ok=True)
    return target / MERGED


def clear(folder: Path | str) -> None:
    """Remove the workers' and merged files of an earlier run, so that its cases don't appear in the new one."""
    for name in (MERGED, _WORKER_FILES, "records-unreadable.txt"):
        for path in Path(folder).glob(name):
            path.unlink(missing_ok=True)


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write a whole records file at once, sorted by key."""
    with atomic_text(path) as stream:
        stream.writelines(record.to_line() + "\n" for record in sorted(records, key=lambda record: record.key))


def require(found: Records, source: Path) -> Records:
    """Return `found`, or raise `ReportError` if it is empty: a report of nothing would look like a clean one."""
    if not found.records:
        problem = f"; {found.bad_lines[0]}" if found.bad_lines else ""
        raise ReportError(f"{source}: holds no record{problem}")
    return found
