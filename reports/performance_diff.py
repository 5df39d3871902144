"""What changed between two runs of one model, in all and by operator. Made from the JSON of two runs.

Operators are paired by the framework nodes that they stand for, and by their place among those of equal nodes: fusion
may have changed between the runs, so what has no partner is listed as gone or new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_TOTALS = (
    "cycles", "host_cycles", "seconds", "macs", "traffic_bytes", "compulsory_bytes", "peak_sram_bytes", "energy_pj",
    "average_watts", "energy_delay_joule_seconds",
)  # fmt: skip
_FIGURES = ("cycles", "traffic_bytes", "energy_pj")
_SHOWN = 20
_Key = tuple[tuple[str, ...], tuple[str, ...], int]


def compare_performance(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return totals of both runs with their change, and one row an operator, the largest change of cycles first."""
    before, after = _keyed(old["operators"]), _keyed(new["operators"])
    rows = [_row(key, before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after))]
    rows.sort(key=lambda row: -abs(row["cycles"]["change"]))
    changed = [row for row in rows if row["state"] != "both" or any(row[name]["change"] for name in _FIGURES)]
    totals = {name: _change(old["totals"][name], new["totals"][name]) for name in _TOTALS}
    return {
        "schema": "opatlas.performance_difference",
        "version": 1,
        "old": {"model": old["model"], "target": old["target"]["name"]},
        "new": {"model": new["model"], "target": new["target"]["name"]},
        "is_changed": bool(changed) or any(entry["change"] for entry in totals.values()),
        "totals": totals,
        "operators": changed,
        "same": len(rows) - len(changed),
    }


def _keyed(operators: Sequence[Mapping[str, Any]]) -> dict[_Key, Mapping[str, Any]]:
    found: dict[_Key, Mapping[str, Any]] = {}
    for row in operators:
        nodes = tuple(row["nodes"])
        # Nodes decide; what the compiler made by itself has none, and is told apart by its operators.
        names = () if nodes else tuple(row["operators"])
        place = 0
        while (nodes, names, place) in found:
            place += 1
        found[nodes, names, place] = row
    return found


def _row(key: _Key, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    one = new or old
    assert one is not None
    return {
        "operators": list(one["operators"]),
        "nodes": list(key[0]),
        "state": "both" if old and new else "new" if new else "gone",
        "device": {"old": old and old["device"], "new": new and new["device"]},
        **{name: _change(old[name] if old else 0, new[name] if new else 0) for name in _FIGURES},
    }


def _change(old: float, new: float) -> dict[str, float | None]:
    return {"old": old, "new": new, "change": new - old, "relative": (new - old) / old if old else None}


def performance_difference_text(difference: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form of a comparison."""
    old, new = difference["old"], difference["new"]
    parts: list[RenderableType] = [
        Text(f"from {old['model']} on {old['target']} to {new['model']} on {new['target']}"),
        _totals(difference["totals"]),
    ]
    rows = difference["operators"]
    if rows:
        parts.append(_operators(rows))
    rest = f", {len(rows) - _SHOWN} changed ones not shown" if len(rows) > _SHOWN else ""
    parts.append(Text(f"operators that did not change: {difference['same']}{rest}"))
    return Group(*parts)


def _totals(totals: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("in all")
    for column in ("old", "new", "change"):
        table.add_column(column, justify="right")
    for name, entry in totals.items():
        table.add_row(name.replace("_", " "), _number(entry["old"]), _number(entry["new"]), _relative(entry))
    return table


def _operators(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, title="operators by their change of cycles", title_justify="left")
    for column in ("operators", "nodes", "in"):
        table.add_column(column, overflow="fold")
    for column in ("cycles", "to", "change", "bytes", "energy"):
        table.add_column(column, justify="right")
    for row in rows[:_SHOWN]:
        cycles = row["cycles"]
        table.add_row(
            Text("+".join(row["operators"])),
            Text(" + ".join(row["nodes"])),
            row["state"],
            f"{cycles['old']:,}",
            f"{cycles['new']:,}",
            _relative(cycles),
            _relative(row["traffic_bytes"]),
            _relative(row["energy_pj"]),
        )
    return table


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _relative(entry: Mapping[str, Any]) -> Text:
    if not entry["change"]:
        return Text("=")
    style = "red" if entry["change"] > 0 else "green"
    return Text("new" if entry["relative"] is None else f"{100 * entry['relative']:+.2f} %", style=style)
