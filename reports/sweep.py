"""A sweep as a page with its Pareto front, CSV and JSON, all of them functions of the plain data of `opatlas sweep`."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.files import atomic_text
from reports.plots import Plot, layout, write_page
from reports.tabular import safe

FIGURES: Mapping[str, str] = {
    "cycles": "cycles",
    "seconds": "time, s",
    "energy_pj": "energy, pJ",
    "energy_delay_joule_seconds": "energy-delay product, J s",
    "average_watts": "average power, W",
    "traffic_bytes": "DRAM traffic, bytes",
    "peak_sram_bytes": "peak SRAM, bytes",
    "macs_utilization": "MACs used",
    "host_cycles": "host cycles",
    "target_sram_bytes": "SRAM there is, bytes",
    "target_cells": "cells of the array",
}
"""Figures of a point and how they are called; all but `macs_utilization` may be objectives, less being better."""
OBJECTIVES = tuple(name for name in FIGURES if name != "macs_utilization")
_SHOWN = 20


def write_sweep(sweep: Mapping[str, Any], folder: Path) -> Path:
    """Write `sweep.json`, `sweep.csv` and, last, `index.html` to a folder; return the page's path."""
    with atomic_text(folder / "sweep.json") as stream:
        stream.write(json.dumps(sweep, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    with atomic_text(folder / "sweep.csv") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*sweep["axes"], *FIGURES, "on_front", "refused"])
        for point in sweep["points"]:
            values = [safe(value) for value in point["point"].values()]
            figures = [point.get(name) for name in FIGURES]
            writer.writerow([*values, *figures, int(point["on_front"]), safe(point.get("refused", ""))])
    write_page(folder / "index.html", "sweep.html.jinja", {"front": _front(sweep)}, sweep=sweep, figures=FIGURES)
    return folder / "index.html"


def _front(sweep: Mapping[str, Any]) -> Plot:
    """Return all points by the first two objectives; those on the front are joined in the order of the first."""
    x, y = (*sweep["objectives"], *(name for name in OBJECTIVES if name not in sweep["objectives"]))[:2]
    done = [point for point in sweep["points"] if "refused" not in point]
    best = sorted((point for point in done if point["on_front"]), key=lambda point: (point[x], point[y]))
    shape = {"line": {"shape": "hv"}} if len(sweep["objectives"]) == 2 else {"mode": "markers"}
    return {
        "data": [
            _trace("points", [point for point in done if not point["on_front"]], x, y, {"mode": "markers"}),
            _trace("Pareto front", best, x, y, {"mode": "lines+markers", **shape}),
        ],
        "layout": layout(FIGURES[x], FIGURES[y], logarithmic=True),
    }


def _trace(name: str, points: Sequence[Mapping[str, Any]], x: str, y: str, shape: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": name,
        "x": [point[x] for point in points],
        "y": [point[y] for point in points],
        "text": [_label(point) for point in points],
        "hovertemplate": f"%{{text}}<br>{FIGURES[x]} %{{x:.4g}}<br>{FIGURES[y]} %{{y:.4g}}<extra></extra>",
        **shape,
    }


def _label(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point["point"].items())


def sweep_text(sweep: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form: the Pareto front."""
    objectives = sweep["objectives"]
    best = sorted((p for p in sweep["points"] if p["on_front"]), key=lambda p: [p[name] for name in objectives])
    refused = [point for point in sweep["points"] if "refused" in point]
    table = Table(box=None, pad_edge=False)
    for axis in sweep["axes"]:
        table.add_column(axis)
    shown = list(dict.fromkeys((*objectives, "cycles", "energy_pj", "traffic_bytes")))
    for name in shown:
        table.add_column(FIGURES[name], justify="right")
    for point in best[:_SHOWN]:
        figures = (point[name] for name in shown)
        table.add_row(
            *map(Text, point["point"].values()), *(f"{v:,}" if isinstance(v, int) else f"{v:.4g}" for v in figures)
        )
    head = f"{sweep['model']}: {len(sweep['points'])} points, {len(best)} on the front of {' and '.join(objectives)}"
    parts: list[RenderableType] = [Text(head), table]
    if len(best) > _SHOWN:
        parts.append(Text(f"and {len(best) - _SHOWN} more"))
    if refused:
        parts.append(Text(f"{len(refused)} points are refused, such as {_label(refused[0])}: {refused[0]['refused']}"))
    return Group(*parts)
