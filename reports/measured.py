"""A simulation beside times measured on a real device: error an operator, best scale, rank correlation.

Times are given by framework node or by kernel. A simulated kernel that stands for several nodes is compared with the
sum of their times; a time that no kernel has a place for, and a kernel without a time, are listed and not guessed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.errors import ReportError

_SHOWN = 20


def read_measured(path: Path) -> dict[str, float]:
    """Read microseconds by operator from a CSV of two columns; a first line that holds no number is a heading.

    Times of one name add up. Raises `ReportError` with the line that is wrong.
    """
    found: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = [(number, line) for number, line in enumerate(csv.reader(stream), 1) if any(map(str.strip, line))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: no readable CSV ({error})"
        raise ReportError(msg) from error
    for place, (number, line) in enumerate(lines):
        microseconds = _number(line[1]) if len(line) == 2 else None
        if microseconds is None and place == 0 and len(line) == 2:
            continue
        if microseconds is None or not (math.isfinite(microseconds) and microseconds >= 0):
            msg = f"{path}:{number}: found {','.join(line)[:80]!r}, expected an operator and its microseconds"
            raise ReportError(msg)
        name = line[0].strip()
        found[name] = found.get(name, 0.0) + microseconds
    if not found:
        msg = f"{path}: holds no time; expected lines of an operator and its microseconds"
        raise ReportError(msg)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def compare_measured(run: Mapping[str, Any], measured: Mapping[str, float]) -> dict[str, Any]:
    """Return the comparison of a run's performance with measured microseconds as plain data.

    ``scale`` is the factor on simulated times that makes the sum of squared relative errors least; ``rank_correlation``
    is Spearman's (scipy), which no scale changes; both are None where fewer than two operators have a time.
    Raises `ReportError` if no name is that of a node or operator of the run.
    """
    frequency = run["target"]["frequency_hz"]
    used: set[str] = set()
    rows = []
    for row in run["operators"]:
        names = _names(row, measured, used)
        if names:
            used.update(names)
            simulated = row["cycles"] / frequency * 1e6
            rows.append(_row(row, names, simulated, math.fsum(measured[name] for name in names)))
    if not rows:
        known = [node for row in run["operators"] for node in row["nodes"]][:5]
        msg = f"none of the {len(measured)} measured operators is in the model, whose nodes are {', '.join(known)}, ..."
        raise ReportError(msg)
    scale = _scale(rows)
    for entry in rows:
        fitted = None if scale is None else entry["simulated_us"] * scale
        entry["fitted_error"] = _relative(fitted, entry["measured_us"])
    return {
        "schema": "opatlas.measured",
        "version": 1,
        "model": run["model"],
        "target": run["target"]["name"],
        "operators": rows,
        "without_time": [row["order"] for row in run["operators"] if row["order"] not in {e["order"] for e in rows}],
        "without_operator": [name for name in measured if name not in used],
        "simulated_us": math.fsum(entry["simulated_us"] for entry in rows),
        "measured_us": math.fsum(entry["measured_us"] for entry in rows),
        "total_error": _relative(
            math.fsum(entry["simulated_us"] for entry in rows), math.fsum(entry["measured_us"] for entry in rows)
        ),
        "mean_absolute_error": _mean(rows, "error"),
        "scale": scale,
        "mean_absolute_error_after_scale": _mean(rows, "fitted_error"),
        "rank_correlation": _rank_correlation(rows),
    }


def _names(row: Mapping[str, Any], measured: Mapping[str, float], used: set[str]) -> list[str]:
    """Return the measured names that a row stands for: its nodes, with or without type, its place or its kernel."""
    whole = [str(row["order"]), "+".join(row["operators"])]
    nodes = [form for node in row["nodes"] for form in (node, node.rsplit(" (", 1)[0])]
    found = [name for name in dict.fromkeys(nodes) if name in measured and name not in used]
    return found or [name for name in whole if name in measured and name not in used][:1]


def _row(row: Mapping[str, Any], names: Sequence[str], simulated: float, time: float) -> dict[str, Any]:
    return {
        "order": row["order"],
        "operators": list(row["operators"]),
        "names": list(names),
        "simulated_us": simulated,
        "measured_us": time,
        "error": _relative(simulated, time),
    }


def _relative(value: float | None, truth: float) -> float | None:
    return None if value is None or not truth else (value - truth) / truth


def _scale(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Least squares of s x / y - 1 over the operators: s = sum(x / y) / sum((x / y) ** 2)."""
    ratios = [row["simulated_us"] / row["measured_us"] for row in rows if row["measured_us"]]
    squares = math.fsum(ratio * ratio for ratio in ratios)
    return math.fsum(ratios) / squares if len(ratios) > 1 and squares else None


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    errors = [abs(row[name]) for row in rows if row[name] is not None]
    return math.fsum(errors) / len(errors) if errors else None


def _rank_correlation(rows: Sequence[Mapping[str, Any]]) -> float | None:
    from scipy.stats import spearmanr

    pairs = [(row["simulated_us"], row["measured_us"]) for row in rows]
    if len(pairs) < 2 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return None
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def measured_text(data: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form of a comparison."""
    table = Table(box=None, pad_edge=False, title="measured and simulated", title_justify="left")
    for column in ("#", "operators", "measured, us", "simulated, us", "error", "after scale"):
        table.add_column(column, justify="left" if column == "operators" else "right", overflow="fold")
    largest = sorted(data["operators"], key=lambda row: (-row["measured_us"], row["order"]))
    for row in largest[:_SHOWN]:
        figures = f"{row['measured_us']:,.2f}", f"{row['simulated_us']:,.2f}"
        errors = _percent(row["error"]), _percent(row["fitted_error"])
        table.add_row(str(row["order"]), Text("+".join(row["operators"])), *figures, *errors)
    return Group(table, *(Text(line) for line in _lines(data)))


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    hidden = len(data["operators"]) - _SHOWN
    if hidden > 0:
        yield f"and {hidden} more"
    yield (
        f"in all {data['simulated_us']:,.2f} us simulated, {data['measured_us']:,.2f} us measured: "
        f"{_percent(data['total_error'])}; mean absolute error {_percent(data['mean_absolute_error'], sign='')}"
    )
    if data["scale"] is not None:
        after = _percent(data["mean_absolute_error_after_scale"], sign="")
        yield f"best scale on simulated times {data['scale']:.4g}: mean absolute error {after}"
    if data["rank_correlation"] is not None:
        yield f"rank correlation {data['rank_correlation']:.4f} (Spearman)"
    for label, entries in (("kernels", data["without_time"]), ("times", data["without_operator"])):
        if entries:
            more = ", ..." if len(entries) > _SHOWN else ""
            yield f"{label} without a partner: {', '.join(str(entry) for entry in entries[:_SHOWN])}{more}"


def _percent(value: float | None, sign: str = "+") -> str:
    return "" if value is None else f"{100 * value:{sign}.1f} %"
