"""How one input is drawn, as source: the call of a function of draws.py that a manifest's `Draw` means in a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generators.expand import applies, parse_cached
from opsets.elements import numpy_source
from opsets.manifest import Draw

_BY_DRAW = {
    "uniform": "uniform(rng, {shape}, {dtype}, {low}, {high})",
    "integers": "integers(rng, {shape}, {dtype}, {low}, {high})",
    "distinct": "distinct(rng, {shape}, {dtype}, {low}, {high}, {axis})",
    "sorted": "ascending(rng, {shape}, {dtype}, {low}, {high})",
    "mask": "mask(rng, {shape}, {dtype})",
    "choice": "choice(rng, {shape}, {dtype}, {values})",
    "bitmap": "bitmap(rng, {low}, {high})",
    "repeat": "repeat({shape}, {dtype}, {values})",
}


def draw_code(draw: Draw, data_class: str, element: str, shape: tuple[int, ...], names: Mapping[str, object]) -> str:
    """Source that draws one input of an element type and shape in a data class; ``names`` are for expressions.

    :raises ValueError: if a bound of the draw is an expression that the names do not go with.
    """

    def value(bound: Any) -> Any:  # noqa: ANN401 - a number or an expression
        return parse_cached(bound)(names) if isinstance(bound, str) else bound

    low, high = (value(bound) for bound in draw.range or (0, 1))
    parts = {"shape": repr(shape), "dtype": numpy_source(element), "low": low, "high": high}
    parts |= {
        "axis": -1 if draw.axis is None else value(draw.axis),
        "values": [value(one) for one in draw.values or ()],
    }
    if draw.draw != "class":
        code = _BY_DRAW[draw.draw].format(**parts)
    elif draw.range is not None and data_class in {"random", "empty"}:
        code = _BY_DRAW["uniform"].format(**parts)
    else:
        code = f"{_class_for(data_class, element, draw)}(rng, {shape!r}, {numpy_source(element)})"
        code = code if draw.range is None else f"within({code}, {low}, {high})"
    code = f"ordered({code})" if draw.ordered and data_class == "special" else code
    return f"nonzero({code})" if draw.nonzero else code


def _class_for(data_class: str, element: str, draw: Draw) -> str:
    """The draw of a data class for an input that may be of another type than the case's dtype."""
    if data_class == "empty" or not applies(data_class, element) or (draw.finite and data_class == "special"):
        return "random"
    return data_class
