"""ResNet-50 on the simulated accelerator: what a functional run costs beside onnxruntime, timing alone, and memory.

The network is the one that the onnx package ships, with seeded weights and calibrated statistics. onnxruntime runs
with one thread and with its optimizer, as a user runs it; figures are seconds of CPU, the best of some runs, so that
what else the machine does stays out of them.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import publish

GOAL_RATIO = 6.0
GOAL_MEMORY_GB = 2.0
GOAL_TIMING_SECONDS = 2.0


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """Return the least CPU seconds of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="reference-npu")
    target = parser.parse_args().target

    from compiler import api
    from conformance.onnxruntime_runner import graph_inputs, open_session
    from conformance.suites.light_models import light_model, seeded_image

    model = light_model("resnet50")
    feeds = {graph_inputs(model)[0]: seeded_image(model, 1)}
    session = open_session(model, optimize=True)
    reference = seconds(lambda: session.run(None, feeds))

    start = time.process_time()
    compiled = api.compile(model, target=target)
    first = compiled.estimate()
    compiling = time.process_time() - start
    timing = seconds(lambda: api.compile(model, target=target).estimate(), repeat=1)
    functional = seconds(lambda: compiled.simulate(feeds), repeat=2)
    result = compiled.simulate(feeds)
    assert result.outputs is not None
    error = float(np.max(np.abs(np.asarray(result.outputs[0]) - session.run(None, feeds)[0])))
    assert result.cycles == first.cycles, "timing alone and the functional run must give the same cycles"

    rows = [
        {"what": "onnxruntime, one thread", "CPU seconds": f"{reference:.3f}"},
        {"what": "functional simulation", "CPU seconds": f"{functional:.3f}"},
        {"what": "compilation and timing alone, first", "CPU seconds": f"{compiling:.3f}"},
        {"what": "compilation and timing alone, again", "CPU seconds": f"{timing:.3f}"},
    ]
    facts = {
        "functional / onnxruntime": round(functional / reference, 2),
        "goal, at most": GOAL_RATIO,
        "peak memory of all this, onnxruntime's too, GB": round(peak_memory() / 1e9, 2),
        "goal, memory under, GB": GOAL_MEMORY_GB,
        "timing alone, seconds": round(timing, 3),
        "goal, under": GOAL_TIMING_SECONDS,
        "cycles": f"{result.cycles:,}",
        "largest difference to onnxruntime": f"{error:.3g}",
    }
    publish("resnet50", rows, facts)


if __name__ == "__main__":
    main()
