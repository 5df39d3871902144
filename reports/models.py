"""The page of blocks and whole models: what passes, what it costs, and which missing operator would help most.

All of it is a function of records. A refusal names the first operator that a model lacks, so an operator's count is of
the models that stop at it; a model with several gaps shows the next one when the first is closed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.files import atomic_text
from reports.matrix import SEVERITY
from reports.plots import embedded
from reports.record import Outcome, Record

if TYPE_CHECKING:
    from jinja2 import Environment

SUITES = ("blocks", "models")
PAGE = "models.html"
_REFUSED = re.compile(r"^(?P<name>[\w.]+?\.[\w.]+?)(?:-\d+)?(?:, attribute '[^']*')?(?: \(node '[^']*'\))?: ")
"""How a refusal of an operator begins: domain and name, then version, attribute and node where they are known."""
_FIGURES = ("cycles", "traffic_bytes", "compulsory_bytes", "energy_pj", "peak_sram_bytes")


@dataclass(slots=True)
class Subject:
    """One block or model in one framework: its cases by outcome and placement, and the costs of the largest one."""

    suite: str
    family: str
    name: str
    framework: str
    outcomes: Counter[str] = field(default_factory=Counter)
    placements: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    costs: dict[str, Any] = field(default_factory=dict)
    costliest: str = ""

    @property
    def worst(self) -> str:
        """The worst outcome of any case."""
        return min(self.outcomes, key=lambda outcome: SEVERITY[outcome])

    @property
    def cases(self) -> int:
        """Number of cases."""
        return self.outcomes.total()


@dataclass(frozen=True, slots=True)
class Unlock:
    """An operator that stands between models and a pass, or between them and the accelerator alone."""

    operator: str
    subjects: tuple[str, ...]
    cases: int
    reason: str


@dataclass(frozen=True, slots=True)
class ModelsView:
    """What the page shows."""

    subjects: tuple[Subject, ...]
    refused: tuple[Unlock, ...]
    hosted: tuple[Unlock, ...]


def view_of(records: Iterable[Record]) -> ModelsView | None:
    """The view of the records of blocks and models; None where there are none."""
    found = [record for record in records if record.suite in SUITES]
    if not found:
        return None
    subjects: dict[tuple[str, str, str], Subject] = {}
    for record in found:
        key = (record.suite, record.operator, record.framework)
        family = str(record.attributes.get("family", ""))
        subject = subjects.setdefault(key, Subject(record.suite, family, record.operator, record.framework))
        _count(subject, record)
    ordered = sorted(subjects.values(), key=lambda s: (s.suite != "models", s.family, s.name, s.framework))
    return ModelsView(tuple(ordered), _refused(found), _hosted(found))


def _count(subject: Subject, record: Record) -> None:
    subject.outcomes[record.outcome.value] += 1
    if record.placement is not None:
        subject.placements[record.placement.value] += 1
    if record.reason and record.outcome not in (Outcome.PASSED, Outcome.FOLDED):
        subject.reasons[record.reason] += 1
    if record.cycles is not None and record.cycles >= subject.costs.get("cycles", 0):
        subject.costs = {name: getattr(record, name) for name in _FIGURES}
        subject.costliest = record.case_id


def _refused(records: Sequence[Record]) -> tuple[Unlock, ...]:
    """Operators at which cases stop, by how many blocks and models stop there."""
    stopped: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in records:
        said = _REFUSED.match(record.reason or "")
        if record.outcome is Outcome.UNSUPPORTED and said is not None:
            stopped[said["name"]].append((_subject(record), record.reason or ""))
    return _ranked(stopped)


def _hosted(records: Sequence[Record]) -> tuple[Unlock, ...]:
    """Operators that alone keep cases off the accelerator, by how many blocks and models they are the only ones of."""
    alone: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in records:
        reasons: Mapping[str, str] = {host.operator: host.reason for host in record.host_operators}
        if len(reasons) == 1:
            operator, reason = next(iter(reasons.items()))
            alone[operator].append((_subject(record), reason))
    return _ranked(alone)


def _subject(record: Record) -> str:
    return f"{record.operator} ({record.framework})"


def _ranked(found: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[Unlock, ...]:
    unlocks = [
        Unlock(operator, tuple(dict.fromkeys(name for name, _ in entries)), len(entries), entries[0][1])
        for operator, entries in found.items()
    ]
    return tuple(sorted(unlocks, key=lambda one: (-len(one.subjects), -one.cases, one.operator)))


def write_models_page(
    records: Iterable[Record], environment: Environment, out: Path, pages: Mapping[tuple[str, str, str], str]
) -> Path | None:
    """Write the page into ``out``, or take an older one away where the records have no block and no model.

    ``pages`` are the addresses of the operators' own pages by framework, domain and operator.
    """
    view = view_of(records)
    if view is None:
        (out / PAGE).unlink(missing_ok=True)
        return None
    keys = [(subject.framework, subject.suite, subject.name) for subject in view.subjects]
    rows = [(subject, pages.get(key, "")) for subject, key in zip(view.subjects, keys, strict=True)]
    template = environment.get_template("models.html.jinja")
    page = template.render(view=view, rows=rows, data=embedded({"page": "models"}))
    with atomic_text(out / PAGE) as stream:
        stream.write(page)
    return out / PAGE
