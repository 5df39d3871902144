"""Padding around dims, from the last one on, as torch counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import number, rank_of, vector
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.padding import Pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.torch.site import Converter


def padded(site: Site, x: Value, margins: Sequence[Any], mode: str, content: float = 0) -> Value:
    """The tensor with margins: low and high of the last dim, of the one before, and so on."""
    rank, dims = rank_of(x), len(margins) // 2
    low: list[Any] = [0] * (rank - dims) + [margins[2 * (dims - 1 - i)] for i in range(dims)]
    high: list[Any] = [0] * (rank - dims) + [margins[2 * (dims - 1 - i) + 1] for i in range(dims)]
    if all(isinstance(margin, int) and margin == 0 for margin in (*low, *high)):
        return x
    fill = number(site, content, x.tensor.element) if mode == "constant" else None
    return site.op(Pad, x, vector(site, [*low, *high]), fill, mode=mode)


@converts("constant_pad_nd")
def constant_pad(site: Site) -> Value:
    """A number around; negative margins cut."""
    return padded(site, site.value("self"), site["pad"], "constant", site["value"])


_MODES: Final = {"reflection": "reflect", "replication": "edge"}


def _pad(mode: str) -> Converter:
    return lambda site: padded(site, site.value("self"), site["padding"], mode)


for _name, _mode in _MODES.items():
    converts(*[f"{_name}_pad{dims}d" for dims in (1, 2, 3)])(_pad(_mode))


@converts("_pad_circular")
def circular(site: Site) -> Value:
    """The other end around."""
    return padded(site, site.value("self"), site["pad"], "wrap")


_NAMES: Final = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@converts("pad", "_pad_enum")
def pad(site: Site) -> Value:
    """By the name of the mode."""
    found = site.get("mode", "constant")
    mode = _NAMES[found] if isinstance(found, str) else ("constant", "reflect", "edge", "wrap")[found]
    return padded(site, site.value("self"), site["pad"], mode, site.get("value", 0))
