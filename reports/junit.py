"""Records as JUnit XML, for servers that show test results. One test suite a framework, suite, backend and target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from reports.files import atomic_text
from reports.record import Outcome, Record

_TAGS: Mapping[Outcome, str] = {
    Outcome.WRONG_RESULT: "failure",
    Outcome.QUALITY_WARNING: "failure",
    Outcome.UNSUPPORTED: "failure",
    Outcome.ORACLE_DISAGREEMENT: "failure",
    Outcome.ERROR: "error",
    Outcome.CRASH: "error",
    Outcome.TIMEOUT: "error",
    Outcome.UNVERIFIED: "skipped",
    Outcome.NOT_RUN: "skipped",
    Outcome.FOLDED: "skipped",
}
"""Element of each outcome that is not a pass. A refusal is a failure: a server must not show it as green."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(records: Iterable[Record], path: Path) -> None:
    """Write the records; a case that is expected to fail is skipped with its reason, an unexpected end is a failure."""
    suites: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.key):
        name = ".".join(part for part in (record.framework, record.suite, record.backend, record.target) if part)
        suites.setdefault(name, []).append(record)
    root = ET.Element("testsuites")
    for name, members in suites.items():
        root.append(_suite(name, members))
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ET.indent(root)
    with atomic_text(path) as stream:
        stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
        stream.write(ET.tostring(root, encoding="unicode") + "\n")


def _suite(name: str, records: list[Record]) -> ET.Element:
    suite = ET.Element("testsuite", name=name, tests=str(len(records)))
    tags: list[str] = []
    for record in records:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_xml(f"{record.framework}.{record.operator}"),
            name=_xml(record.case_id),
            time=f"{record.cpu_ms / 1000:.4f}",
        )
        tag = _tag(record)
        if tag is not None:
            tags.append(tag)
            message = ": ".join(part for part in (record.outcome.value, record.diagnosis, record.reason) if part)
            ET.SubElement(case, tag, message=_xml(message), type=record.outcome.value)
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(tags.count(tag)))
    suite.set("time", f"{sum(record.cpu_ms for record in records) / 1000:.4f}")
    return suite


def _tag(record: Record) -> str | None:
    if record.unexpected:
        return "failure"
    tag = _TAGS.get(record.outcome)
    return "skipped" if tag is not None and record.expected is not None else tag


def _xml(text: str) -> str:
    """Return `text` without the characters that XML 1.0 cannot hold at all (section 2.2)."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
