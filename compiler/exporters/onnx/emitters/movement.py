"""Data movement, shapes and creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.errors import ExportError
from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import I64, Definition, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import creation, movement, padding, reshape, shape

if TYPE_CHECKING:
    from compiler.exporters.onnx.emit import Emitter

_SAME: Final[dict[type[Definition], str]] = {
    creation.Range: "Range",
    movement.BroadcastTo: "Expand",
    movement.Slice: "Slice",
    movement.Tile: "Tile",
    reshape.Squeeze: "Squeeze",
    reshape.Unsqueeze: "Unsqueeze",
    shape.SizeOf: "Size",
}


def _same(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        e.op(op, operator)

    return emit


for _definition, _operator in _SAME.items():
    exports(_definition)(_same(_operator))


@exports(reshape.Reshape)
def emit_reshape(op: Op, e: Emit) -> None:
    """A size of 0 means 0 here, which an attribute says; it excludes -1, which the result's static sizes replace."""
    value = op.call().value(1)
    if value is not None and (value != 0).all():
        e.op(op, "Reshape")
        return
    type_ = op.result.tensor
    both = value is not None and (value == -1).any()
    sizes = e.integers(type_.shape) if both and type_.is_static else e.name(op.operand(1))
    e.op(op, "Reshape", e.name(op.operand(0)), sizes, allowzero=1)


@exports(movement.Transpose)
def transpose(op: Op, e: Emit) -> None:
    """An order of the dims."""
    e.op(op, "Transpose", perm=op.call().integers("permutation"))


@exports(movement.Concat)
def concat(op: Op, e: Emit) -> None:
    """Along an axis."""
    e.op(op, "Concat", axis=op.call().integer("axis"))


@exports(movement.Split)
def split(op: Op, e: Emit) -> None:
    """Sizes or a number of parts."""
    call = op.call()
    count = None if call.has(1) else call.integer("outputs")
    e.op(op, "Split", axis=call.integer("axis"), num_outputs=count)


@exports(movement.Reverse)
def reverse(op: Op, e: Emit) -> None:
    """A slice with steps of -1."""
    axes = op.call().integers("axes")
    least = -(2**63)
    e.op(
        op,
        "Slice",
        *e.inputs(op),
        e.integers([-1] * len(axes)),
        e.integers([least] * len(axes)),
        e.integers(axes),
        e.integers([-1] * len(axes)),
    )


@exports(padding.Pad)
def pad(op: Op, e: Emit) -> None:
    """Padding around; ONNX has none between elements."""
    call = op.call()
    if any(call.integers("interior")):
        raise ExportError(f"'pad' between elements (at {op.location}) has no ONNX form")
    e.op(op, "Pad", mode=call.text("mode"))


@exports(padding.Trilu)
def trilu(op: Op, e: Emit) -> None:
    """One of both triangles."""
    e.op(op, "Trilu", upper=int(op.call().flag("upper")))


@exports(reshape.DepthToSpace)
def depth_to_space(op: Op, e: Emit) -> None:
    """Blocks of channels to space."""
    call = op.call()
    e.op(op, "DepthToSpace", blocksize=call.integer("block_size"), mode=call.text("mode"))


@exports(reshape.SpaceToDepth)
def space_to_depth(op: Op, e: Emit) -> None:
    """Blocks of space to channels."""
    e.op(op, "SpaceToDepth", blocksize=op.call().integer("block_size"))


@exports(shape.ShapeOf)
def shape_of(op: Op, e: Emit) -> None:
    """All sizes or a part of them."""
    call = op.call()
    start, end = call.get("start"), call.get("end")
    e.op(op, "Shape", start=start or None, end=end)


@exports(creation.Fill)
def fill(op: Op, e: Emit) -> None:
    """Every type and a computed value are allowed here, unlike in ConstantOfShape."""
    e.op(op, "Expand", e.name(op.operand(1)), e.name(op.operand(0)))


@exports(creation.Iota)
def iota(op: Op, e: Emit) -> None:
    """Numbers from 0 along one dim, repeated along the others."""
    axis, type_ = op.call().integer("axis"), op.result.tensor
    axis += type_.rank if axis < 0 else 0
    shape = e.name(op.operand(0))
    size = e.new("Gather", shape, e.scalar(axis, I64))
    counted = e.new("Range", e.scalar(0, I64), size, e.scalar(1, I64))
    placed = e.new("Reshape", counted, e.integers([-1 if d == axis else 1 for d in range(type_.rank)]))
    e.op(op, "Cast", e.new("Expand", placed, shape), to=DATA_TYPES[type_.element])


@exports(creation.EyeLike)
def eye_like(op: Op, e: Emit) -> None:
    """Ones on a diagonal."""
    call = op.call()
    e.op(op, "EyeLike", dtype=DATA_TYPES[op.result.tensor.element], k=call.integer("k"))
