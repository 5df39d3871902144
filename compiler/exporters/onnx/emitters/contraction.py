"""Sums of products and pooling."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_letters
from typing import TYPE_CHECKING, Any, Final

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import attribute, exports
from compiler.ir import Call, ElementType, Op
from compiler.ops import contraction, conv_transpose, integer_contraction, pooling
from compiler.ops.compose import known_sizes
from compiler.ops.windows import WindowPlan

if TYPE_CHECKING:
    from compiler.exporters.onnx.forms import Form

_AUTO_PAD: Final = {"explicit": None, "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}


def _widened(op: Op, e: Emit) -> list[str]:
    """The operands in the result's type where that is another one: exact, for it is wider."""
    to: ElementType = op.result.tensor.element
    return [
        e.name(operand) if operand is None or operand.tensor.element is to else e.cast(e.name(operand), to)
        for operand in op.operands
    ]


@exports(contraction.MatMul)
def matmul(op: Op, e: Emit) -> None:
    """A product whose result type may be wider than the operands'."""
    e.op(op, "MatMul", *_widened(op, e))


@exports(contraction.DotGeneral)
def dot_general(op: Op, e: Emit) -> None:
    """A contraction over any dims, as an equation: batch dims, the free dims of the first operand, of the second."""
    call = op.call()
    letters = iter(ascii_letters)
    a = [next(letters) for _ in range(call.tensor(0).rank)]
    b = [next(letters) for _ in range(call.tensor(1).rank)]
    shared: dict[str, list[str]] = {}
    for kind in ("batch", "contract"):
        pairs = zip(call.integers(f"a_{kind}"), call.integers(f"b_{kind}"), strict=True)
        shared[kind] = []
        for i, j in pairs:
            b[j] = a[i]
            shared[kind].append(a[i])
    taken = {*shared["batch"], *shared["contract"]}
    free = [letter for letter in (*a, *b) if letter not in taken]
    equation = f"{''.join(a)},{''.join(b)}->{''.join([*shared['batch'], *free])}"
    e.op(op, "Einsum", *_widened(op, e), equation=equation)


def window_attributes(call: Call) -> dict[str, Any]:
    """Strides, dilations and padding in ONNX's spelling, absent where they are ONNX's defaults."""
    rule = _AUTO_PAD[call.text("auto_pad")]
    dilations = call.integers("dilations")
    return {
        "strides": call.integers("strides") or None,
        "dilations": dilations if set(dilations) - {1} else None,
        "pads": (call.integers("pads") or None) if rule is None else None,
        "auto_pad": rule,
    }


@exports(contraction.Conv)
def conv(op: Op, e: Emit) -> None:
    """Convolution without a bias."""
    call = op.call()
    e.op(op, "Conv", *_widened(op, e), group=call.integer("groups"), **window_attributes(call))


@exports(conv_transpose.ConvTranspose)
def emit_conv_transpose(op: Op, e: Emit) -> None:
    """The transpose of a convolution, without a bias."""
    call = op.call()
    e.op(
        op,
        "ConvTranspose",
        *_widened(op, e),
        group=call.integer("groups"),
        output_padding=call.integers("output_padding") or None,
        output_shape=call.integers("output_shape") or None,
        **window_attributes(call),
    )


def _ceil_mode(call: Call) -> int:
    """Whether windows past the end count, left out where there are none.

    A window that would start in the padding does not count, which ONNX says since operator set 22 alone.
    """
    kernel, sizes = call.integers("kernel"), call.tensor(0).dims
    if not call.flag("ceil_mode") or sizes is None or not all(isinstance(size, int) for size in sizes[2:]):
        return int(call.flag("ceil_mode"))
    plan = WindowPlan.of("pool", call, kernel)
    spatial = [int(size) for size in sizes[2:]]
    counts = [[window.count for window in each.windows(spatial)] for each in (plan, replace(plan, ceil_mode=False))]
    return int(counts[0] != counts[1])


def _pool(operator: str, **renamed: str) -> Form:
    """A pool, with attributes of its own by ONNX's name and the IR's."""

    def form(op: Op, e: Emit) -> None:
        call = op.call()
        e.op(
            op,
            operator,
            kernel_shape=call.integers("kernel"),
            ceil_mode=_ceil_mode(call),
            **window_attributes(call),
            **{name: attribute(call.get(mine)) for name, mine in renamed.items()},
        )

    return form


exports(pooling.AvgPool)(_pool("AveragePool", count_include_pad="count_include_pad"))
exports(pooling.LpPool)(_pool("LpPool", p="p"))
exports(pooling.MaxPool)(_pool("MaxPool"))
exports(pooling.MaxPoolIndices)(_pool("MaxPool", storage_order="column_major"))


@exports(pooling.SumPool)
def sum_pool(op: Op, e: Emit) -> None:
    """An average over the whole window, padding included, times its size. Exact but for the rounding of both steps.

    What reaches beyond the padding would not count in the average, so that there the padding is made larger.
    """
    call = op.call()
    kernel = call.integers("kernel")
    padding = window_attributes(call)
    if _ceil_mode(call):
        windows = WindowPlan.of(op.name, call, kernel).windows(known_sizes(call.tensor(0), range(2, 2 + len(kernel))))
        beyond = [max((w.count - 1) * w.stride + w.reach - w.size - w.low, 0) for w in windows]
        padding["pads"] = [*(w.low for w in windows), *beyond]
    count = 1
    for size in kernel:
        count *= size
    mean = e.new(
        "AveragePool",
        *e.inputs(op),
        kernel_shape=kernel,
        count_include_pad=1,
        **padding,
    )
    e.op(op, "Mul", mean, e.scalar(count, op.result.tensor.element))


@exports(pooling.MaxUnpool)
def max_unpool(op: Op, e: Emit) -> None:
    """The inverse of max pooling."""
    call = op.call()
    e.op(
        op,
        "MaxUnpool",
        kernel_shape=call.integers("kernel"),
        strides=call.integers("strides") or None,
        pads=call.integers("pads") or None,
    )


@exports(integer_contraction.ConvInteger)
def conv_integer(op: Op, e: Emit) -> None:
    """Exact in int32."""
    call = op.call()
    e.op(op, "ConvInteger", group=call.integer("groups"), **window_attributes(call))
