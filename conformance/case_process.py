"""The keeper: forks a child that serves cases, and another one when that dies. Started by isolation.py.

`python -m conformance.case_process REQUESTS MESSAGES SETTINGS`: two inherited descriptors and JSON.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from typing import Any, NoReturn

from conformance.backends import BackendUnderTest, default_target, load_backend
from conformance.case import Suite
from conformance.isolation import HEADER, ProcessSettings, Request
from conformance.judge import judge_case
from conformance.recording import make_record, write_reproducer
from conformance.suites import make_suite
from reports.record import Outcome, Record, Stage

_PR_SET_PDEATHSIG = 1
"""Linux: the signal that a process gets when its parent dies."""

_HANDED_OUT = frozenset({
    Outcome.WRONG_RESULT, Outcome.QUALITY_WARNING, Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.ORACLE_DISAGREEMENT,
})  # fmt: skip
"""Outcomes whose reproducer is written out; there is none of a case that can't be generated."""


class _Server:
    """The child: suites and backends are made once, cases run one after the other."""

    def __init__(self, settings: ProcessSettings, requests: int, messages: int) -> None:
        self._settings = settings
        self._requests = requests
        self._messages = messages
        self._suites: dict[str, Suite] = {}
        self._backends: dict[str, BackendUnderTest] = {}

    def serve(self) -> None:
        """Answer requests until the pipe is closed."""
        self._send({"ready": os.getpid()})
        while header := _read_exactly(self._requests, HEADER.size):
            data = _read_exactly(self._requests, HEADER.unpack(header)[0])
            request: Request = pickle.loads(data)  # noqa: S301 - written by our own parent
            self._send({"record": json.loads(self._record(request).to_line())})

    def _record(self, request: Request) -> Record:
        start = time.process_time()
        info = request.info
        suite, backend = self._suite(info.suite), self._backend(request.target)
        finding = judge_case(info, suite, backend, lambda part: self._send({"part": part}), request.crashed)
        handed_out = finding.outcome in _HANDED_OUT and finding.stage != Stage.GENERATE
        path = write_reproducer(self._settings.output, suite, info) if handed_out else None
        cpu_ms = (time.process_time() - start) * 1e3
        return make_record(info, finding, request.context, request.target, cpu_ms=cpu_ms, reproducer=path)

    def _suite(self, name: str) -> Suite:
        if name not in self._suites:
            self._suites[name] = make_suite(name)
        return self._suites[name]

    def _backend(self, target: str) -> BackendUnderTest:
        if target not in self._backends:
            self._backends[target] = load_backend(self._settings.backend, target)
        return self._backends[target]

    def _send(self, message: dict[str, Any]) -> None:
        _send(self._messages, message)


def _send(descriptor: int, message: dict[str, Any]) -> None:
    view = memoryview(b"\n" + json.dumps(message).encode() + b"\n")
    while view:
        view = view[os.write(descriptor, view) :]


def _read_exactly(descriptor: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(descriptor, count - len(data))
        if not part:
            return b""
        data += part
    return data


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(megabytes: int) -> None:
    if megabytes:
        limit = megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _preload(settings: ProcessSettings) -> None:
    """Import what every child needs before the first fork."""
    importlib.import_module("onnx.reference")
    for suite in settings.suites:
        make_suite(suite)
    load_backend(settings.backend, default_target(settings.backend))


def main(arguments: list[str]) -> int:
    """Keep one child alive until the requests end."""
    requests, messages = int(arguments[0]), int(arguments[1])
    settings = ProcessSettings(**json.loads(arguments[2]))
    _die_with_parent()
    _preload(settings)
    while True:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _die_with_parent()
            _limit_memory(settings.memory_mb)
            _serve(_Server(settings, requests, messages))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return 0
        _send(messages, {"died": _cause(code)})


def _serve(server: _Server) -> NoReturn:
    """Serve and end at once, whatever happens: the interpreter's own end waits for threads that a fork left behind."""
    try:
        server.serve()
    except BaseException:  # noqa: BLE001 - none may leave this process
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _cause(code: int) -> str:
    if code >= 0:
        return f"the process exited with status {code}"
    return f"the process was ended by {signal.Signals(-code).name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
