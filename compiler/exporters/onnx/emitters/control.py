"""Branches and loops: regions become subgraphs, which use the names of the graphs around them."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.exporter import graph_proto
from compiler.exporters.onnx.forms import exports
from compiler.ir import Op
from compiler.ops import control


@exports(control.If)
def branch(op: Op, e: Emit) -> None:
    """Both regions as subgraphs."""
    then, other = (graph_proto(region, e.inner(), region.name) for region in op.regions)
    e.op(op, "If", then_branch=then, else_branch=other)


@exports(control.Loop)
def loop(op: Op, e: Emit) -> None:
    """The region as the body."""
    body = graph_proto(op.regions[0], e.inner(), op.regions[0].name)
    e.op(op, "Loop", body=body)
