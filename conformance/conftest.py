"""Hooks of the conformance suites into pytest.

`pytest conformance/` runs suites; the unit tests beside the code run
when they are named, by `--suite unit`, or in a run of the whole project without arguments.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conformance.collection import SESSION, SETTINGS, CaseItem, SuiteFile, SuiteSession
from conformance.completeness import missing_cases, write_missing
from conformance.errors import ConformanceError
from conformance.expectations import load_expectations
from conformance.options import DEFAULT_FRAMEWORKS, FRAMEWORKS, UNIT_TESTS, Settings, add_options, read_settings
from conformance.suites import SUITES, make_suite
from opsets import ManifestError
from reports.record import Record
from reports.store import merge, read_records

HERE = Path(__file__).parent
_WORKER_INPUT = "conformance"
_MESSAGES: pytest.StashKey[list[str]] = pytest.StashKey()
_CHOSEN: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for name in SUITES:
        config.addinivalue_line("markers", f"{name.replace('-', '_')}: cases of the suite {name}")
    config.stash[_MESSAGES] = []
    config.stash[_CHOSEN] = []
    if not _runs_suites(config):
        return
    worker_input = getattr(config, "workerinput", None)
    if worker_input is not None:
        settings = Settings.from_plain(worker_input[_WORKER_INPUT])
    else:
        settings = _controller_settings(config)
    config.stash[SETTINGS] = settings
    worker = "main" if worker_input is None else str(worker_input["workerid"])
    config.stash[SESSION] = SuiteSession(settings, worker)


def _runs_suites(config: pytest.Config) -> bool:
    """Whether the command line asks for suites: it names this folder, or a suite's file or case in it."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS or config.option.suite == UNIT_TESTS:
        return False
    return any(_names_suites(config, argument) for argument in config.args)


def _names_suites(config: pytest.Config, argument: str) -> bool:
    path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
    if path.is_dir():
        return path in (HERE, HERE / "suites") or HERE in path.parents
    return path.parent == HERE / "suites" and not path.name.endswith("_test.py")


def _controller_settings(config: pytest.Config) -> Settings:
    try:
        settings = read_settings(config.getoption)
        load_expectations(Path(settings.expectations))
    except (ConformanceError, ManifestError) as error:
        pytest.exit(str(error), returncode=2)
    if config.option.reportchars == "a":
        # A line for each of a thousand known reds would bury the few that are new.
        config.option.reportchars = "fE"
    if not config.option.collectonly:
        for stale in Path(settings.output).glob("records-*.jsonl"):
            stale.unlink()
    return settings


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    settings = session.config.stash.get(SETTINGS, None)
    if settings is None or hasattr(session.config, "workerinput"):
        return
    for name in settings.suites:
        make_suite(name).prepare(session.config.get_terminal_writer().line)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController
    settings = node.config.stash.get(SETTINGS, None)
    if settings is not None:
        node.workerinput[_WORKER_INPUT] = settings.plain()


def pytest_report_header(config: pytest.Config) -> list[str]:
    settings = config.stash.get(SETTINGS, None)
    if settings is None:
        return []
    targets = ", ".join(settings.targets)
    line = f"conformance: {', '.join(settings.suites)} on {settings.backend} ({targets}), records in {settings.output}"
    return [line, *config.stash[_MESSAGES]]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if SETTINGS not in config.stash or HERE not in collection_path.parents:
        return None
    named = {str((config.invocation_params.dir / a.partition("::")[0]).resolve()) for a in config.args}
    unit_test = collection_path.name.endswith("_test.py") and str(collection_path) not in named
    return True if unit_test else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    settings = parent.config.stash.get(SETTINGS, None)
    for name in () if settings is None else settings.suites:
        module = SUITES.get(name, name)
        if file_path == HERE.parent.joinpath(*module.split(".")).with_suffix(".py"):
            return SuiteFile.of(parent, file_path, name)
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_CHOSEN] = [item.name for item in session.items if isinstance(item, CaseItem)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:  # noqa: ANN401 - xdist's WorkerController
    config: pytest.Config = node.config
    if not config.stash[_CHOSEN]:
        config.stash[_CHOSEN] = [identity.partition("::")[2] for identity in ids]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    settings = config.stash.get(SETTINGS, None)
    if settings is None:
        return
    config.stash[SESSION].close()
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    try:
        _finish(session, settings, exitstatus)
    except OSError as error:
        # A full disk, say: what is in the workers' files stays, and `opatlas report` reads it.
        config.stash[_MESSAGES].append(f"no reports: {error}; finished records are in {settings.output}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _finish(session: pytest.Session, settings: Settings, exitstatus: int) -> None:
    """Merge the records, say what is missing of them and which expectations are stale, and write the reports."""
    config, output = session.config, Path(settings.output)
    if not any(output.glob("records-*.jsonl")):
        return
    records = list(read_records(merge(output)))
    chosen = config.stash[_CHOSEN]
    missing = missing_cases(chosen, records)
    config.stash[_MESSAGES].extend(write_missing(output, missing))
    if missing and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if complete and not _is_filtered(config, settings):
        stale = _stale_lines(settings, records)
        config.stash[_MESSAGES].extend(stale)
        if stale:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if not config.option.no_reports:
        _write_reports(config, output)


def _is_filtered(config: pytest.Config, settings: Settings) -> bool:
    options = config.option
    chosen = options.keyword or options.markexpr or options.deselect or getattr(options, "lf", False) or options.maxfail
    return bool(chosen) or settings.filtered or any("::" in argument for argument in config.args)


_OTHER_FRAMEWORKS = tuple(f"{name}-" for name in FRAMEWORKS if name not in DEFAULT_FRAMEWORKS)
"""How ids of cases start that only run where their framework is named."""


def _stale_lines(settings: Settings, records: list[Record]) -> list[str]:
    path = Path(settings.expectations)
    found = load_expectations(path)
    lines = []
    for suite in settings.suites:
        ids = {record.case_id for record in records if record.suite == suite}
        if suite in found:
            stale = found[suite].stale(ids, settings.targets)
            lines += [
                f"{path}: {suite}: stale entry {entry.case}: it matches no case"
                for entry in stale
                if not entry.case.startswith(_OTHER_FRAMEWORKS)
            ]
    return lines


def _write_reports(config: pytest.Config, output: Path) -> None:
    from reports import write_reports

    write_reports(output / "records.jsonl", output)
    config.stash[_MESSAGES].append(f"report: {output / 'index.html'}")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:  # noqa: ANN401
    settings = config.stash.get(SETTINGS, None)
    if settings is None:
        return
    path = Path(settings.output) / "records.jsonl"
    if path.exists() and not config.option.collectonly:
        records = list(read_records(path))
        counts = Counter(str(record.outcome) for record in records)
        unexpected = sum(record.unexpected for record in records)
        shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        terminalreporter.section("conformance")
        terminalreporter.write_line(f"{len(records)} cases: {shown}; {unexpected} unexpected")
    for line in config.stash[_MESSAGES]:
        terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is not None:
        with contextlib.suppress(OSError):
            session.close()
