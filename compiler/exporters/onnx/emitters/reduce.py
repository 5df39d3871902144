"""Reductions and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import I64, Definition, Op
from compiler.ops import reduce

if TYPE_CHECKING:
    from compiler.exporters.onnx.emit import Emitter

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


def _reduction(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        call = op.call()
        axes = e.integers(call.integers("axes"))
        noop = None if call.integers("axes") else 1
        keep = int(call.flag("keep_dims"))
        e.op(op, operator, *e.inputs(op), axes, keepdims=keep, noop_with_empty_axes=noop)

    return emit


for _definition, _operator in _REDUCTIONS.items():
    exports(_definition)(_reduction(_operator))


def _extreme(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        call = op.call()
        e.op(
            op,
            operator,
            axis=call.integer("axis"),
            keepdims=int(call.flag("keep_dims")),
            select_last_index=int(call.flag("select_last")),
        )

    return emit


exports(reduce.ArgMax)(_extreme("ArgMax"))
exports(reduce.ArgMin)(_extreme("ArgMin"))


def _running(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        call = op.call()
        axis = e.scalar(call.integer("axis"), I64)
        e.op(
            op,
            operator,
            *e.inputs(op),
            axis,
            exclusive=int(call.flag("exclusive")),
            reverse=int(call.flag("reverse")),
        )

    return emit


exports(reduce.CumSum)(_running("CumSum"))
exports(reduce.CumProd)(_running("CumProd"))
