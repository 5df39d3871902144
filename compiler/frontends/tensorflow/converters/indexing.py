"""Reads at places that data decides, searching and sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.assembly import cast, concat, number, pick, reshape, transpose, unsqueeze
from compiler.frontends.tensorflow.converters.common import axis_of
from compiler.frontends.tensorflow.converters.source import variable
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ir import I32, I64, Constant, Value
from compiler.ops.compare import Eq, Le, Lt, Select
from compiler.ops.compose import Emit
from compiler.ops.elementwise import Div, Mod
from compiler.ops.indexing import Gather, GatherElements, GatherNd, OneHot
from compiler.ops.logic import Not
from compiler.ops.movement import Transpose
from compiler.ops.reduce import ReduceOr, ReduceSum
from compiler.ops.selection import Compress, NonZero, TopK, Unique

if TYPE_CHECKING:
    from compiler.ir import ElementType


@converts("Gather")
def gather_rows(site: Site) -> Value:
    """Slices along the first dim."""
    return site.folded(site.op(Gather, site.value(0), site.value(1), axis=0))


@converts("GatherV2")
def gather(site: Site) -> Value:
    """Slices along an axis, for each batch entry its own."""
    x, indices = site.value(0), site.value(1)
    axis = axis_of(site, site.whole(2, "the axis"), site.rank(x))
    return _gathered(site, x, indices, axis, int(site.attr("batch_dims")))


def _gathered(site: Site, x: Value, indices: Value, axis: int, batch: int) -> Value:
    batch = axis_of(site, batch, site.rank(indices) + 1) if batch < 0 else batch
    if batch == 0:
        return site.folded(site.op(Gather, x, indices, axis=axis))
    rank, many = site.rank(x), site.rank(indices) - batch
    between, behind = list(range(batch, axis)), list(range(axis + 1, rank))
    moved = transpose(site, x, [*range(batch), axis, *between, *behind])
    found = site.op(GatherNd, moved, unsqueeze(site, indices, (batch + many,)), batch_dims=batch)
    first = batch + many
    order = [
        *range(batch),
        *range(first, first + len(between)),
        *range(batch, first),
        *range(first + len(between), first + len(between) + len(behind)),
    ]
    return transpose(site, found, order)


@converts("GatherNd")
def gather_nd(site: Site) -> Value:
    """Slices at coordinates."""
    return site.op(GatherNd, site.value(0), site.value(1))


@converts("ResourceGather")
def gather_variable(site: Site) -> Value:
    """Slices of a variable along the dim behind the batch."""
    table = site.b.constant(Constant.of(variable(site, 0).read(site.attr("dtype"))))
    batch = int(site.attr("batch_dims"))
    return _gathered(site, table, site.value(1), batch, batch)


@converts("ResourceGatherNd")
def gather_nd_variable(site: Site) -> Value:
    """Slices of a variable at coordinates."""
    table = site.b.constant(Constant.of(variable(site, 0).read(site.attr("dtype"))))
    return site.op(GatherNd, table, site.value(1))


@converts("OneHot")
def one_hot(site: Site) -> Value:
    """``on`` at each index, ``off`` elsewhere; indices outside, negative ones too, have no place."""
    indices, depth, on, off = site.values
    element = indices.tensor.element
    if element.dtype.kind == "i":
        far = cast(site, depth, element)
        indices = site.op(Select, site.op(Lt, indices, number(site, 0, element)), far, indices)
    axis = int(site.attr("axis"))
    values = concat(site, [unsqueeze(site, value, (0,)) for value in (off, on)], 0)
    return site.op(OneHot, indices, site.as_int64(depth), values, axis=axis)


@converts("Where")
def where(site: Site) -> Value:
    """The coordinates of what is not 0, a row each."""
    return site.op(Transpose, site.op(NonZero, site.value(0)), permutation=(1, 0))


@converts("TopKV2")
def top_k(site: Site) -> Results:
    """The greatest along the last dim and their positions."""
    values, places = site.b.op(TopK, [site.value(0), reshape(site, site.shape(1), [1])], axis=-1).results
    return [values, cast(site, places, site.element(1))]


@converts("NthElement")
def nth_element(site: Site) -> Value:
    """The element that would stand at place n of the sorted last dim."""
    x, n = site.value(0), site.whole(1, "the place")
    values, _ = site.b.op(TopK, [x, site.integers(n + 1)], axis=-1, largest=bool(site.attr("reverse"))).results
    return pick(site, values, site.rank(x) - 1, n)


@converts("InTopK", "InTopKV2")
def in_top_k(site: Site) -> Value:
    """Whether fewer than k classes are above the target; false where a prediction is not finite."""
    predictions, targets = site.value(0), site.as_int64(site.value(1))
    e = Emit(site.b)
    k = site.as_int64(site.value(2)) if site.operator == "InTopKV2" else site.constant(int(site.attr("k")), I64)
    classes = site.size(predictions, 1)
    inside = e("and", e("ge", targets, 0), e("lt", targets, classes))
    places = unsqueeze(site, e("clamp", targets, 0, classes - 1), (1,))
    own = site.op(GatherElements, predictions, places, axis=1)
    above = e("reduce_sum", cast(site, e("gt", predictions, own), I64), axes=(1,), keep_dims=False)
    finite = e("reduce_and", e("isfinite", predictions), axes=(1,), keep_dims=False)
    return e("and", e("and", inside, finite), e("lt", above, k))


@converts("Unique", "UniqueWithCounts")
def unique(site: Site) -> Results:
    """Distinct elements in the order of their appearance, the place of each element among them, and counts."""
    values, _, places, counts = site.b.op(Unique, [site.value(0)], sorted=False).results
    found = [values, places, counts][: len(site.operation.outputs)]
    return [found[0], *(cast(site, value, site.element(i)) for i, value in enumerate(found[1:], 1))]


@converts("UniqueV2", "UniqueWithCountsV2")
def unique_slices(site: Site) -> Results:
    """The same for slices along an axis, where one is named."""
    x, axes = site.value(0), site.ints(1, "the axis")
    axis = axis_of(site, axes[0], site.rank(x)) if axes and site.rank(x) > 1 else None
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    values, _, places, counts = site.b.op(Unique, [x], sorted=False, **attributes).results
    found = [values, places, counts][: len(site.operation.outputs)]
    return [found[0], *(cast(site, value, site.element(i)) for i, value in enumerate(found[1:], 1))]


@converts("ListDiff")
def list_diff(site: Site) -> Results:
    """The elements of x that y lacks, and where they stand."""
    x, y = site.values
    same = site.op(Eq, unsqueeze(site, x, (1,)), unsqueeze(site, y, (0,)))
    missing = site.op(Not, site.op(ReduceOr, same, axes=(1,), keep_dims=False))
    places = site.constant(np.arange(site.size(x, 0)), site.element(1))
    return [site.op(Compress, value, missing, axis=0) for value in (x, places)]


@converts("LowerBound", "UpperBound")
def search_sorted(site: Site) -> Value:
    """How many elements of each sorted row stand before each value."""
    rows, values = unsqueeze(site, site.value(0), (1,)), unsqueeze(site, site.value(1), (2,))
    before = site.op(Lt if site.operator == "LowerBound" else Le, rows, values)
    return site.op(ReduceSum, cast(site, before, site.element()), axes=(2,), keep_dims=False)


@converts("Bucketize")
def bucketize(site: Site) -> Value:
    """How many of the boundaries are not above each element."""
    x = site.value(0)
    bounds = np.array(site.attr("boundaries"), np.float32)
    element = x.tensor.element
    own = x if element.is_float else cast(site, x, _wide_float(element))
    limits = site.constant(bounds, own.tensor.element)
    held = site.op(Le, limits, unsqueeze(site, own, (site.rank(x),)))
    return site.op(ReduceSum, cast(site, held, I32), axes=(site.rank(x),), keep_dims=False)


def _wide_float(element: ElementType) -> ElementType:
    from compiler.ir import F32, F64

    return F64 if element.bits > 16 else F32


@converts("DynamicPartition")
def dynamic_partition(site: Site) -> Results:
    """The rows of each partition."""
    data, parts = site.values
    lead, rank = site.rank(parts), site.rank(data)
    rest = [site.size(data, axis) for axis in range(lead, rank)]
    rows, numbers = reshape(site, data, [-1, *rest]), reshape(site, parts, [-1])
    if lead == 1:
        rows, numbers = data, parts
    return [
        site.op(Compress, rows, site.op(Eq, numbers, number(site, place, I32)), axis=0)
        for place in range(int(site.attr("num_partitions")))
    ]


@converts("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(site: Site) -> Value:
    """Rows put at places; of several for one place the last stays. The places must be known."""
    from compiler.ops.indexing import ScatterNd

    count = len(site.inputs) // 2
    places = [site.data(index, "the places of the rows") for index in range(count)]
    size = max((int(found.max()) + 1 for found in places if found.size), default=0)
    rows = []
    for index, found in enumerate(places):
        data = site.value(count + index)
        rest = [site.size(data, axis) for axis in range(found.ndim, site.rank(data))]
        rows.append(reshape(site, data, [found.size, *rest]))
    flat = np.concatenate([found.reshape(-1) for found in places]).astype(np.int64)
    _, last = np.unique(flat[::-1], return_index=True)
    kept = np.sort(len(flat) - 1 - last)
    merged = site.op(Gather, concat(site, rows, 0), site.integers(*kept.tolist()), axis=0)
    if len(kept) == size and (flat[kept] == np.arange(size)).all():
        return merged
    shape = (size, *site.sizes(merged)[1:])
    zeros = site.constant(np.zeros(shape), merged.tensor.element)
    return site.op(ScatterNd, zeros, site.b.constant(flat[kept][:, None]), merged)


@converts("UnravelIndex")
def unravel(site: Site) -> Value:
    """Coordinates of flat positions, a row a dim."""
    x, sizes = site.value(0), site.ints(1, "the shape")
    element = x.tensor.element
    rows = []
    for axis, size in enumerate(sizes):
        step = int(np.prod(sizes[axis + 1 :]))
        place = site.op(Mod, site.op(Div, x, number(site, step, element)), number(site, size, element))
        rows.append(unsqueeze(site, place, (0,)))
    return concat(site, rows, 0)


@converts("Bincount", "DenseBincount")
def bincount(site: Site) -> Value:
    """How often each number below ``size`` comes, or the sum of the weights where it does."""
    x, weights = site.value(0), site.value(2)
    size, rank = site.whole(1, "the number of bins"), site.rank(x)
    binary = site.operator == "DenseBincount" and bool(site.attr("binary_output"))
    if site.operator == "Bincount" and rank != 1:
        x, rank = reshape(site, x, [-1]), 1
    bins = site.constant(np.arange(size), x.tensor.element)
    held = site.op(Eq, unsqueeze(site, x, (rank,)), bins)
    element = site.element()
    if binary:
        return cast(site, site.op(ReduceOr, held, axes=(rank - 1,), keep_dims=False), element)
    counts = cast(site, held, element)
    if site.dims(weights) != (0,) and site.rank(weights):
        own = reshape(site, weights, [-1]) if site.operator == "Bincount" and site.rank(weights) != 1 else weights
        zero = number(site, 0, element)
        counts = site.op(Select, held, unsqueeze(site, own, (rank,)), zero)
    return site.op(ReduceSum, counts, axes=(rank - 1,), keep_dims=False)


@converts("HistogramFixedWidth")
def histogram(site: Site) -> Value:
    """How many elements fall in each of bins of one width; those outside count in the outer ones."""
    from compiler.frontends.assembly import flat

    values, limits = site.value(0), site.value(1)
    bins = site.whole(2, "the number of bins")
    e = Emit(site.b)
    x = flat(site, values)
    low, high = (pick(site, limits, 0, place) for place in (0, 1))
    step = e("div", e("sub", high, low), float(bins))
    scaled = e("clamp", e("floor", e("div", e("sub", x, low), step)), 0.0, float(bins - 1))
    held = site.op(Eq, unsqueeze(site, scaled, (1,)), site.constant(np.arange(bins), x.tensor.element))
    return site.op(ReduceSum, cast(site, held, site.element()), axes=(0,), keep_dims=False)
