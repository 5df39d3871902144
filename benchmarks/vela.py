"""Vela's estimates for Ethos-U55-256 beside the target `micro-npu`: NPU cycles of the layers that are sums of products.

The int8 networks are built and converted here, Vela estimates them in its own environment, and the same layers, as
integer convolutions of the same sizes, go through the compiler; compared is the time that the array is busy with each.
This compiler reads no TFLite, so cycles of whole networks and their peak of SRAM are not compared.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.foreign import ask
from benchmarks.int8_models import MODELS, Convolution, as_tflite, convolutions
from benchmarks.measure import publish

if TYPE_CHECKING:
    from onnx import ModelProto

GOAL: Final = 0.10
_KINDS: Final = ("Conv2D", "DepthwiseConv2D", "FullyConnected")


def model_of(layers: Sequence[Convolution]) -> ModelProto:
    """Return a model of the layers side by side, int8 to int32."""
    from onnx import helper as h

    nodes, inputs, outputs = [], [], []
    for number, layer in enumerate(layers):
        height, width, channels = layer.image
        groups = channels if layer.kind == "DepthwiseConv2D" else 1
        sizes = {"x": [1, channels, height, width], "w": [layer.out[2], channels // groups, *layer.kernel]}
        inputs += [h.make_tensor_value_info(f"{name}{number}", 3, shape) for name, shape in sizes.items()]
        shape = [1, layer.out[2], *layer.out[:2]]
        outputs.append(h.make_tensor_value_info(f"y{number}", 6, shape))
        sides = [
            max(0, (out - 1) * layer.stride + kernel - size)
            for out, kernel, size in zip(layer.out[:2], layer.kernel, (height, width), strict=True)
        ]
        pads = [side // 2 for side in sides] + [side - side // 2 for side in sides]
        nodes.append(
            h.make_node(
                "ConvInteger",
                [f"x{number}", f"w{number}"],
                [f"y{number}"],
                f"layer{number}",
                strides=[layer.stride] * 2,
                pads=pads,
                group=groups,
            )
        )
    graph = h.make_graph(nodes, "layers", inputs, outputs)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)


def simulate(layers: Sequence[Convolution], target: str) -> list[int]:
    """Return the cycles in which the array, or the vector unit where it is faster, is busy with each layer."""
    from compiler import api
    from compiler.program.instructions import Engine

    report = api.compile(model_of(layers), target=target).estimate().report
    cycles = [0] * len(layers)
    for kernel in report.kernels:
        place = int(kernel.kernel.location.nodes[0].name.removeprefix("layer"))
        cycles[place] += max(kernel.busy[Engine.MATRIX], kernel.busy[Engine.VECTOR])
    return cycles


def paired(rows: Sequence[dict[str, str]], layers: Sequence[Convolution]) -> list[int]:
    """Return Vela's NPU cycles of each layer; rows and layers of one kind and work are taken in order."""
    left = [row for row in rows if row["NNG Operator"] in _KINDS and int(float(row["NPU"]))]
    found = []
    for layer in layers:
        fits = (row for row in left if row["NNG Operator"] == layer.kind and int(row["MAC Count"]) == layer.macs)
        row = next(fits, None)
        if row is not None:
            left.remove(row)
        found.append(0 if row is None else int(float(row["NPU"])))
    return found


def main() -> None:
    """Compare and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    rows: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    for name in parser.parse_args().models:
        model = MODELS[name]()
        layers = convolutions(model)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.tflite"
            file.write_bytes(as_tflite(model))
            answer = ask("vela", {"model": str(file), "accelerator": "ethos-u55-256"})
        theirs, ours = paired(answer["layers"], layers), simulate(layers, "micro-npu")
        pairs = [(layer, one, two) for layer, one, two in zip(layers, theirs, ours, strict=True) if one]
        rows += [
            {
                "model": name,
                "layer": f"{layer.kind} {'x'.join(map(str, layer.image))} -> {'x'.join(map(str, layer.out))}",
                "kernel": "x".join(map(str, layer.kernel)),
                "Vela": one,
                "here": two,
                "difference": f"{100 * (two - one) / one:+.1f} %",
            }
            for layer, one, two in pairs
        ]
        within = sum(abs(two - one) <= GOAL * one for _, one, two in pairs)
        totals = [sum(one for _, one, _ in pairs), sum(two for _, _, two in pairs)]
        facts[name] = (
            f"{within} of {len(pairs)} layers within {GOAL:.0%} ({len(layers) - len(pairs)} without a partner); "
            f"together {100 * (totals[1] - totals[0]) / totals[0]:+.1f} %"
        )
    publish("vela", rows, facts)


if __name__ == "__main__":
    main()
