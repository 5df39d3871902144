"""Tensors made of numbers: ranges, constants, identities, random ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.torch.converters.common import cast, number, operand, shape_of, vector
from compiler.frontends.torch.site import Site, converts
from compiler.ir import F64, I64, Value
from compiler.ops.creation import Fill, Range

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter

_FILLED: Final[dict[str, float]] = {"zeros": 0, "ones": 1, "empty": 0}
"""What is in them; an empty tensor may hold anything."""


def shape_wanted(site: Site) -> Value:
    """The sizes that a call names, or those of the tensor that it is like."""
    if "size" in site.arguments:
        return vector(site, list(site["size"]))
    return shape_of(site, site.value("self"))


def _filled(content: float) -> Converter:
    return lambda site: site.op(Fill, shape_wanted(site), number(site, content, site.element()))


for _name, _content in _FILLED.items():
    converts(_name, f"{_name}_like", f"new_{_name}")(_filled(_content))
converts("empty.memory_format", "empty_strided", "new_empty_strided", "empty_permuted")(_filled(0))


@converts("full", "full_like", "new_full")
def full(site: Site) -> Value:
    """One number throughout."""
    return site.op(Fill, shape_wanted(site), operand(site, site["fill_value"], site.element()))


@converts("scalar_tensor")
def scalar_tensor(site: Site) -> Value:
    """A tensor of rank 0."""
    return operand(site, site["s"], site.element())


@converts("arange", "arange.start", "arange.start_step", "range.step", "range")
def arange(site: Site) -> Value:
    """start, start + step, ... before the end."""
    element = site.element()
    start, end, step = site.get("start", 0), site["end"], site.get("step", 1)
    if any(isinstance(bound, Value) for bound in (start, end, step)):
        inner = F64 if element.is_float else I64
        found = site.op(Range, *[operand(site, bound, inner) for bound in (start, end, step)])
        return cast(site, found, element)
    if element is I64:
        # Here bounds lose their fractions first; other integers count with them.
        start, end, step = int(start), int(end), int(step)
    if site.operator.startswith("aten.range"):
        count = math.floor((end - start) / step) + 1
    else:
        count = max(math.ceil((end - start) / step), 0)
    if element.is_integer:
        return site.constant(int(start) + np.arange(count, dtype=np.int64) * int(step), element)
    return site.constant(start + np.arange(count) * float(step), element)


@converts("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor", "logspace")
def linspace(site: Site) -> Value:
    """So many numbers in equal steps, from both ends towards the middle, as torch computes them."""
    start, end, steps = site["start"], site["end"], site.integer(site["steps"])
    if isinstance(start, Value) or isinstance(end, Value):
        # torch's decomposition rounds integers otherwise than its kernel does.
        site.refuse("bounds that are tensors", "steps" if site.element().is_integer else None)
    if site.element().is_integer:
        start, end = int(start), int(end)
    places = np.arange(steps)
    step = (end - start) / (steps - 1) if steps > 1 else 0
    values = np.where(places < steps // 2, start + step * places, end - step * (steps - places - 1))
    if steps == 1:
        values = np.array([start], np.float64)
    if site.operator.startswith("aten.logspace"):
        values = np.power(site["base"], values)
    return site.constant(values, site.element())


@converts("eye", "eye.m")
def eye(site: Site) -> Value:
    """Ones on the diagonal."""
    rows = site.integer(site["n"])
    return site.constant(np.eye(rows, site.integer(site.get("m", rows))), site.element())


@converts("tril_indices", "triu_indices")
def triangle_indices(site: Site) -> Value:
    """Rows and columns of a triangle, row by row."""
    rows, columns, offset = site.integer(site["row"]), site.integer(site["col"]), site["offset"]
    find = np.tril_indices if site.operator.startswith("aten.tril") else np.triu_indices
    return site.constant(np.stack(find(rows, offset, columns)), site.element())
