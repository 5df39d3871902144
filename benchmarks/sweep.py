"""A sweep of 100 points over ResNet-50, from the model's file to the Pareto front, by the command as a user runs it."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import OUTPUT, publish

GOAL_SECONDS = 30.0
OVER = "sram=1MB,2MB,4MB,8MB,16MB,rows=16,32,64,128,bandwidth=8,16,32,64,128"


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--over", default=OVER)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()

    import onnx

    from conformance.suites.light_models import light_model

    folder = OUTPUT / "sweep"
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "resnet50.onnx"
        onnx.save(light_model("resnet50"), model)
        command = [sys.executable, "-m", "opatlas", "sweep", str(model), "--over", options.over, "--restart"]
        start = time.perf_counter()
        subprocess.run([*command, "-o", str(folder), "--jobs", str(options.jobs)], check=True, capture_output=True)  # noqa: S603
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    points = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))["points"]
    best = [point for point in points if point["on_front"]]
    rows = [
        {**point["point"], "cycles": point["cycles"], "energy, mJ": f"{point['energy_pj'] / 1e9:.3f}"} for point in best
    ]
    facts = {
        "points": len(points),
        "processes": options.jobs,
        "seconds, all in": round(seconds, 1),
        "goal, under": GOAL_SECONDS,
        "CPU seconds of all processes": round(used.ru_utime + used.ru_stime, 1),
        "peak bytes of the largest process": f"{used.ru_maxrss * 1024 / 1e6:.0f} MB",
        "points refused": sum("refused" in point for point in points),
        "points on the front": len(best),
    }
    publish("sweep", rows, facts)


if __name__ == "__main__":
    main()
