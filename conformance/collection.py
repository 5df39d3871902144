"""Cases as pytest items: ids alone are made at collection, each case is built when it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from conformance.case import CaseInfo
from conformance.expectations import GREY, Expectations, Surprise, load_expectations
from conformance.isolation import CaseProcess, ProcessSettings
from conformance.options import Settings
from conformance.recording import RunContext
from conformance.suites import SUITES, make_suite
from reports.record import Outcome, Record
from reports.store import RecordWriter


class UnexpectedOutcome(AssertionError):
    """A case that ended otherwise than expected; carries its record."""

    def __init__(self, record: Record, surprise: str) -> None:
        super().__init__(surprise)
        self.record = record


class RecordsLost(RuntimeError):
    """Records can be written no more: the disk is full, say. Cases after the first one that was lost don't run."""


class SuiteSession:
    """What one pytest process holds while it runs cases: the case process, the writer, the expectations."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self.settings = settings
        output = Path(settings.output)
        self._context = RunContext(settings.run, settings.suite_hash, settings.backend, dict(settings.versions))
        self._process = CaseProcess(
            ProcessSettings(settings.backend, settings.output, settings.memory_mb, settings.suites),
            output / "logs" / f"{worker}.log",
        )
        self._writer: RecordWriter | None = None
        self._lost: str | None = None
        self._worker = worker
        self._expectations: dict[str, Expectations] = load_expectations(Path(settings.expectations))

    def run(self, info: CaseInfo, target: str, time_limit: float) -> tuple[Record, str]:
        """Run a case, write its record, and return it with what is unexpected about it ("" if nothing).

        Raises `RecordsLost` where the record cannot be written, and from then on without running anything.
        """
        if self._lost is not None:
            raise RecordsLost(f"not run: {self._lost}")
        record = self._process.run(info, self._context, target, self.settings.time_limit or time_limit)
        expectations = self._expectations.get(info.suite, Expectations())
        answered = record.outcome is Outcome.UNSUPPORTED and record.diagnosis in info.refusals
        surprise = (
            Surprise(unexpected=False, expected=Outcome.UNSUPPORTED)
            if answered
            else expectations.judge(info.id, target, record.outcome, record.stage)
        )
        record = record.model_copy(
            update={
                "expected": None if surprise.expected is None else str(surprise.expected),
                "unexpected": surprise.unexpected,
            }
        )
        try:
            if self._writer is None:
                self._writer = RecordWriter.for_worker(self.settings.output, self._worker)
            self._writer.write(record)
        except OSError as error:
            self._lost = f"its record cannot be written: {error}"
            raise RecordsLost(f"{info.id}: {self._lost}") from error
        return record, surprise.reason

    def close(self) -> None:
        """End the case process and close the file."""
        self._process.close()
        if self._writer is not None:
            # Of a full disk the case that found it has told.
            with contextlib.suppress(OSError):
                self._writer.close()


SESSION = pytest.StashKey[SuiteSession]()
SETTINGS = pytest.StashKey[Settings]()


class SuiteFile(pytest.File):
    """A module of conformance/suites/, collected as the cases that its suite yields and the options choose."""

    suite_name: str

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, suite_name: str) -> SuiteFile:
        """Return the collector of a suite."""
        made: SuiteFile = cls.from_parent(parent, path=path)
        made.suite_name = suite_name
        if suite_name in SUITES:
            made.add_marker(getattr(pytest.mark, suite_name.replace("-", "_")))
        # Each case has a limit of its own, kept by the process that runs it.
        made.add_marker(pytest.mark.timeout(0))
        return made

    def collect(self) -> Iterable[pytest.Item]:
        settings = self.config.stash[SETTINGS]
        suite = make_suite(self.suite_name)
        several = len(settings.targets) > 1
        for info in suite.cases():
            if settings.selects(info):
                for target in settings.targets:
                    name = f"{info.id}@{target}" if several else info.id
                    yield CaseItem.of(self, name, info, target, suite.time_limit)


class CaseItem(pytest.Item):
    """One case on one target."""

    info: CaseInfo
    target: str
    time_limit: float

    @classmethod
    def of(cls, parent: SuiteFile, name: str, info: CaseInfo, target: str, time_limit: float) -> CaseItem:
        """Return the item of a case."""
        made: CaseItem = cls.from_parent(parent, name=name)
        made.info, made.target, made.time_limit = info, target, time_limit
        return made

    def runtest(self) -> None:
        record, surprise = self.config.stash[SESSION].run(self.info, self.target, self.time_limit)
        self.user_properties.append(("outcome", str(record.outcome)))
        _label_for_allure(self, record)
        if record.unexpected:
            raise UnexpectedOutcome(record, surprise)
        reason = f"{record.outcome} at {record.stage}: {record.reason or ''}"
        if record.outcome in GREY:
            pytest.skip(reason)
        if record.outcome is not Outcome.PASSED:
            pytest.xfail(reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401
        if isinstance(excinfo.value, RecordsLost):
            return str(excinfo.value)
        if not isinstance(excinfo.value, UnexpectedOutcome):
            return super().repr_failure(excinfo, style)
        record = excinfo.value.record
        lines = [str(excinfo.value)]
        lines += [f"{record.diagnosis}: {record.reason}" if record.diagnosis else record.reason or ""]
        if record.reproducer:
            lines.append(f"reproducer: {Path(self.config.stash[SETTINGS].output) / record.reproducer}")
        return "\n".join(line for line in lines if line)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _label_for_allure(item: CaseItem, record: Record) -> None:
    """Label the case for Allure where its plugin is active."""
    if not item.config.getoption("allure_report_dir", default=None):
        return
    import allure

    info, label = item.info, cast("Any", allure.dynamic)
    label.epic(info.framework)
    label.feature(info.operator)
    label.story(f"{info.operator}-{info.since_version}")
    label.tag(info.dtype, str(record.outcome), str(record.stage))
    label.parameter("target", item.target)
