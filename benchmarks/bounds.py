"""Cycles of whole networks beside what their kernels cannot go under, and DRAM traffic beside the compulsory.

The bound of a kernel is the greatest of: its multiply-accumulates over the rate of the matrix array that their best
mapping can use, its vector work over the lanes (fills, copies and the start of instructions left out), and the bytes
that it must bring in or out (inputs, constants and outputs of the model, each once) over the bandwidth. The bound of a
network is the sum over its kernels.

The best mapping of a product of M x N x K is the best of all dataflows that the target offers, with the fold after fold
at full rate: ceil(M / rows) ceil(N / columns) K for output stationary, ceil(K / rows) ceil(N / columns) max(M, rows)
for weight stationary (the next weights come in a row a cycle), and so on. The strict bound has every cell at work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from math import ceil, prod
from typing import Any, Final

import numpy as np
from onnx import ModelProto

from benchmarks.measure import publish
from benchmarks.network import Network
from benchmarks.networks import NETWORKS
from compiler import api
from compiler.ir import Builder, Constant, Graph
from compiler.program.addresses import placed
from compiler.program.executable import Program
from compiler.program.instructions import Matmul, Vector
from compiler.simulator.report import ProgramReport
from compiler.targets import Dataflow, Target, load_target
from compiler.targets.functions import body_functions, function_cycles

GOAL_RATIO: Final = 0.75
GOAL_TRAFFIC: Final = 1.3
TRAFFIC_SRAM: Final = 4 << 20
"""Bytes of SRAM for which the goal of int8 traffic is set."""

TARGETS: Final = {"32x32": "reference-npu", "128x128": "datacenter-npu"}
PRECISIONS: Final = ("int8", "float16")
NARROWER: Final = 4
"""Divisor of widths in the comparison with onnxruntime."""


def abstracted(model: ModelProto, net: Network) -> Graph:
    """The imported graph, large weights as constants without data."""
    graph = api.compile(model).graph
    wanted = {weight.name for weight in net.weights}
    builder = Builder(graph, before=next(iter(graph.ops)))
    for seed, value in enumerate([value for value in graph.inputs if value.name in wanted]):
        value.replace_with(builder.constant(Constant.abstract(value.tensor, seed)))
        graph.erase_input(value.index)
    return graph


def network(name: str, precision: str, target: Target) -> api.CompiledModel:
    """The network at its published size for timing on a target, in its own 16-bit float where that is no float16."""
    names = {element.dtype.name for element in target.vector.elements}
    net = Network(name, precision, materialize=False, real="float16" if "float16" in names else "bfloat16")
    return api.compile(abstracted(NETWORKS[name](net, 1), net), target)


def vector_work(program: Program, target: Target) -> list[float]:
    """Cycles of the arithmetic of each kernel on all lanes of the vector unit."""
    unit = target.vector
    work = [0.0] * len(program.kernels)
    for item in placed(program.body):
        step = item.instruction
        if isinstance(step, Vector):
            cycles = sum(function_cycles(node.function, unit.cycles) for node in body_functions(step.body))
            cycles += unit.cycles.simple if step.combiner is not None else 0
            work[step.kernel] += cycles * prod(step.extents) * item.instances / unit.lanes
    return work


def mapped_work(program: Program, target: Target) -> list[float]:
    """Cycles of each kernel's products on the array in the best mapping, tiles of a product taken together."""
    work = [0.0] * len(program.kernels)
    matrix = target.matrix
    for step in (item.instruction for item in placed(program.body)):
        kernel = program.kernels[step.kernel]
        if not isinstance(step, Matmul) or work[step.kernel] or not kernel.product:
            continue
        batch, m, n, k = kernel.product
        product = matrix.product(step.a.element, step.b.element)
        steps = ceil(k / (1 if product is None else product.depth))
        down, across = ceil(m / matrix.rows), ceil(n / matrix.columns)
        deep, wide = ceil(steps / matrix.rows), ceil(m / matrix.columns)
        rates = {
            Dataflow.OUTPUT_STATIONARY: down * across * max(steps, matrix.rows),
            Dataflow.WEIGHT_STATIONARY: deep * across * max(m, matrix.rows),
            Dataflow.INPUT_STATIONARY: deep * wide * max(n, matrix.rows),
        }
        work[step.kernel] = batch * min(rates[flow] for flow in matrix.dataflows)
    return work


def bounds(report: ProgramReport, target: Target) -> tuple[float, float]:
    """The least cycles of a program's kernels one after the other: by their best mappings, and the strict bound."""
    mapped = strict = 0.0
    works = zip(report.kernels, vector_work(report.program, target), mapped_work(report.program, target), strict=True)
    for kernel, vector, matrix in works:
        moved = kernel.kernel.compulsory_bytes / target.dram.bytes_per_cycle
        mapped += max(matrix, vector, moved)
        strict += max(kernel.full_cycles, vector, moved)
    return mapped, strict


def measure(name: str, precision: str, label: str, target: Target) -> dict[str, Any]:
    """One row of the table."""
    started = time.process_time()
    compiled = network(name, precision, target)
    result = compiled.estimate()
    seconds = time.process_time() - started
    both = [bounds(report, target) for report, _ in result.report.programs]
    least, strict = (sum(column) for column in zip(*both, strict=True))
    return {
        "network": name,
        "type": precision,
        "array": label,
        "SRAM, MiB": target.sram.bytes >> 20,
        "cycles": f"{result.cycles:,}",
        "bound": f"{least:,.0f}",
        "bound / cycles": round(least / result.cycles, 3),
        "strict bound / cycles": round(strict / result.cycles, 3),
        "traffic / compulsory": round(result.traffic_bytes / result.compulsory_bytes, 3),
        "peak SRAM / its bound": peak_ratio(result),
        "host": len(result.host_operators),
        "CPU s": round(seconds, 1),
    }


def peak_ratio(result: api.SimulationResult) -> float:
    """The greatest ratio of a program's peak of SRAM to its lower bound."""
    ratios = [
        report.program.sram_bytes / report.program.sram_bound_bytes
        for report, _ in result.report.programs
        if report.program.sram_bound_bytes
    ]
    return round(max(ratios, default=1.0), 4)


def agreement(name: str, precision: str) -> dict[str, Any]:
    """The narrower network's outputs beside onnxruntime's, unoptimized, on the default target."""
    from conformance.onnxruntime_runner import open_session

    net = Network(name, precision)
    model = NETWORKS[name](net, NARROWER)
    rng = np.random.default_rng(1)
    feeds = {}
    for value in net.inputs:
        data = rng.standard_normal(value.shape)
        feeds[value.name] = (
            np.clip(np.rint(data * 127 / 4), -127, 127).astype("int8")
            if value.dtype == "int8"
            else data.astype(value.dtype)
        )
    (wanted,) = open_session(model, optimize=False).run(None, feeds)
    result = api.compile(model).simulate(feeds)
    assert result.outputs is not None
    got = np.asarray(result.outputs[0], np.float64)
    wanted = np.asarray(wanted, np.float64)
    scale = np.sqrt(np.mean(wanted**2))
    return {
        "network": name,
        "type": precision,
        "largest difference / root mean square": float(f"{np.max(np.abs(got - wanted)) / scale:.3g}"),
        "correlation": float(f"{np.corrcoef(got.ravel(), wanted.ravel())[0, 1]:.6f}"),
    }


def targets(names: Sequence[str]) -> list[tuple[str, Target]]:
    """The targets to measure on, and the first of them with the SRAM for which traffic has a goal."""
    found = [(label, load_target(TARGETS[label])) for label in names]
    base = found[0][1]
    sram = base.sram.model_copy(update={"bytes": TRAFFIC_SRAM})
    return [*found, (names[0], base.model_copy(update={"sram": sram}))]


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=NETWORKS, action="append", default=[])
    parser.add_argument("--type", choices=PRECISIONS, action="append", default=[])
    parser.add_argument("--no-agreement", action="store_true", help="without the comparison with onnxruntime")
    given = parser.parse_args()
    names, precisions = given.network or list(NETWORKS), given.type or list(PRECISIONS)
    rows = [
        measure(name, precision, label, target)
        for name in names
        for precision in precisions
        for label, target in targets(list(TARGETS))
        if target.sram.bytes != TRAFFIC_SRAM or precision == "int8"
    ]
    checks = [] if given.no_agreement else [agreement(name, precision) for name in names for precision in precisions]
    facts = {
        "goal, bound / cycles at least": GOAL_RATIO,
        "met": f"{sum(row['bound / cycles'] >= GOAL_RATIO for row in rows)} of {len(rows)}",
        "goal, traffic / compulsory at most (int8, 4 MiB)": GOAL_TRAFFIC,
        "agreement with onnxruntime": checks,
    }
    publish("bounds", rows, facts)


if __name__ == "__main__":
    main()
