"""Access by index."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops import indexing, selection


@exports(indexing.Gather)
def gather(op: Op, e: Emit) -> None:
    """Slices along an axis."""
    e.op(op, "Gather", axis=op.call().integer("axis"))


@exports(indexing.GatherElements)
def gather_elements(op: Op, e: Emit) -> None:
    """Single elements along an axis."""
    e.op(op, "GatherElements", axis=op.call().integer("axis"))


@exports(indexing.GatherNd)
def gather_nd(op: Op, e: Emit) -> None:
    """Index vectors."""
    e.op(op, "GatherND", batch_dims=op.call().integer("batch_dims"))


@exports(indexing.ScatterElements)
def scatter_elements(op: Op, e: Emit) -> None:
    """Single elements along an axis."""
    call = op.call()
    e.op(op, "ScatterElements", axis=call.integer("axis"), reduction=call.text("reduction"))


@exports(indexing.ScatterNd)
def scatter_nd(op: Op, e: Emit) -> None:
    """Index vectors."""
    e.op(op, "ScatterND", reduction=op.call().text("reduction"))


@exports(indexing.OneHot)
def one_hot(op: Op, e: Emit) -> None:
    """The value 'on' where an index says so."""
    e.op(op, "OneHot", axis=op.call().integer("axis"))


@exports(indexing.ReverseSequence)
def reverse_sequence(op: Op, e: Emit) -> None:
    """Sequences turned round."""
    call = op.call()
    e.op(op, "ReverseSequence", batch_axis=call.integer("batch_axis"), time_axis=call.integer("time_axis"))


@exports(selection.Compress)
def compress(op: Op, e: Emit) -> None:
    """Slices whose condition holds."""
    e.op(op, "Compress", axis=op.call().get("axis"))


@exports(selection.NonZero)
def nonzero(op: Op, e: Emit) -> None:
    """Positions of elements that are not 0."""
    e.op(op, "NonZero")


@exports(selection.Unique)
def unique(op: Op, e: Emit) -> None:
    """Distinct elements."""
    call = op.call()
    e.op(op, "Unique", axis=call.get("axis"), sorted=int(call.flag("sorted")))


@exports(selection.TopK)
def top_k(op: Op, e: Emit) -> None:
    """The greatest or least."""
    call = op.call()
    e.op(
        op,
        "TopK",
        axis=call.integer("axis"),
        largest=int(call.flag("largest")),
        sorted=int(call.flag("sorted")),
    )
