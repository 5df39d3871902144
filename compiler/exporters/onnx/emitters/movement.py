"""Data movement, shapes and creation where ONNX's operands differ from the IR's, or an older operator set's do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from compiler.exporters.onnx.emit import Emit, tensor_proto
from compiler.exporters.onnx.forms import NoForm, exports, rewrites
from compiler.ir import I32, I64, Op, Value
from compiler.onnx_types import DATA_TYPES
from compiler.ops import creation, movement, padding, reshape, shape
from compiler.ops.compose import Emit as Compose
from compiler.ops.shapes import normalize_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder


@exports(reshape.Reshape)
def emit_reshape(op: Op, e: Emit) -> None:
    """A size of 0 means 0 here, which an attribute says; it excludes -1, which the result's static sizes replace."""
    value, type_ = op.call().value(1), op.result.tensor
    if value is not None and (value != 0).all():
        e.op(op, "Reshape")
        return
    static = type_.is_static and 0 not in type_.shape
    both = value is not None and (value == -1).any()
    sizes = e.integers(type_.shape) if static or (both and type_.is_static) else e.name(op.operand(1))
    e.op(op, "Reshape", e.name(op.operand(0)), sizes, allowzero=0 if static else 1)


@exports(reshape.Reshape)
def reshape_or_nothing(op: Op, e: Emit) -> None:
    """Without the attribute: a computed size of 0 means no elements, and zeros of that shape stand for them."""
    x, sizes = e.inputs(op)
    found, made, moved = op.result.tensor, e.model.names.take("nothing"), e.model.names.take("reshaped")
    if found.element.dtype.hasobject:
        raise NoForm("there is no empty tensor of strings")
    info = [onnx.helper.make_tensor_value_info(name, DATA_TYPES[found.element], None) for name in (made, moved)]
    zero = e.constant(np.zeros((), found.element.dtype))
    node = onnx.helper.make_node
    branches = {
        "then_branch": ([node("Expand", [zero, sizes], [made])], info[0]),
        "else_branch": ([node("Reshape", [x, sizes], [moved])], info[1]),
    }
    graphs = {name: onnx.helper.make_graph(nodes, name, [], [out]) for name, (nodes, out) in branches.items()}
    none = e.new("ReduceMin", e.cast(e.new("Abs", sizes), I32), keepdims=0)
    e.node("If", [e.new("Equal", none, e.scalar(0, I32))], [e.result_name(op.result)], **graphs)


@rewrites(reshape.Reshape)
def reshape_of_nothing(op: Op, builder: Builder) -> Sequence[Value]:
    """Without elements, zeros of the size that is wanted; they depend on nothing."""
    type_ = op.result.tensor
    if not type_.is_static or 0 not in type_.shape or type_.element.dtype.hasobject:
        raise NoForm("sizes that may be 0 are computed")
    return [builder.constant(np.zeros(type_.shape, type_.element.dtype))]


@exports(movement.Split)
def split(op: Op, e: Emit) -> None:
    """Sizes or a number of parts."""
    call = op.call()
    count = None if call.has(1) else call.integer("outputs")
    e.op(op, "Split", axis=call.integer("axis"), num_outputs=count)


@rewrites(movement.Split)
def split_by_sizes(op: Op, builder: Builder) -> Sequence[Value]:
    """Parts of ceil(size / number) elements, the last ones of what is left."""
    call, emit = op.call(), Compose(builder)
    if call.has(1):
        raise NoForm("it has sizes already")
    x, count = op.operand(0), call.integer("outputs")
    (axis,) = normalize_axes(op.name, (call.integer("axis"),), x.tensor.rank)
    size = emit("shape_of", x, start=axis, end=axis + 1)
    part = emit("div", emit("add", size, emit.integers([count - 1])), emit.integers([count]))
    starts = emit("mul", part, emit.integers(range(count)))
    left = emit("max", emit("sub", size, starts), emit.integers([0]))
    parts = builder.op(op.definition, [x, emit("min", left, part)], axis=axis, outputs=count)
    return parts.results


@exports(movement.Reverse)
def reverse(op: Op, e: Emit) -> None:
    """A slice with steps of -1."""
    axes = op.call().integers("axes")
    ends = [e.integers([value] * len(axes)) for value in (-1, -(2**63))]
    e.op(op, "Slice", *e.inputs(op), *ends, e.integers(axes), e.integers([-1] * len(axes)))


@exports(padding.Pad)
def pad(op: Op, e: Emit) -> None:
    """Padding around; ONNX has none between elements."""
    call = op.call()
    if any(call.integers("interior")):
        raise NoForm("Pad puts nothing between elements")
    e.op(op, "Pad", mode=call.text("mode"))


@rewrites(padding.Pad)
def pad_all_dims(op: Op, builder: Builder) -> Sequence[Value]:
    """The numbers of the chosen dims among zeros."""
    call, emit = op.call(), Compose(builder)
    if not call.has(3) or any(call.integers("interior")):
        raise NoForm("all dims are padded already")
    x, pads, value, axes = op.operand(0), op.operand(1), op.operands[2], emit.cast(op.operand(3), I64)
    rank = x.tensor.rank
    chosen = emit("select", emit("lt", axes, 0), emit("add", axes, rank), axes)
    places = emit.concat([chosen, emit("add", chosen, rank)], 0)
    zeros = emit.integers([0] * (2 * rank))
    whole = emit("scatter_elements", zeros, places, emit.cast(pads, I64), axis=0, reduction="none")
    padded = builder(op.definition, x, whole, value, mode=call.text("mode"))
    padded.type = op.result.type
    return [padded]


@rewrites(padding.Pad)
def pad_by_index(op: Op, builder: Builder) -> Sequence[Value]:
    """Modes that repeat elements, dim by dim: which element stands where is known for static sizes."""
    call, emit = op.call(), Compose(builder)
    pads, mode = call.value(1), call.text("mode")
    if pads is None or mode == "constant" or call.has(3):
        raise NoForm("the numbers of elements are computed")
    x = op.operand(0)
    half = len(pads) // 2
    for axis, size in enumerate(x.tensor.shape):
        margin = padding.Margin(int(pads[axis]), int(pads[half + axis]))
        if not margin.is_nothing:
            x = emit("gather", x, emit.constant(np.asarray(margin.sources(mode, size), np.int64)), axis=axis)
    return [x]


@rewrites(padding.Pad)
def pad_between(op: Op, builder: Builder) -> Sequence[Value]:
    """Elements between: each becomes the first of a row of its own; the rows are joined, less what follows the last."""
    call, emit = op.call(), Compose(builder)
    x, pads, value, axes = [*op.operands, None, None][:4]
    if x is None or not any(call.integers("interior")):
        raise NoForm("nothing goes between elements")
    for axis, between in enumerate(call.integers("interior")):
        shape_ = x.tensor.shape
        if between and shape_[axis] > 1:
            row = emit.unsqueeze(x, [axis + 1])
            ends = emit.integers([0] * (len(shape_) + 1 + axis + 1) + [between] + [0] * (len(shape_) - 1 - axis))
            rows = emit("pad", row, ends, value)
            joined = [*shape_[:axis], shape_[axis] * (between + 1), *shape_[axis + 1 :]]
            x = emit.slice(emit.reshape(rows, joined), axis, 0, joined[axis] - between)
    return [builder(op.definition, x, pads, value, axes)]


@rewrites(padding.Trilu)
def trilu(op: Op, builder: Builder) -> Sequence[Value]:
    """Where column - row lies on the side of the diagonal that stays."""
    call, emit = op.call(), Compose(builder)
    x = op.operand(0)
    rank = x.tensor.rank
    sizes = emit("shape_of", x, start=rank - 2)
    column, row = (emit("iota", sizes, axis=axis, to=I64) for axis in (1, 0))
    beyond = emit("sub", column, row)
    diagonal = emit.integers([0]) if len(op.operands) < 2 or op.operands[1] is None else op.operand(1)
    diagonal = emit("reshape", emit.cast(diagonal, I64), emit.integers([]))
    stays = emit("ge" if call.flag("upper") else "le", beyond, diagonal)
    zero = builder.constant(np.zeros((), x.tensor.element.dtype))
    return [emit("select", stays, x, zero)]


@exports(shape.ShapeOf)
def shape_of(op: Op, e: Emit) -> None:
    """All sizes or a part of them."""
    call = op.call()
    start, end = call.get("start"), call.get("end")
    e.op(op, "Shape", start=start or None, end=end)


@exports(shape.ShapeOf)
def part_of_shape(op: Op, e: Emit) -> None:
    """A slice of all sizes."""
    call = op.call()
    start, end = call.integer("start"), call.get("end")
    last = 2**63 - 1 if end is None else call.integer("end")
    e.op(op, "Slice", e.new("Shape", *e.inputs(op)), e.integers([start]), e.integers([last]), e.integers([0]))


@exports(creation.Fill)
def fill(op: Op, e: Emit) -> None:
    """A computed value is allowed here, unlike in ConstantOfShape."""
    e.op(op, "Expand", e.name(op.operand(1)), e.name(op.operand(0)))


@exports(creation.Fill)
def fill_with_constant(op: Op, e: Emit) -> None:
    """Its types are other ones."""
    value = op.call().value(1)
    if value is None:
        raise NoForm("ConstantOfShape has a constant value")
    e.op(op, "ConstantOfShape", e.name(op.operand(0)), value=tensor_proto(value.reshape(1), "value"))


@exports(creation.Iota)
def iota(op: Op, e: Emit) -> None:
    """Numbers from 0 along one dim, repeated along the others."""
    axis, type_ = op.call().integer("axis"), op.result.tensor
    axis += type_.rank if axis < 0 else 0
    sizes = e.name(op.operand(0))
    size = e.new("Gather", sizes, e.scalar(axis, I64))
    counted = e.new("Range", e.scalar(0, I64), size, e.scalar(1, I64))
    placed = e.new("Reshape", counted, e.integers([-1 if d == axis else 1 for d in range(type_.rank)]))
    e.op(op, "Cast", e.new("Expand", placed, sizes), to=DATA_TYPES[type_.element])
