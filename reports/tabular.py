"""Records as CSV: one line a case, flat columns for spreadsheets and scripts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reports.files import atomic_text
from reports.record import Record

_AS_JSON = ("attributes", "shapes", "oracles", "host_operators", "utilization")
_ERRORS = ("max_ulp", "max_abs", "max_rel", "bias")
_SPREAD = {"errors", "stage_ms", "versions", "schema_version"}


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write records sorted by key. Figures that are missing are empty; nested fields are JSON text."""
    found = sorted(records, key=lambda record: record.key)
    stages = sorted({name for record in found for name in record.stage_ms})
    plain = [name for name in Record.model_fields if name not in _SPREAD]
    header = [*plain, *_ERRORS, *(f"ms_{name}" for name in stages)]
    with atomic_text(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        for record in found:
            writer.writerow(_line(record, plain, stages))


def _line(record: Record, plain: list[str], stages: list[str]) -> list[Any]:
    fields = json.loads(record.model_dump_json(by_alias=False))
    for name in _AS_JSON:
        fields[name] = json.dumps(fields[name], separators=(",", ":")) if fields[name] else ""
    return [
        *(safe(fields[name]) for name in plain),
        *(fields["errors"][name] for name in _ERRORS),
        *(fields["stage_ms"].get(name) for name in stages),
    ]


def safe(value: object) -> object:
    """Keep a spreadsheet from reading a text as a formula (CWE-1236): such a text gets a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
