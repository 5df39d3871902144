"""A fault: edits of one module's source, and what they look like as a diff."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import BadSelection

ROOT = Path(__file__).resolve().parents[2]
"""The clone: paths of faults are relative to it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes [start, end) of a source replaced by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A module made wrong on purpose.

    `lines` are the lines that a case must run to see it, `scopes` the first and last lines of the functions and classes
    around it, innermost first; `operators` names those whose cases should see it (hand-written).
    """

    id: str
    path: str
    edits: tuple[Edit, ...]
    lines: tuple[int, ...]
    kind: str
    scopes: tuple[tuple[int, int], ...] = ()
    breaks: str = ""
    operators: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The dotted name under which the module is imported."""
        parts = self.path.removesuffix(".py").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def source(self) -> str:
        """Return the faulty source."""
        data = (ROOT / self.path).read_bytes()
        for edit in sorted(self.edits, key=lambda edit: edit.start, reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode()

    def diff(self) -> list[str]:
        """Return the changed lines, each after - or +."""
        before = (ROOT / self.path).read_text(encoding="utf-8").splitlines()
        changed = difflib.unified_diff(before, self.source().splitlines(), lineterm="", n=0)
        return [line for line in changed if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def textual_edit(path: str, old: str, new: str, fault: str) -> tuple[Edit, int]:
    """Return the edit that replaces `old`, which must stand once in the file, and its line. Raises `BadSelection`."""
    data = (ROOT / path).read_bytes()
    found = data.count(old.encode())
    if found != 1:
        raise BadSelection(f"fault {fault}: {path} has {found} places with {old!r}, expected 1")
    start = data.index(old.encode())
    return Edit(start, start + len(old.encode()), new), data.count(b"\n", 0, start) + 1


def scopes_around(path: str, line: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last lines of the functions and classes that a line stands in, innermost first."""
    tree = ast.parse((ROOT / path).read_bytes())
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    found = ((block.lineno, block.end_lineno or block.lineno) for block in blocks)
    return tuple(sorted((s for s in found if s[0] <= line <= s[1]), key=lambda scope: scope[1] - scope[0]))
