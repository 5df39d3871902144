"""ZigZag beside this simulator: the energy of multiply-accumulates of each layer, which must be the same.

ZigZag runs one of the networks that it ships on one of its accelerators, in its own environment; here the same file is
compiled for an array of the same size whose multiply-accumulate takes the same picojoules.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from benchmarks.foreign import ask
from benchmarks.measure import publish

if TYPE_CHECKING:
    from onnx import ModelProto


def with_weights(path: str) -> ModelProto:
    """Return a model that ships without its weights, with zeros in their place: the data does not matter to costs."""
    import numpy as np
    import onnx

    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            zeros = np.zeros(tensor.dims, onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
            tensor.CopyFrom(onnx.numpy_helper.from_array(zeros, tensor.name))
    return model


def simulate(model: ModelProto, rows: int, columns: int, picojoules: float) -> dict[tuple[str, int], float]:
    """Return picojoules of multiply-accumulates by framework node and number of multiply-accumulates.

    A kernel may stand for two convolutions' nodes, if it adds their results; its products are those of one.
    """
    from compiler import api
    from compiler.targets import load_target
    from compiler.targets.vary import vary

    target = vary(load_target(f"systolic-{rows}x{columns}-ws"), {"energy.mac.float32": str(picojoules)})
    report = api.compile(model, target=target).estimate().report
    return {
        (node.name, kernel.macs): kernel.energy["matrix"]
        for kernel in report.kernels
        for node in kernel.kernel.location.nodes
    }


def main() -> None:
    """Compare and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="resnet18", choices=["resnet18", "alexnet", "mobilenetv2"])
    parser.add_argument("--accelerator", default="tpu_like")
    options = parser.parse_args()
    answer = ask("zigzag", {"network": options.network, "accelerator": options.accelerator, "lpf_limit": 3})
    array = answer["array"]
    rows_of_array, columns = array["sizes"][:2]
    start = time.perf_counter()
    ours = simulate(with_weights(answer["model"]), rows_of_array, columns, array["unit_energy"])
    seconds = time.perf_counter() - start
    rows: list[dict[str, Any]] = [
        {
            "layer": layer["name"],
            "MACs": layer["macs"],
            "pJ of ZigZag": layer["mac_energy"],
            "pJ here": ours.get((layer["name"], layer["macs"]), 0.0),
            "same": "yes" if math.isclose(ours.get((layer["name"], layer["macs"]), 0.0), layer["mac_energy"]) else "no",
        }
        for layer in answer["layers"]
    ]
    facts = {
        "network": options.network,
        "layers": len(rows),
        "MAC energy agrees": sum(row["same"] == "yes" for row in rows),
        "seconds of ZigZag": round(answer["seconds"], 1),
        "seconds here": round(seconds, 2),
    }
    publish("zigzag", rows, facts)


if __name__ == "__main__":
    main()
