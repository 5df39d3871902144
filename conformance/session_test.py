"""The suite as it is run from the command line: options, exit statuses, xdist, interruption, reports."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.rewrite_expectations import main as rewrite_expectations
from reports.store import read_records

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MODULE = "conformance.misbehaving"
RED = {"wrong", "dropped-output", "segfault", "exit", "hang", "memory", "exception", "refusal", "template"}


def command(tmp_path, *options, suite=MODULE, backend=MODULE):
    return [
        sys.executable, "-m", "pytest", "conformance/", "-q", "-p", "no:cacheprovider", "--suite", suite,
        "--backend", backend, "--output", str(tmp_path / "out"), "--case-timeout", "3", "--case-memory", "8000",
        *options,
    ]  # fmt: skip


def pytest_run(tmp_path, *options, **names):
    return subprocess.run(
        command(tmp_path, *options, **names), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def outcomes(tmp_path):
    found = read_records(tmp_path / "out" / "records.jsonl")
    return {record.case_id.removeprefix("misbehaving-"): str(record.outcome) for record in found}


def test_every_case_has_a_record_and_reds_fail_the_run(tmp_path):
    done = pytest_run(tmp_path, "-n", "2")
    assert done.returncode == 1, done.stdout
    found = outcomes(tmp_path)
    assert {name for name, outcome in found.items() if outcome != "passed"} == RED
    assert len(found) == 17
    assert (tmp_path / "out" / "index.html").exists()
    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    assert len({record.run for record in records}) == 1
    assert all(record.unexpected == (record.outcome != "passed") for record in records)


def test_known_reds_are_expected_failures_and_stay_red(tmp_path):
    path = tmp_path / "known.yaml"
    chosen = ("-k", "wrong or refusal or right", "--expectations", str(path))
    assert pytest_run(tmp_path, *chosen).returncode == 1
    run = str(tmp_path / "out" / "records.jsonl")
    assert rewrite_expectations([run, "--file", str(path)]) == 0
    done = pytest_run(tmp_path, *chosen)
    assert done.returncode == 0, done.stdout
    assert "2 xfailed" in done.stdout
    assert outcomes(tmp_path)["wrong"] == "wrong_result"


def test_an_unexpected_pass_fails_the_run(tmp_path):
    path = tmp_path / "known.yaml"
    path.write_text(f"{MODULE}: [{{case: misbehaving-right, outcome: error, stage: lower, reason: r}}]\n")
    done = pytest_run(tmp_path, "-k", "misbehaving-right", "--expectations", str(path))
    assert done.returncode == 1
    assert "passed at compare, expected error at lower" in done.stdout


def test_a_stale_entry_fails_an_unfiltered_run_only(tmp_path):
    path = tmp_path / "known.yaml"
    path.write_text(f"{MODULE}: [{{case: gone, outcome: error, stage: lower, reason: r}}]\n")
    options = ("--expectations", str(path))
    filtered = pytest_run(tmp_path, "-k", "right", *options, backend="onnx_reference")
    assert filtered.returncode == 0, filtered.stdout
    whole = pytest_run(tmp_path, *options, backend="onnx_reference")
    assert whole.returncode == 1
    assert "stale entry gone" in whole.stdout


def heed_interrupts():
    """Take SIGINT as usual, also where this process was started to ignore it, as a shell does in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupted_run_keeps_its_records_and_writes_reports(tmp_path, workers):
    process = subprocess.Popen(
        command(tmp_path, "-n", workers, "-k", "slow or right"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - no thread of this process holds a lock that the child needs
    )
    limit = time.monotonic() + 60
    while time.monotonic() < limit and records_so_far(tmp_path) < 3:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 2, text
    found = outcomes(tmp_path)
    assert 3 <= len(found) < 8
    assert set(found.values()) == {"passed"}
    assert json.loads((tmp_path / "out" / "coverage.json").read_text())["cases"] == len(found)


def test_a_worker_that_is_killed_costs_one_case(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "-n", "2", "-k", "slow or right"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 60
    while time.monotonic() < limit and records_so_far(tmp_path) < 3:
        time.sleep(0.02)
    finished = records_so_far(tmp_path)
    os.kill(first_worker(process.pid), signal.SIGKILL)
    text, _ = process.communicate(timeout=90)
    assert process.returncode == 1, text
    found = outcomes(tmp_path)
    missing = (tmp_path / "out" / "missing.txt").read_text().split()
    assert finished <= len(found)
    assert len(missing) == 1
    assert missing[0].removeprefix("misbehaving-") not in found
    assert f"1 chosen cases have no record ({tmp_path / 'out' / 'missing.txt'}): {missing[0]}" in text
    assert json.loads((tmp_path / "out" / "coverage.json").read_text())["cases"] == len(found)


def first_worker(controller):
    """Return the id of the worker process that was started first."""
    children = Path(f"/proc/{controller}/task/{controller}/children").read_text().split()
    return int(children[0])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_full_disk_keeps_what_is_written_and_ends_the_run(tmp_path, workers):
    (tmp_path / "full_disk.py").write_text(FULL_DISK)
    done = subprocess.run(
        command(tmp_path, "-n", workers, "-k", "slow or right", "-p", "full_disk"),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout
    found, missing = outcomes(tmp_path), (tmp_path / "out" / "missing.txt").read_text().split()
    assert len(found) == 2 * max(int(workers), 1)
    assert set(found.values()) == {"passed"}
    assert not {name.removeprefix("misbehaving-") for name in missing} & set(found)
    assert f"{len(missing)} chosen cases have no record" in done.stdout
    assert "its record cannot be written: [Errno 28] No space left on device" in done.stdout
    assert "Traceback" not in done.stdout


FULL_DISK = """
import errno, os
from reports.store import RecordWriter

write, count = RecordWriter.write, 0

def limited(self, record):
    global count
    count += 1
    if count > 2:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write(self, record)

RecordWriter.write = limited
"""
"""A disk on which every process can write two records."""


def records_so_far(tmp_path):
    return sum(path.read_text().count("\n") for path in (tmp_path / "out").glob("records-*.jsonl"))


def test_failed_from_runs_what_was_red(tmp_path):
    pytest_run(tmp_path, "-k", "wrong or refusal or right")
    saved = tmp_path / "run.jsonl"
    saved.write_bytes((tmp_path / "out" / "records.jsonl").read_bytes())
    pytest_run(tmp_path, "--failed-from", str(saved))
    assert set(outcomes(tmp_path)) == {"wrong", "refusal"}


@pytest.mark.parametrize(
    ("options", "names", "line"),
    [
        ((), {"backend": "nonsense"}, "unknown backend 'nonsense': expected one of "),
        ((), {"suite": "nonsense"}, "--suite: unknown suite 'nonsense', expected one of operators"),
        (("--op", "Nonsense"), {}, "--op: no case of conformance.misbehaving is about 'Nonsense'"),
        (("--opset", "new"), {}, "--opset: found 'new', expected a number or a range"),
        (("--framework", "mxnet"), {}, "--framework: unknown value 'mxnet', expected one of onnx"),
        (("--failed-from", "nowhere.jsonl"), {}, "--failed-from: nowhere.jsonl: no such file"),
        ((), {"backend": "json"}, "backend 'json': the module has neither compile(model) nor"),
    ],
)
def test_a_bad_request_is_one_line_and_status_2(tmp_path, options, names, line):
    done = pytest_run(tmp_path, *options, **names)
    assert done.returncode == 2
    said = [text for text in (done.stdout + done.stderr).splitlines() if text.strip()]
    assert len(said) == 1
    assert line in said[0]
    assert not (tmp_path / "out").exists()
