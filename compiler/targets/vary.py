"""Targets with other figures: one figure by its dotted key, or by a short name with a unit."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidTarget
from compiler.targets.loader import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compiler.targets.schema import Target

_BINARY: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_DECIMAL: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_QUANTITY: Final = re.compile(r"([0-9.]+(?:e[+-]?\d+)?|\.?inf)\s*([kKMG]?)(i?B/s|i?B|Hz)?")
SHORT: Final[Mapping[str, str]] = {
    "sram": "sram.bytes",
    "bandwidth": "dram.bytes_per_cycle",
    "latency": "dram.latency_cycles",
    "rows": "matrix.rows",
    "columns": "matrix.columns",
    "dataflow": "matrix.dataflow",
    "lanes": "vector.lanes",
    "frequency": "frequency_hz",
}
"""Short names of the figures that are varied most."""


def vary(target: Target, changes: Mapping[str, str]) -> Target:
    """The target with other figures, given as text by dotted key or short name.

    Sizes take K, M, G and KiB, MB ..., all by 1024: memories are made so. ``bandwidth`` is bytes a cycle, or a rate
    such as 51.2GB/s (by 1000) at the target's frequency. SRAM of another size has banks of the same size. With another
    ``frequency`` the DRAM keeps its bytes a second and its latency in seconds, so that both change a cycle; figures of
    the DRAM that are given beside it are taken as they are given.
    Raises InvalidTarget for a key or value that a target cannot have.
    """
    description = target.model_dump(mode="python")
    named = {SHORT.get(key, key): value for key, value in changes.items()}
    if len(named) < len(changes):
        msg = f"{', '.join(changes)} name a figure twice"
        raise InvalidTarget(msg)
    for key in sorted(named, key=lambda key: (key != "frequency_hz", key)):
        _SETTERS.get(key, _set_plain)(description, key, named[key])
    return validate(description, f"{target.name} with {', '.join(f'{k}={v}' for k, v in changes.items())}")


def _quantity(key: str, text: str, prefixes: Mapping[str, int], units: tuple[str, ...]) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or (match[3] or "").replace("i", "") not in {"", *units}:
        expected = f"a number, with a unit {' or '.join(units)} if any" if units else "a number"
        msg = f"{key}={text}: expected {expected}"
        raise InvalidTarget(msg)
    try:
        number = math.inf if match[1].endswith("inf") else float(match[1])
    except ValueError as error:
        msg = f"{key}={text}: expected a number"
        raise InvalidTarget(msg) from error
    return number * prefixes[match[2].upper()]


def _whole(number: float) -> float | int:
    return int(number) if number == math.floor(number) and math.isfinite(number) else number


def _set_bytes(description: dict[str, Any], key: str, text: str) -> None:
    sram = description["sram"]
    bank = sram["bytes"] // sram["banks"]
    size = _whole(_quantity(key, text, _BINARY, ("B",)))
    sram["bytes"] = size
    if isinstance(size, int):
        sram["banks"] = size // bank if size and size % bank == 0 else math.gcd(size, sram["banks"]) or 1


def _set_bandwidth(description: dict[str, Any], key: str, text: str) -> None:
    is_rate = text.strip().endswith("B/s")
    number = _quantity(key, text, _DECIMAL, ("B/s",))
    description["dram"]["bytes_per_cycle"] = number / description["frequency_hz"] if is_rate else number


def _set_frequency(description: dict[str, Any], key: str, text: str) -> None:
    frequency = _whole(_quantity(key, text, _DECIMAL, ("Hz",)))
    dram, before = description["dram"], description["frequency_hz"]
    if frequency > 0:
        dram["bytes_per_cycle"] *= before / frequency
        dram["latency_cycles"] = math.ceil(dram["latency_cycles"] * frequency / before)
    description["frequency_hz"] = frequency


def _set_dataflow(description: dict[str, Any], _key: str, text: str) -> None:
    """The array works in this dataflow alone."""
    description["matrix"] |= {"dataflow": text, "alternatives": ()}


def _set_plain(description: dict[str, Any], key: str, text: str) -> None:
    place: Any = description
    *path, last = key.split(".")
    for part in path:
        place = place.get(part) if isinstance(place, dict) else None
    if not isinstance(place, dict) or last not in place or isinstance(place[last], (dict, list, tuple)):
        msg = f"'{key}' is no figure of a target; expected one of {', '.join(SHORT)}, or a key such as dram.burst_bytes"
        raise InvalidTarget(msg)
    if isinstance(place[last], bool):
        place[last] = {"true": True, "false": False}.get(text.lower(), text)
    elif isinstance(place[last], (int, float)):
        place[last] = _whole(_quantity(key, text, _BINARY, ("B",)))
    else:
        place[last] = text


_SETTERS: Final[Mapping[str, Callable[[dict[str, Any], str, str], None]]] = {
    "sram.bytes": _set_bytes,
    "dram.bytes_per_cycle": _set_bandwidth,
    "frequency_hz": _set_frequency,
    "matrix.dataflow": _set_dataflow,
}
