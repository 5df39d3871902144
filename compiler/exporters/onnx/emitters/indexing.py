"""Scattering with reductions, for operator sets whose Scatter operators only replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.exporters.onnx.forms import NoForm, rewrites
from compiler.ir import BOOL, I64, UNKNOWN, Graph, Op, Value, tensor
from compiler.ir import Builder as GraphBuilder
from compiler.ops import indexing
from compiler.ops.compose import Emit as Compose
from compiler.ops.control import Loop
from compiler.ops.shapes import normalize_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder

_JOINED: Final = {"add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(op: Op) -> str:
    found = _JOINED.get(op.call().text("reduction"))
    if found is None:
        raise NoForm("it only replaces")
    return found


@rewrites(indexing.ScatterNd)
def scatter_nd_one_by_one(op: Op, builder: Builder) -> Sequence[Value]:
    """A loop over the index vectors, so that those that are the same one add up."""
    joined, emit = _reduction(op), Compose(builder)
    x, indices, updates = op.operands
    assert x is not None
    assert indices is not None
    assert updates is not None
    many, depth = indices.tensor.rank - 1, indices.tensor.shape[-1]
    kept = x.tensor.known_dims[depth:]
    places = emit("reshape", indices, emit.integers([-1, depth]))
    sizes = emit.concat([emit.integers([-1]), emit("shape_of", updates, start=many)], 0)
    values = emit("reshape", updates, sizes)
    values.type = updates.tensor.with_dims((UNKNOWN, *kept))
    return [_loop(builder, joined, x, places, values)]


def _loop(builder: Builder, joined: str, x: Value, places: Value, values: Value) -> Value:
    """x with ``joined`` of what is there and each of ``values`` [N, ...] at each of ``places`` [N, K], in order."""
    body = Graph("combine", [tensor(I64, ()), tensor(BOOL, ()), x.type], ["trip", "go", "x"])
    inner = GraphBuilder(body, location=builder.location)
    emit = Compose(inner)
    trip, go, current = body.inputs
    one = emit("unsqueeze", trip, emit.integers([0]))
    place, value = (emit("gather", item, one, axis=0) for item in (places, values))
    there = emit("gather_nd", current, place, batch_dims=0)
    changed = emit("scatter_nd", current, place, emit(joined, there, value), reduction="none")
    changed.type = x.type
    inner.output(go, changed)
    outer = Compose(builder)
    count = outer("reshape", outer("shape_of", places, start=0, end=1), outer.integers([]))
    loop = builder.op(Loop, [count, builder.constant(np.array(True)), x], [body])
    return loop.results[0]


@rewrites(indexing.ScatterElements)
def scatter_elements_by_vectors(op: Op, builder: Builder) -> Sequence[Value]:
    """Index vectors whose entry for the axis is the index, and the others the place of the index itself."""
    _reduction(op)
    call, emit = op.call(), Compose(builder)
    x, indices, updates = op.operands
    assert x is not None
    assert indices is not None
    assert updates is not None
    (axis,) = normalize_axes(op.name, (call.integer("axis"),), x.tensor.rank)
    sizes = emit("shape_of", indices)
    chosen = emit.cast(indices, I64)
    length = emit("reshape", emit("shape_of", x, start=axis, end=axis + 1), emit.integers([]))
    chosen = emit("select", emit("lt", chosen, 0), emit("add", chosen, length), chosen)
    along = [chosen if d == axis else emit("iota", sizes, axis=d, to=I64) for d in range(x.tensor.rank)]
    vectors = emit.concat([emit("unsqueeze", part, emit.integers([-1])) for part in along], x.tensor.rank)
    return [emit("scatter_nd", x, vectors, updates, reduction=call.text("reduction"))]
