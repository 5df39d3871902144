"""Runs in SCALE-Sim's environment: layers in, cycles and SRAM counts out.

`whole` simulates through the package's command class, memory and all; `engine` asks the package's systolic compute
classes alone for their demand matrices, whose rows are cycles, which is as exact and much faster.
"""

import contextlib
import csv
import io
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {columns}
IfmapSramSzkB = 65536
FilterSramSzkB = 65536
OfmapSramSzkB = 65536
IfmapOffset = 0
FilterOffset = 100000000
OfmapOffset = 200000000
Dataflow = {dataflow}
Bandwidth = 10
ReadRequestBuffer = 512
WriteRequestBuffer = 512
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = {sparse}
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""
HEADER = "Layer,IFMAP Height,IFMAP Width,Filter Height,Filter Width,Channels,Num Filter,Strides,Sparsity,\n"


def files(question, folder):
    sparse = any(layer["ratio"] != [1, 1] for layer in question["layers"])
    (folder / "run.cfg").write_text(CONFIG.format(**question, sparse=sparse))
    with (folder / "net.csv").open("w") as stream:
        stream.write(HEADER)
        for number, layer in enumerate(question["layers"]):
            sizes = [layer[key] for key in ("height", "width", "filter", "filter", "channels", "filters", "stride")]
            stream.write(f"L{number}," + ",".join(map(str, sizes)) + ",{}:{},\n".format(*layer["ratio"]))
    # The layout is not used, and read all the same.
    layout = "Layer" + ",x" * 23 + ",\n" + "".join(f"L{n}" + ",1" * 23 + ",\n" for n in range(len(question["layers"])))
    (folder / "layout.csv").write_text(layout)


def whole(question):
    from scalesim.scale_sim import scalesim

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files(question, folder)
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            run = scalesim(
                save_disk_space=True,
                verbose=False,
                config=str(folder / "run.cfg"),
                topology=str(folder / "net.csv"),
                layout=str(folder / "layout.csv"),
            )
            run.run_scale(top_path=name)
        seconds = time.perf_counter() - start
        tables = [
            list(csv.DictReader((folder / "run" / f"{report}.csv").open(), skipinitialspace=True))
            for report in ("COMPUTE_REPORT", "DETAILED_ACCESS_REPORT")
        ]
    layers = [
        {
            "cycles": int(float(compute["Total Cycles"])),
            "utilization": float(compute["Overall Util %"]) / 100,
            "reads": [int(float(access[f"SRAM {name} Reads"])) for name in ("IFMAP", "Filter")],
            "writes": int(float(access["SRAM OFMAP Writes"])),
        }
        for compute, access in zip(*tables)
    ]
    return layers, seconds


def engine(question):
    from scalesim.compute.operand_matrix import operand_matrix
    from scalesim.compute.systolic_compute_is import systolic_compute_is
    from scalesim.compute.systolic_compute_os import systolic_compute_os
    from scalesim.compute.systolic_compute_ws import systolic_compute_ws
    from scalesim.layout_utils import layouts
    from scalesim.scale_config import scale_config
    from scalesim.topology_utils import topologies

    kinds = {"os": systolic_compute_os, "ws": systolic_compute_ws, "is": systolic_compute_is}
    start = time.perf_counter()
    layers = []
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(name)
        files(question, folder)
        config = scale_config()
        config.read_conf_file(str(folder / "run.cfg"))
        topology = topologies()
        topology.load_arrays(str(folder / "net.csv"))
        for number in range(len(question["layers"])):
            operands = operand_matrix()
            operands.set_params(layer_id=number, config_obj=config, topoutil_obj=topology, layoututil_obj=layouts())
            matrices = {
                f"{part}_op_mat": getattr(operands, f"get_{part}_matrix")()[1] for part in ("ifmap", "filter", "ofmap")
            }
            more = {}
            if question["dataflow"] == "ws":
                n, m = topology.get_layer_sparsity_ratio(number)
                more = {
                    "sparsity_ratio_N": n,
                    "sparsity_ratio_M": m,
                    "ifmap_op_mat_original": operands.ifmap_addr_matrix_original,
                    "sparsity_filter_array": operands.sparse_filter_array,
                }
            system = kinds[question["dataflow"]]()
            system.set_params(config_obj=config, **matrices, **more)
            system.create_demand_matrices()
            cycles = int(np.shape(system.ofmap_demand_matrix)[0]) - 1
            macs = topology.get_layer_num_ofmap_px(number) * topology.get_layer_window_size(number)
            layers.append(
                {
                    "cycles": cycles,
                    "utilization": macs / (cycles * question["rows"] * question["columns"]),
                    "reads": [int(system.get_ifmap_requests()), int(system.get_filter_requests())],
                    "writes": int(system.get_ofmap_requests()),
                }
            )
    return layers, time.perf_counter() - start


def main():
    question = json.load(sys.stdin)
    layers, seconds = {"whole": whole, "engine": engine}[question["mode"]](question)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"layers": layers, "seconds": seconds, "peak_bytes": peak}))


main()
