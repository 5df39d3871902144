"""One compiled model in a screenful: cost, placement, host operators, errors. Made from the JSON form of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_STYLES = {"accelerator": "green", "mixed": "yellow", "host": "yellow", "folded": "cyan"}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
COSTLIEST = 10
_BINARY = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


class HostOperator(Protocol):
    """An operator that the compiler left to the host."""

    @property
    def operator(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def location(self) -> str: ...


class Result(Protocol):
    """What the compiler reports of one run. Read only, and only by name: this package does not know the compiler."""

    @property
    def outputs(self) -> Sequence[Any] | None: ...

    @property
    def placement(self) -> str: ...

    @property
    def host_operators(self) -> Sequence[HostOperator]: ...

    @property
    def cycles(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    @property
    def traffic_bytes(self) -> int: ...

    @property
    def compulsory_bytes(self) -> int: ...

    @property
    def peak_sram_bytes(self) -> int: ...

    @property
    def energy_pj(self) -> float: ...

    @property
    def energy_by_component(self) -> Mapping[str, float]: ...

    @property
    def utilization(self) -> Mapping[str, float]: ...

    @property
    def operators_before(self) -> int: ...

    @property
    def operators_after(self) -> int: ...

    @property
    def stage_ms(self) -> Mapping[str, float]: ...


_FIGURES = (
    "placement",
    "cycles",
    "seconds",
    "traffic_bytes",
    "compulsory_bytes",
    "peak_sram_bytes",
    "energy_pj",
    "energy_by_component",
    "utilization",
    "operators_before",
    "operators_after",
)


def simulation_json(model: str, target: str, output_names: Sequence[str], result: Result) -> dict[str, Any]:
    """Return a result as plain data, the JSON of `opatlas simulate`. Version 1 of its fields."""
    return {
        "schema": 1,
        "model": model,
        "target": target,
        **{name: getattr(result, name) for name in _FIGURES},
        "host_operators": host_operators_json(result),
        "outputs": _described(output_names, result.outputs),
        "stage_ms": {name: round(ms, 3) for name, ms in result.stage_ms.items()},
    }


def host_operators_json(result: Result) -> list[dict[str, str]]:
    """Return the host operators as plain data."""
    return [
        {"operator": entry.operator, "reason": entry.reason, "location": entry.location}
        for entry in result.host_operators
    ]


def _described(names: Sequence[str], outputs: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    if outputs is None:
        return None
    return [
        {"name": name, "type": str(getattr(value, "dtype", type(value).__name__)), "shape": _shape(value)}
        for name, value in zip(names, outputs, strict=True)
    ]


def _shape(value: Any) -> list[int] | None:  # noqa: ANN401 - an array, a sequence or an empty optional
    return list(value.shape) if hasattr(value, "shape") else None


def rows_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows of equal keys as a table; columns of integers stand to the right."""
    table = Table(box=None, pad_edge=False)
    for column in rows[0] if rows else ():
        numeric = all(isinstance(row[column], int) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row.values()))
    return table


def with_prefix(value: float, unit: str) -> str:
    """Return a figure with a decimal prefix and four digits, such as `1.234 mJ`; `value` is in `unit`."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def bytes_text(value: int) -> str:
    """Return a number of bytes with its binary prefix beside it."""
    for factor, unit in _BINARY:
        if value >= factor:
            return f"{value:,} ({value / factor:.2f} {unit})"
    return f"{value:,}"


def simulation_text(data: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form of a simulation's JSON."""
    parts: list[RenderableType] = [
        Text.assemble(
            f"{data['model']} on {data['target']}: ", (data["placement"], _STYLES.get(data["placement"], ""))
        ),
        _cost(data),
        _energy(data),
    ]
    if data.get("kernels"):
        parts.append(_kernels(data["kernels"]))
    parts.append(_host(data["host_operators"]))
    if data.get("stage_ms"):
        stages = ", ".join(f"{name} {ms:.1f}" for name, ms in data["stage_ms"].items())
        parts.append(Text(f"milliseconds here: {stages}", style="dim"))
    return Group(*parts)


def located_text(data: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form of what `opatlas simulate --locate` found."""
    head = f"{data['model']} on {data['target']}: {data['compared']} values compared"
    first = data["first"]
    if first is None:
        return Text(f"{head}, all agree with onnxruntime", style="green")
    node = f"node '{first['node']}'" if first["node"] else "a node without a name"
    figures = (
        "" if first["max_abs"] is None else f": off by {first['max_abs']:.3g}, {first['max_abs_allowed']:.3g} allowed"
    )
    why = f" ({first['note']})" if first["note"] else ""
    return Text(f"{head}; the first that differs is '{first['name']}' of {node} ({first['operator']}){figures}{why}")


def _kernels(kernels: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, title=f"the costliest of {len(kernels)} kernels", title_justify="left")
    for column in ("operators", "cycles", "bound by", "MACs", "bytes", "where"):
        table.add_column(column, justify="right" if column in {"cycles", "MACs", "bytes"} else "left", overflow="fold")
    for kernel in kernels[:COSTLIEST]:
        table.add_row(
            Text(", ".join(kernel["operators"])),
            f"{kernel['cycles']:,}",
            kernel["bound"],
            f"{kernel['macs']:,}",
            f"{kernel['traffic_bytes']:,}",
            Text(kernel["location"]),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _cost(data: Mapping[str, Any]) -> Table:
    table = _table("cost", "")
    compulsory = data["compulsory_bytes"]
    ratio = f", {data['traffic_bytes'] / compulsory:.2f} of compulsory" if compulsory else ""
    table.add_row("cycles", f"{data['cycles']:,}")
    table.add_row("time", with_prefix(data["seconds"], "s"))
    table.add_row("DRAM traffic, bytes", bytes_text(data["traffic_bytes"]) + ratio)
    table.add_row("peak SRAM, bytes", bytes_text(data["peak_sram_bytes"]))
    if data["operators_before"]:  # a program file does not say
        table.add_row("operators", f"{data['operators_before']} imported, {data['operators_after']} compiled")
    for engine, share in data["utilization"].items():
        table.add_row(f"{engine} busy", f"{100 * share:.1f} %")
    return table


def _energy(data: Mapping[str, Any]) -> Table:
    table = _table("energy", "", "share")
    total = data["energy_pj"]
    table.add_row("in all", with_prefix(total * 1e-12, "J"), "100.0 %" if total else "")
    for component, energy in sorted(data["energy_by_component"].items(), key=lambda item: (-item[1], item[0])):
        if energy:
            table.add_row(component, with_prefix(energy * 1e-12, "J"), f"{100 * energy / total:.1f} %")
    return table


def _host(operators: Sequence[Mapping[str, str]]) -> RenderableType:
    if not operators:
        return Text("no operator on the host", style="green")
    table = Table(box=None, pad_edge=False)
    table.add_column("on the host")
    table.add_column("why", overflow="fold")
    table.add_column("where", overflow="fold")
    for entry in operators:
        table.add_row(Text(entry["operator"], style="yellow"), Text(entry["reason"]), Text(entry["location"]))
    return table


def check_text(data: Mapping[str, Any]) -> RenderableType:
    """Return the terminal form of a check's JSON: each output beside the reference, and what ran on the host."""
    table = Table(box=None, pad_edge=False)
    for column in ("output", "type", "max abs error", "allowed", "rms error", "allowed", ""):
        table.add_column(column, justify="left" if column in {"output", "type", ""} else "right")
    for output in data["outputs"]:
        verdict = Text("✓ agrees", style="green") if output["agrees"] else Text("✗ differs", style="bold red")
        figures = [output[name] for name in ("max_abs", "max_abs_allowed", "rms", "rms_allowed")]
        shown = ["" if figure is None else f"{figure:.3g}" for figure in figures]
        if output["note"]:
            verdict.append(f" {output['note']}", style="dim")
        table.add_row(output["name"], output["type"], *shown, verdict)
    head = Text.assemble(
        f"{data['model']} on {data['target']}: ", (data["placement"], _STYLES.get(data["placement"], ""))
    )
    said = [_said(one) for one in data.get("references", ())] if len(data.get("references", ())) > 1 else []
    return Group(head, table, *said, _host(data["host_operators"]))


def _said(reference: Mapping[str, Any]) -> Text:
    """One reference's word on all outputs."""
    if reference["agrees"] is None:
        return Text(f"{reference['name']}: not available: {reference['reason']}", style="dim")
    return Text(f"{reference['name']}: {'agrees' if reference['agrees'] else 'differs'}")
