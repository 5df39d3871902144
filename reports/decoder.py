"""The performance view of a decoder as text: what `opatlas llm` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_MOST_OPERATORS = 8


def decoder_text(data: dict[str, Any]) -> RenderableType:
    """Totals, then blocks and the costliest operators of each phase; seconds, bytes and joules with prefixes."""
    load = data["load"]
    head = (
        f"{data['model']} on {data['target']}: {load['batch']} x {load['prompt']} tokens, "
        f"then {load['generate']} more, {load['dtype']}"
    )
    parts: list[RenderableType] = [Text(head), _totals(data)]
    for phase in ("prefill", "decode"):
        parts += [_blocks(phase, data[phase]), _operators(phase, data[phase])]
    hosts = sorted(
        {host for phase in ("prefill", "decode") for one in data[phase]["blocks"] for host in one["host_operators"]}
    )
    parts += [Text(f"on the host: {host}") for host in hosts] or [Text("no operator on the host")]
    return Group(*parts)


def _totals(data: dict[str, Any]) -> Table:
    table = _table("", "")
    least = data["decode_least_seconds"]
    rows = [
        ("time to first token", scaled(data["time_to_first_token_seconds"], "s")),
        ("tokens a second", f"{data['tokens_per_second']:.4g}"),
        (
            "time a token",
            f"{scaled(data['seconds_per_token'], 's')}, {data['seconds_per_token'] / least:.2f} of bytes / bandwidth",
        ),
        ("energy a token", scaled(data["energy_per_token_joules"], "J")),
        ("prefill bound by", data["prefill"]["bound"]),
        ("decode bound by", data["decode"]["bound"]),
        ("weights", scaled(data["weight_bytes"], "B")),
        ("KV cache at the end", scaled(data["kv_cache_bytes"], "B")),
        ("fits the target's DRAM", "yes" if data["fits_dram"] else "no"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _blocks(phase: str, data: dict[str, Any]) -> Table:
    table = _table(phase, "times", "time", "share", "bound by", "bytes", "of compulsory", "energy")
    for one in data["blocks"]:
        table.add_row(
            one["block"],
            str(one["count"]),
            scaled(one["seconds"], "s"),
            f"{one['share']:.1%}",
            one["bound"],
            scaled(one["traffic_bytes"], "B"),
            f"{one['traffic_bytes'] / one['compulsory_bytes']:.2f}",
            scaled(one["energy_joules"], "J"),
        )
    return table


def _operators(phase: str, data: dict[str, Any]) -> Table:
    table = _table(f"costliest of {phase}", "time", "share", "bound by", "MACs", "bytes")
    for one in data["operators"][:_MOST_OPERATORS]:
        table.add_row(
            one["operators"],
            scaled(one["seconds"], "s"),
            f"{one['share']:.1%}",
            one["bound"],
            scaled(one["macs"], ""),
            scaled(one["traffic_bytes"], "B"),
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, overflow="ellipsis", max_width=60)
    for name in others:
        table.add_column(name, justify="right")
    return table


def scaled(value: float, unit: str) -> str:
    """A number with four digits and the prefix of its thousands."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}".rstrip()
    return f"{value:.4g} {unit}".rstrip()


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
