"""Runs in Vela's environment: a TFLite file in, cycles and bytes of each layer and of the network out."""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    question = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as name:
        command = [
            str(Path(sys.executable).with_name("vela")), question["model"], "--output-dir", name,
            "--accelerator-config", question["accelerator"], "--config", "Arm/vela.ini",
            "--system-config", "Ethos_U55_High_End_Embedded", "--memory-mode", "Shared_Sram", "--verbose-performance",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
        (layers,) = Path(name).glob("*per-layer.csv")
        (summary,) = Path(name).glob("*summary*.csv")
        answer = {name: list(csv.DictReader(path.open())) for name, path in (("layers", layers), ("summary", summary))}
    print(json.dumps(answer))


main()
