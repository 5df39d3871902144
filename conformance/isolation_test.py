"""A crash, a hang or a hunger for memory costs one case."""

import os
import signal
import time

import pytest

from conformance.isolation import CaseProcess, ProcessSettings
from conformance.misbehaving import Suite
from conformance.recording import RunContext
from reports.record import Outcome, Stage

MODULE = "conformance.misbehaving"
CONTEXT = RunContext("run", "hash", MODULE)
CASES = {info.id.removeprefix("misbehaving-"): info for info in Suite().cases()}


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    output = tmp_path_factory.mktemp("run")
    settings = ProcessSettings(MODULE, str(output), memory_mb=8000, suites=(MODULE,))
    with CaseProcess(settings, output / "logs" / "test.log") as made:
        yield made


def run(process, kind, limit=20.0):
    return process.run(CASES[kind], CONTEXT, "cpu", limit)


@pytest.mark.parametrize(
    ("kind", "outcome", "reason"),
    [
        ("segfault", Outcome.CRASH, "the process was ended by SIGSEGV"),
        ("exit", Outcome.CRASH, "the process exited with status 3"),
        ("memory", Outcome.CRASH, "Unable to allocate"),
        ("exception", Outcome.ERROR, "of 1 inputs"),
        ("template", Outcome.ERROR, "no such name in the template"),
        ("refusal", Outcome.UNSUPPORTED, "no kernel for 1 inputs"),
        ("wrong", Outcome.WRONG_RESULT, "output 0[0]: -1.5, expected 1.5"),
        ("dropped-output", Outcome.WRONG_RESULT, "0 outputs, expected 1"),
    ],
)
def test_a_bad_case_is_recorded_and_the_next_one_runs(process, kind, outcome, reason):
    found = run(process, kind)
    assert found.outcome is outcome
    assert reason in found.reason
    assert run(process, "right").outcome is Outcome.PASSED


def test_a_hang_ends_at_the_time_limit(process):
    run(process, "right")
    start = time.monotonic()
    found = run(process, "hang", limit=0.5)
    assert (found.outcome, found.stage) == (Outcome.TIMEOUT, Stage.SIMULATE)
    assert time.monotonic() - start < 15
    assert run(process, "right").outcome is Outcome.PASSED


def test_a_lost_case_has_a_reproducer_too(process):
    assert run(process, "segfault").reproducer == "reproducers/misbehaving-segfault.py"


def test_isolation_costs_little(process):
    run(process, "right")
    start = time.process_time()
    for _ in range(100):
        run(process, "right")
    assert (time.process_time() - start) * 10 < 2  # milliseconds of this process a case


def test_an_oracle_that_crashes_is_left_out_and_says_so(tmp_path, monkeypatch):
    process = CaseProcess(ProcessSettings(MODULE, str(tmp_path)), tmp_path / "log")
    asked = []

    def attempt(request, limit):
        asked.append(request.crashed)
        if "reference" in request.crashed:
            return CaseProcess._attempt(process, request, limit)
        from conformance.isolation import _Lost

        return _Lost(Outcome.CRASH, "oracle:reference", "boom")

    monkeypatch.setattr(process, "_attempt", attempt)
    try:
        found = run(process, "right")
    finally:
        process.close()
    assert asked == [frozenset(), frozenset({"reference"})]
    assert found.outcome is Outcome.PASSED
    assert found.oracles["reference"] == "unavailable"


def test_nothing_is_left_running(tmp_path):
    process = CaseProcess(ProcessSettings(MODULE, str(tmp_path)), tmp_path / "log")
    run(process, "right")
    keeper, child = process._process.pid, process._child
    process.close()
    for pid in (keeper, child):
        for _ in range(50):
            try:
                os.kill(pid, signal.SIG_DFL)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"process {pid} is left")
