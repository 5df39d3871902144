"""Sequences and optionals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Definition, Op, SequenceType, TensorType, Type
from compiler.onnx_types import DATA_TYPES, type_proto
from compiler.ops import optional, sequence

if TYPE_CHECKING:
    from compiler.exporters.onnx.emit import Emitter

_SAME: Final[dict[type[Definition], str]] = {
    optional.OptionalGet: "OptionalGetElement",
    optional.OptionalHas: "OptionalHasElement",
    optional.OptionalOf: "Optional",
    sequence.SequenceAt: "SequenceAt",
    sequence.SequenceErase: "SequenceErase",
    sequence.SequenceInsert: "SequenceInsert",
    sequence.SequenceLength: "SequenceLength",
}


def _same(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        e.op(op, operator)

    return emit


for _definition, _operator in _SAME.items():
    exports(_definition)(_same(_operator))


@exports(sequence.SequenceConstruct)
def sequence_construct(op: Op, e: Emit) -> None:
    """An empty sequence is an operator of its own."""
    if op.operands:
        e.op(op, "SequenceConstruct")
        return
    type_ = op.result.type
    assert isinstance(type_, SequenceType)
    assert isinstance(type_.element, TensorType)
    e.node("SequenceEmpty", [], [e.result_name(op.result)], dtype=DATA_TYPES[type_.element.element])


@exports(sequence.ConcatFromSequence)
def concat_from_sequence(op: Op, e: Emit) -> None:
    """All elements as one tensor."""
    call = op.call()
    e.op(op, "ConcatFromSequence", axis=call.integer("axis"), new_axis=int(call.flag("new_axis")))


@exports(sequence.SplitToSequence)
def split_to_sequence(op: Op, e: Emit) -> None:
    """Parts of a tensor."""
    call = op.call()
    keep = None if call.has(1) else int(call.flag("keep_dims"))
    e.op(op, "SplitToSequence", axis=call.integer("axis"), keepdims=keep)


@exports(optional.OptionalEmpty)
def optional_empty(op: Op, e: Emit) -> None:
    """Nothing of a type."""
    missing = op.attributes["type"]
    assert isinstance(missing, Type)
    e.node("Optional", [], [e.result_name(op.result)], type=type_proto(missing))
