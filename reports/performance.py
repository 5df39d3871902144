"""The performance of one run as a page, CSV and JSON, all of them functions of the plain data of `opatlas simulate`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from reports.errors import ReportError, UnknownSchema
from reports.execution import COSTLIEST, with_prefix
from reports.files import atomic_text
from reports.plots import COLOURS, Plot, layout, write_page
from reports.tabular import safe

SCHEMA, VERSION = "opatlas.performance", 1
FILES = ("index.html", "operators.csv", "performance.json")
TRACE = "timeline.json"
_ENGINES = ("macs", "matrix", "vector", "dma_in", "dma_out")
_COLUMNS = (
    ("#", "n"), ("operators", ""), ("nodes", ""), ("device", ""), ("runs", "n"), ("start", "n"), ("cycles", "n"),
    ("share", "n"), ("bound by", ""), ("MACs used", "n"), ("array busy", "n"), ("vector busy", "n"), ("MACs", "n"),
    ("traffic", "n"), ("compulsory", "n"), ("energy", "n"), ("reason", ""),
)  # fmt: skip
_PLAIN = (
    "order", "device", "runs", "start_cycle", "span_cycles", "cycles", "share", "bound", "macs", "operations",
    "read_bytes", "written_bytes", "traffic_bytes", "compulsory_bytes", "intensity", "energy_pj",
)  # fmt: skip


def write_performance(run: Mapping[str, Any], folder: Path, *, with_trace: bool = False) -> Path:
    """Write `performance.json`, `operators.csv` and, last, `index.html` to a folder; return the page's path.

    `with_trace`: the folder has the timeline, and the page links to it.
    """
    with atomic_text(folder / "performance.json") as stream:
        stream.write(json.dumps(run, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    with atomic_text(folder / "operators.csv") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows(_lines(run))
    plots = {"roofline": _roofline(run)}
    if run["occupancy"]:
        plots["occupancy"] = _occupancy(run)
    write_page(
        folder / "index.html",
        "performance.html.jinja",
        plots,
        run=run,
        tiles=_tiles(run),
        top=_top(run["operators"]),
        columns=_COLUMNS,
        causes=sorted({cause for idle in run["stalls"].values() for cause in idle}),
        energy=lambda picojoules: with_prefix(picojoules * 1e-12, "J"),
        trace=TRACE if with_trace else None,
    )
    return folder / "index.html"


def read_performance(path: Path) -> dict[str, Any]:
    """Read the data of a run from `performance.json` or the folder that holds it.

    Raises `ReportError` for a file that is none, `UnknownSchema` for one of a newer release.
    """
    file = path / "performance.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{file}: no readable performance of a run ({error})"
        raise ReportError(msg) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        msg = f"{file}: found no data of schema {SCHEMA}, expected what `opatlas simulate --report` writes"
        raise ReportError(msg)
    if data["version"] != VERSION:
        msg = f"{file}: version {data['version']} of {SCHEMA}, expected {VERSION}"
        raise UnknownSchema(msg)
    return data


def is_performance(path: Path) -> bool:
    """Tell the performance of a run from the records of a suite."""
    if path.is_dir():
        return (path / "performance.json").is_file()
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return f'"schema": "{SCHEMA}"'.encode() in stream.read(200)


def _lines(run: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield the table of operators, a header first."""
    components = list(run["totals"]["energy_by_component"])
    utilizations = [f"{name}_utilization" for name in _ENGINES]
    yield ["operators", "nodes", *_PLAIN, *utilizations, *(f"{name}_pj" for name in components), "reason"]
    for row in run["operators"]:
        yield [
            safe("+".join(row["operators"])),
            safe(" + ".join(row["nodes"])),
            *(row[name] for name in _PLAIN),
            *(row["utilization"].get(name) for name in _ENGINES),
            *(row["energy_by_component"].get(name) for name in components),
            safe(row["reason"]),
        ]


def _tiles(run: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    totals = run["totals"]
    compulsory, peak = totals["compulsory_bytes"], totals["peak_watts"]
    ratio = f"{totals['traffic_bytes'] / compulsory:.2f} of compulsory" if compulsory else "no compulsory traffic"
    bursts = totals["traffic_bytes"] / totals["bus_bytes"] if totals["bus_bytes"] else 1.0
    of_sram = totals["peak_sram_bytes"] / run["target"]["sram_bytes"]
    delay = with_prefix(totals["energy_delay_joule_seconds"], "J s")
    return [
        ("Time", with_prefix(totals["seconds"], "s"), f"{totals['cycles']:,} cycles"),
        ("Host", f"{totals['host_cycles']:,}", "modelled cycles of the host, in the time"),
        ("MACs used", f"{100 * run['utilization']['macs']:.1f} %", f"{totals['macs']:,} multiply-accumulates"),
        (
            "DRAM traffic",
            f"{totals['traffic_bytes'] / 2**20:.4g} MiB",
            f"{totals['traffic_bytes']:,} bytes, {ratio}; {100 * bursts:.1f} % of its bursts",
        ),
        (
            "Peak SRAM",
            f"{totals['peak_sram_bytes'] / 2**10:.4g} KiB",
            f"{totals['peak_sram_bytes']:,} bytes, {100 * of_sram:.1f} % of what there is",
        ),
        ("Energy", with_prefix(totals["energy_pj"] * 1e-12, "J"), f"energy-delay product {delay}"),
        (
            "Average power",
            with_prefix(totals["average_watts"], "W"),
            "peak power not known" if peak is None else f"dynamic power of the busiest cycle {with_prefix(peak, 'W')}",
        ),
    ]


def _top(operators: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    costliest = sorted(operators, key=lambda row: (-row["cycles"], row["order"]))[:COSTLIEST]
    together = accumulate(row["share"] for row in costliest)
    return [{**row, "together": share} for row, share in zip(costliest, together, strict=True)]


def _roofline(run: Mapping[str, Any]) -> Plot:
    """Return operations a cycle over operations a byte, with a roof for each rate that the target has."""
    drawn = [row for row in run["operators"] if row["operations"] and row["traffic_bytes"] and row["span_cycles"]]
    data: list[dict[str, Any]] = []
    for bound in COLOURS:
        rows = [row for row in drawn if row["bound"] == bound]
        if not rows:
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"bound by {bound}",
                "x": [row["intensity"] for row in rows],
                "y": [row["operations"] / (row["span_cycles"] * row["runs"]) for row in rows],
                "text": [f"#{row['order']} {'+'.join(row['operators'])}" for row in rows],
                "marker": {
                    "color": COLOURS[bound],
                    "size": [6 + 24 * row["share"] ** 0.5 for row in rows],
                },
                "hovertemplate": "%{text}<br>%{x:.3g} operations a byte<br>%{y:.4g} operations a cycle<extra></extra>",
            }
        )
    return {"data": data + _roofs(run["target"], [row["intensity"] for row in drawn]), "layout": _ROOFLINE}


_ROOFLINE = layout("operations a byte of DRAM", "operations a cycle", logarithmic=True)


def _roofs(target: Mapping[str, Any], intensities: Sequence[float]) -> list[dict[str, Any]]:
    bandwidth = target["dram_bytes_per_cycle"]
    peaks: dict[int, list[str]] = {target["vector_lanes"]: ["vector unit"]}
    for name, macs in target["macs_per_cycle"].items():
        peaks.setdefault(2 * macs, []).append(name)
    low = min(intensities, default=1.0) / 2
    high = max([*intensities, *(peak / (bandwidth or peak) for peak in peaks)]) * 2
    roofs = []
    for peak, names in sorted(peaks.items()):
        ridge = peak / bandwidth if bandwidth else low
        xs = sorted({low, min(max(ridge, low), high), high})
        roofs.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": " / ".join(names[:2]) + (", ..." if len(names) > 2 else ""),
                "x": xs,
                "y": [min(peak, x * bandwidth) if bandwidth else peak for x in xs],
                "line": {"dash": "dash", "width": 1.5},
                "hoverinfo": "name",
            }
        )
    return roofs


def _occupancy(run: Mapping[str, Any]) -> Plot:
    data: list[dict[str, Any]] = []
    several = len({entry["program"] for entry in run["occupancy"]}) > 1
    for entry in run["occupancy"]:
        name = "SRAM" if entry["memory"] == "sram" else "DRAM temporaries"
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{entry['program']}: {name}" if several else name,
                "x": entry["times"],
                "y": entry["bytes"],
                "line": {"shape": "hv"},
                **({"fill": "tozeroy"} if entry["memory"] == "sram" else {"visible": "legendonly"}),
            }
        )
        if entry["memory"] == "sram":
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "planned",
                    "x": [entry["times"][0], entry["times"][-1]],
                    "y": [entry["planned_bytes"]] * 2,
                    "line": {"dash": "dot"},
                    "showlegend": not several,
                }
            )
    return {"data": data, "layout": layout("cycles", "live bytes")}
