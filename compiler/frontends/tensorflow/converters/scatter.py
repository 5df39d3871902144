"""Writes at places that data decides, and reductions by segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import ml_dtypes
import numpy as np

from compiler.frontends.assembly import cast, cut, number, reshape, unsqueeze
from compiler.frontends.tensorflow.site import Converter, Site, converts
from compiler.ops.compare import Lt, Select
from compiler.ops.compose import Emit, widened
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Neg
from compiler.ops.indexing import Gather, ScatterNd

if TYPE_CHECKING:
    from compiler.ir import Array, ElementType, Value


@converts("ScatterNd")
def scatter_nd(site: Site) -> Value:
    """Zeros of a shape with updates added at coordinates."""
    indices, updates, _ = site.values
    zeros = site.op(Fill, site.shape(2), number(site, 0, updates.tensor.element))
    return site.op(ScatterNd, zeros, indices, updates, reduction="add")


_REDUCTIONS: Final = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "ScatterNdNonAliasingAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}


@converts(*_REDUCTIONS)
def tensor_scatter(site: Site) -> Value:
    """A copy with updates at coordinates; several for one place join in turn, the last of them stays."""
    return site.op(ScatterNd, *site.values, reduction=_REDUCTIONS[site.operator])


@converts("TensorScatterSub")
def tensor_scatter_sub(site: Site) -> Value:
    """A copy with updates taken off."""
    x, indices, updates = site.values
    return site.op(ScatterNd, x, indices, site.op(Neg, updates), reduction="add")


@converts("InplaceUpdate", "InplaceAdd", "InplaceSub")
def rows_in_place(site: Site) -> Value:
    """A copy with rows replaced, added to or taken from. Rows that come twice are done in turn."""
    x, places, rows = site.values
    indices = unsqueeze(site, places, (1,))
    if site.operator == "InplaceUpdate":
        return site.op(ScatterNd, x, indices, rows)
    return site.op(
        ScatterNd, x, indices, site.op(Neg, rows) if site.operator == "InplaceSub" else rows, reduction="add"
    )


@converts("SparseToDense")
def sparse_to_dense(site: Site) -> Value:
    """A default everywhere but at coordinates."""
    indices, _, values, default = site.values
    rank, count = site.rank(indices), site.size(site.value(1), 0)
    base = site.op(Fill, site.shape(1), default)
    if rank < 2:
        indices = reshape(site, indices, [-1, 1] if rank else [1, count])
    if site.rank(values) == 0:
        values = site.op(Fill, site.integers(site.size(indices, 0)), values)
    return site.op(ScatterNd, base, indices, values)


def least_of(element: ElementType) -> Array:
    """The least finite number of a type."""
    info = ml_dtypes.finfo(element.dtype) if element.is_float else np.iinfo(element.dtype)  # type: ignore[no-untyped-call]
    return np.asarray(info.min, element.dtype)


def greatest_of(element: ElementType) -> Array:
    """The greatest finite number of a type."""
    info = ml_dtypes.finfo(element.dtype) if element.is_float else np.iinfo(element.dtype)  # type: ignore[no-untyped-call]
    return np.asarray(info.max, element.dtype)


def _start(kind: str, element: ElementType) -> Array:
    """What a segment without elements gives."""
    if kind == "max":
        return least_of(element)
    if kind == "min":
        return greatest_of(element)
    return np.asarray(1 if kind == "mul" else 0, element.dtype)


def _flattened(site: Site, data: Value, ids: Value) -> tuple[Value, Value]:
    """Rows and a vector of their segments."""
    lead = site.rank(ids)
    if lead == 1:
        return data, ids
    rest = [site.size(data, axis) for axis in range(lead, site.rank(data))]
    count = int(np.prod(site.sizes(ids)))
    return reshape(site, data, [count, *rest]), reshape(site, ids, [count])


def _segments(site: Site, data: Value, ids: Value, count: int, kind: str) -> Value:
    """Rows joined by segment; negative segments go nowhere."""
    rows, places = _flattened(site, data, ids)
    element = rows.tensor.element
    shape = (count + 1, *site.sizes(rows)[1:])
    start = site.b.constant(np.full(shape, _start(kind, element)))
    outside = site.op(Lt, places, number(site, 0, places.tensor.element))
    places = site.op(Select, outside, number(site, count, places.tensor.element), places)
    joined = site.op(ScatterNd, start, unsqueeze(site, places, (1,)), rows, reduction=kind)
    return cut(site, joined, 0, 0, count)


_UNSORTED: Final = {"Sum": "add", "Prod": "mul", "Max": "max", "Min": "min"}


def _unsorted(kind: str) -> Converter:
    def convert(site: Site) -> Value:
        return _segments(site, site.value(0), site.value(1), site.whole(2, "the number of segments"), kind)

    return convert


def _sorted(kind: str) -> Converter:
    def convert(site: Site) -> Value:
        ids = site.data(1, "the segments").reshape(-1)
        count = int(ids[-1]) + 1 if ids.size else 0
        found = _segments(site, site.value(0), site.value(1), count, kind)
        if kind in {"add", "mul"}:
            return found
        return _without_gaps(site, found, ids, count)

    return convert


def _without_gaps(site: Site, found: Value, ids: Array, count: int) -> Value:
    """Segments without elements are 0."""
    held = np.isin(np.arange(count), ids)
    if held.all():
        return found
    mask = site.b.constant(held.reshape(count, *[1] * (site.rank(found) - 1)))
    return site.op(Select, mask, found, number(site, 0, found.tensor.element))


for _name, _kind in _UNSORTED.items():
    converts(f"UnsortedSegment{_name}", f"Segment{_name}V2")(_unsorted(_kind))
    converts(f"Segment{_name}")(_sorted(_kind))


def _averaged(site: Site, rows: Value, count: int, *, root: bool = False) -> Value:
    """Sums by sorted segments over their number of rows, or its root; segments without rows are 0."""
    ids = site.data(len(site.inputs) - 1 if site.operator.startswith("Segment") else 2, "the segments").reshape(-1)
    element = rows.tensor.element
    wide = widened(element)
    places = site.b.constant(ids.astype(np.int64))
    total = _segments(site, cast(site, rows, wide), places, count, "add")
    numbers = np.maximum(np.bincount(ids[ids >= 0], minlength=count)[:count], 1).astype(np.float64)
    numbers = np.sqrt(numbers) if root else numbers
    divisor = site.constant(numbers.reshape(count, *[1] * (site.rank(rows) - 1)), wide)
    return cast(site, Emit(site.b)("div", total, divisor), element)


@converts("SegmentMean")
def segment_mean(site: Site) -> Value:
    """The mean of each segment's rows."""
    ids = site.data(1, "the segments").reshape(-1)
    return _averaged(site, site.value(0), int(ids[-1]) + 1 if ids.size else 0)


_SPARSE: Final = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@converts(*_SPARSE, *(f"{name}WithNumSegments" for name in _SPARSE))
def sparse_segment(site: Site) -> Value:
    """Rows taken from a table, joined by sorted segments."""
    rows = site.op(Gather, site.value(0), site.value(1), axis=0)
    kind = site.operator.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    if site.operator.endswith("WithNumSegments"):
        count = site.whole(3, "the number of segments")
    else:
        ids = site.data(2, "the segments").reshape(-1)
        count = int(ids[-1]) + 1 if ids.size else 0
    if kind == "Sum":
        element = rows.tensor.element
        wide = cast(site, rows, widened(element))
        return cast(site, _segments(site, wide, site.value(2), count, "add"), element)
    return _averaged(site, rows, count, root=kind == "SqrtN")
