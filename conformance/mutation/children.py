"""Runs functions in forked children, a few at a time, each with limits; a child that dies is a result too."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Died:
    """What is left of a child that gave no result; `cause` is one line; `raised`: its own code failed."""

    cause: str
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor seconds, address space in MB and wall seconds that a child may use; 0: any.

    Processor time bounds loops whatever else the machine does; wall time, generous, bounds waiting for nothing.
    """

    cpu_seconds: int = 0
    memory_mb: int = 0
    wall_seconds: int = 0


@dataclass(slots=True)
class _Child:
    key: Any
    pid: int
    data: bytearray
    deadline: float


def run_children(
    tasks: Iterable[tuple[Any, Callable[[], object]]], jobs: int, limits: Limits, log: Path
) -> Iterator[tuple[Any, Any]]:
    """Yield (key, result or `Died`) as children end; what they print goes to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    waiting = iter(tasks)
    selector = selectors.DefaultSelector()
    running = 0
    with contextlib.closing(selector):
        while True:
            while running < jobs and (task := next(waiting, None)) is not None:
                _start(task, selector, limits, log)
                running += 1
            if not running:
                return
            for ended in list(_ended(selector)):
                running -= 1
                yield ended


def _start(task: tuple[Any, Callable[[], object]], selector: selectors.BaseSelector, limits: Limits, log: Path) -> None:
    key, work = task
    receiving, sending = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(receiving)
        _serve(work, sending, limits, log)
    os.close(sending)
    selector.register(
        receiving,
        selectors.EVENT_READ,
        _Child(key, pid, bytearray(), time.monotonic() + (limits.wall_seconds or float("inf"))),
    )


def _serve(work: Callable[[], object], sending: int, limits: Limits, log: Path) -> None:
    """Run the work as a child and leave without the parent's exit handlers."""
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = sys.__stdout__ or sys.stdout, sys.__stderr__ or sys.stderr
        if limits.cpu_seconds:
            # Only the soft limit: a child of this child may need more.
            resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, resource.RLIM_INFINITY))
        if limits.memory_mb:
            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_mb << 20, limits.memory_mb << 20))
        data = pickle.dumps(work())
        with os.fdopen(sending, "wb") as stream:
            stream.write(data)
        os._exit(0)
    finally:
        sys.excepthook(*sys.exc_info())  # reached only while an exception passes
        os._exit(1)


def _ended(selector: selectors.BaseSelector) -> Iterator[tuple[Any, Any]]:
    for key, _ in selector.select(timeout=1.0):
        part = os.read(key.fd, 1 << 20)
        child = key.data
        if part:
            child.data += part
            continue
        selector.unregister(key.fileobj)
        os.close(key.fd)
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        yield child.key, pickle.loads(child.data) if code == 0 else Died(_cause(code), raised=code > 0)  # noqa: S301 - our own child
    for registered in list(selector.get_map().values()):
        if time.monotonic() > registered.data.deadline:
            os.kill(registered.data.pid, signal.SIGKILL)


def _cause(code: int) -> str:
    if code >= 0:
        return f"the process exited with status {code}"
    name = signal.Signals(-code).name
    return "out of processor time" if name == "SIGXCPU" else f"the process was ended by {name}"
