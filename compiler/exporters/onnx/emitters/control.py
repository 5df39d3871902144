"""Branches and loops: regions become subgraphs, which use the names of the graphs around them."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.exporters.onnx.exporter import graph_proto
from compiler.ir import Op
from compiler.ops import control


@exports(control.If)
def branch(op: Op, e: Emit) -> None:
    """Both regions as subgraphs."""
    then, other = (graph_proto(region, Emit(e.model, e), region.name) for region in op.regions)
    e.op(op, "If", then_branch=then, else_branch=other)


@exports(control.Loop)
def loop(op: Op, e: Emit) -> None:
    """The region as the body."""
    body = graph_proto(op.regions[0], Emit(e.model, e), op.regions[0].name)
    inputs = e.inputs(op)
    e.op(op, "Loop", *inputs, body=body)
