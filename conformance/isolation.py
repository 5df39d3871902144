"""Runs cases in a process that may be lost: a crash or a hang costs one case.

A keeper process (case_process.py) imports everything once and forks a child that serves one case after the other; when
the child dies the keeper forks the next, in some 10 ms. Requests go down a pipe as pickles with a length in front;
messages come up as JSON lines, so half a line of a dying child spoils nothing that comes after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.case import CaseInfo
from conformance.recording import ROOT, RunContext, lost_case, make_record, write_reproducer
from conformance.suites import make_suite
from reports.record import Outcome, Record, Stage

HEADER = struct.Struct("<I")
_START_LIMIT = 120.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ORACLE = "oracle:"


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What the keeper is told when it starts. `memory_mb` limits the address space of the child; 0 is no limit."""

    backend: str
    output: str
    memory_mb: int = 0
    suites: tuple[str, ...] = ()
    extra_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One case for the child."""

    info: CaseInfo
    context: RunContext
    target: str
    crashed: frozenset[str] = frozenset()


class ProcessLost(RuntimeError):
    """The keeper itself could not be started or has ended; its log has the reason."""


@dataclass(frozen=True, slots=True)
class _Lost:
    outcome: Outcome
    part: str
    reason: str

    @property
    def oracle(self) -> str | None:
        return self.part.removeprefix(_ORACLE) if self.part.startswith(_ORACLE) else None

    @property
    def stage(self) -> Stage:
        return Stage(self.part) if self.part in set(Stage) else Stage.COMPARE


class CaseProcess:
    """The keeper and its child, as seen by a pytest worker. Started at the first case; close it at the end."""

    def __init__(self, settings: ProcessSettings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._requests = -1
        self._messages = -1
        self._buffer = b""
        self._child = 0

    def run(self, info: CaseInfo, context: RunContext, target: str, time_limit: float) -> Record:
        """Return the record of a case, whatever becomes of the process; `time_limit` is in seconds of wall time.

        When an oracle takes the process down or hangs, the case runs again without it: it is no finding about the
        backend.
        """
        request = Request(info, context, target)
        start = time.perf_counter()
        while True:
            answer = self._attempt(request, time_limit)
            if isinstance(answer, Record):
                return answer
            if answer.oracle is None or answer.oracle in request.crashed:
                break
            request = replace(request, crashed=request.crashed | {answer.oracle})
        finding = lost_case(answer.outcome, answer.stage, answer.reason)
        generated = answer.stage != Stage.GENERATE
        path = write_reproducer(self._settings.output, make_suite(info.suite), info) if generated else None
        return make_record(info, finding, context, target, cpu_ms=(time.perf_counter() - start) * 1e3, reproducer=path)

    def _attempt(self, request: Request, time_limit: float) -> Record | _Lost:
        self._ensure_child()
        data = pickle.dumps(request)
        os.write(self._requests, HEADER.pack(len(data)))
        _write_all(self._requests, data)
        part, deadline = str(Stage.GENERATE), time.monotonic() + time_limit
        for message in self._messages_until(deadline):
            if "part" in message:
                part = message["part"]
            elif "record" in message:
                return Record.model_validate(message["record"])
            elif "died" in message:
                self._child = 0
                return _Lost(Outcome.CRASH, part, message["died"])
        self._kill_child()
        return _Lost(Outcome.TIMEOUT, part, f"no end within {time_limit:g} s")

    def _kill_child(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        for message in self._messages_until(time.monotonic() + _START_LIMIT):
            if "died" in message:
                break
        self._child = 0

    def _ensure_child(self) -> None:
        if self._process is None:
            self._start()
        if self._child:
            return
        for message in self._messages_until(time.monotonic() + _START_LIMIT):
            if "ready" in message:
                self._child = int(message["ready"])
                return
        raise ProcessLost(f"the process that runs cases did not start; see {self._log}")

    def _start(self) -> None:
        down, self._requests = os.pipe()
        self._messages, up = os.pipe()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "conformance.case_process",
            str(down),
            str(up),
            json.dumps(asdict(self._settings)),
        ]
        environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, pass_fds=(down, up), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                start_new_session=True,
            )  # fmt: skip
        os.close(down)
        os.close(up)

    def _messages_until(self, deadline: float) -> Iterator[dict[str, Any]]:
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._messages], [], [], left)[0]:
                return
            data = os.read(self._messages, 1 << 16)
            if not data:
                raise ProcessLost(f"the process that runs cases has ended; see {self._log}")
            self._buffer += data

    def close(self) -> None:
        """End the keeper and its child."""
        if self._process is None:
            return
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
        os.close(self._requests)
        self._process.kill()
        self._process.wait()
        os.close(self._messages)
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
