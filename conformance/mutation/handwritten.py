"""Reads the hand-written faults and the list of equivalent ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from conformance.errors import BadSelection
from conformance.mutation.edits import Fault, scopes_around, textual_edit

_FOLDER = Path(__file__).parent
_KEYS = {"id", "file", "replace", "with", "breaks"}


def handwritten_faults() -> list[Fault]:
    """Return the faults of handwritten.yaml. Raises `BadSelection` for an entry that no longer fits its source."""
    entries: list[dict[str, Any]] = yaml.safe_load((_FOLDER / "handwritten.yaml").read_text(encoding="utf-8"))
    return [_fault(entry) for entry in entries]


def _fault(entry: dict[str, Any]) -> Fault:
    found = set(entry)
    if not found >= _KEYS or found - _KEYS - {"seen_by"}:
        raise BadSelection(f"handwritten.yaml: found the keys {sorted(found)}, expected {sorted(_KEYS)} and seen_by")
    edit, line = textual_edit(entry["file"], entry["replace"], entry["with"], entry["id"])
    lines = tuple(range(line, line + entry["replace"].count("\n") + 1))
    return Fault(
        id=entry["id"],
        path=entry["file"],
        edits=(edit,),
        lines=lines,
        kind="handwritten",
        scopes=scopes_around(entry["file"], line),
        breaks=entry["breaks"],
        operators=tuple(entry.get("seen_by", ())),
    )


def equivalent_reasons() -> list[tuple[str, list[str], str]]:
    """Return (path, diff, reason) of the faults of equivalent.yaml: lines move, so that a fault is told by its diff."""
    entries: list[dict[str, Any]] = yaml.safe_load((_FOLDER / "equivalent.yaml").read_text(encoding="utf-8")) or []
    return [(entry["file"], [line.strip() for line in entry["diff"]], entry["reason"]) for entry in entries]


def reason_for(fault: Fault, reasons: list[tuple[str, list[str], str]]) -> str:
    """Return why a fault changes no result, or "" where nothing says so."""
    diff = [f"{line[0]} {line[1:].strip()}" for line in fault.diff()]
    return next((reason for path, lines, reason in reasons if path == fault.path and lines == diff), "")
