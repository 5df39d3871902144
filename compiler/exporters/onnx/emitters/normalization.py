"""Softmax and its kin; norms by mean and variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Call, Definition, ElementType, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import normalization as norms
from compiler.ops.softmax import Hardmax, LogSoftmax, Softmax

if TYPE_CHECKING:
    from compiler.exporters.onnx.emit import Emitter

_ALONG_AXIS: Final[dict[type[Definition], str]] = {
    Hardmax: "Hardmax",
    LogSoftmax: "LogSoftmax",
    Softmax: "Softmax",
}


def _along_axis(operator: str) -> Emitter:
    def emit(op: Op, e: Emit) -> None:
        e.op(op, operator, axis=op.call().integer("axis"))

    return emit


for _definition, _operator in _ALONG_AXIS.items():
    exports(_definition)(_along_axis(_operator))


def _stash_type(call: Call) -> int:
    found = call.get("compute_type")
    element = found if isinstance(found, ElementType) else norms.LayerNorm.instance().compute_element(call)
    return DATA_TYPES[element]


@exports(norms.LayerNorm)
def layer_norm(op: Op, e: Emit) -> None:
    """ONNX demands a scale; without one the operator is decomposed."""
    call = op.call()
    if not call.has(1):
        e.decomposed(op)
        return
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
    if not call.has(1) or e.model.opset < 23:
        e.decomposed(op)
        return
    e.op(
        op, "RMSNormalization", axis=call.integer("axis"), epsilon=call.number("epsilon"), stash_type=_stash_type(call)
    )


@exports(norms.GroupNorm)
def group_norm(op: Op, e: Emit) -> None:
    """ONNX has one scale a channel; with one a group the operator is decomposed."""
    call = op.call()
    if call.tensor(1).known_dims[0] != call.tensor(0).known_dims[1]:
        e.decomposed(op)
        return
    e.op(
        op,
        "GroupNormalization",
        num_groups=call.integer("num_groups"),
        epsilon=call.number("epsilon"),
        stash_type=_stash_type(call),
    )


@exports(norms.InstanceNorm)
def instance_norm(op: Op, e: Emit) -> None:
    """Each channel of each instance."""
    e.op(op, "InstanceNormalization", epsilon=op.call().number("epsilon"))


@exports(norms.BatchNorm)
def batch_norm(op: Op, e: Emit) -> None:
    """Given statistics."""
    e.op(op, "BatchNormalization", epsilon=op.call().number("epsilon"))


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


@exports(norms.Lrn)
def lrn(op: Op, e: Emit) -> None:
    """Squares of neighbouring channels."""
    call = op.call()
    e.op(
        op,
        "LRN",
        size=call.integer("size"),
        alpha=call.number("alpha"),
        beta=call.number("beta"),
        bias=call.number("bias"),
    )


@exports(norms.MeanVarianceNorm)
def mean_variance_norm(op: Op, e: Emit) -> None:
    """Over chosen axes."""
    e.op(op, "MeanVarianceNormalization", axes=op.call().integers("axes"))


@exports(norms.LpNorm)
def lp_norm(op: Op, e: Emit) -> None:
    """By a norm along an axis."""
    call = op.call()
    e.op(op, "LpNormalization", axis=call.integer("axis"), p=call.integer("p"))
