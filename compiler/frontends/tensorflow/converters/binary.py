"""Functions of two and more tensors, element by element."""

from __future__ import annotations

import numpy as np

from compiler.frontends.assembly import number, reshape, size_value, unsqueeze
from compiler.frontends.tensorflow.converters.common import computed, direct, formulas, is_channels_first
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ir import Value
from compiler.ops import compare, elementwise, logic
from compiler.ops.compose import Emit

direct(
    {
        "Add": elementwise.Add,
        "AddV2": elementwise.Add,
        "Sub": elementwise.Sub,
        "Mul": elementwise.Mul,
        "Div": elementwise.Div,
        "RealDiv": elementwise.Div,
        "FloorMod": elementwise.Mod,
        "Mod": elementwise.Rem,
        "TruncateMod": elementwise.Rem,
        "Maximum": elementwise.Max,
        "Minimum": elementwise.Min,
        "Pow": elementwise.Pow,
        "Atan2": elementwise.Atan2,
        "Equal": compare.Eq,
        "NotEqual": compare.Ne,
        "Less": compare.Lt,
        "LessEqual": compare.Le,
        "Greater": compare.Gt,
        "GreaterEqual": compare.Ge,
        "LogicalAnd": logic.And,
        "LogicalOr": logic.Or,
        "BitwiseAnd": logic.BitAnd,
        "BitwiseOr": logic.BitOr,
        "BitwiseXor": logic.BitXor,
        "SelectV2": compare.Select,
        "ClipByValue": elementwise.Clamp,
    }
)


def _floor_divide(e: Emit, a: Value, b: Value) -> Value:
    if a.tensor.element.is_float:
        return e("floor", e("div", a, b))
    quotient = e("div", a, b)
    if a.tensor.element.dtype.kind == "u":
        return quotient
    # Of the truncated quotient, so that nothing leaves the type on the way.
    left = e("rem", a, b)
    below = e("and", e("ne", left, 0), e("xor", e("lt", left, 0), e("lt", b, 0)))
    return e("select", below, e("sub", quotient, 1), quotient)


@converts("SquaredDifference")
def squared_difference(site: Site) -> Value:
    """The square of the difference; of complex numbers the square of its magnitude."""
    from compiler.frontends.tensorflow.converters.signal import conjugated

    def formula(e: Emit, a: Value, b: Value) -> Value:
        difference = e("sub", a, b)
        return e("mul", difference, conjugated(site, difference))

    return computed(site, formula)


def _truncate_divide(e: Emit, a: Value, b: Value) -> Value:
    quotient = e("div", a, b)
    return e("trunc", quotient) if a.tensor.element.is_float else quotient


def _unless_zero(e: Emit, decides: Value, result: Value) -> Value:
    """The result, and 0 where ``decides`` is 0, whatever the result is there."""
    return e("select", e("eq", decides, 0), 0, result)


formulas(
    {
        "FloorDiv": _floor_divide,
        "TruncateDiv": _truncate_divide,
        "MulNoNan": lambda e, x, y: _unless_zero(e, y, e("mul", x, y)),
        "DivNoNan": lambda e, x, y: _unless_zero(e, y, e("div", x, y)),
        "Xdivy": lambda e, x, y: _unless_zero(e, x, e("div", x, y)),
        "Xlogy": lambda e, x, y: _unless_zero(e, x, e("mul", x, e("log", y))),
        "Xlog1py": lambda e, x, y: _unless_zero(e, x, e("mul", x, e("log1p", y))),
    }
)


@converts("ApproximateEqual")
def approximate_equal(site: Site) -> Value:
    """Whether the distance is below the tolerance."""
    tolerance = float(site.attr("tolerance"))
    return computed(site, lambda e, x, y: e("lt", e("abs", e("sub", x, y)), tolerance))


@converts("LeftShift", "RightShift")
def shift(site: Site) -> Value:
    """By at least 0 and at most all bits but one, to which TensorFlow's kernels clamp."""
    x, y = site.values
    element = x.tensor.element
    bounded = site.op(elementwise.Clamp, y, number(site, 0, element), number(site, element.bits - 1, element))
    return site.op(logic.ShiftLeft if site.operator == "LeftShift" else logic.ShiftRight, x, bounded)


@converts("AddN", "AccumulateNV2")
def add_n(site: Site) -> Value:
    """The sum of all inputs, from the left."""

    def total(e: Emit, first: Value, *rest: Value) -> Value:
        for value in rest:
            first = e("add", first, value)
        return first

    return computed(site, total)


@converts("BiasAdd")
def bias_add(site: Site) -> Value:
    """A vector added along the channels."""
    x, bias = site.values
    if is_channels_first(site):
        bias = unsqueeze(site, bias, tuple(range(1, site.rank(x) - 1)))
    return site.op(elementwise.Add, x, bias)


@converts("BiasAddV1")
def bias_add_last(site: Site) -> Value:
    """A vector added along the last dim."""
    return site.op(elementwise.Add, *site.values)


@converts("Select")
def select(site: Site) -> Value:
    """Conditions of lower rank choose whole slices along the first dim."""
    condition, then, otherwise = site.values
    missing = site.rank(then) - site.rank(condition)
    if site.rank(condition) and missing:
        rows = size_value(site, condition, 0)
        condition = reshape(site, condition, [rows if not condition.tensor.is_static else -1, *[1] * missing])
    return site.op(compare.Select, condition, then, otherwise)


@converts("Cross")
def cross(site: Site) -> Value:
    """The cross product of vectors of three along the last dim."""
    from compiler.ops.indexing import Gather

    def product(e: Emit, a: Value, b: Value) -> Value:
        axis = site.rank(a) - 1

        def turned(value: Value, *order: int) -> Value:
            return site.op(Gather, value, site.integers(*order), axis=axis)

        return e(
            "sub",
            e("mul", turned(a, 1, 2, 0), turned(b, 2, 0, 1)),
            e("mul", turned(a, 2, 0, 1), turned(b, 1, 2, 0)),
        )

    return computed(site, product)


@converts("BroadcastArgs")
def broadcast_args(site: Site) -> Value:
    """The sizes that two shapes broadcast to. Raises ValueNeeded where they are not known."""
    a, b = (tuple(site.ints(index, "a shape")) for index in (0, 1))
    return site.constant(np.array(np.broadcast_shapes(a, b)), site.element())


@converts("NextAfter")
def next_after(site: Site) -> Value:
    """The neighbour of x in the direction of y: numbers of one sign are ordered as their bits are."""
    from compiler.ir import F32, I32, I64
    from compiler.ops.convert import BitCast

    x, y = site.values
    element = x.tensor.element
    whole = I32 if element is F32 else I64
    e = Emit(site.b)
    bits = site.op(BitCast, x, to=whole)
    away = e("eq", e("lt", x, y), e("gt", x, 0))
    moved = site.op(BitCast, e("select", away, e("add", bits, 1), e("sub", bits, 1)), to=element)
    least = site.b.constant(np.array(1, whole.dtype).view(element.dtype))
    from_zero = e("select", e("gt", y, 0), least, e("neg", least))
    found = e("select", e("eq", x, 0), from_zero, moved)
    nan = e("or", e("isnan", x), e("isnan", y))
    return e("select", e("eq", x, y), y, e("select", nan, e("add", x, y), found))
