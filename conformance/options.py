"""The suite's options of the command line, read once and checked: a wrong value is one line and exit status 2."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest

from conformance.backends import default_target, load_backend
from conformance.case import CaseInfo
from conformance.errors import BadSelection
from conformance.expectations import expectations_path
from conformance.recording import base_versions, suite_hash
from conformance.suites import SUITES, make_suite
from reports.errors import ReportError
from reports.record import Outcome
from reports.store import read_records

FRAMEWORKS = ("onnx", "torch", "tensorflow", "caffe")
DEFAULT_FRAMEWORKS = frozenset({"onnx"})
"""Whose cases run where none is named: other frameworks take seconds and memory to import."""
_OF_ALL_FRAMEWORKS = frozenset({"roundtrip", "blocks"})
"""Suites that take cases of every framework where none is named."""
OWN_FRAMEWORK_SUITES = frozenset({"keras", "opinfo"})
"""Suites of one framework only: naming them asks for it."""
UNIT_TESTS = "unit"
"""Value of --suite for the tests of the suite's own parts."""

_FINE = frozenset({Outcome.PASSED, Outcome.FOLDED})


def add_options(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("conformance", "conformance suites")
    suites = ", ".join([*SUITES, UNIT_TESTS])
    group.addoption("--suite", default="operators", help=f"suites to run, separated by commas: {suites} (operators)")
    group.addoption("--framework", default="", help=f"cases of these frameworks: {', '.join(FRAMEWORKS)} (onnx)")
    group.addoption("--op", default="", help="only cases of these operators, such as Conv,MatMul")
    group.addoption("--opset", default="", help="only operator versions in force at these opsets: 13 or 7-13,21")
    group.addoption("--dtype", default="", help="only cases of these element types, such as float16,bfloat16")
    group.addoption("--backend", default="opatlas", help="compiler under test: a built-in one or a module (opatlas)")
    group.addoption("--target", default="", help="targets of the backend, separated by commas (its default one)")
    group.addoption(
        "--failed-from", default="", metavar="RUN", help="only cases that RUN, a records file, has as not passed"
    )
    group.addoption(
        "--case-timeout", type=float, default=0.0, help="seconds that a case may take (the suite's own limit)"
    )
    group.addoption(
        "--case-memory", type=int, default=16384, metavar="MB", help="address space that a case may take; 0: no limit"
    )
    group.addoption("--output", default="build/coverage", metavar="DIR", help="where records and reports go")
    group.addoption(
        "--expectations", default="", metavar="FILE", help="known reds (conformance/expectations/BACKEND.yaml)"
    )
    group.addoption("--full", action="store_true", help="all cases of suites that run a selection by default (opinfo)")
    group.addoption("--no-reports", action="store_true", help="write the records alone")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run, plain and picklable: the controller makes them, every worker gets the same."""

    suites: tuple[str, ...]
    frameworks: frozenset[str]
    operators: frozenset[str]
    opsets: tuple[tuple[int, int], ...]
    dtypes: frozenset[str]
    backend: str
    targets: tuple[str, ...]
    failed: frozenset[str] | None
    full: bool
    time_limit: float
    memory_mb: int
    output: str
    expectations: str
    run: str
    suite_hash: str
    versions: Mapping[str, str]

    @property
    def filtered(self) -> bool:
        """Whether any option leaves cases out: then stale expectations can't be told."""
        return bool(self.frameworks or self.operators or self.opsets or self.dtypes) or self.failed is not None

    def selects(self, info: CaseInfo) -> bool:
        """Whether the options choose a case."""
        return (
            self._framework_asked_for(info)
            and (self.full or not info.extra)
            and (not self.operators or info.operator in self.operators)
            and (not self.dtypes or info.dtype in self.dtypes)
            and (not self.opsets or _in_force(info, self.opsets))
            and (self.failed is None or info.id in self.failed)
        )

    def _framework_asked_for(self, info: CaseInfo) -> bool:
        if self.frameworks:
            return info.framework in self.frameworks
        return info.framework in DEFAULT_FRAMEWORKS or info.suite in OWN_FRAMEWORK_SUITES | _OF_ALL_FRAMEWORKS

    def plain(self) -> dict[str, Any]:
        """Return the settings as data that xdist can send to a worker."""
        return {name: _sendable(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings that `plain` gave."""
        sets = {name: frozenset(data[name]) for name in ("frameworks", "operators", "dtypes")}
        failed = None if data["failed"] is None else frozenset(data["failed"])
        opsets = tuple((low, high) for low, high in data["opsets"])
        lists = {name: tuple(data[name]) for name in ("suites", "targets")}
        return cls(**{**data, **sets, **lists, "failed": failed, "opsets": opsets})


def _in_force(info: CaseInfo, opsets: Iterable[tuple[int, int]]) -> bool:
    """Whether a model of one of these opsets would use the case's operator version; without one its opset decides."""
    if not info.since_version:
        return any(low <= info.opset <= high for low, high in opsets)
    following = _next_version(info.domain, info.operator, info.since_version)
    return any(info.since_version <= high and low < following for low, high in opsets)


@cache
def _next_version(domain: str, operator: str, since_version: int) -> float:
    name = "" if domain == "ai.onnx" else domain
    later = (v for v in _versions().get((name, operator), ()) if v > since_version)
    return min(later, default=math.inf)


@cache
def _versions() -> Mapping[tuple[str, str], frozenset[int]]:
    found: dict[tuple[str, str], set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return {key: frozenset(versions) for key, versions in found.items()}


def _sendable(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_sendable(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value


def read_settings(option: Callable[[str], Any]) -> Settings:
    """Read and check the options. Raises `BadSelection` or `UnknownBackend`."""
    suites = _words(option("suite"))
    known = [*SUITES, UNIT_TESTS]
    for suite in suites:
        if suite not in known and "." not in suite:
            raise BadSelection(f"--suite: unknown suite {suite!r}, expected one of {', '.join(known)}")
    if not suites:
        raise BadSelection("--suite needs a value")
    backend = str(option("backend"))
    targets = _words(option("target")) or [default_target(backend)]
    for suite in suites:
        if suite != UNIT_TESTS:
            make_suite(suite)
    versions = base_versions()
    if set(suites) != {UNIT_TESTS}:
        for target in targets:
            versions |= load_backend(backend, target).versions()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return Settings(
        suites=tuple(suites),
        frameworks=_known("--framework", _words(option("framework")), FRAMEWORKS),
        operators=_operators(_words(option("op")), suites),
        opsets=tuple(_range(word) for word in _words(option("opset"))),
        dtypes=frozenset(_words(option("dtype"))),
        backend=backend,
        targets=tuple(targets),
        failed=_failed(option("failed_from")),
        full=bool(option("full")),
        time_limit=float(option("case_timeout")),
        memory_mb=int(option("case_memory")),
        output=str(Path(option("output")).resolve()),
        expectations=str(Path(option("expectations") or expectations_path(backend)).resolve()),
        run=f"{stamp}-{secrets.token_hex(3)}",
        suite_hash=suite_hash(),
        versions=versions,
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _known(name: str, found: Iterable[str], expected: Iterable[str]) -> frozenset[str]:
    allowed = tuple(expected)
    for value in found:
        if value not in allowed:
            raise BadSelection(f"{name}: unknown value {value!r}, expected one of {', '.join(allowed)}")
    return frozenset(found)


def _operators(names: list[str], suites: list[str]) -> frozenset[str]:
    if not names:
        return frozenset()
    known: set[str] = set()
    for suite in suites:
        if suite != UNIT_TESTS:
            known |= {info.operator for info in make_suite(suite).cases()}
    for name in names:
        if name not in known:
            raise BadSelection(f"--op: no case of {', '.join(suites)} is about {name!r}")
    return frozenset(names)


def _range(word: str) -> tuple[int, int]:
    low, dash, high = word.partition("-")
    if not low.isdigit() or (dash and not high.isdigit()):
        raise BadSelection(f"--opset: found {word!r}, expected a number or a range such as 7-13")
    return int(low), int(high or low)


def _failed(path: str) -> frozenset[str] | None:
    if not path:
        return None
    try:
        found = read_records(Path(path))
    except (ReportError, OSError) as error:
        raise BadSelection(f"--failed-from: {error}") from error
    return frozenset(record.case_id for record in found if record.outcome not in _FINE)
