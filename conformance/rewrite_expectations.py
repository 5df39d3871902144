"""Writes a backend's expectations file from a run: `python -m conformance.rewrite_expectations RUN`.

RUN is a records file or the folder of a run. What the run says of its cases replaces what the file said of them; the
file's other suites and cases stay. Cases of a common beginning that all end alike become one pattern, if the run holds
every case that the pattern matches; a reason that a person wrote is kept while outcome and stage stay the same.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from conformance.errors import ConformanceError
from conformance.expectations import (
    GREY,
    Expectation,
    Expectations,
    as_regex,
    expectations_path,
    load_expectations,
)
from conformance.suites import make_suite
from reports.errors import ReportError
from reports.files import atomic_text
from reports.record import Outcome, Record, Stage
from reports.store import read_records

_SEPARATOR = re.compile(r"(?<=[-/])")
_LONGEST_REASON = 200
_End = tuple[Outcome, Stage]


def is_red(record: Record) -> bool:
    """Whether a case needs an entry."""
    return record.outcome is not Outcome.PASSED and record.outcome not in GREY


def entries_for(records: Sequence[Record], all_ids: Iterable[str], old: Expectations) -> list[Expectation]:
    """Return the entries of one suite: those that the run gives, and the old ones that it says nothing about."""
    ids = set(all_ids) | {record.case_id for record in records}
    by_target: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_target[record.target].append(record)
    made = [entry for target, found in sorted(by_target.items()) for entry in _of_target(target, found, ids, old)]
    run = {record.case_id for record in records}
    kept = [e for e in old.entries if (e.target not in by_target and e.target is not None) or not _touches(e, run)]
    return sorted({*made, *kept}, key=lambda entry: (entry.case, entry.target or ""))


def _touches(entry: Expectation, ids: set[str]) -> bool:
    if "*" not in entry.case:
        return entry.case in ids
    regex = as_regex(entry.case)
    return any(regex.fullmatch(case_id) for case_id in ids)


@dataclass(slots=True)
class _Branch:
    """A node of the tree of ids, split behind each separator; `ends` counts how the leaves below it end."""

    children: dict[str, _Branch] = field(default_factory=dict)
    ends: Counter[_End | None] = field(default_factory=Counter)


def _of_target(target: str, records: Sequence[Record], ids: set[str], old: Expectations) -> Iterator[Expectation]:
    red = {record.case_id: record for record in records if is_red(record)}
    root = _Branch()
    for case_id in sorted(ids):
        found = red.get(case_id)
        end = (found.outcome, found.stage) if found else None
        branch = root
        branch.ends[end] += 1
        for part in _SEPARATOR.split(case_id):
            branch = branch.children.setdefault(part, _Branch())
            branch.ends[end] += 1
    for pattern, (outcome, stage) in _uniform("", root):
        reason = _reason(pattern, outcome, stage, red, old, target)
        yield Expectation(pattern, outcome, stage, reason, target)


def _uniform(prefix: str, branch: _Branch) -> Iterator[tuple[str, _End]]:
    """Yield the shortest beginnings below which every case ends alike, and red."""
    ends = list(branch.ends)
    if ends == [None]:
        return
    if len(ends) == 1 and ends[0] is not None and prefix:
        several = branch.ends.total() > 1
        yield (f"{prefix}*" if several else _only_leaf(prefix, branch)), ends[0]
        return
    for part, child in branch.children.items():
        yield from _uniform(prefix + part, child)


def _only_leaf(prefix: str, branch: _Branch) -> str:
    while branch.children:
        part, branch = next(iter(branch.children.items()))
        prefix += part
    return prefix


def _reason(
    pattern: str, outcome: Outcome, stage: Stage, red: Mapping[str, Record], old: Expectations, target: str
) -> str:
    regex = as_regex(pattern)
    matching = [record for case_id, record in red.items() if regex.fullmatch(case_id)]
    before = old.find(matching[0].case_id, target)
    if before is not None and (before.outcome, before.stage) == (outcome, stage):
        return before.reason
    said = Counter(": ".join(filter(None, (record.diagnosis, record.reason))) for record in matching)
    text, count = said.most_common(1)[0]
    text = text[:_LONGEST_REASON] or f"{outcome} at {stage}"
    return text if count == len(matching) else f"{text} (and {len(said) - 1} other reasons)"


def rewrite(records: Sequence[Record], path: Path) -> dict[str, int]:
    """Write `path` from the records of one backend; return the number of entries of each suite of the run."""
    old = load_expectations(path)
    made = {suite: list(found.entries) for suite, found in old.items()}
    by_suite: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_suite[record.suite].append(record)
    for suite, found in by_suite.items():
        all_ids = (info.id for info in make_suite(suite).cases())
        made[suite] = entries_for(found, all_ids, old.get(suite, Expectations()))
    with atomic_text(path) as stream:
        stream.write("# Known reds of this backend; written by `python -m conformance.rewrite_expectations RUN`.\n")
        data = {suite: [_plain(entry) for entry in entries] for suite, entries in sorted(made.items()) if entries}
        if data:
            yaml.safe_dump(data, stream, sort_keys=False, width=118, allow_unicode=True)
    return {suite: len(made[suite]) for suite in by_suite}


def _plain(entry: Expectation) -> dict[str, str]:
    plain = {"case": entry.case, "outcome": str(entry.outcome), "stage": str(entry.stage), "reason": entry.reason}
    return plain if entry.target is None else {**plain, "target": entry.target}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 2 on bad input, with one line on the standard error."""
    parser = argparse.ArgumentParser(prog="conformance.rewrite_expectations", description=__doc__)
    parser.add_argument("run", type=Path, help="a records file, or the folder of a run")
    parser.add_argument("--file", type=Path, help="write this file instead of conformance/expectations/BACKEND.yaml")
    found = parser.parse_args(arguments)
    try:
        by_backend: dict[str, list[Record]] = defaultdict(list)
        for record in read_records(found.run):
            by_backend[record.backend].append(record)
        for backend, records in sorted(by_backend.items()):
            path = found.file or expectations_path(backend)
            counts = rewrite(records, path)
            shown = ", ".join(f"{count} of {suite}" for suite, count in sorted(counts.items()))
            sys.stdout.write(f"{path}: entries: {shown}\n")
    except (ConformanceError, ReportError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
