"""Reductions over listed dims, positions of extremes, running sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from compiler.frontends.torch.converters.common import (
    cast,
    count,
    flat,
    number,
    rank_of,
    reshape,
    squeeze,
    swap,
    unsqueeze,
    wanted_element,
)
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import BOOL, I64, Value
from compiler.ops.compare import IsInf, IsNan, Ne, Select
from compiler.ops.elementwise import Abs, Add, Div, Exp, Log, Max, Mul, Pow, Sqrt, Sub
from compiler.ops.reduce import (
    ArgMax,
    ArgMin,
    CumProd,
    CumSum,
    ReduceAnd,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceSum,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.torch.site import Converter
    from compiler.ir import Definition, ElementType


def reduced(site: Site, definition: type[Definition], x: Value, axes: Sequence[int], keep: bool) -> Value:
    """A reduction; the value itself where there is nothing to reduce."""
    if not axes:
        return x
    return site.op(definition, x, axes=tuple(axes), keep_dims=keep)


def _dims(site: Site, x: Value) -> tuple[tuple[int, ...], bool]:
    """The dims that the call names, all where it names none; whether they stay."""
    return site.axes(site.get("dim"), rank_of(x)), bool(site.get("keepdim", False))


@converts("sum", "sum.dim_IntList", "nansum")
def total(site: Site) -> Value:
    """Integers and bools sum as int64."""
    element = site.element()
    x = cast(site, site.value("self"), element)
    if site.operator.startswith("aten.nansum") and element.is_float:
        x = site.op(Select, site.op(IsNan, x), number(site, 0, element), x)
    axes, keep = _dims(site, x)
    return reduced(site, ReduceSum, x, axes, keep)


@converts("prod", "prod.dim_int")
def product(site: Site) -> Value:
    """Integers and bools multiply as int64."""
    x = cast(site, site.value("self"), site.element())
    axes, keep = _dims(site, x)
    return reduced(site, ReduceProd, x, axes, keep)


@converts("mean", "mean.dim")
def mean(site: Site) -> Value:
    """The mean in the result's type."""
    x = cast(site, site.value("self"), site.element())
    axes, keep = _dims(site, x)
    return reduced(site, ReduceMean, x, axes, keep)


def _extreme(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("self")
        axes, keep = _dims(site, x)
        return extreme(site, definition, x, axes, keep)

    return convert


def extreme(site: Site, definition: type[Definition], x: Value, axes: Sequence[int], keep: bool) -> Value:
    """Greatest or least along dims; of bools by or and and."""
    if x.tensor.element is BOOL:
        definition = ReduceOr if definition is ReduceMax else ReduceAnd
    return reduced(site, definition, x, axes, keep)


converts("amax", "max")(_extreme(ReduceMax))
converts("amin", "min")(_extreme(ReduceMin))


@converts("aminmax")
def both_extremes(site: Site) -> list[Value]:
    """Least and greatest."""
    return [_extreme(ReduceMin)(site), _extreme(ReduceMax)(site)]  # type: ignore[list-item] # both give values


def _truth(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = cast(site, site.value("self"), BOOL)
        axes, keep = _dims(site, x)
        return cast(site, reduced(site, definition, x, axes, keep), site.element())

    return convert


converts("any", "any.dim", "any.dims")(_truth(ReduceOr))
converts("all", "all.dim", "all.dims")(_truth(ReduceAnd))

_POSITIONS: Final[dict[type[Definition], type[Definition]]] = {ArgMax: ReduceMax, ArgMin: ReduceMin}


def position(site: Site, definition: type[Definition], x: Value, axis: int | None, keep: bool) -> Value:
    """The first position of an extreme along an axis, of the flattened tensor where there is none; NaN is extreme."""
    from compiler.ir import I32

    if x.tensor.element is BOOL:
        x = cast(site, x, I32)
    rank = rank_of(x)
    if axis is None or rank == 0:
        found = site.op(definition, flat(site, x), axis=0, keep_dims=False)
        return reshape(site, found, [1] * rank) if keep and rank else found
    return site.op(definition, x, axis=axis, keep_dims=keep)


def _arg(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x, axis = site.value("self"), site.get("dim")
        axis = None if axis is None else site.axis(axis, rank_of(x))
        return position(site, definition, x, axis, bool(site.get("keepdim", False)))

    return convert


converts("argmax")(_arg(ArgMax))
converts("argmin")(_arg(ArgMin))


def _with_position(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> list[Value]:
        x, keep = site.value("self"), bool(site["keepdim"])
        axis = site.axis(site["dim"], rank_of(x))
        if rank_of(x) == 0:
            return [x, site.constant(0, I64)]
        values = extreme(site, _POSITIONS[definition], x, (axis,), keep)
        return [values, position(site, definition, x, axis, keep)]

    return convert


converts("max.dim")(_with_position(ArgMax))
converts("min.dim")(_with_position(ArgMin))


@converts("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(site: Site) -> Value:
    """How many are not 0."""
    x = cast(site, cast(site, site.value("self"), BOOL), I64)
    return reduced(site, ReduceSum, x, site.axes(site.get("dim"), rank_of(x)), keep=False)


@converts("var", "var.dim", "var.correction", "std", "std.dim", "std.correction")
def variance(site: Site) -> Value:
    """Mean square distance from the mean, over n - correction."""
    found, _ = _moments(site, site.element())
    return found


@converts("var_mean", "var_mean.dim", "var_mean.correction", "std_mean", "std_mean.dim", "std_mean.correction")
def variance_and_mean(site: Site) -> list[Value]:
    """Both."""
    return list(_moments(site, site.element(0)))


def _correction(site: Site) -> float:
    if "correction" in site.arguments:
        return float(site.get("correction", 1))
    return 1.0 if site.get("unbiased", True) else 0.0


def _moments(site: Site, element: ElementType) -> tuple[Value, Value]:
    """Variance (or its root, where the operator's name says std) and mean."""
    x = cast(site, site.value("self"), wide(element))
    axes, keep = _dims(site, x)
    inner = x.tensor.element
    center = reduced(site, ReduceMean, x, axes, keep=True)
    distance = site.op(Sub, x, center)
    squares = reduced(site, ReduceSum, site.op(Mul, distance, distance), axes, keep)
    divisor = site.op(Sub, count(site, x, axes, inner), number(site, _correction(site), inner))
    # torch divides by max(0, n - correction).
    result = site.op(Div, squares, site.op(Max, divisor, number(site, 0, inner)))
    if site.operator.startswith("aten.std"):
        result = site.op(Sqrt, result)
    middle = center if keep else squeeze(site, center, axes)
    return cast(site, result, element), cast(site, middle, element)


@converts("logsumexp", "special_logsumexp")
def log_sum_exp(site: Site) -> Value:
    """max + log(sum(exp(x - max))); an infinite maximum is left out, as torch does."""
    element = site.element()
    x = cast(site, cast(site, site.value("self"), element), wide(element))
    axes, keep = _dims(site, x)
    inner = x.tensor.element
    great = reduced(site, ReduceMax, x, axes, keep=True)
    great = site.op(Select, site.op(IsInf, great), number(site, 0, inner), great)
    sums = reduced(site, ReduceSum, site.op(Exp, site.op(Sub, x, great)), axes, keep)
    result = site.op(Add, site.op(Log, sums), great if keep else squeeze(site, great, axes))
    return cast(site, result, element)


@converts("linalg_vector_norm", "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim_dtype")
def vector_norm(site: Site) -> Value:
    """(sum |x|^p)^(1/p); infinite p are extremes and 0 counts what is not 0."""
    element = site.element()
    x = cast(site, cast(site, site.value("self"), element), wide(element))
    axes, keep = _dims(site, x)
    order = float(site.get("ord", site.get("p", 2)))
    return cast(site, norm(site, x, order, axes, keep), element)


def norm(site: Site, x: Value, order: float, axes: Sequence[int], keep: bool) -> Value:
    """The vector norm of an order along dims."""
    element = x.tensor.element
    size = site.op(Abs, x)
    if order == math.inf:
        return reduced(site, ReduceMax, size, axes, keep)
    if order == -math.inf:
        return reduced(site, ReduceMin, size, axes, keep)
    if order == 0:
        present = cast(site, site.op(Ne, x, number(site, 0, element)), element)
        return reduced(site, ReduceSum, present, axes, keep)
    if order == 1:
        return reduced(site, ReduceSum, size, axes, keep)
    if order == 2:
        return site.op(Sqrt, reduced(site, ReduceSum, site.op(Mul, x, x), axes, keep))
    powers = reduced(site, ReduceSum, site.op(Pow, size, number(site, order, element)), axes, keep)
    return site.op(Pow, powers, number(site, 1 / order, element))


def _running(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = cast(site, site.value("self"), wanted_element(site, site.element()))
        if rank_of(x) == 0:
            return x
        return site.op(definition, x, axis=site.axis(site["dim"], rank_of(x)))

    return convert


converts("cumsum")(_running(CumSum))
converts("cumprod")(_running(CumProd))


def _running_extreme(site: Site, *, greatest: bool) -> list[Value]:
    """The extreme so far and the last place that has it, by comparing all pairs along the dim."""
    from compiler.ops.compare import Ge, Le
    from compiler.ops.creation import Range
    from compiler.ops.indexing import GatherElements
    from compiler.ops.logic import And, Or

    x = site.value("self")
    if rank_of(x) == 0:
        return [x, site.constant(0, I64)]
    axis = site.axis(site["dim"], rank_of(x))
    size, last = site.size(x, axis), rank_of(x) - 1
    own = swap(site, x, axis, last)
    places = site.op(Range, *[site.constant(value, I64) for value in (0, size, 1)])
    # Dims: ..., i (result), j (candidate <= i).
    here, there = unsqueeze(site, places, (1,)), unsqueeze(site, places, (0,))
    before = site.op(Le, there, here)
    candidates = unsqueeze(site, own, (last,))
    best = _prefix_extreme(site, own, last, size, greatest=greatest)
    matches = site.op(Ge if greatest else Le, candidates, unsqueeze(site, best, (last + 1,)))
    if x.tensor.element.is_float:
        matches = site.op(Or, matches, site.op(IsNan, candidates))
    found = site.op(And, matches, before)
    index = site.op(ReduceMax, site.op(Select, found, there, number(site, -1, I64)), axes=(last + 1,), keep_dims=False)
    values = site.op(GatherElements, own, index, axis=last)
    return [swap(site, values, axis, last), swap(site, index, axis, last)]


def _prefix_extreme(site: Site, x: Value, axis: int, size: int, *, greatest: bool) -> Value:
    from compiler.frontends.torch.converters.common import concat, cut

    definition = ReduceMax if greatest else ReduceMin
    parts = [extreme(site, definition, cut(site, x, axis, 0, end + 1), (axis,), keep=True) for end in range(size)]
    return concat(site, parts, axis) if parts else x


@converts("cummax")
def running_max(site: Site) -> list[Value]:
    """Greatest so far."""
    return _running_extreme(site, greatest=True)


@converts("cummin")
def running_min(site: Site) -> list[Value]:
    """Least so far."""
    return _running_extreme(site, greatest=False)


@converts("logcumsumexp")
def log_cumsum_exp(site: Site) -> Value:
    """log of the running sum of exp, from the greatest of the whole line on."""
    x = site.value("self")
    if rank_of(x) == 0:
        return x
    element = wide(x.tensor.element)
    axis = site.axis(site["dim"], rank_of(x))
    size = site.size(x, axis)
    own = cast(site, x, element)
    from compiler.frontends.torch.converters.common import concat, cut

    parts = []
    for end in range(size):
        part = cut(site, own, axis, 0, end + 1)
        great = site.op(ReduceMax, part, axes=(axis,), keep_dims=True)
        great = site.op(Select, site.op(IsInf, great), number(site, 0, element), great)
        sums = site.op(ReduceSum, site.op(Exp, site.op(Sub, part, great)), axes=(axis,), keep_dims=True)
        parts.append(site.op(Add, site.op(Log, sums), great))
    return cast(site, concat(site, parts, axis), x.tensor.element) if parts else x


@converts("trace")
def trace(site: Site) -> Value:
    """Sum of the diagonal."""
    from compiler.frontends.torch.converters.movement import diagonal_of

    x = cast(site, site.value("self"), site.element())
    return site.op(ReduceSum, diagonal_of(site, x, 0, 0, 1), axes=(0,), keep_dims=False)


@converts("dist")
def dist(site: Site) -> Value:
    """The norm of the difference."""
    element = site.element()
    a, b = (cast(site, cast(site, site.value(name), element), wide(element)) for name in ("self", "other"))
    difference = site.op(Sub, a, b)
    return cast(site, norm(site, difference, float(site["p"]), tuple(range(rank_of(difference))), keep=False), element)
