"""Access by index: advanced indexing, gather and scatter, masks, sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import (
    cast,
    concat,
    cut,
    dims_of,
    expand,
    expand_like,
    flat,
    number,
    operand,
    rank_of,
    reshape,
    reshape_to,
    shape_of,
    swap,
    transpose,
    unsqueeze,
    vector,
)
from compiler.frontends.torch.site import Site, converts
from compiler.ir import BOOL, I32, I64, Value
from compiler.ops.compare import Eq, IsNan, Lt, Select
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Add, Div, Max, Mod, Mul, Sub
from compiler.ops.indexing import Gather, GatherElements, GatherNd, OneHot, ScatterElements, ScatterNd
from compiler.ops.reduce import CumSum, ReduceSum
from compiler.ops.selection import NonZero, TopK

if TYPE_CHECKING:
    from collections.abc import Sequence


def _columns(site: Site, indices: Sequence[Value | None]) -> list[Value | None]:
    """An index tensor a dim: masks become the places where they hold."""
    found: list[Value | None] = []
    for index in indices:
        if index is None:
            found.append(None)
        elif index.tensor.element is BOOL or index.tensor.element.name == "ui8":
            places = site.op(NonZero, cast(site, index, BOOL))
            found += [site.op(Gather, places, site.constant(axis, I64), axis=0) for axis in range(rank_of(index))]
        else:
            found.append(cast(site, index, I64))
    return found


class _Indexed:
    """A tensor with its indexed dims first, and one joint index of them."""

    def __init__(self, site: Site, x: Value, indices: Sequence[Value | None]) -> None:
        columns = _columns(site, indices)
        self.site = site
        self.axes = [axis for axis, column in enumerate(columns) if column is not None]
        rank = rank_of(x)
        self.order = [*self.axes, *(axis for axis in range(rank) if axis not in self.axes)]
        self.data = transpose(site, x, self.order)
        given = [column for column in columns if column is not None]
        joint = given[0]
        for column in given[1:]:
            joint = site.op(Add, joint, site.op(Mul, column, site.constant(0, I64)))
        shape = shape_of(site, joint)
        self.index_rank = rank_of(joint)
        spread = [unsqueeze(site, expand(site, column, shape), (self.index_rank,)) for column in given]
        self.index = concat(site, spread, self.index_rank)
        adjacent = self.axes == list(range(self.axes[0], self.axes[-1] + 1))
        self.front = self.axes[0] if adjacent else 0
        self.rest = rank - len(self.axes)

    @property
    def to_place(self) -> list[int]:
        """Dims of the gathered tensor in torch's order: index dims where the first indexed dim was, or in front."""
        k, front = self.index_rank, self.front
        return [*range(k, k + front), *range(k), *range(k + front, k + self.rest)]

    def taken(self) -> Value:
        """The elements at the index."""
        return transpose(self.site, self.site.op(GatherNd, self.data, self.index), self.to_place)

    def put(self, values: Value, reduction: str) -> Value:
        """The tensor with elements at the index replaced, or added to."""
        site = self.site
        spread = expand(site, values, shape_of(site, self.taken()))
        spread = transpose(site, spread, _inverse(self.to_place))
        result = site.op(ScatterNd, self.data, self.index, spread, reduction=reduction)
        return transpose(site, result, _inverse(self.order))


def _inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(axis) for axis in range(len(order))]


def gathered(site: Site, x: Value, indices: Sequence[Value | None]) -> Value:
    """Elements at an advanced index."""
    return _Indexed(site, x, indices).taken()


def written(site: Site, x: Value, indices: Sequence[Value | None], values: Value, reduction: str) -> Value:
    """The tensor with elements at an advanced index replaced, or added to; of bools by or."""
    if x.tensor.element is not BOOL:
        return _Indexed(site, x, indices).put(values, reduction)
    return cast(site, _Indexed(site, cast(site, x, I32), indices).put(cast(site, values, I32), reduction), BOOL)


@converts("index.Tensor", "_unsafe_index.Tensor")
def index(site: Site) -> Value:
    """Numpy's advanced indexing."""
    x, indices = site.value("self"), site["indices"]
    given = [(axis, item) for axis, item in enumerate(indices) if item is not None]
    if not given:
        return x
    if len(given) == 1 and given[0][1].tensor.element is not BOOL:
        axis, item = given[0]
        return site.op(Gather, x, cast(site, item, I64), axis=axis)
    return gathered(site, x, indices)


@converts("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(site: Site) -> Value:
    """Elements at an advanced index replaced, or added to where it accumulates."""
    x, indices = site.value("self"), site["indices"]
    values = cast(site, site.value("values"), x.tensor.element)
    if all(item is None for item in indices):
        return expand_like(site, values, x) if not site["accumulate"] else site.op(Add, x, values)
    mask = indices[0]
    single = values.tensor.is_static and values.tensor.size == 1
    if len(indices) == 1 and mask.tensor.element is BOOL and single and not site["accumulate"]:
        mask = unsqueeze(site, mask, tuple(range(rank_of(mask), rank_of(x))))
        return site.op(Select, mask, reshape(site, values, []), x)
    return written(site, x, indices, values, _joined(site))


def _joined(site: Site) -> str:
    return "add" if site["accumulate"] else "none"


@converts("index_select")
def index_select(site: Site) -> Value:
    """Slices along a dim at a vector of places."""
    x, places = site.value("self"), cast(site, site.value("index"), I64)
    if rank_of(x) == 0:
        return x
    places = reshape(site, places, [1]) if rank_of(places) == 0 else places
    return site.op(Gather, x, places, axis=site.axis(site["dim"], rank_of(x)))


@converts("embedding")
def embedding(site: Site) -> Value:
    """Rows of the weight."""
    return site.op(Gather, site.value("weight"), cast(site, site.value("indices"), I64), axis=0)


@converts("take")
def take(site: Site) -> Value:
    """Elements of the flattened tensor."""
    return site.op(Gather, flat(site, site.value("self")), cast(site, site.value("index"), I64), axis=0)


def _within(site: Site, x: Value, index: Value, axis: int | None) -> Value:
    """The part of x that an index of smaller dims reaches; along ``axis`` all of it."""
    for dim, (own, other) in enumerate(zip(dims_of(x), dims_of(index), strict=True)):
        if dim != axis and own != other and isinstance(other, int):
            x = cut(site, x, dim, 0, other)
    return x


@converts("gather")
def gather(site: Site) -> Value:
    """One element an index, along one dim."""
    x, places = site.value("self"), cast(site, site.value("index"), I64)
    if rank_of(places) == 0 or rank_of(x) == 0:
        taken = site.op(Gather, flat(site, x), flat(site, places), axis=0)
        return reshape_to(site, taken, shape_of(site, places))
    if places.tensor.is_static and places.tensor.size == 0:
        # An index without elements need not have the tensor's rank.
        return site.op(Fill, shape_of(site, places), number(site, 0, x.tensor.element))
    axis = site.axis(site["dim"], rank_of(x))
    return site.op(GatherElements, _within(site, x, places, axis), places, axis=axis)


@converts("take_along_dim")
def take_along_dim(site: Site) -> Value:
    """One element an index along one dim, both repeated to the same sizes elsewhere."""
    x, places = site.value("self"), cast(site, site.value("indices"), I64)
    if site.get("dim") is None:
        return site.op(Gather, flat(site, x), flat(site, places), axis=0)
    axis = site.axis(site["dim"], rank_of(x))
    sizes, others = list(site.sizes(x)), list(site.sizes(places))
    common = [max(a, b) if 0 not in (a, b) else 0 for a, b in zip(sizes, others, strict=True)]
    x = expand(site, x, vector(site, [size if i == axis else common[i] for i, size in enumerate(sizes)]))
    places = expand(site, places, vector(site, [size if i == axis else common[i] for i, size in enumerate(others)]))
    return site.op(GatherElements, x, places, axis=axis)


_REDUCTIONS: Final = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def scattered(site: Site, x: Value, axis: int, places: Value, source: Value, reduction: str) -> Value:
    """Elements put at an index along one dim; ranks of 0 count as vectors of one element."""
    if rank_of(x) == 0:
        own, index, put = (reshape(site, value, [-1]) for value in (x, places, source))
        return reshape(site, scattered(site, own, 0, index, put, reduction), [])
    if rank_of(places) == 0:
        places = reshape(site, places, [1])
    if rank_of(source) == 0:
        source = expand_like(site, source, places)
    source = _within(site, source, places, None)
    element = x.tensor.element
    if element is BOOL:
        found = scattered(site, cast(site, x, I32), axis, places, cast(site, source, I32), reduction)
        return cast(site, found, BOOL)
    return site.op(ScatterElements, x, places, source, axis=axis, reduction=reduction)


@converts("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add")
def scatter(site: Site) -> Value:
    """Elements replaced, or joined with what is there."""
    x, places = site.value("self"), cast(site, site.value("index"), I64)
    element = x.tensor.element
    source = operand(site, site.get("src", site.get("value", 0)), element)
    default = "add" if site.operator.startswith("aten.scatter_add") else "none"
    reduction = _REDUCTIONS[site["reduce"]] if "reduce" in site.arguments else default
    return scattered(site, x, site.axis(site["dim"], rank_of(x)), places, source, reduction)


@converts("scatter_reduce.two")
def scatter_reduce(site: Site) -> Value:
    """Elements joined by sum, product, mean or extreme, with or without what is there."""
    x, places, source = site.value("self"), cast(site, site.value("index"), I64), site.value("src")
    axis = site.axis(site["dim"], rank_of(x))
    return joined_at(site, x, axis, places, source, site["reduce"])


def joined_at(site: Site, x: Value, axis: int, places: Value, source: Value, mode: str) -> Value:
    """Elements at places along an axis joined with others, and with what is there where ``include_self`` says so."""
    element = x.tensor.element
    starts: dict[str, Any] = {"sum": 0, "mean": 0, "prod": 1}
    start = starts[mode] if mode in starts else _limit(element, low=mode == "amax")
    own = x if site["include_self"] else scattered(site, x, axis, places, number(site, start, element), "none")
    if mode != "mean":
        return scattered(site, own, axis, places, source, _REDUCTIONS[mode])
    sums = scattered(site, own, axis, places, source, "add")
    one = number(site, 1, element)
    zeros = site.op(Fill, shape_of(site, x), number(site, 1 if site["include_self"] else 0, element))
    counts = site.op(Max, scattered(site, zeros, axis, places, one, "add"), one)
    if element.is_float:
        return site.op(Div, sums, counts)
    remainder = site.op(Mod, sums, counts)
    return site.op(Div, site.op(Sub, sums, remainder), counts)


def _limit(element: Any, *, low: bool) -> Any:  # noqa: ANN401
    from compiler.ops.scalars import limits

    return limits(element)[0 if low else 1]


def _rows(site: Site, x: Value, source: Value, reduction: str) -> Value:
    """Slices at a vector of places along ``dim`` replaced, or added to."""
    places = flat(site, cast(site, site.value("index"), I64))
    if rank_of(x) == 0:
        own, put = reshape(site, x, [1]), reshape(site, source, [1])
        return reshape(site, site.op(ScatterNd, own, unsqueeze(site, places, (1,)), put, reduction=reduction), [])
    axis = site.axis(site["dim"], rank_of(x))
    own, put = swap(site, x, 0, axis), swap(site, source, 0, axis)
    return swap(site, site.op(ScatterNd, own, unsqueeze(site, places, (1,)), put, reduction=reduction), 0, axis)


@converts("index_add")
def index_add(site: Site) -> Value:
    """Slices added at places along a dim."""
    x = site.value("self")
    element = x.tensor.element
    source = cast(site, site.value("source"), element)
    if site["alpha"] != 1:
        source = site.op(Mul, source, number(site, site["alpha"], element))
    if element is BOOL:
        return cast(site, _rows(site, cast(site, x, I32), cast(site, source, I32), "add"), BOOL)
    return _rows(site, x, source, "add")


@converts("index_copy")
def index_copy(site: Site) -> Value:
    """Slices put at places along a dim."""
    return _rows(site, site.value("self"), site.value("source"), "none")


@converts("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(site: Site) -> Value:
    """Slices at places along a dim filled with a number."""
    x = site.value("self")
    value = operand(site, site["value"], x.tensor.element)
    if rank_of(x) == 0:
        return value
    axis = site.axis(site["dim"], rank_of(x))
    places = flat(site, cast(site, site.value("index"), I64))
    taken = site.op(Gather, x, places, axis=axis)
    return _rows(site, x, expand_like(site, value, taken), "none")


@converts("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(site: Site) -> Value:
    """A number where the mask holds."""
    x = site.value("self")
    return site.op(Select, cast(site, site.value("mask"), BOOL), operand(site, site["value"], x.tensor.element), x)


@converts("masked_select")
def masked_select(site: Site) -> Value:
    """The elements where the mask holds, as a vector."""
    from compiler.ops.selection import Compress

    x, mask = site.value("self"), cast(site, site.value("mask"), BOOL)
    x, mask = expand(site, x, shape_of(site, mask)), expand(site, mask, shape_of(site, x))
    return site.op(Compress, flat(site, x), flat(site, mask))


@converts("masked_scatter")
def masked_scatter(site: Site) -> Value:
    """The first elements of the source, in order, where the mask holds."""
    x, source = site.value("self"), flat(site, site.value("source"))
    if site.value("mask").tensor.element is not BOOL:
        site.refuse(f"the mask is {site.value('mask').tensor}; expected bools")
    mask = expand_like(site, site.value("mask"), x)
    x = expand(site, x, shape_of(site, mask))
    if source.tensor.dims == (0,):
        return x
    counted = site.op(CumSum, cast(site, flat(site, mask), I64), axis=0)
    places = site.op(Max, site.op(Sub, counted, number(site, 1, I64)), number(site, 0, I64))
    from compiler.ops.elementwise import Min

    last = site.op(Sub, shape_of(site, source), site.integers(1))
    taken = site.op(Gather, source, site.op(Min, places, last), axis=0)
    return site.op(Select, mask, reshape_to(site, taken, shape_of(site, x)), x)


@converts("nonzero")
def nonzero(site: Site) -> Value:
    """Positions of what is not 0, one a row."""
    x = site.value("self")
    if rank_of(x) == 0:
        found = site.op(NonZero, cast(site, reshape(site, x, [1]), BOOL))
        return swap(site, cut(site, found, 0, 0, 0), 0, 1)
    return swap(site, site.op(NonZero, cast(site, x, BOOL)), 0, 1)


@converts("nonzero_numpy")
def nonzero_numpy(site: Site) -> list[Value]:
    """Positions of what is not 0, a vector a dim."""
    x = site.value("self")
    places = site.op(NonZero, cast(site, x, BOOL))
    return [site.op(Gather, places, site.constant(axis, I64), axis=0) for axis in range(rank_of(x))]


@converts("one_hot")
def one_hot(site: Site) -> Value:
    """A new last dim that is 1 at the index and 0 elsewhere."""
    classes = site["num_classes"]
    if isinstance(classes, int) and classes < 0:
        site.refuse("a number of classes that data decides", "num_classes")
    return site.op(OneHot, site.value("self"), operand(site, classes, I64), site.integers(0, 1), axis=-1)


@converts("select_scatter")
def select_scatter(site: Site) -> Value:
    """One slice along a dim replaced."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    at = site.integer(site["index"])
    at += site.size(x, axis) if at < 0 else 0
    source = unsqueeze(site, cast(site, site.value("src"), x.tensor.element), (axis,))
    return concat(site, [cut(site, x, axis, 0, at), source, cut(site, x, axis, at + 1)], axis)


@converts("slice_scatter")
def slice_scatter(site: Site) -> Value:
    """The elements of a slice along a dim replaced."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    size = site.size(x, axis)
    places = range(*slice(site.get("start"), site.get("end"), site["step"]).indices(size))
    source = cast(site, site.value("src"), x.tensor.element)
    if not places:
        return x
    if places.step == 1:
        return concat(site, [cut(site, x, axis, 0, places.start), source, cut(site, x, axis, places.stop)], axis)
    own, put = swap(site, x, 0, axis), swap(site, source, 0, axis)
    index_ = unsqueeze(site, site.integers(*places), (1,))
    return swap(site, site.op(ScatterNd, own, index_, put), 0, axis)


@converts("diagonal_scatter")
def diagonal_scatter(site: Site) -> Value:
    """A diagonal replaced."""
    from compiler.frontends.torch.converters.movement import diagonal_of
    from compiler.ops.creation import Range
    from compiler.ops.shape import SizeOf

    x = site.value("self")
    whole = site.op(Range, site.constant(0, I64), site.op(SizeOf, x), site.constant(1, I64))
    numbered = reshape_to(site, whole, shape_of(site, x))
    places = diagonal_of(
        site, numbered, site["offset"], site.axis(site["dim1"], rank_of(x)), site.axis(site["dim2"], rank_of(x))
    )
    put = flat(site, cast(site, site.value("src"), x.tensor.element))
    changed = site.op(ScatterNd, flat(site, x), unsqueeze(site, flat(site, places), (1,)), put)
    return reshape_to(site, changed, shape_of(site, x))


@converts("copy", "fill.Scalar", "fill.Tensor")
def copy(site: Site) -> Value:
    """A tensor of the same sizes with the elements of another, or a number."""
    x = site.value("self")
    return expand_like(site, operand(site, site.get("src", site.get("value", 0)), x.tensor.element), x)


@converts("zero")
def zero(site: Site) -> Value:
    """A tensor of the same sizes of zeros."""
    x = site.value("self")
    return site.op(Fill, shape_of(site, x), number(site, 0, x.tensor.element))


def _ordered(site: Site, x: Value, axis: int, k: Value, *, largest: bool, in_order: bool = True) -> list[Value]:
    """Values and positions; a NaN is greater than all."""
    own = cast(site, x, I32) if x.tensor.element is BOOL else x
    values, places = site.b.op(TopK, [own, k], axis=axis, largest=largest, sorted=in_order).results
    return [cast(site, values, x.tensor.element), places]


def _sort(site: Site, x: Value, *, descending: bool) -> list[Value]:
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    axis = site.axis(site["dim"], rank_of(x))
    return _ordered(site, x, axis, shape_of(site, x, axis, axis + 1), largest=descending)


@converts("sort", "sort.stable")
def sort(site: Site) -> list[Value]:
    """In order along a dim, equal ones as they stood."""
    return _sort(site, site.value("self"), descending=bool(site["descending"]))


@converts("argsort", "argsort.stable")
def argsort(site: Site) -> Value:
    """The positions of the elements in order along a dim."""
    return _sort(site, site.value("self"), descending=bool(site["descending"]))[1]


@converts("msort")
def msort(site: Site) -> Value:
    """In order along the first dim."""
    x = site.value("self")
    return _ordered(site, x, 0, shape_of(site, x, 0, 1), largest=False)[0]


@converts("topk")
def topk(site: Site) -> list[Value]:
    """The k greatest or least."""
    x = site.value("self")
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    k = reshape(site, operand(site, site["k"], I64), [1])
    axis = site.axis(site["dim"], rank_of(x))
    return _ordered(site, x, axis, k, largest=bool(site["largest"]), in_order=bool(site["sorted"]))


@converts("kthvalue")
def kth_value(site: Site) -> list[Value]:
    """The k-th least along a dim."""
    from compiler.frontends.torch.converters.common import squeeze

    x, k = site.value("self"), site.integer(site["k"])
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    axis = site.axis(site["dim"], rank_of(x))
    found = [cut(site, value, axis, k - 1, k) for value in _sort(site, x, descending=False)]
    return found if site["keepdim"] else [squeeze(site, value, (axis,)) for value in found]


@converts("searchsorted.Tensor", "searchsorted.Scalar", "bucketize.Tensor", "bucketize.Scalar")
def searchsorted(site: Site) -> Value:
    """How many boundaries are less than each value, or not greater where ``right`` is set."""
    from compiler.ops.compare import Le

    name = "sorted_sequence" if "sorted_sequence" in site.arguments else "boundaries"
    edges, element = site.value(name), site.value(name).tensor.element
    if name == "boundaries" and rank_of(edges) != 1:
        site.refuse(f"boundaries have rank {rank_of(edges)}; expected a vector")
    if site.get("sorter") is not None:
        site.refuse("a sorter", "sorter")
    values = operand(site, site["self"], element)
    if isinstance(site["self"], Value) and site["self"].tensor.element is not element:
        from compiler.frontends.torch.converters.promotion import promoted

        common = promoted(site, name, "self")
        edges, values = cast(site, edges, common), cast(site, site["self"], common)
    right = site["right"] or site.get("side") == "right"
    rank = rank_of(values)
    column = unsqueeze(site, values, (rank,))
    line = edges if rank_of(edges) <= 1 else unsqueeze(site, edges, (rank_of(edges) - 1,))
    below = site.op(Le, line, column) if right else site.op(Lt, line, column)
    if values.tensor.element.is_float:
        from compiler.ops.logic import Or

        below = site.op(Or, below, site.op(IsNan, column))
    count = site.op(ReduceSum, cast(site, below, I64), axes=(rank_of(below) - 1,), keep_dims=False)
    return cast(site, count, site.element())


@converts("isin.Tensor_Tensor", "isin.Tensor_Scalar")
def is_in(site: Site) -> Value:
    """Whether each element is among the others."""
    from compiler.frontends.torch.converters.promotion import promoted
    from compiler.ops.logic import Not
    from compiler.ops.reduce import ReduceOr

    other = "test_elements" if "test_elements" in site.arguments else "test_element"
    element = promoted(site, "elements", other)
    x, among = operand(site, site["elements"], element), flat(site, operand(site, site[other], element))
    same = site.op(Eq, unsqueeze(site, x, (rank_of(x),)), among)
    found = site.op(ReduceOr, same, axes=(rank_of(x),), keep_dims=False)
    return site.op(Not, found) if site["invert"] else found
