"""Sequences and optionals."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import exports
from compiler.ir import Op, SequenceType, TensorType, Type
from compiler.onnx_types import DATA_TYPES, type_proto
from compiler.ops import optional, sequence


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
