"""One test: what is tried, told apart from every other by a stable id."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from opsets import Item

Frozen = bool | int | float | str | tuple[Any, ...] | None
Pairs = tuple[tuple[str, Frozen], ...]
Shapes = tuple[tuple[str, tuple[int, ...] | None], ...]

_LONGEST = 180
"""Characters of an id, so that a file name made from it stays under the 255 bytes of common file systems."""
_UNSAFE = re.compile(r"[^\w.,=+~-]")


@dataclass(frozen=True, slots=True)
class Case:
    """Framework x operator x version x element type x attributes x shapes x data class x input mode.

    ``attributes`` are those that the node sets, ``values`` inputs given by value and free parameters of the template,
    ``types`` the type parameters beside the one that ``dtype`` stands for, ``shapes`` the drawn inputs in order, None
    where an optional one is left out.
    """

    framework: str
    domain: str
    operator: str
    since_version: int
    opset: int
    dtype: str
    types: tuple[tuple[str, str], ...]
    attributes: Pairs
    values: Pairs
    shapes: Shapes
    outputs: int
    data_class: str
    input_mode: str
    id: str

    def __str__(self) -> str:
        return self.id

    @property
    def seed(self) -> int:
        """Seed of the case's draws: 64 bits of a hash of its id, so that neither order nor other cases matter."""
        return int.from_bytes(hashlib.blake2b(self.id.encode(), digest_size=8).digest(), "big")

    @property
    def settings(self) -> dict[str, Frozen]:
        """Attributes, inputs by value and parameters, as records show them."""
        return {**dict(self.attributes), **dict(self.values)}

    @property
    def shape_class(self) -> str:
        """``empty``, ``scalar``, ``broadcast`` (drawn inputs of different shapes) or ``plain``."""
        dims = [shape for _, shape in self.shapes if shape is not None]
        if any(0 in shape for shape in dims):
            return "empty"
        if any(not shape for shape in dims):
            return "scalar"
        return "broadcast" if len(set(dims)) > 1 else "plain"


def case_id(item: Item, dtype: str, parts: dict[str, Any]) -> str:
    """The id: every value that makes the case, in a fixed order, in characters that file names and pytest take."""
    domain = "" if item.domain == "ai.onnx" else f"-{item.domain}"
    pieces = [f"{item.framework}{domain}-{item.operator}-{item.since_version}-{dtype}"]
    pieces += [f"{name}={value}" for name, value in parts["types"]]
    pieces += [
        f"{name}={_text(value)}" for name, value in (*parts["attributes"], *parts["values"]) if value is not None
    ]
    if parts["outputs"] != item.signature.min_outputs:
        pieces.append(f"outputs={parts['outputs']}")
    shapes = [dims for _, dims in parts["shapes"]]
    if shapes:
        pieces.append("_".join("none" if dims is None else "x".join(map(str, dims)) or "scalar" for dims in shapes))
    pieces += [parts["data_class"], parts["input_mode"]]
    text = _UNSAFE.sub(lambda found: f"~{ord(found[0]):02x}", "-".join(pieces))
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
    return f"{text[: _LONGEST - 40]}~{digest}-{parts['data_class']}-{parts['input_mode']}"


def _text(value: Frozen) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value)) or "empty"
    return f"{value:g}" if isinstance(value, float) else str(value)
