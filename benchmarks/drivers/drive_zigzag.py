"""Runs in ZigZag's environment: one of its networks on one of its accelerators; energies and cycles a layer out."""

import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path

import yaml
import zigzag
from zigzag.api import get_hardware_performance_zigzag


def main():
    question = json.load(sys.stdin)
    inputs = Path(zigzag.__file__).parent / "inputs"
    model = str(inputs / "workload" / f"{question['network']}.onnx")
    hardware = inputs / "hardware" / f"{question['accelerator']}.yaml"
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        found = get_hardware_performance_zigzag(
            model,
            str(hardware),
            str(inputs / "mapping" / f"{question['accelerator']}.yaml"),
            dump_folder=folder,
            lpf_limit=question["lpf_limit"],
            nb_spatial_mappings_generated=1,
            loma_show_progress_bar=False,
        )
    layers = [
        {"name": str(cost.layer), "macs": cost.layer.total_mac_count, "mac_energy": cost.mac_energy}
        for cost, _ in found[2][0][1]
    ]
    array = yaml.safe_load(hardware.read_text())["operational_array"]
    answer = {"model": model, "layers": layers, "seconds": time.perf_counter() - start, "array": array}
    print(json.dumps(answer))


main()
