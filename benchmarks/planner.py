"""Peak of SRAM beside its lower bound, the most bytes in use at one time, on fifty model graphs.

The graphs are the networks of :mod:`benchmarks.networks` in two types and three widths, Llama layers of other lengths,
and the networks that the onnx package ships. Weights have no data, or what the file says: only sizes matter here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from typing import Any, Final

import onnx

from benchmarks.bounds import abstracted
from benchmarks.measure import publish
from benchmarks.network import Network
from benchmarks.networks import NETWORKS, Build, llama_layer
from compiler import api
from compiler.targets import DEFAULT_TARGET, Target, load_target

GOAL: Final = 1.03
WIDTHS: Final = (1, 2, 4)
LENGTHS: Final = (16, 64, 128, 256, 1024)
LIGHT: Final = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
    "zfnet512",
)  # fmt: skip


def _built(name: str, build: Build, precision: str, narrower: int, target: Target) -> api.CompiledModel:
    net = Network(name, precision, materialize=False)
    return api.compile(abstracted(build(net, narrower), net), target)


def graphs(target: Target) -> Iterator[tuple[str, api.CompiledModel]]:
    """Each graph with its name, compiled for the target."""
    for precision in ("int8", "float16"):
        for name, build in NETWORKS.items():
            for narrower in WIDTHS:
                yield f"{name} / {narrower}, {precision}", _built(name, build, precision, narrower, target)
        for length in LENGTHS:
            build = partial(llama_layer, length=length)
            yield f"llama_layer of {length} tokens, {precision}", _built("llama", build, precision, 1, target)
    for name in LIGHT:
        path = files("onnx") / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
        yield f"light_{name}, float32", api.compile(onnx.load_from_string(path.read_bytes()), target)
    net = Network("mobilenet_v2", "float32", materialize=False, real="float32")
    yield "mobilenet_v2 / 1, float32", api.compile(abstracted(NETWORKS["mobilenet_v2"](net, 1), net), target)


def measure(name: str, compiled: api.CompiledModel) -> dict[str, Any]:
    """One row: the worst of the graph's programs."""
    result = compiled.estimate()
    programs = [report.program for report, _ in result.report.programs]
    worst = max(programs, key=lambda program: program.sram_bytes / max(program.sram_bound_bytes, 1))
    return {
        "graph": name,
        "kernels": sum(len(program.kernels) for program in programs),
        "peak, bytes": f"{worst.sram_bytes:,}",
        "bound, bytes": f"{worst.sram_bound_bytes:,}",
        "peak / bound": round(worst.sram_bytes / max(worst.sram_bound_bytes, 1), 4),
    }


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default=DEFAULT_TARGET)
    rows = [measure(name, compiled) for name, compiled in graphs(load_target(parser.parse_args().target))]
    facts = {
        "goal, peak / bound at most": GOAL,
        "met": f"{sum(row['peak / bound'] <= GOAL for row in rows)} of {len(rows)}",
        "largest": max(row["peak / bound"] for row in rows),
    }
    publish("planner", rows, facts)


if __name__ == "__main__":
    main()
