"""Layers that combine values: sums, scales, biases, reductions, extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.caffe.reader import PB
from compiler.frontends.caffe.site import Site, converts
from compiler.ir import F32, Value
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Abs, Add, Max, Mul, Sub
from compiler.ops.movement import Concat, Reverse
from compiler.ops.reduce import ArgMax, ReduceMax, ReduceMean, ReduceSum
from compiler.ops.reshape import Unsqueeze
from compiler.ops.selection import TopK

if TYPE_CHECKING:
    from collections.abc import Callable


def _sum(site: Site, coefficients: list[float]) -> Value:
    terms = [
        value if factor == 1 else site.b(Mul, value, site.number(factor))
        for value, factor in zip(site.inputs, coefficients, strict=True)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = site.b(Add, total, term)
    return total


def _folded(definition: type[Mul | Max]) -> Callable[[Site, list[float]], Value]:
    def fold(site: Site, _coefficients: list[float]) -> Value:
        total = site.inputs[0]
        for value in site.inputs[1:]:
            total = site.b(definition, total, value)
        return total

    return fold


_OPERATIONS = {
    PB.EltwiseParameter.SUM: _sum,
    PB.EltwiseParameter.PROD: _folded(Mul),
    PB.EltwiseParameter.MAX: _folded(Max),
}


@converts("Eltwise", least=2, greatest=None)
def eltwise(site: Site) -> Value:
    """Sum (each bottom with its coefficient), product or maximum of bottoms of one shape."""
    found = site.parameters("eltwise_param")
    shapes = [site.dims(index) for index in range(len(site.inputs))]
    if len(set(shapes)) > 1:
        site.invalid(f"bottoms have shapes {', '.join(str(list(dims)) for dims in shapes)}; expected one for all")
    given = list(found.coeff)
    if given and (len(given) != len(site.inputs) or found.operation != PB.EltwiseParameter.SUM):
        site.invalid(
            f"{len(given)} of coeff; expected one a bottom, of which there are {len(shapes)}, and only in a sum"
        )
    return _OPERATIONS[found.operation](site, given or [1.0] * len(site.inputs))


def _along(site: Site, operand: Value, axis: int) -> Value:
    """A value whose dims stand for those of bottom 0 from ``axis`` on, given the dims after them."""
    dims, own = site.dims(), site.sizes(operand)
    if dims[axis : axis + len(own)] != own:
        site.invalid(f"shape {list(own)} does not fit the bottom's {list(dims)} from dim {axis} on")
    return site.reshape(operand, (*own, *(1,) * (len(dims) - axis - len(own))))


def _parameter(site: Site, what: str, axis: int, num_axes: int) -> Value:
    dims = site.dims()
    if num_axes < -1 or axis + num_axes > len(dims):
        site.invalid(f"axis {axis} and num_axes {num_axes} go beyond the bottom's {len(dims)} dims")
    shape = dims[axis:] if num_axes == -1 else dims[axis : axis + num_axes]
    return site.weight(0, what, shape)


@converts("Scale", greatest=2)
def scale(site: Site) -> Value:
    """x times a factor that stands for some of its dims, plus a bias of the factor's shape if asked for."""
    found, rank = site.parameters("scale_param"), len(site.dims())
    learned = len(site.inputs) == 1
    scalar = len(site.sizes(site.inputs[1])) == 0 if not learned else found.num_axes == 0
    axis = 0 if scalar else site.axis(found.axis, rank)
    factor = _parameter(site, "scale", axis, found.num_axes) if learned else site.inputs[1]
    result = site.b(Mul, site.inputs[0], _along(site, factor, axis))
    if not found.bias_term:
        return result
    bias = site.weight(1 if learned else 0, "bias", site.sizes(factor))
    return site.b(Add, result, _along(site, bias, axis))


@converts("Bias", greatest=2)
def bias(site: Site) -> Value:
    """x plus a value that stands for some of its dims."""
    found, rank = site.parameters("bias_param"), len(site.dims())
    learned = len(site.inputs) == 1
    scalar = len(site.sizes(site.inputs[1])) == 0 if not learned else found.num_axes == 0
    axis = 0 if scalar else site.axis(found.axis, rank)
    addend = _parameter(site, "bias", axis, found.num_axes) if learned else site.inputs[1]
    return site.b(Add, site.inputs[0], _along(site, addend, axis))


@converts("Reduction")
def reduction(site: Site) -> Value:
    """coeff times the sum, sum of magnitudes, sum of squares or mean over ``axis`` and all dims after it."""
    found, rank = site.parameters("reduction_param"), len(site.dims())
    kinds = PB.ReductionParameter
    x, axes = site.inputs[0], tuple(range(site.axis(found.axis, max(rank, 1)), rank))
    prepared = {kinds.ASUM: lambda: site.b(Abs, x), kinds.SUMSQ: lambda: site.b(Mul, x, x)}
    operand = prepared.get(found.operation, lambda: x)()
    reducer = ReduceMean if found.operation == kinds.MEAN else ReduceSum
    result = site.b(reducer, operand, axes=axes, keep_dims=False)
    return result if found.coeff == 1 else site.b(Mul, result, site.number(found.coeff))


@converts("ArgMax")
def argmax(site: Site) -> Value:
    """Positions (or values) of the top_k greatest, as float32; of equal ones the last, as Caffe's sort of pairs has it.

    Along ``axis``; without one over all dims but the first, as [N, 1, top_k], or [N, 2, top_k] with values in row 1.
    """
    found, dims = site.parameters("argmax_param"), site.dims()
    if found.HasField("axis"):
        axis = site.axis(found.axis, len(dims))
        values, positions = _greatest(site, site.inputs[0], axis, dims[axis], found.top_k)
        return values if found.out_max_val else positions
    size = int(np.prod(dims[1:], dtype=np.int64))
    flat = site.reshape(site.inputs[0], (dims[0], size))
    values, positions = _greatest(site, flat, 1, size, found.top_k)
    rows = [positions, values] if found.out_max_val else [positions]
    stacked = [site.b(Unsqueeze, row, site.integers(1)) for row in rows]
    joined = stacked[0] if len(stacked) == 1 else site.b(Concat, *stacked, axis=1)
    return site.reshape(joined, (*site.sizes(joined), *(1,) * (len(dims) - 3)))


def _greatest(site: Site, x: Value, axis: int, size: int, count: int) -> tuple[Value, Value]:
    if not 1 <= count <= size:
        site.invalid(f"top_k is {count}; expected 1 to {size}")
    if count == 1:
        values = site.b(ReduceMax, x, axes=(axis,), keep_dims=True)
        return values, site.b(Cast, site.b(ArgMax, x, axis=axis, select_last=True), to=F32)
    top = site.b.op(TopK, (site.b(Reverse, x, axes=(axis,)), site.integers(count)), axis=axis)
    positions = site.b(Sub, site.integers(size - 1), top.results[1])
    return top.results[0], site.b(Cast, positions, to=F32)
