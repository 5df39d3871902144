"""SCALE-Sim beside this compiler and simulator: cycles, utilization and SRAM counts, which must be the same, and time.

Every layer goes through the whole compiler: an ONNX model is imported, optimized, lowered for a plain array with free
transfers, and its program timed. SCALE-Sim runs in its own environment, either whole or, with the same cycles and
counts, its compute classes alone. It counts the index of the last cycle, so each of its layers is one cycle short; its
count of results written by output-stationary folds is too high (an open fault), so there the m n results are taken.

SCALE-Sim is asked for those layers alone whose demand matrices are small enough (`--most` elements; it takes minutes
and gigabytes for others); all layers are compared with the published closed forms that agree with it.
`--headline` runs ResNet-18 on 32x32 whole, for the ratio of times.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.foreign import ask
from benchmarks.measure import publish
from benchmarks.shapes import NETWORKS, Layer

if TYPE_CHECKING:
    from onnx import ModelProto

GOAL_RATIO = 270
GOAL_SECONDS = 1.0
GOAL_BYTES = 300e6
SIZES = (8, 16, 32, 64, 128, 256)
DATAFLOWS = ("os", "ws", "is")
RATIOS = ((2, 4), (1, 4), (4, 8))
MOST_ELEMENTS = 4_000_000
"""Elements of a demand matrix, cycles x (rows + 2 columns), up to which SCALE-Sim is asked by default."""


def model_of(layers: Sequence[Layer]) -> ModelProto:
    """Return a model of the layers side by side, with their weights as inputs: the data does not matter to cycles."""
    from onnx import helper as h

    nodes, inputs, outputs = [], [], []
    for number, layer in enumerate(layers):
        out = layer.out
        data = [layer.times * layer.channels, layer.height, layer.width]
        weights = [layer.times * layer.filters, layer.channels, layer.kernel, layer.kernel]
        # Windows that end outside of the image read zeros there.
        ends = [
            (count - 1) * layer.stride + layer.kernel - size
            for count, size in zip(out, (layer.height, layer.width), strict=True)
        ]
        inputs += [
            h.make_tensor_value_info(f"x{number}", 1, [1, *data]),
            h.make_tensor_value_info(f"w{number}", 1, weights),
        ]
        outputs.append(h.make_tensor_value_info(f"y{number}", 1, [1, weights[0], *out]))
        nodes.append(
            h.make_node(
                "Conv",
                [f"x{number}", f"w{number}"],
                [f"y{number}"],
                f"layer{number}",
                strides=[layer.stride] * 2,
                pads=[0, 0, *(max(0, end) for end in ends)],
                group=layer.times,
            )
        )
    graph = h.make_graph(nodes, "layers", inputs, outputs)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)


def simulate(layers: Sequence[Layer], target: str) -> list[dict[str, Any]]:
    """Return what each layer costs here, a row a layer: cycles, utilization and elements moved from and to SRAM."""
    from compiler import api
    from compiler.program.addresses import placed
    from compiler.program.instructions import Matmul
    from compiler.simulator import Costs
    from compiler.simulator.costs import matmul_sram

    compiled = api.compile(model_of(layers), target=target, options=api.Options(overlap=False))
    result = compiled.estimate()
    matrix, costs = compiled.target.matrix, Costs(compiled.target)
    rows: list[dict[str, Any]] = [{"cycles": 0, "macs": 0, "reads": [0, 0], "writes": 0, "matmuls": 0} for _ in layers]
    for program, _ in result.report.programs:
        places = [int(kernel.location.nodes[0].name.removeprefix("layer")) for kernel in program.program.kernels]
        for item in placed(program.program.body):
            step = item.instruction
            if not isinstance(step, Matmul):
                continue
            batch, m, n, k = (math.prod(group) for group in (step.batch, step.m, step.n, step.k))
            charge, times = costs.charge(step), item.instances
            read_a, read_b, _, written = matmul_sram(
                matrix, m, n, k, accumulate=step.accumulate, dataflow=step.dataflow
            )
            row = rows[places[step.kernel]]
            row["cycles"] += charge.cycles * times
            row["macs"] += charge.macs * times
            reads = zip(row["reads"], (read_a, read_b), strict=True)
            row["reads"] = [before + batch * read * times for before, read in reads]
            row["writes"] += batch * written * times
            row["matmuls"] += times
    for row in rows:
        row["utilization"] = row["macs"] / (row["cycles"] * matrix.rows * matrix.columns)
    return rows


def compare(layers: Sequence[Layer], size: int, dataflow: str, ratio: tuple[int, int], mode: str) -> dict[str, Any]:
    """Return a row of the table: how many layers agree in each figure."""
    pruned = "" if ratio == (1, 1) else f"-{ratio[0]}of{ratio[1]}"
    ours = simulate(layers, f"systolic-{size}x{size}-{dataflow}{pruned}-ideal")
    question = {"mode": mode, "rows": size, "columns": size, "dataflow": dataflow}
    theirs = ask("scalesim", question | {"layers": [layer.question(ratio) for layer in layers]})["layers"]
    pairs = list(zip(layers, ours, theirs, strict=True))
    for layer, mine, other in pairs:
        mine["want"] = layer.times * (other["cycles"] + 1)
        # Theirs divides dense products by its cycles; executed ones over all cells and cycles is ours.
        other["executed"] = mine["macs"] / (mine["want"] * size * size)
    return {
        "array": f"{size}x{size}",
        "dataflow": dataflow + pruned,
        "layers": len(layers),
        "cycles agree": sum(mine["cycles"] == mine["want"] for _, mine, _ in pairs),
        "utilization agrees": sum(math.isclose(mine["utilization"], o["executed"]) for _, mine, o in pairs),
        "reads agree": sum(
            mine["reads"] == [layer.times * count for count in other["reads"]] for layer, mine, other in pairs
        )
        if ratio == (1, 1)
        else sum(mine["reads"][1] == layer.times * other["reads"][1] for layer, mine, other in pairs),
        "writes agree": sum(
            mine["writes"] == layer.times * (math.prod(layer.product[:2]) if dataflow == "os" else other["writes"])
            for layer, mine, other in pairs
        ),
        "cycles": sum(mine["cycles"] for mine in ours),
        "differing": "; ".join(
            f"{layer.product}: {mine['cycles']} for {mine['want']}"
            for layer, mine, _ in pairs
            if mine["cycles"] != mine["want"]
        )[:120],
    }


def every_layer() -> list[Layer]:
    """Return the distinct layers of all networks."""
    return list(dict.fromkeys(layer for network in NETWORKS.values() for layer in network()))


def chosen(size: int, most: int) -> list[Layer]:
    """Return the layers for which SCALE-Sim is asked on an array of this size."""
    return [layer for layer in every_layer() if _elements(layer, size) <= most]


def closed_form(layer: Layer, size: int, dataflow: str) -> int:
    """Return the cycles of a layer on a square array as published, and the one that SCALE-Sim leaves out.

    os ceil(M/R) ceil(N/C) (K + R + C - 2), ws ceil(K/R) ceil(N/C) (M + 2R + C - 2), is with M and N exchanged.
    """
    m, n, k = layer.product
    folds, streamed = {"os": ((m, n), k), "ws": ((k, n), m + size), "is": ((k, m), n + size)}[dataflow]
    return layer.times * math.prod(math.ceil(side / size) for side in folds) * (streamed + 2 * size - 2)


def closed_forms(sizes: Iterable[int]) -> tuple[int, int]:
    """Return how many layers take the cycles of the closed form here, and how many were tried."""
    layers = every_layer()
    agree = tried = 0
    for size in sizes:
        for dataflow in DATAFLOWS:
            rows = simulate(layers, f"systolic-{size}x{size}-{dataflow}-ideal")
            pairs = zip(layers, rows, strict=True)
            agree += sum(row["cycles"] == closed_form(layer, size, dataflow) for layer, row in pairs)
            tried += len(layers)
    return agree, tried


def _elements(layer: Layer, size: int) -> int:
    m, n, k = layer.product
    longest = max(
        math.ceil(m / size) * math.ceil(n / size) * (k + 2 * size),
        math.ceil(k / size) * math.ceil(n / size) * (m + 3 * size),
        math.ceil(k / size) * math.ceil(m / size) * (n + 3 * size),
    )
    return longest * 3 * size


def headline() -> dict[str, Any]:
    """Return seconds and peak bytes of ResNet-18 on a 32x32 array, in a process of its own on either side."""
    layers = list(NETWORKS["resnet18"]())
    command = [sys.executable, "-m", "benchmarks.scalesim", "--ours-alone"]
    ours = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603
    question = {"mode": "whole", "rows": 32, "columns": 32, "dataflow": "os"}
    theirs = ask("scalesim", question | {"layers": [layer.question() for layer in layers]})
    cycles = sum(layer["cycles"] for layer in theirs["layers"])
    return {
        "ResNet-18 32x32 os, SCALE-Sim": _cost(theirs, cycles),
        **_ours(ours),
        "ratio of times": round(theirs["seconds"] / ours["seconds"], 1),
        "goal, at least": GOAL_RATIO,
        "cycles agree": ours["cycles"] - len(layers) == cycles,
    }


def _ours(ours: dict[str, Any]) -> dict[str, Any]:
    return {
        "ResNet-18 32x32 os, here": _cost(ours, ours["cycles"]),
        "goal": f"under {GOAL_SECONDS} s and {GOAL_BYTES / 1e6:.0f} MB",
    }


def _cost(run: dict[str, Any], cycles: int) -> str:
    return f"{run['seconds']:.3f} s, {run['peak_bytes'] / 1e6:.0f} MB, {cycles:,} cycles"


def ours_alone() -> dict[str, Any]:
    """Return seconds, peak bytes and cycles of ResNet-18 on 32x32 here, from the model to the cycles."""
    layers = list(NETWORKS["resnet18"]())
    import compiler.api  # noqa: F401 - imports of Python are no part of the work, as they are none in SCALE-Sim's time

    start = time.perf_counter()
    rows = simulate(layers, "systolic-32x32-os-ideal")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "peak_bytes": peak, "cycles": sum(row["cycles"] for row in rows)}


def main() -> None:
    """Compare and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=MOST_ELEMENTS, help="elements of SCALE-Sim's demand matrices")
    parser.add_argument("--headline", action="store_true", help="ResNet-18 on 32x32 through the whole of SCALE-Sim")
    parser.add_argument("--ours-alone", action="store_true", help="ResNet-18 here, as JSON")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    options = parser.parse_args()
    if options.ours_alone:
        print(json.dumps(ours_alone()))
        return
    rows = list(_rows(options.sizes, options.most))
    agree, tried = closed_forms(options.sizes)
    facts: dict[str, Any] = {
        "layers compared": sum(row["layers"] for row in rows),
        **{name: sum(row[name] for row in rows) for name in rows[0] if name.endswith(("agree", "agrees"))},
        "all layers against closed forms": f"{agree} of {tried}",
        **(headline() if options.headline else _ours(ours_alone())),
    }
    publish("scalesim", rows, facts)


def _rows(sizes: Iterable[int], most: int) -> Iterable[dict[str, Any]]:
    for size in sizes:
        layers = chosen(size, most)
        for dataflow in DATAFLOWS:
            yield compare(layers, size, dataflow, (1, 1), "engine")
        for ratio in RATIOS if size <= 64 else ():
            yield compare([layer for layer in layers if layer.times == 1], size, "ws", ratio, "engine")
    # The whole package on what it does in seconds: the same figures as its compute classes alone.
    small = [layer for layer in chosen(128, MOST_ELEMENTS // 2) if math.prod(layer.product) < 5e6][:6]
    for dataflow in DATAFLOWS:
        yield compare(small, 32, dataflow, (1, 1), "whole")


if __name__ == "__main__":
    main()
