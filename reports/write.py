"""All reports of a run at once. Called at the end of a session, also of one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reports.files import atomic_text
from reports.html import write_html
from reports.junit import write_junit
from reports.matrix import CellKey, known_cells
from reports.store import MERGED, read_records, require, write_records
from reports.summary import Summary, summarize
from reports.tabular import write_csv


def write_reports(records: Path | str, out: Path | str, denominator: Iterable[CellKey] | None = None) -> Summary:
    """Write every report of the records at a path (a file, or a folder of a run) into the folder `out`.

    Makes `index.html` and `operators/`, `records.jsonl`, `records.csv`, `coverage.json` and `junit.xml`. Each file is
    renamed into place when it is whole. `denominator` is what exists to be covered; without it, what the installed
    frameworks define for the frameworks of the records. Raises `ReportError` if there is no record at all.
    """
    source, target = Path(records), Path(out)
    found = require(read_records(source), source)
    cells = list(known_cells(found.records) if denominator is None else denominator)
    summary = summarize(found.records, cells, bad_lines=found.bad_lines, duplicates=found.duplicates)
    write_records(found.records, target / MERGED)
    write_csv(found.records, target / "records.csv")
    write_junit(found.records, target / "junit.xml")
    with atomic_text(target / "coverage.json") as stream:
        stream.write(summary.model_dump_json(by_alias=True, indent=2) + "\n")
    folder = source if source.is_dir() else source.parent
    write_html(found.records, summary, target, cells, source=folder)
    return summary
