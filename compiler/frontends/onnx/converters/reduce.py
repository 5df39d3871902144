"""Reductions: axes are an attribute at first, an input later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Definition, Value
from compiler.ops import reduce

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Converter

_REDUCTIONS: Final[dict[str, tuple[type[Definition], int]]] = {
    "ReduceL1": (reduce.ReduceL1, 18),
    "ReduceL2": (reduce.ReduceL2, 18),
    "ReduceLogSum": (reduce.ReduceLogSum, 18),
    "ReduceLogSumExp": (reduce.ReduceLogSumExp, 18),
    "ReduceMax": (reduce.ReduceMax, 18),
    "ReduceMean": (reduce.ReduceMean, 18),
    "ReduceMin": (reduce.ReduceMin, 18),
    "ReduceProd": (reduce.ReduceProd, 18),
    "ReduceSum": (reduce.ReduceSum, 13),
    "ReduceSumSquare": (reduce.ReduceSumSquare, 18),
}
"""ONNX operator -> the IR's operator and the version since which axes are an input."""


def _reduced(site: Site, definition: type[Definition], axes: tuple[int, ...] | None) -> Value:
    x = site.input(0)
    rank = site.rank(x)
    if not axes and not site.attribute("noop_with_empty_axes"):
        axes = tuple(range(rank))
    # Over no axes nothing is reduced, but the other steps (square, log) are done: what the newest text says.
    chosen = tuple(sorted(set(site.axes(axes or (), rank))))
    return site.b(definition, x, axes=chosen, keep_dims=bool(site.attribute("keepdims")))


def _reduction(definition: type[Definition], input_since: int) -> Converter:
    def convert(site: Site) -> Value:
        if site.version < input_since:
            return _reduced(site, definition, site.attribute("axes"))
        return _reduced(site, definition, site.needed_integers(1) if site.has(1) else None)

    return convert


for _name, (_definition, _since) in _REDUCTIONS.items():
    converts(_name)(_reduction(_definition, _since))


def _arg(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        return site.b(
            definition,
            site.input(0),
            axis=site.attribute("axis"),
            keep_dims=bool(site.attribute("keepdims")),
            select_last=bool(site.attribute("select_last_index")),
        )

    return convert


converts("ArgMax")(_arg(reduce.ArgMax))
converts("ArgMin")(_arg(reduce.ArgMin))


def _cumulative(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        return site.b(
            definition,
            site.input(0),
            axis=site.axis(site.needed_integer(1), site.rank(site.input(0))),
            exclusive=bool(site.attribute("exclusive")),
            reverse=bool(site.attribute("reverse")),
        )

    return convert


converts("CumSum")(_cumulative(reduce.CumSum))
converts("CumProd")(_cumulative(reduce.CumProd))
