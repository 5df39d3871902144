"""Norms by mean and variance."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports
from compiler.ir import F32, Call, ElementType, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import normalization as norms


def _stash_type(call: Call) -> int:
    found = call.get("compute_type")
    element = found if isinstance(found, ElementType) else norms.LayerNorm.instance().compute_element(call)
    return DATA_TYPES[element]


@exports(norms.LayerNorm)
def layer_norm(op: Op, e: Emit) -> None:
    """ONNX demands a scale."""
    call = op.call()
    if not call.has(1):
        raise NoForm("LayerNormalization needs a scale")
    e.op(
        op,
        "LayerNormalization",
        axis=call.integer("axis"),
        epsilon=call.number("epsilon"),
        stash_type=_stash_type(call),
    )


@exports(norms.RmsNorm)
def rms_norm(op: Op, e: Emit) -> None:
    """Likewise."""
    call = op.call()
    if not call.has(1):
        raise NoForm("RMSNormalization needs a scale")
    e.op(
        op, "RMSNormalization", axis=call.integer("axis"), epsilon=call.number("epsilon"), stash_type=_stash_type(call)
    )


@exports(norms.GroupNorm)
def group_norm(op: Op, e: Emit) -> None:
    """ONNX has one scale a channel; the form with one a group, of operator set 18, is deprecated."""
    call = op.call()
    (scales,), channels = call.tensor(1).known_dims, call.tensor(0).known_dims[1]
    if scales != channels and (isinstance(channels, int) or scales == call.integer("num_groups")):
        raise NoForm("GroupNormalization has one scale a channel")
    e.op(
        op,
        "GroupNormalization",
        num_groups=call.integer("num_groups"),
        epsilon=call.number("epsilon"),
        stash_type=_stash_type(call),
    )


@exports(norms.MeanVarianceNorm)
def mean_variance_norm(op: Op, e: Emit) -> None:
    """ONNX defines it by operators on float32 constants, which its shape inference holds against the type."""
    if op.result.tensor.element is not F32:
        raise NoForm("MeanVarianceNormalization is defined for float32")
    e.op(op, "MeanVarianceNormalization", axes=op.call().integers("axes"))


@exports(norms.BatchNormTraining)
def batch_norm_training(op: Op, e: Emit) -> None:
    """The operand's own statistics."""
    call = op.call()
    e.op(
        op,
        "BatchNormalization",
        epsilon=call.number("epsilon"),
        momentum=call.number("momentum"),
        training_mode=1,
    )
