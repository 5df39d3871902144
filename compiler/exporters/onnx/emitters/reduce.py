"""Reductions and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import onnx

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports, rewrites
from compiler.ir import BOOL, I32, I64, Builder, Definition, Op, Value
from compiler.onnx_types import DATA_TYPES
from compiler.ops import reduce
from compiler.ops.compose import Emit as Compose
from compiler.ops.shapes import normalize_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.exporters.onnx.forms import Form

_REDUCTIONS: Final[dict[type[Definition], str]] = {
    reduce.ReduceAnd: "ReduceMin",
    reduce.ReduceL1: "ReduceL1",
    reduce.ReduceL2: "ReduceL2",
    reduce.ReduceLogSum: "ReduceLogSum",
    reduce.ReduceLogSumExp: "ReduceLogSumExp",
    reduce.ReduceMax: "ReduceMax",
    reduce.ReduceMean: "ReduceMean",
    reduce.ReduceMin: "ReduceMin",
    reduce.ReduceOr: "ReduceMax",
    reduce.ReduceProd: "ReduceProd",
    reduce.ReduceSum: "ReduceSum",
    reduce.ReduceSumSquare: "ReduceSumSquare",
}


def _axes_as_input(operator: str) -> Form:
    def form(op: Op, e: Emit) -> None:
        call = op.call()
        axes = call.integers("axes")
        keep, noop = int(call.flag("keep_dims")), None if axes else 1
        e.op(op, operator, *e.inputs(op), e.integers(axes), keepdims=keep, noop_with_empty_axes=noop)

    return form


def _axes_as_attribute(operator: str) -> Form:
    """No axes would mean all of them there: a dim of 1 is put in front to be reduced."""

    def form(op: Op, e: Emit) -> None:
        call = op.call()
        axes = list(call.integers("axes"))
        if axes:
            e.op(op, operator, *e.inputs(op), axes=axes, keepdims=int(call.flag("keep_dims")))
        else:
            e.op(op, operator, e.new("Unsqueeze", *e.inputs(op), e.integers([0])), axes=[0], keepdims=0)

    return form


for _definition, _operator in _REDUCTIONS.items():
    exports(_definition)(_axes_as_input(_operator))
    exports(_definition)(_axes_as_attribute(_operator))


def _of_numbers(name: str) -> Callable[[Op, Builder], Sequence[Value]]:
    """Bools as 0 and 1."""

    def rewrite(op: Op, builder: Builder) -> Sequence[Value]:
        call, emit = op.call(), Compose(builder)
        if call.tensor(0).element is not BOOL:
            raise NoForm("they are numbers already")
        numbers = emit.cast(op.operand(0), I32)
        found = emit(name, numbers, axes=call.integers("axes"), keep_dims=call.flag("keep_dims"))
        return [emit.cast(found, op.result.tensor.element)]

    return rewrite


rewrites(reduce.ReduceAnd, reduce.ReduceMin)(_of_numbers("reduce_min"))
rewrites(reduce.ReduceOr, reduce.ReduceMax)(_of_numbers("reduce_max"))


def _running(operator: str) -> Form:
    def form(op: Op, e: Emit) -> None:
        call = op.call()
        axis = e.scalar(call.integer("axis"), I64)
        flags = {name: int(call.flag(name)) for name in ("exclusive", "reverse")}
        e.op(op, operator, *e.inputs(op), axis, **flags)

    return form


exports(reduce.CumSum)(_running("CumSum"))
exports(reduce.CumProd)(_running("CumProd"))


def _scanned(operator: str, start: int) -> Form:
    """A Scan along the axis, whose state is the result so far."""

    def form(op: Op, e: Emit) -> None:
        call, x, type_ = op.call(), e.name(op.operand(0)), op.result.tensor
        if type_.dims is None:
            raise NoForm("Scan needs a known rank")
        axis, element = normalize_axis(op.name, call.integer("axis"), type_.rank), type_.element
        others = e.integers([d for d in range(type_.rank) if d != axis])
        state = e.new("Expand", e.scalar(start, element), e.new("Gather", e.new("Shape", x), others))
        info = [
            onnx.helper.make_tensor_value_info(name, DATA_TYPES[element], None)
            for name in ("so_far", "item", "next", "given")
        ]
        shown = "so_far" if call.flag("exclusive") else "next"
        nodes = [
            onnx.helper.make_node(operator, ["so_far", "item"], ["next"]),
            onnx.helper.make_node("Identity", [shown], ["given"]),
        ]
        body = onnx.helper.make_graph(nodes, "running", info[:2], info[2:])
        way = [int(call.flag("reverse"))]
        last = e.model.names.take("last")
        e.node(
            "Scan",
            [state, x],
            [last, e.result_name(op.result)],
            body=body,
            num_scan_inputs=1,
            scan_input_axes=[axis],
            scan_output_axes=[axis],
            scan_input_directions=way,
            scan_output_directions=way,
        )

    return form


exports(reduce.CumProd)(_scanned("Mul", 1))
