"""Timing and output that the benchmarks share."""

from __future__ import annotations

import gc
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from reports.execution import rows_table
from reports.files import atomic_text

OUTPUT = Path("build/benchmarks")
_Value = TypeVar("_Value")


def cpu_ms(work: Callable[[_Value], object], make: Callable[[], _Value], repeat: int = 5) -> float:
    """Return the least CPU milliseconds of `work` over some runs, each on something that `make` makes anew.

    CPU time and the minimum keep what else the machine does out of the figure; collection of garbage is off meanwhile.
    """
    best = float("inf")
    for _ in range(repeat):
        argument = make()
        gc.collect()
        gc.disable()
        start = time.process_time()
        result = work(argument)
        best = min(best, time.process_time() - start)
        gc.enable()
        del result
    return 1000 * best


def publish(name: str, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> None:
    """Print rows as a table and facts a line each, and write both to `build/benchmarks/<name>.json`."""
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    console.print(rows_table(rows))
    for fact, value in facts.items():
        console.print(f"{fact}: {value}")
    data = {"benchmark": name, "python": platform.python_version(), **facts, "rows": list(rows)}
    with atomic_text(OUTPUT / f"{name}.json") as stream:
        stream.write(json.dumps(data, indent=2) + "\n")
    console.print(f"written: {OUTPUT / name}.json")
