"""Reductions along dims, running sums, positions of extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.frontends.assembly import cast
from compiler.frontends.tensorflow.converters.common import axes_of, axis_of, computed
from compiler.frontends.tensorflow.site import Converter, Site, converts
from compiler.ir import F64, Definition, Kind
from compiler.ops import reduce as reductions
from compiler.ops.compose import Emit
from compiler.ops.elementwise import Abs

if TYPE_CHECKING:
    from compiler.ir import Value


def _reduction(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value(0)
        axes = axes_of(site, site.ints(1, "the choice of dims"), site.rank(x))
        return site.op(definition, x, axes=axes, keep_dims=bool(site.attr("keep_dims"))) if axes else x

    return convert


@converts("EuclideanNorm")
def norm(site: Site) -> Value:
    """The root of the sum of squares; of integers the sum is taken in their own type, and the root truncated."""
    x = site.value(0)
    axes, keep = axes_of(site, site.ints(1, "the choice of dims"), site.rank(x)), bool(site.attr("keep_dims"))
    element = x.tensor.element
    if element.is_float:
        return site.op(reductions.ReduceL2, x, axes=axes, keep_dims=keep) if axes else site.op(Abs, x)
    e = Emit(site.b)
    if element.kind is Kind.COMPLEX:
        return _complex_norm(site, axes, keep=keep)
    squares = e("mul", x, x)
    total = e("reduce_sum", squares, axes=axes, keep_dims=keep) if axes else squares
    return cast(site, e("sqrt", cast(site, total, F64)), element)


def _complex_norm(site: Site, axes: tuple[int, ...], *, keep: bool) -> Value:
    """The root of the sum of squared magnitudes, as a complex number."""
    from compiler.frontends.tensorflow.converters.signal import imaginary_part, joined, real_part

    e = Emit(site.b)
    x = site.value(0)
    squares = [e("mul", part, part) for part in (real_part(site, x), imaginary_part(site, x))]
    total = e("add", *squares)
    root = e("sqrt", e("reduce_sum", total, axes=axes, keep_dims=keep) if axes else total)
    return joined(site, root, e("max", e("min", root, 0.0), 0.0))


_REDUCTIONS: dict[str, type[Definition]] = {
    "Sum": reductions.ReduceSum,
    "Prod": reductions.ReduceProd,
    "Max": reductions.ReduceMax,
    "Min": reductions.ReduceMin,
    "Mean": reductions.ReduceMean,
    "All": reductions.ReduceAnd,
    "Any": reductions.ReduceOr,
}
for _name, _definition in _REDUCTIONS.items():
    converts(_name)(_reduction(_definition))


@converts("ArgMax", "ArgMin")
def position(site: Site) -> Value:
    """The first position of the greatest or least element."""
    x = site.value(0)
    axis = axis_of(site, site.whole(1, "the axis"), site.rank(x))
    definition = reductions.ArgMax if site.operator == "ArgMax" else reductions.ArgMin
    return cast(site, site.op(definition, x, axis=axis, keep_dims=False), site.element())


@converts("Cumsum", "Cumprod")
def running(site: Site) -> Value:
    """Running sums and products, from either end, with or without the element itself."""
    x = site.value(0)
    axis = axis_of(site, site.whole(1, "the axis"), site.rank(x))
    definition = reductions.CumSum if site.operator == "Cumsum" else reductions.CumProd
    return site.op(definition, x, axis=axis, exclusive=bool(site.attr("exclusive")), reverse=bool(site.attr("reverse")))


@converts("CumulativeLogsumexp")
def running_logarithm(site: Site) -> Value:
    """log of the running sum of e^x, above the greatest element of the dim."""
    axis = axis_of(site, site.whole(1, "the axis"), site.rank(site.value(0)))
    attributes = {"axis": axis, "exclusive": bool(site.attr("exclusive")), "reverse": bool(site.attr("reverse"))}

    def formula(e: Emit, x: Value) -> Value:
        top = e("reduce_max", x, axes=(axis,))
        top = e("select", e("isfinite", top), top, 0)
        return e("add", e("log", e("cumsum", e("exp", e("sub", x, top)), **attributes)), top)

    return computed(site, formula, site.value(0))


@converts("L2Loss")
def half_square_sum(site: Site) -> Value:
    """Half the sum of squares of all elements."""
    rank = site.rank(site.value(0))

    def formula(e: Emit, x: Value) -> Value:
        squares = e("mul", x, x)
        return e("mul", e("reduce_sum", squares, axes=tuple(range(rank)), keep_dims=False) if rank else squares, 0.5)

    return computed(site, formula)
