"""The HTML report: an overview with the coverage matrix, and a page an operator with its cases.

The pages need no network and no server: styles, script and data stand in each page, and the data as JSON that the
script draws its tables from. The overview holds counts only, so that it opens fast however many cases there are.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from opsets.elements import rank_of
from reports.files import atomic_text
from reports.matrix import ONNX_DOMAIN, WORST_FIRST, Cell, CellKey, build_matrix, key_of
from reports.models import PAGE as MODELS_PAGE
from reports.models import SUITES as MODEL_SUITES
from reports.models import write_models_page
from reports.plots import embedded
from reports.record import Outcome, Placement, Record, Stage
from reports.summary import Summary

GLYPHS: Mapping[str, str] = {
    "passed": "✓",
    "quality_warning": "≈",
    "wrong_result": "✗",
    "crash": "‼",
    "timeout": "T",
    "error": "!",
    "unsupported": "∅",
    "oracle_disagreement": "≠",
    "unverified": "?",
    "not_run": "○",
    "folded": "=",
    "unreached": "·",
    "accelerator": "A",
    "host": "H",
    "mixed": "M",
}
"""A sign an outcome and a placement, so that no page speaks by colour alone."""

MEANINGS: Mapping[str, str] = {
    "passed": "agrees with every independent reference that is available, within the operator's strict tolerance",
    "quality_warning": "outside the strict tolerance, within the looser one: not wrong, and not green",
    "wrong_result": "another shape, type or value than the references have",
    "crash": "the process of the case died, or ran out of its memory",
    "timeout": "the case took longer than its limit",
    "error": "the compiler failed on a model that it should compile, or did not diagnose one that it should refuse",
    "unsupported": "the compiler refuses the model and names what it does not support",
    "oracle_disagreement": "references differ from each other, and no rule of the specification decides",
    "unverified": "ran, and no reference was there to judge it",
    "not_run": "something that the case needs is not installed or not available",
    "folded": "nothing of the operator was left to run: constants decided it when the model was compiled",
    "unreached": "the framework's schema has this combination, and no case of this run tries it",
    "accelerator": "every operator of the compiled program ran on the accelerator",
    "mixed": "some operators ran on the accelerator, some on the host",
    "host": "every operator ran on the host",
}
"""What each sign says, in the legend."""

_PLACEMENTS_WORST_FIRST = ("host", "mixed", "folded", "accelerator")
_PLACEMENTS_SHOWN = ("accelerator", "mixed", "host", "folded")
_STATES_SHOWN = sorted(WORST_FIRST, key=list(GLYPHS).index)
_SIGNS_SHOWN = (*(state.value for state in _STATES_SHOWN), "accelerator", "mixed", "host")
_NEEDED_FIELDS = frozenset({"case_id", "outcome", "stage", "suite"})

OperatorKey = tuple[str, str, str]
"""Framework, domain and operator: what has a page of its own."""


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """Where the pages are: the overview, and one page an operator with cases."""

    index: Path
    operators: Mapping[OperatorKey, Path]


def write_html(
    records: Iterable[Record], summary: Summary, out: Path, denominator: Iterable[CellKey] = (), *, source: Path
) -> HtmlReport:
    """Write `index.html` and `operators/*.html` to the folder `out`; pages of operators that are gone are removed.

    `source` is the folder that the records' reproducer paths are relative to. Each file is renamed into its place when
    it is whole, the overview last.
    """
    found = sorted(records, key=lambda record: record.key)
    matrix = build_matrix(found, denominator)
    cases: dict[OperatorKey, list[Record]] = {}
    for record in found:
        cases.setdefault(key_of(record)[:3], []).append(record)
    files = _page_names(cases)
    cells: dict[OperatorKey, list[Cell]] = {}
    for cell in matrix.values():
        cells.setdefault(cell.key[:3], []).append(cell)
    templates = environment()
    folder = out / "operators"
    for key, operator_cases in cases.items():
        page = _operator_page(templates, key, operator_cases, cells[key], _reproducers(source, folder))
        with atomic_text(folder / files[key]) as stream:
            stream.write(page)
    for stale in set(folder.glob("*.html")) - {folder / name for name in files.values()}:
        stale.unlink()
    pages = {key: f"operators/{quote(name)}" for key, name in files.items()}
    write_models_page(found, templates, out, pages)
    with atomic_text(out / "index.html") as stream:
        stream.write(_overview(templates, summary, found, matrix.values(), pages))
    return HtmlReport(out / "index.html", {key: folder / name for key, name in files.items()})


def environment() -> Environment:
    """Return the environment of the templates, with the style, the script and the signs as globals."""
    loader = PackageLoader("reports")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    assets = {name: loader.get_source(environment, file)[0] for name, file in _ASSETS.items()}
    environment.globals.update(assets, glyphs=GLYPHS, meanings=MEANINGS)
    return environment


_ASSETS = {"css": "report.css", "javascript": "report.js"}


def _page_names(keys: Iterable[OperatorKey]) -> dict[OperatorKey, str]:
    """Return a file name an operator: readable, safe on every file system, and told apart where these two collide."""
    names: dict[OperatorKey, str] = {}
    taken: set[str] = set()
    for key in sorted(keys):
        raw = ".".join(part for part in key if part and part != ONNX_DOMAIN)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", raw)[:100]
        if name != raw or name.lower() in taken:
            name = f"{name}-{zlib.crc32(raw.encode()):08x}"
        taken.add(name.lower())
        names[key] = f"{name}.html"
    return names


def _configuration(record: Record) -> str:
    return f"{record.backend} on {record.target}" if record.target else record.backend


def _dtypes(cells: Iterable[Cell]) -> list[str]:
    return sorted({cell.key.dtype for cell in cells}, key=lambda name: (rank_of(name), name))


def _shared(records: Iterable[Record]) -> dict[str, Any]:
    found = list(records)
    return {
        "configurations": sorted({_configuration(record) for record in found}),
        "suites": sorted({record.suite for record in found}),
        "outcomes": [outcome.value for outcome in Outcome if any(record.outcome is outcome for record in found)],
        "placements": ["", *(placement.value for placement in Placement)],
        "glyphs": GLYPHS,
        "stateOrder": [state.value for state in WORST_FIRST],
    }


# --- overview


def _overview(
    environment: Environment,
    summary: Summary,
    records: list[Record],
    cells: Iterable[Cell],
    pages: Mapping[OperatorKey, str],
) -> str:
    every = list(cells)
    data = _shared(records) | {
        "page": "overview",
        "frameworks": sorted({cell.key.framework for cell in every}),
        "dtypes": _dtypes(every),
        "placementOrder": [*_PLACEMENTS_WORST_FIRST, "unreached"],
    }
    data["rows"] = _rows(every, _entries(records, data), data["dtypes"], pages)
    placements = {name: summary.placements[name] for name in _PLACEMENTS_SHOWN if name in summary.placements}
    folded = summary.outcomes.get(Outcome.FOLDED, 0)
    return environment.get_template("index.html.jinja").render(
        summary=summary,
        placements=placements | ({"folded": placements.get("folded", 0) + folded} if folded else {}),
        states=_SIGNS_SHOWN,
        link_of=_case_links(records, pages),
        models_page=MODELS_PAGE if any(record.suite in MODEL_SUITES for record in records) else None,
        data=embedded(data),
    )


def _case_links(records: Iterable[Record], pages: Mapping[OperatorKey, str]) -> Callable[[str], Markup]:
    page_of = {record.case_id: pages[key_of(record)[:3]] for record in records}

    def link(case_id: str) -> Markup:
        address = f"{page_of[case_id]}#case={quote(case_id, safe='')}"
        return Markup('<a href="{}">{}</a>').format(address, escape(case_id))

    return link


def _entries(records: Iterable[Record], data: Mapping[str, Any]) -> dict[CellKey, list[list[int]]]:
    """Return for each cell its counts: [configuration, suite, outcome, placement, number], names as positions."""
    position = {
        axis: {name: index for index, name in enumerate(data[axis])}
        for axis in ("configurations", "suites", "outcomes", "placements")
    }
    counts: dict[CellKey, dict[tuple[int, int, int, int], int]] = {}
    for record in records:
        entry = (
            position["configurations"][_configuration(record)],
            position["suites"][record.suite],
            position["outcomes"][record.outcome.value],
            position["placements"][record.placement.value if record.placement else ""],
        )
        cell = counts.setdefault(key_of(record), {})
        cell[entry] = cell.get(entry, 0) + 1
    return {key: [[*entry, number] for entry, number in sorted(cell.items())] for key, cell in counts.items()}


def _rows(
    cells: Iterable[Cell],
    entries: Mapping[CellKey, list[list[int]]],
    dtypes: list[str],
    pages: Mapping[OperatorKey, str],
) -> list[dict[str, Any]]:
    rows: dict[tuple[OperatorKey, int], list[Cell]] = {}
    newest: dict[OperatorKey, int] = {}
    for cell in cells:
        operator = cell.key[:3]
        rows.setdefault((operator, cell.key.since_version), []).append(cell)
        newest[operator] = max(newest.get(operator, 0), cell.key.since_version)
    column = {name: index for index, name in enumerate(dtypes)}
    return [
        {
            "framework": operator[0],
            "domain": operator[1] if operator[1] != ONNX_DOMAIN else "",
            "operator": operator[2],
            "version": version,
            "newest": newest[operator] == version,
            "page": pages.get(operator),
            "cells": [
                [column[cell.key.dtype], *([entries[cell.key]] if cell.key in entries else [])] for cell in members
            ],
        }
        for (operator, version), members in rows.items()
    ]


# --- page of an operator


def _reproducers(source: Path, folder: Path) -> Callable[[Record], dict[str, str]]:
    """Return a function that gives a record's link to its reproducer, and the source of a case that did not pass."""

    def find(record: Record) -> dict[str, str]:
        if record.reproducer is None:
            return {}
        path = source / record.reproducer
        if not path.is_file():
            return {}
        found = {"reproducer": quote(Path(os.path.relpath(path, folder)).as_posix())}
        if record.outcome not in {Outcome.PASSED, Outcome.FOLDED}:
            found["source"] = path.read_text(encoding="utf-8", errors="replace")
        return found

    return find


def _operator_page(
    environment: Environment,
    key: OperatorKey,
    records: list[Record],
    cells: list[Cell],
    reproducer: Callable[[Record], dict[str, str]],
) -> str:
    dtypes = _dtypes(cells)
    by_place = {(cell.key.since_version, cell.key.dtype): cell for cell in cells}
    versions = sorted({cell.key.since_version for cell in cells}, reverse=True)
    data = _shared(records) | {
        "page": "operator",
        "dtypes": dtypes,
        "versions": [version for version in versions if any(record.since_version == version for record in records)],
        "stages": [stage.value for stage in Stage],
        "cases": [_case(record) | reproducer(record) for record in records],
    }
    framework, domain, operator = key
    return environment.get_template("operator.html.jinja").render(
        framework=framework,
        domain=domain,
        operator=operator,
        dtypes=dtypes,
        states=_SIGNS_SHOWN,
        versions=[(version, [by_place.get((version, dtype)) for dtype in dtypes]) for version in versions],
        data=embedded(data),
    )


_LEFT_OUT = {
    "schema_version",
    "run",
    "suite_hash",
    "versions",
    "backend",
    "target",
    "framework",
    "domain",
    "operator",
    "reproducer",
}


def _case(record: Record) -> dict[str, Any]:
    """Return what the page shows of a record, without what is empty or the same on the whole page."""
    fields = json.loads(record.model_dump_json(by_alias=False, exclude=_LEFT_OUT))
    kept = {name: value for name, value in fields.items() if name in _NEEDED_FIELDS or value not in (None, "", [], {})}
    return kept | {"configuration": _configuration(record)}
