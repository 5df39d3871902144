"""Access by index: gather and scatter, choice, sorting, one-hot."""

from __future__ import annotations

from typing import Any

from compiler.frontends.onnx.converters.common import as_int64
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import Value
from compiler.ops.indexing import Gather, GatherElements, GatherNd, OneHot, ReverseSequence, ScatterElements, ScatterNd
from compiler.ops.selection import Compress, NonZero, TopK, Unique


def _axis(site: Site) -> int:
    return site.axis_of(site.input(0), site.attribute("axis"))


@converts("Gather")
def gather(site: Site) -> Value:
    """Slices along one axis, as numpy's take."""
    return site.b(Gather, site.input(0), site.input(1), axis=_axis(site))


@converts("GatherElements")
def gather_elements(site: Site) -> Value:
    """One element an index, along one axis."""
    return site.b(GatherElements, site.input(0), site.input(1), axis=_axis(site))


@converts("GatherND")
def gather_nd(site: Site) -> Value:
    """Index vectors in the last dim."""
    return site.b(GatherNd, site.input(0), site.input(1), batch_dims=site.attribute("batch_dims") or 0)


@converts("Scatter", until=10)
@converts("ScatterElements")
def scatter_elements(site: Site) -> Value:
    """One element an index, along one axis; how duplicates join is an attribute since version 16."""
    reduction = site.attribute("reduction") or "none"
    return site.b(ScatterElements, site.input(0), site.input(1), site.input(2), axis=_axis(site), reduction=reduction)


@converts("ScatterND")
def scatter_nd(site: Site) -> Value:
    """Slices at index vectors in the last dim."""
    reduction = site.attribute("reduction") or "none"
    return site.b(ScatterNd, site.input(0), site.input(1), site.input(2), reduction=reduction)


@converts("OneHot")
def one_hot(site: Site) -> Value:
    """The depth may be a vector of one element; indices may be floats."""
    axis = site.axis(site.attribute("axis"), site.rank(site.input(0)) + 1)
    return site.b(OneHot, site.input(0), site.folded(site.input(1)), site.input(2), axis=axis)


@converts("ReverseSequence")
def reverse_sequence(site: Site) -> Value:
    """The first elements of each sequence, as many as its length, in reverse order."""
    rank = site.rank(site.input(0))
    return site.b(
        ReverseSequence,
        site.input(0),
        site.input(1),
        batch_axis=site.axis(site.attribute("batch_axis"), rank),
        time_axis=site.axis(site.attribute("time_axis"), rank),
    )


@converts("Compress")
def compress(site: Site) -> Value:
    """Slices whose condition holds; without an axis of the flattened input."""
    x, axis = site.input(0), site.attribute("axis")
    attributes: dict[str, Any] = {} if axis is None else {"axis": site.axis_of(x, axis)}
    return site.b(Compress, x, site.input(1), **attributes)


@converts("NonZero")
def non_zero(site: Site) -> Value:
    """Positions of the elements that are not 0, a row a dim."""
    return site.b(NonZero, site.input(0))


@converts("Unique")
def unique(site: Site) -> Results:
    """Distinct elements, or slices along an axis; positions, inverse and counts."""
    axis = site.attribute("axis")
    attributes: dict[str, Any] = {} if axis is None else {"axis": site.axis_of(site.input(0), axis)}
    return site.b.op(Unique, [site.input(0)], sorted=bool(site.attribute("sorted")), **attributes)


@converts("TopK", until=9)
def top_k_by_attribute(site: Site) -> Results:
    """The number is an attribute."""
    k = site.integers(site.attribute("k"))
    return site.b.op(TopK, [site.input(0), k], axis=_axis(site), largest=True, sorted=True)


@converts("TopK", since=10)
def top_k(site: Site) -> Results:
    """The number is a vector of one element; the order is an attribute since version 11."""
    k = as_int64(site, site.input(1))
    largest, in_order = site.attribute("largest"), site.attribute("sorted")
    return site.b.op(
        TopK,
        [site.input(0), k],
        axis=_axis(site),
        largest=largest is None or bool(largest),
        sorted=in_order is None or bool(in_order),
    )
