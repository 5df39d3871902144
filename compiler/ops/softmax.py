"""The softmax family: composites along one dim."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from compiler.ir import Call, Value
from compiler.ops.compose import COMPUTE_TYPE, Emit, Pointwise, known_sizes
from compiler.ops.registry import FLOAT, Attribute, Operand, Variable, integer, register
from compiler.ops.shapes import normalize_axis

if TYPE_CHECKING:
    from compiler.ir import Array

_X: Final = (Operand("x", Variable("T", FLOAT)),)
_AXIS: Final = Attribute("axis", integer(), -1, "The dim that is normalized.")


def _axis(call: Call) -> int:
    return normalize_axis("softmax", call.integer("axis"), call.tensor(0).rank)


def _exponentials(x: Array, axis: int) -> tuple[Array, Array]:
    """The operand minus its maximum, and the sum of the exponentials of that."""
    shifted = x - x.max(axis=axis, keepdims=True, initial=-np.inf)
    return shifted, np.exp(shifted).sum(axis=axis, keepdims=True, dtype=x.dtype)


@register
class Softmax(Pointwise):
    """e^(x - max) / sum of e^(x - max) along ``axis``; a slice that is all -inf gives NaN. Source: ONNX Softmax-13."""

    name: ClassVar[str] = "softmax"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_AXIS, COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        axes = (_axis(call),)
        powers = emit("exp", emit("sub", x, emit.reduce("reduce_max", x, axes)))
        return emit("div", powers, emit.reduce("reduce_sum", powers, axes))

    def values(self, call: Call, x: Array) -> Array:
        shifted, total = _exponentials(x, _axis(call))
        return np.exp(shifted) / total


@register
class LogSoftmax(Pointwise):
    """x - max - log(sum of e^(x - max)) along ``axis``. Source: ONNX LogSoftmax-13."""

    name: ClassVar[str] = "log_softmax"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_AXIS, COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        axes = (_axis(call),)
        shifted = emit("sub", x, emit.reduce("reduce_max", x, axes))
        return emit("sub", shifted, emit("log", emit.reduce("reduce_sum", emit("exp", shifted), axes)))

    def values(self, call: Call, x: Array) -> Array:
        shifted, total = _exponentials(x, _axis(call))
        return shifted - np.log(total)


@register
class Hardmax(Pointwise):
    """1 at the first greatest element along ``axis``, else 0. Source: ONNX Hardmax-13."""

    name: ClassVar[str] = "hardmax"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (_AXIS, COMPUTE_TYPE)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        axis = _axis(call)
        (size,) = known_sizes(x.tensor, (axis,))
        if size == 0:
            return x
        positions = np.arange(size).reshape([-1 if d == axis else 1 for d in range(x.tensor.rank)])
        best = emit("argmax", x, axis=axis, keep_dims=True)
        return emit.cast(emit("eq", best, emit.constant(positions)), x.tensor.element)

    def values(self, call: Call, x: Array) -> Array:
        axis = _axis(call)
        result = np.zeros_like(x)
        if x.size:
            np.put_along_axis(result, np.argmax(x, axis=axis, keepdims=True), 1, axis)
        return result
