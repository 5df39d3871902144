"""How much of a framework's own schema a run covers: figures beside what there is, and the names of what is missing.

Records say how each case ended, the manifests what it tries: a case counts for the element type of every tensor that
it gives its operator, and for every attribute that its node sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import generators
import opsets
from opsets.elements import GROUPS
from reports.matrix import newest_opset
from reports.record import Outcome, Record
from reports.store import read_records

_FLOATS = frozenset(GROUPS["float"])
_NOT_RED = frozenset({Outcome.PASSED, Outcome.FOLDED, Outcome.UNVERIFIED, Outcome.QUALITY_WARNING})
NO_CASE = "no case of this run reaches it"

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: of ``total`` things ``tried`` have a case in the run, ``passed`` one that passed, ``whole`` no red one.

    ``folded`` have none that passed, but one whose result was right and computed while compiling: the operator was gone
    before anything ran. Sizes and constants always are.

    ``missing`` has a reason for each thing that did not pass, or that no case tries where trying is all that counts.
    """

    name: str
    total: int
    tried: int
    passed: int | None = None
    folded: int | None = None
    whole: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def plain(self, *, with_missing: bool) -> dict[str, object]:
        """The figure as JSON-plain data."""
        found: dict[str, object] = {
            "name": self.name, "total": self.total, "tried": self.tried, "passed": self.passed, "folded": self.folded,
            "whole": self.whole,
        }  # fmt: skip
        return found | ({"missing": dict(self.missing)} if with_missing else {})


@dataclass(slots=True)
class _Reached:
    """The records of cases by what they reach in one domain."""

    operators: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))
    pairs: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))
    cells: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))
    attributes: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))
    special: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def add(self, case: generators.Case, record: Record) -> None:
        """Enter a case's record at all that the case reaches."""
        pair = (case.operator, str(case.since_version))
        self.operators[case.operator,].append(record)
        self.pairs[pair].append(record)
        for element in generators.input_elements(case):
            self.cells[*pair, element].append(record)
        for element in generators.special_elements(case):
            self.special[*pair, element].append(record)
        for name in generators.set_attributes(case):
            self.attributes[*pair, name].append(record)


def coverage(records: Path, framework: str = "onnx") -> list[Figure]:
    """Figures of a run: of ONNX by the suites `operators` and `invalid`, of other frameworks by all their records.

    Raises `ReportError` without records and `ManifestError` for a broken manifest or an unknown framework.
    """
    found = {record.case_id: record for record in read_records(records)}
    return _FIGURES.get(framework, _of_records)(framework, found)


def _of_cases(framework: str, found: Mapping[str, Record]) -> list[Figure]:
    """What the cases of the manifests give their operators, by the records that they have in the run."""
    domains = opsets.DOMAINS[framework]
    reached = {domain: _Reached() for domain in domains}
    newest = newest_opset(found.values())
    cases = [case for case in _cases(framework) if case.domain != "ai.onnx" or _existed(case.since_version, newest)]
    for case in cases:
        record = found.get(case.id)
        if record is not None and record.outcome is not Outcome.NOT_RUN and case.domain in reached:
            reached[case.domain].add(case, record)
    limits = dict.fromkeys(domains) | {"ai.onnx": newest}
    figures = [
        figure for domain in domains for figure in _of_domain(framework, domain, reached[domain], limits[domain])
    ]
    return [*figures, _cases_figure(cases, found), _must_fail_figure(found.values())]


def _existed(version: int, newest: int | None) -> bool:
    """Whether the release of onnx that made the records had an operator version; all count where that is unknown."""
    return newest is None or version <= newest


def _of_records(framework: str, found: Mapping[str, Record]) -> list[Figure]:
    """What the records say that they reach: the case's operator and type, and the operators of the program."""
    ran = [r for r in found.values() if r.framework == framework and r.outcome is not Outcome.NOT_RUN]
    figures: list[Figure] = []
    for domain in _domains(framework):
        known = opsets.denominator(framework, domain)
        names: dict[Key, list[Record]] = defaultdict(list)
        cells: dict[Key, list[Record]] = defaultdict(list)
        for record in ran:
            cells[record.operator, record.dtype].append(record)
            for name in _names(record):
                names[name,].append(record)
        keys = {(cell.operator, cell.dtype) for cell in known.cells if cell.dtype}
        figures.append(_passing(f"{domain}: operators", [(name,) for name in sorted(known.active)], names))
        figures += [
            _passing(f"{domain}: {group}", [(name,) for name in members], names)
            for group, members in known.groups.items()
        ]
        figures.append(_passing(f"{domain}: cells", sorted(keys), cells))
        classed = {key: [r for r in records if r.tolerance_class] for key, records in cells.items()}
        with_class = {key: records for key, records in classed.items() if records}
        figures.append(_tried(f"{domain}: cells with a tolerance class", sorted(keys), with_class))
        if known.excluded:
            reasons = dict(sorted(known.excluded.items()))
            figures.append(Figure(f"{domain}: out of scope, with a reason", len(reasons), 0, missing=reasons))
    return [*figures, _records_figure(ran)]


def _domains(framework: str) -> tuple[str, ...]:
    if framework not in opsets.DOMAINS:
        raise opsets.ManifestError(f"found framework '{framework}', expected one of {', '.join(opsets.DOMAINS)}")
    return opsets.DOMAINS[framework]


def _names(record: Record) -> set[str]:
    """The operator that a case is named for, without the name of its form, and those that its program has."""
    inside = {part for overload in record.reached for part in (overload, overload.partition(".")[0])}
    return {record.operator, record.operator.partition("-")[0], *inside}


def _records_figure(ran: list[Record]) -> Figure:
    passed = sum(record.outcome is Outcome.PASSED for record in ran)
    folded = sum(record.outcome is Outcome.FOLDED for record in ran)
    whole = sum(record.outcome in _NOT_RED for record in ran)
    missing = {record.case_id: _why([record]) for record in ran if record.outcome is not Outcome.PASSED}
    return Figure("cases that ran", len(ran), len(ran), passed, folded, whole, missing)


_FIGURES: Final[Mapping[str, Callable[[str, Mapping[str, Record]], list[Figure]]]] = {"onnx": _of_cases}
"""How a framework's figures are made, where not by what its records say alone."""


@cache
def _cases(framework: str) -> tuple[generators.Case, ...]:
    return tuple(case for manifest in opsets.load_manifests(framework) for case in generators.expand(manifest))


def _of_domain(framework: str, domain: str, reached: _Reached, limit: int | None) -> Iterator[Figure]:
    known = opsets.denominator(framework, domain)
    tensors = [cell for cell in known.cells if cell.tensor and _existed(cell.since_version, limit)]
    everything = [(cell.operator, str(cell.since_version), cell.dtype) for cell in tensors]
    newest = [key for key, cell in zip(everything, tensors, strict=True) if cell.newest]
    pairs = [(operator, str(since)) for operator, since in known.pairs if _existed(since, limit)]
    attributes = [
        (one.operator, str(one.since_version), one.attribute)
        for one in known.attributes
        if _existed(one.since_version, limit)
    ]
    there = {operator for operator, _ in pairs}
    active = [(name,) for name in sorted(known.active) if name in there]
    yield _passing(f"{domain}: operators", active, reached.operators)
    yield _passing(f"{domain}: operator versions", pairs, reached.pairs)
    yield _passing(f"{domain}: newest cells", newest, reached.cells)
    yield _passing(f"{domain}: cells", everything, reached.cells)
    yield _tried(f"{domain}: attribute versions", attributes, reached.attributes)
    floats = [key for key in everything if key[2] in _FLOATS]
    yield _tried(f"{domain}: float cells with NaN or infinity", floats, reached.special, _no_special(framework, domain))
    classed = {key: [r for r in records if r.tolerance_class] for key, records in reached.cells.items()}
    yield _tried(f"{domain}: cells with a tolerance class", everything, {k: v for k, v in classed.items() if v})


def _passing(name: str, keys: Iterable[Key], reached: Mapping[Key, list[Record]]) -> Figure:
    wanted = list(keys)
    tried = [key for key in wanted if key in reached]
    passed = {key for key in tried if any(record.outcome is Outcome.PASSED for record in reached[key])}
    folded = {key for key in tried if any(record.outcome is Outcome.FOLDED for record in reached[key])} - passed
    whole = {key for key in passed | folded if all(record.outcome in _NOT_RED for record in reached[key])}
    missing = {_shown(key): _why(reached.get(key, ())) for key in wanted if key not in passed}
    return Figure(name, len(wanted), len(tried), len(passed), len(folded), len(whole), missing)


def _tried(
    name: str,
    keys: Iterable[Key],
    reached: Mapping[Key, list[Record]],
    reason: Callable[[Key], str] = lambda _: NO_CASE,
) -> Figure:
    wanted = list(keys)
    missing = {_shown(key): reason(key) for key in wanted if key not in reached}
    return Figure(name, len(wanted), len(wanted) - len(missing), missing=missing)


def _no_special(framework: str, domain: str) -> Callable[[Key], str]:
    """The manifest's reason for going without NaN and infinities."""

    def reason(key: Key) -> str:
        try:
            entry = opsets.find_item(framework, domain, key[0], int(key[1])).entry
        except opsets.ManifestError:
            return NO_CASE
        return entry.no_special or NO_CASE

    return reason


def _cases_figure(cases: Iterable[generators.Case], found: Mapping[str, Record]) -> Figure:
    wanted = [case.id for case in cases]
    ran = {one: found[one] for one in wanted if one in found}
    missing = {one: NO_CASE for one in wanted if one not in ran}
    missing |= {one: _why([record]) for one, record in ran.items() if record.outcome is not Outcome.PASSED}
    passed = sum(record.outcome is Outcome.PASSED for record in ran.values())
    folded = sum(record.outcome is Outcome.FOLDED for record in ran.values())
    whole = sum(record.outcome in _NOT_RED for record in ran.values())
    return Figure("operator cases", len(wanted), len(ran), passed, folded, whole, missing)


def _must_fail_figure(records: Iterable[Record]) -> Figure:
    from generators.must_fail import must_fail_models

    wanted = [f"invalid/schema/{case.id}" for case in must_fail_models()]
    found = {record.case_id: record for record in records if record.suite == "invalid"}
    refused = sum(found[one].outcome is Outcome.PASSED for one in wanted if one in found)
    missing = {
        one: _why([found[one]]) if one in found else NO_CASE
        for one in wanted
        if one not in found or found[one].outcome is not Outcome.PASSED
    }
    tried = sum(one in found for one in wanted)
    return Figure(
        "must-fail models, refused as they must be", len(wanted), tried, refused, whole=refused, missing=missing
    )


def _shown(key: Key) -> str:
    name, *rest = key
    return f"{name}-{' '.join(rest)}" if rest else name


def _why(records: Iterable[Record]) -> str:
    """The outcome of the cases in question, and the first reason that one of them has."""
    listed = list(records)
    if not listed:
        return NO_CASE
    worst = next((record for record in listed if record.outcome not in _NOT_RED), listed[0])
    said = worst.reason or worst.diagnosis
    return f"{worst.outcome.value.replace('_', ' ')}{f': {said}' if said else ''}"


def coverage_text(figures: Iterable[Figure], *, with_missing: bool) -> RenderableType:
    """The figures as a table, and with a list of what is missing of each."""
    table = Table(box=None, pad_edge=False)
    table.add_column("of the schema")
    for column in ("there are", "tried", "passed", "folded", "no case red"):
        table.add_column(column, justify="right")
    parts: list[RenderableType] = [table]
    for figure in figures:
        cells = (figure.total, figure.tried, figure.passed, figure.folded, figure.whole)
        table.add_row(figure.name, *("" if one is None else f"{one:,}" for one in cells))
        if with_missing and figure.missing:
            parts.append(Text(f"\nmissing of {figure.name}: {len(figure.missing):,}", style="bold"))
            parts.extend(Text(f"  {name}: {reason}") for name, reason in figure.missing.items())
    return Group(*parts)
