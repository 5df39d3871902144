"""Medians, modes, counts: what is found by putting elements in order or holding each against each."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.frontends.torch.converters.common import (
    cast,
    concat,
    cut,
    expand,
    expand_like,
    flat,
    number,
    pick,
    rank_of,
    reshape,
    shape_of,
    squeeze,
    swap,
    unsqueeze,
)
from compiler.frontends.torch.site import Site, converts
from compiler.ir import F64, I64, Value
from compiler.ops.compare import Eq, Ge, IsNan, Le, Lt, Select
from compiler.ops.elementwise import Add, Div, Floor, Max, Min, Mod, Mul, Sub
from compiler.ops.indexing import Gather, GatherElements, ScatterElements, ScatterNd
from compiler.ops.logic import And, Not, Or
from compiler.ops.reduce import ArgMax, CumSum, ReduceMax, ReduceMin, ReduceSum
from compiler.ops.selection import NonZero, TopK, Unique


def _in_order(site: Site, x: Value, axis: int) -> tuple[Value, Value]:
    """Elements from the least, not-a-number last, and where they stood."""
    values, places = site.b.op(TopK, [x, shape_of(site, x, axis, axis + 1)], axis=axis, largest=False).results
    return values, places


@converts("median", "nanmedian")
def median(site: Site) -> Value:
    """The lower one of the middle; not a number where there is one, or where nothing else is left."""
    x = flat(site, site.value("self"))
    if x.tensor.known_dims == (0,):
        return site.constant(np.nan, x.tensor.element) if x.tensor.element.is_float else site.refuse("no elements")
    return _median(site, x, 0, skips="nanmedian" in site.operator, keep=False)[0]


@converts("median.dim", "nanmedian.dim")
def median_along(site: Site) -> list[Value]:
    """Along a dim, and where it stands."""
    x = site.value("self")
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    axis = site.axis(site["dim"], rank_of(x))
    return list(_median(site, x, axis, skips="nanmedian" in site.operator, keep=bool(site["keepdim"])))


def _median(site: Site, x: Value, axis: int, *, skips: bool, keep: bool) -> tuple[Value, Value]:
    values, places = _in_order(site, x, axis)
    size = site.size(x, axis)
    middle = site.constant((size - 1) // 2, I64)
    if x.tensor.element.is_float:
        invalid = cast(site, site.op(IsNan, values), I64)
        missing = site.op(ReduceSum, invalid, axes=(axis,), keep_dims=True)
        left = site.op(Sub, site.constant(size, I64), missing)
        if skips:
            half = site.op(Div, site.op(Sub, left, site.constant(1, I64)), site.constant(2, I64))
            wanted = site.op(Max, half, site.constant(0, I64))
        else:
            # The first that is not a number, if there is one.
            some = site.op(Lt, site.constant(0, I64), missing)
            wanted = site.op(Select, some, left, middle)
    else:
        dims = [1 if d == axis else site.size(x, d) for d in range(rank_of(x))]
        wanted = site.constant(np.full(dims, (size - 1) // 2), I64)
    found = [site.op(GatherElements, value, wanted, axis=axis) for value in (values, places)]
    value, place = found if keep else [squeeze(site, part, (axis,)) for part in found]
    return value, place


@converts("mode")
def mode(site: Site) -> list[Value]:
    """The most frequent element, the least of several, and where it stands last."""
    x = site.value("self")
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    axis = site.axis(site["dim"], rank_of(x))
    values, places = _in_order(site, x, axis)
    across = unsqueeze(site, values, (axis + 1,))
    along = unsqueeze(site, values, (axis,))
    equal = cast(site, site.op(Eq, across, along), I64)
    counts = site.op(ReduceSum, equal, axes=(axis + 1,), keep_dims=False)
    best = site.op(ArgMax, counts, axis=axis, keep_dims=True)
    value = site.op(GatherElements, values, best, axis=axis)
    here = site.op(Eq, values, value)
    position = site.op(ReduceMax, site.op(Select, here, places, site.constant(-1, I64)), axes=(axis,), keep_dims=True)
    found = [value, position]
    return found if site["keepdim"] else [squeeze(site, part, (axis,)) for part in found]


@converts("bincount")
def bincount(site: Site) -> Value:
    """How often, or with which weight, each integer from 0 stands there."""
    x = cast(site, site.value("self"), I64)
    least = site.integer(site["minlength"])
    weights = site.get("weights")
    element = site.element()
    one = number(site, 1, element) if weights is None else cast(site, weights, element)
    one = expand_like(site, one, x)
    if x.tensor.dims == (0,):
        return site.constant(np.zeros(least), element)
    top = site.op(Add, site.op(ReduceMax, x, axes=(0,), keep_dims=True), site.integers(1))
    count = site.op(Max, top, site.integers(least))
    zeros = expand(site, number(site, 0, element), count)
    return site.op(ScatterElements, zeros, x, one, axis=0, reduction="add")


@converts("histc")
def histc(site: Site) -> Value:
    """Counts in bins of one width between two numbers, the greatest counted too; others are left out."""
    x, bins, element = flat(site, site.value("self")), site["bins"], site.element()
    if x.tensor.dims == (0,):
        return site.constant(np.zeros(bins), element)
    low, high = float(site["min"]), float(site["max"])
    own = cast(site, x, F64)
    if low == high:
        least, greatest = (site.op(part, own, axes=(0,), keep_dims=False) for part in (ReduceMin, ReduceMax))
        same = site.op(Eq, least, greatest)
        one = number(site, 1, F64)
        least, greatest = (
            site.op(Select, same, site.op(Sub, least, one), least),
            site.op(Select, same, site.op(Add, greatest, one), greatest),
        )
        if low != 0:
            site.refuse("a range of one number other than 0")
    else:
        least, greatest = number(site, low, F64), number(site, high, F64)
    width = site.op(Sub, greatest, least)
    scaled = site.op(Div, site.op(Mul, site.op(Sub, own, least), number(site, bins, F64)), width)
    place = site.op(Min, site.op(Floor, scaled), number(site, bins - 1, F64))
    inside = site.op(And, site.op(Ge, own, least), site.op(Le, own, greatest))
    # What is outside goes to a bin more, which is then cut off.
    place = site.op(Select, inside, place, number(site, bins, F64))
    ones = expand_like(site, number(site, 1, element), x)
    counts = site.op(
        ScatterElements, site.constant(np.zeros(bins + 1), element), cast(site, place, I64), ones,
        axis=0, reduction="add",
    )  # fmt: skip
    return cut(site, counts, 0, 0, bins)


@converts("_unique", "_unique2", "unique_dim")
def unique(site: Site) -> list[Value]:
    """Distinct elements or slices in order, where each of the tensor's is among them, and how often it occurs."""
    x = site.value("self")
    axis = site.get("dim")
    attributes: dict[str, Any] = {} if axis is None else {"axis": site.axis(axis, rank_of(x))}
    values, _, inverse, counts = site.b.op(Unique, [x], sorted=True, **attributes).results
    if axis is None:
        inverse = reshape(site, inverse, [site.size(x, d) for d in range(rank_of(x))])
    empty = site.constant(np.zeros(0), I64)
    wanted = [site.get("return_inverse", False), site.get("return_counts", False)]
    extra = [found if asked else empty for found, asked in zip((inverse, counts), wanted, strict=True)]
    return [values, *extra[: len(site.result) - 1]]


@converts("unique_consecutive")
def unique_consecutive(site: Site) -> list[Value]:
    """Runs of equal elements, each once; the run of each, and its length."""
    x = site.value("self")
    if site.get("dim") is not None and rank_of(x) > 1:
        site.refuse("runs of slices", "dim")
    line = flat(site, x)
    size = site.size(line, 0)
    empty = site.constant(np.zeros(0), I64)
    if size == 0:
        return [line, reshape(site, empty, list(site.sizes(x))) if site["return_inverse"] else empty, empty]
    before, after = cut(site, line, 0, 0, size - 1), cut(site, line, 0, 1)
    changes = site.op(Not, site.op(Eq, before, after)) if size > 1 else None
    first = site.constant(np.array([True]), site.op(Eq, line, line).tensor.element)
    starts = first if changes is None else concat(site, [first, changes], 0)
    places = reshape(site, site.op(NonZero, starts), [-1])
    values = site.op(Gather, line, places, axis=0)
    run = _running(site, starts)
    ends = concat(site, [cut(site, places, 0, 1), site.integers(size)], 0)
    counts = site.op(Sub, ends, places)
    inverse = reshape(site, run, list(site.sizes(x)))
    return [
        values,
        inverse if site["return_inverse"] else empty,
        counts if site["return_counts"] else empty,
    ]


def _running(site: Site, starts: Value) -> Value:
    """How many began up to each place, from 0."""
    return site.op(Sub, site.op(CumSum, cast(site, starts, I64), axis=0), site.constant(1, I64))


@converts("nonzero_static")
def nonzero_static(site: Site) -> Value:
    """As many places as asked for; missing ones are filled up."""
    x, size = site.value("self"), site.integer(site["size"])
    from compiler.ir import BOOL

    places = swap(site, site.op(NonZero, cast(site, x, BOOL)), 0, 1)
    more = site.constant(np.full((size, rank_of(x)), site["fill_value"]), I64)
    return cut(site, concat(site, [places, more], 0), 0, 0, size)


@converts("put")
def put(site: Site) -> Value:
    """Elements written, or added, at places of the flat tensor."""
    x = site.value("self")
    line, element = flat(site, x), x.tensor.element
    size = number(site, x.tensor.size, I64)
    index = site.op(Mod, cast(site, flat(site, site.value("index")), I64), size)
    source = cast(site, flat(site, site.value("source")), element)
    mode = "add" if site["accumulate"] else "none"
    written = site.op(ScatterNd, line, unsqueeze(site, index, (1,)), source, reduction=mode)
    return reshape(site, written, list(site.sizes(x)))


@converts("index_reduce")
def index_reduce(site: Site) -> Value:
    """Slices joined with those at places along a dim: product, mean, greatest, least."""
    x, source = site.value("self"), site.value("source")
    scalar = rank_of(x) == 0
    if scalar:
        x, source = (
            unsqueeze(site, value, (0,)) for value in (x, source if rank_of(source) == 0 else pick(site, source, 0, 0))
        )
    axis = site.axis(site["dim"], rank_of(x))
    index = cast(site, flat(site, site.value("index")), I64)
    shape = [1] * rank_of(x)
    shape[axis] = -1
    places = expand_like(site, reshape(site, index, shape), source)
    from compiler.frontends.torch.converters.indexing import joined_at

    mode = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}[site["reduce"]]
    result = joined_at(site, x, axis, places, source, mode)
    return squeeze(site, result, (0,)) if scalar else result


@converts("gcd")
def gcd(site: Site) -> Value:
    """The greatest common divisor by Euclid's steps, unrolled as often as the widest numbers need."""
    from compiler.ops.elementwise import Abs

    a, b = (cast(site, site.value(name), site.element()) for name in ("self", "other"))
    a, b = site.op(Abs, a), site.op(Abs, b)
    zero, one = number(site, 0, a.tensor.element), number(site, 1, a.tensor.element)
    # Lame: Fibonacci numbers need the most steps, and the 92nd is the greatest below 2^63.
    for _ in range(int(1.45 * a.tensor.element.bits)):
        done = site.op(Eq, b, zero)
        remainder = site.op(Mod, a, site.op(Select, done, one, b))
        a, b = site.op(Select, done, a, b), site.op(Select, done, zero, remainder)
    return a


@converts("_unsafe_masked_index")
def masked_index(site: Site) -> Value:
    """Elements at places where a mask holds, else a number."""
    from compiler.frontends.torch.converters.indexing import gathered

    x = site.value("self")
    found = gathered(site, x, _clamped(site, x))
    return site.op(Select, site.value("mask"), found, number(site, site["fill"], x.tensor.element))


def _clamped(site: Site, x: Value) -> list[Value | None]:
    """Places that exist: what the mask leaves out may lie anywhere."""
    found: list[Value | None] = []
    for axis, index in enumerate(site["indices"]):
        if index is None:
            found.append(None)
            continue
        last = number(site, site.size(x, axis) - 1, I64)
        found.append(site.op(Max, site.op(Min, cast(site, index, I64), last), number(site, 0, I64)))
    return found


@converts("_unsafe_masked_index_put_accumulate")
def masked_index_put(site: Site) -> Value:
    """Elements added at places where a mask holds."""
    from compiler.frontends.torch.converters.indexing import written

    x = site.value("self")
    zero = number(site, 0, x.tensor.element)
    values = site.op(Select, site.value("mask"), site.value("values"), zero)
    return written(site, x, _clamped(site, x), values, "add")


@converts("nextafter")
def next_after(site: Site) -> Value:
    """The neighbour of each element towards another: its bits, as an integer, one up or down."""
    from compiler.ir import I16, I32
    from compiler.ops.compare import Gt
    from compiler.ops.convert import BitCast

    element = site.element()
    bits = {64: I64, 32: I32, 16: I16}[element.bits]
    a, b = (cast(site, site.value(name), element) for name in ("self", "other"))
    zero = number(site, 0, element)
    whole = site.op(BitCast, a, to=bits)
    grows = site.op(Eq, site.op(Gt, b, a), site.op(Gt, a, zero))
    step = site.op(Select, grows, number(site, 1, bits), number(site, -1, bits))
    moved = site.op(BitCast, site.op(Add, whole, step), to=element)
    smallest = site.op(BitCast, number(site, 1, bits), to=element)
    from_zero = site.op(Select, site.op(Gt, b, zero), smallest, site.op(Sub, zero, smallest))
    result = site.op(Select, site.op(Eq, a, zero), from_zero, moved)
    result = site.op(Select, site.op(Eq, a, b), b, result)
    invalid = site.op(Or, site.op(IsNan, a), site.op(IsNan, b))
    return site.op(Select, invalid, site.op(Add, a, b), result)


@converts("as_strided_scatter")
def as_strided_scatter(site: Site) -> Value:
    """Elements written at strides of a tensor that lies in order."""
    x, source = site.value("self"), site.value("src")
    sizes, strides = ([site.integer(size) for size in site[name]] for name in ("size", "stride"))
    places = np.full((), site.integer(site.get("storage_offset", 0)), np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + np.arange(size) * stride
    index = site.constant(places.reshape(-1, 1), I64)
    values = flat(site, cast(site, source, x.tensor.element))
    return reshape(site, site.op(ScatterNd, flat(site, x), index, values), list(site.sizes(x)))
