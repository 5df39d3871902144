"""What converters share: casts, numbers, shapes, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.frontends.assembly import (
    FAR,
    cast,
    concat,
    count,
    cut,
    dims_of,
    expand,
    expand_like,
    flat,
    number,
    operand,
    pick,
    rank_of,
    reshape,
    reshape_to,
    shape_of,
    size_value,
    squeeze,
    swap,
    transpose,
    unsqueeze,
    vector,
)
from compiler.frontends.torch.types import element_from

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Site
    from compiler.ir import ElementType

__all__ = [
    "FAR",
    "cast",
    "concat",
    "count",
    "cut",
    "dims_of",
    "expand",
    "expand_like",
    "flat",
    "number",
    "operand",
    "pick",
    "rank_of",
    "reshape",
    "reshape_to",
    "shape_of",
    "size_value",
    "squeeze",
    "swap",
    "transpose",
    "unsqueeze",
    "vector",
    "wanted_element",
]


def wanted_element(site: Site, default: ElementType) -> ElementType:
    """The argument ``dtype`` as an element type, or ``default`` where it is omitted."""
    found = site.get("dtype")
    return default if found is None else element_from(found)
