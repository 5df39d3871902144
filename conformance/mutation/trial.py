"""One fault, in a child process: the cases until one is red, then the unit tests beside the module."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from conformance.errors import MutationError
from conformance.mutation.children import Died, Limits, run_children
from conformance.mutation.damages import DAMAGES
from conformance.mutation.edits import ROOT, Fault
from conformance.mutation.importing import can_patch, install, patch
from conformance.mutation.pool import DEFAULT_TARGET, PoolCase

UNIT_TEST_LIMITS = Limits(cpu_seconds=180, memory_mb=6000, wall_seconds=1200)


@dataclass(frozen=True, slots=True)
class Trial:
    """What saw the fault: the id of a red case or of a failed unit test ("" if none), and how it was put in.

    `tried`: cases judged; `figures_changed`: cycles, traffic or placement differ though no outcome does.
    """

    case: str = ""
    reason: str = ""
    unit_test: str = ""
    tried: int = 0
    figures_changed: bool = False
    imported: bool = False
    cpu_seconds: float = 0.0


def try_fault(fault: Fault, cases: Sequence[PoolCase], *, by_import: bool, unit_tests_too: bool, log: Path) -> Trial:
    """Put the fault in, judge the cases in order until one is red, and if none is run the unit tests.

    For children only.
    """
    start = time.process_time()
    if by_import:
        install(fault)
    else:
        patch(fault)
    found = replace(_try_cases(fault, cases), imported=by_import)
    if not found.case and unit_tests_too:
        task = (fault.id, partial(_failed_unit_test, fault))
        ((_, failed),) = run_children([task], 1, UNIT_TEST_LIMITS, log)
        if isinstance(failed, Died) and failed.raised:
            raise MutationError(f"running the unit tests failed: {failed.cause}; see {log}")
        found = replace(found, unit_test=f"crash: {failed.cause}" if isinstance(failed, Died) else failed)
    return replace(found, cpu_seconds=time.process_time() - start)


def load_modules(faults: Sequence[Fault]) -> None:
    """Import everything that the faults are in and that runs cases."""
    for module in ("conformance.mutation.judging", "compiler.frontends.onnx", *(fault.module for fault in faults)):
        importlib.import_module(module)


def only_by_import(faults: Sequence[Fault]) -> set[str]:
    """Return the ids of faults that no patch can put in, or whose lines run while modules are imported.

    For children only: everything is imported.
    """
    import coverage

    measured = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / "*")])
    measured.start()
    load_modules(faults)
    measured.stop()
    data = measured.get_data()
    ran = {path: set(data.lines(str(ROOT / path)) or ()) for path in {fault.path for fault in faults}}
    return {fault.id for fault in faults if ran[fault.path] & set(fault.lines) or not can_patch(fault)}


def _try_cases(fault: Fault, cases: Sequence[PoolCase]) -> Trial:
    try:
        from conformance.mutation import judging
    except Exception as error:  # noqa: BLE001 - a fault may break the import itself
        return Trial("import", _last_line(error))
    changed = False
    for tried, case in enumerate(cases, 1):
        if fault.path.startswith("conformance/"):
            reason = _damage_unseen(case, judging.verdict)
        else:
            judged = judging.judge(case)
            changed |= judged.figures != case.figures
            reason = "" if judged.outcome == case.outcome else f"{judged.outcome}: {judged.reason}"
        if reason:
            return Trial(_name(case), reason, tried=tried, figures_changed=changed)
    return Trial(tried=len(cases), figures_changed=changed)


def _name(case: PoolCase) -> str:
    return case.id if case.target == DEFAULT_TARGET else f"{case.id}@{case.target}"


def _damage_unseen(case: PoolCase, verdict: object) -> str:
    """Return how the comparator's word on right or damaged outputs differs from the right comparator's."""
    assert callable(verdict)
    assert case.outputs is not None
    wanted = {"nothing": "passed", **case.damaged}
    for name, outcome in wanted.items():
        outputs = DAMAGES[name](case.outputs) if name in DAMAGES else case.outputs
        try:
            found, reason = verdict(case, outputs)
        except Exception as error:  # noqa: BLE001 - a faulty comparator may raise anything
            return f"{name}: {_last_line(error)}"
        if found != outcome:
            return f"damage '{name}': {found} instead of {outcome}; {reason}"
    return ""


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip()[:200]


def unit_tests(path: str) -> list[str]:
    """Return the test files of a module: the one named after it, those that import it, else those in its folder.

    For the compiler those of its public face follow, which stand above its layers.
    """
    file = ROOT / path
    own = file.with_name(f"{file.stem}_test.py")
    module = path.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    top = ROOT / path.split("/", maxsplit=1)[0]
    mentions = (f"{module} ", f"{module}\n", f"from {package} import {name}")
    found = [test for test in sorted(top.rglob("*_test.py")) if any(m in test.read_text() for m in mentions)]
    beside = [own] if own.exists() else []
    chosen = [*beside, *(test for test in found if test != own)] or sorted(file.parent.glob("*_test.py"))
    whole = (test for test in sorted(top.glob("*_test.py")) if path.startswith("compiler/") and test not in chosen)
    return [str(test) for test in (*chosen, *whole) if "mutation" not in test.parts]


def _failed_unit_test(fault: Fault) -> str:
    """Return the first unit test that fails with the fault in this process, or ""."""
    import pytest

    failed: list[str] = []

    class _Watch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                failed.append(report.nodeid or "collection")

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    status = pytest.main([*options, *unit_tests(fault.path)], plugins=[_Watch()])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not failed:
        failed.append(f"pytest ended with {status!r}")
    return failed[0] if failed else ""
