"""A target as text: each figure with its source."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from compiler.ir import ElementType
from compiler.targets.schema import Part, Product, figures

if TYPE_CHECKING:
    from compiler.targets.schema import Target


def explain(target: Target) -> str:
    """Lines of text: what the target is, and every figure of it with where the figure is from."""
    lines = [f"{target.name}: {target.description}", ""]
    found = figures(target)
    shown = {key: _shown(value) for key, value in found.items()}
    width = max(len(key) for key in shown)
    previous = ""
    for key, text in shown.items():
        source = target.source(key) or ""
        note = "" if source == previous else f"   [{source}]"
        previous = source
        lines.append(f"  {key:<{width}}  {text}{note}")
    lines.append(f"  composites executed whole: {', '.join(target.composites) or 'none'}")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:  # noqa: ANN401 - any leaf of a description
    if isinstance(value, ElementType):
        return value.dtype.name
    if isinstance(value, Product):
        depth = f" ({value.depth} a cycle)" if value.depth > 1 else ""
        return f"{_shown(value.a)} x {_shown(value.b)} -> {_shown(value.accumulator)}{depth}"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Part):
        return str(value)
    if isinstance(value, tuple):
        return ", ".join(_shown(item) for item in value) or "none"
    return str(value)
