"""The coverage matrix: one cell an operator version and element type, over the whole of what a framework defines.

A cell is as good as its worst case. What no case reached is `unreached`: grey, never missing and never green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from opsets import DOMAINS, denominator
from opsets.elements import rank_of
from reports.record import Outcome, Placement, Record


class CellKey(NamedTuple):
    """An operator version and an element type. `domain` is the framework's, such as ai.onnx."""

    framework: str
    domain: str
    operator: str
    since_version: int
    dtype: str


class State(StrEnum):
    """Colour of a cell: an outcome, or `unreached` where no case ran."""

    CRASH = "crash"
    WRONG_RESULT = "wrong_result"
    TIMEOUT = "timeout"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    ORACLE_DISAGREEMENT = "oracle_disagreement"
    QUALITY_WARNING = "quality_warning"
    UNVERIFIED = "unverified"
    NOT_RUN = "not_run"
    PASSED = "passed"
    FOLDED = "folded"
    UNREACHED = "unreached"


WORST_FIRST = tuple(State)
"""A cell shows the first of these that any of its cases has; `passed` comes late, so that one pass hides nothing."""

SEVERITY: Mapping[str, int] = {state.value: index for index, state in enumerate(WORST_FIRST)}

ONNX_DOMAIN = "ai.onnx"
WITHOUT_ELEMENT = ""
"""Element type of a cell whose operator has no tensor operand to speak of (SequenceEmpty, Optional, ...)."""


@dataclass(slots=True)
class Cell:
    """Counts of the cases of one cell, by outcome and by outcome and placement."""

    key: CellKey
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    placements: Counter[tuple[Outcome, Placement | None]] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Count one case."""
        self.outcomes[record.outcome] += 1
        self.placements[record.outcome, record.placement] += 1

    @property
    def cases(self) -> int:
        """Number of cases, whether they ran or not."""
        return self.outcomes.total()

    @property
    def state(self) -> State:
        """The worst outcome of the cell's cases."""
        return worst(self.outcomes)

    @property
    def accelerated(self) -> int:
        """Number of cases that passed wholly on the accelerator."""
        return self.placements[Outcome.PASSED, Placement.ACCELERATOR]


def worst(outcomes: Iterable[Outcome | State]) -> State:
    """Return the state of a group: the worst of its members, `unreached` if there are none."""
    return State(min((str(outcome) for outcome in outcomes), key=SEVERITY.__getitem__, default=State.UNREACHED))


def key_of(record: Record) -> CellKey:
    """Return the cell that a record belongs to."""
    return CellKey(record.framework, record.domain, record.operator, record.since_version, record.dtype)


def order_of(key: CellKey) -> tuple[object, ...]:
    """Sort key of cells: framework, domain, operator, version, then element types in their usual order."""
    return (key.framework, key.domain, key.operator, key.since_version, rank_of(key.dtype), key.dtype)


def build_matrix(records: Iterable[Record], everything: Iterable[CellKey] = ()) -> dict[CellKey, Cell]:
    """Return the cells of `everything` and of the records, in order. Cells without a case have no counts."""
    cells = {key: Cell(key) for key in everything}
    for record in records:
        key = key_of(record)
        cells.setdefault(key, Cell(key)).add(record)
    return {key: cells[key] for key in sorted(cells, key=order_of)}


def all_cells(framework: str, domain: str, newest: int | None = None) -> list[CellKey]:
    """Return all cells of a framework's domain: each version of each operator, each element type of any input.

    Versions without a tensor input have one cell without an element type. Versions above ``newest`` are left out.
    Raises `ManifestError` for a framework or domain without a denominator.
    """
    found = denominator(framework, domain)
    cells = {
        CellKey(cell.framework, cell.domain, cell.operator, cell.since_version, cell.dtype) for cell in found.cells
    }
    with_type = {(cell.operator, cell.since_version) for cell in cells}
    cells |= {
        CellKey(framework, domain, operator, version, WITHOUT_ELEMENT)
        for operator, version in found.pairs
        if (operator, version) not in with_type
    }
    return sorted((cell for cell in cells if newest is None or cell.since_version <= newest), key=order_of)


def known_cells(records: Iterable[Record]) -> list[CellKey]:
    """Return what exists of the frameworks that `records` are about.

    Of ONNX what the release had that the records were made with, so that what it lacked is not missing; that release
    may be newer than the installed one, whose schemas are then all there are (`unknown_release` says so).
    """
    found = list(records)
    names = {record.framework for record in found}
    newest = newest_opset(found)
    cells: list[CellKey] = []
    for framework, domains in DOMAINS.items():
        if framework in names:
            # ai.onnx.ml has a numbering of its own, and no new version for years.
            shown = (ONNX_DOMAIN,) if framework == "onnx" else domains
            cells += [cell for domain in shown for cell in all_cells(framework, domain, newest)]
    return cells


def newest_opset(records: Iterable[Record]) -> int | None:
    """Return the newest operator set of the releases of onnx that records were made with; None where unknown."""
    opsets = [_opset_of(release) for release in _releases(records)]
    return None if None in opsets else max((opset for opset in opsets if opset is not None), default=None)


def unknown_release(records: Iterable[Record]) -> str | None:
    """Return the release of onnx that records were made with, where it is newer than the installed package."""
    unknown = [release for release in _releases(records) if _opset_of(release) is None]
    return max(unknown, default=None)


def _releases(records: Iterable[Record]) -> set[str]:
    return {record.versions["onnx"] for record in records if record.framework == "onnx" and "onnx" in record.versions}


def _opset_of(release: str) -> int | None:
    """The newest operator set of a release of onnx, None where the installed package does not know the release."""
    import onnx

    parts = release.split(".")[:2]
    rows = (row for row in onnx.helper.VERSION_TABLE if row[0].split(".")[:2] == parts)
    return max((int(row[2]) for row in rows), default=None)
