"""What a case of the conformance suite costs: CPU all in, wall time by stage, and the share that the oracles take.

Reads the records of a run (`tox run -e conformance` makes them), so the figure is that of the real suite.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import publish
from reports.errors import ReportError
from reports.record import Outcome, Record, Stage
from reports.store import read_records, require

GOALS_MS = {"onnx": 40.0, "torch": 60.0, "tensorflow": 40.0, "caffe": 40.0}
"""CPU of a case, all in, by framework."""
RECORDS = Path("build/coverage")
PARTS = ("generate", "compile", "run", "oracles", "compare")
"""The parts of a case that add up to the whole; the compiler's own stages are inside `compile` and `run`."""


def main() -> None:
    """Sum the records up and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=Path, default=RECORDS)
    path = parser.parse_args().records
    try:
        found = require(read_records(path), path)
    except ReportError as error:
        sys.exit(f"{error}; `tox run -e conformance` makes the records")
    records = [record for record in found if record.outcome is not Outcome.NOT_RUN]
    cases = len(records)
    cpu = sum(record.cpu_ms for record in records)
    timed = {name for record in records for name in record.stage_ms}
    names = [name for name in PARTS if name in timed] or [stage.value for stage in Stage if stage.value in timed]
    stages = {name: sum(record.stage_ms.get(name, 0.0) for record in records) for name in names}
    rows = [
        {"stage": name, "ms a case": f"{ms / cases:.3f}", "share": f"{100 * ms / sum(stages.values()):.1f} %"}
        for name, ms in stages.items()
    ]
    slowest = max(records, key=lambda record: record.cpu_ms)
    publish(
        "suite_cost",
        rows,
        {
            "cases": cases,
            "CPU ms a case, all in": round(cpu / cases, 2),
            **_by_framework(records),
            "slowest case": f"{slowest.case_id}, {slowest.cpu_ms:.0f} ms",
        },
    )


def _by_framework(records: Sequence[Record]) -> dict[str, str]:
    """Cases, CPU of one and the goal of each framework, and of PyTorch's cases by static and symbolic sizes too."""
    groups: dict[str, list[float]] = {}
    for record in records:
        groups.setdefault(record.framework, []).append(record.cpu_ms)
        if record.framework == "torch":
            groups.setdefault(f"torch, {record.input_mode}", []).append(record.cpu_ms)
    return {
        name: f"{sum(times) / len(times):.1f} ms of CPU a case over {len(times)} cases, goal "
        f"{GOALS_MS[name.partition(',')[0]]:g}"
        for name, times in sorted(groups.items())
    }


if __name__ == "__main__":
    main()
