"""Quantization: between real numbers and small integers (or narrow floats), real = (stored - zero point) * scale.

Scale and zero point hold one number (rank 0, or a vector of one), one a slice of ``axis`` (a vector), or with
``block`` one a run of ``block`` elements along ``axis`` (the operand's rank). Source:
ONNX QuantizeLinear-25, DequantizeLinear-25.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import F32, I32, U8, Call, ElementType, Type, Value, element_of, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, known_sizes, padded, widened
from compiler.ops.convert import convert
from compiler.ops.registry import (
    ELEMENT,
    FLAG,
    FLOAT,
    REAL,
    Attribute,
    Operand,
    Variable,
    integer,
    register,
)
from compiler.ops.scalars import limits
from compiler.ops.shapes import normalize_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_AXIS: Final = Attribute("axis", integer(), 1, "Dim that the entries of a vector of scales go along.")
_BLOCK: Final = Attribute("block", integer(0), 0, "Elements of `axis` that share a scale; 0: no blocks.")
_SCALE: Final = Operand("scale", Variable("S", FLOAT))
STORED: Final = frozenset(element for element in REAL if element.bits <= 16) - frozenset(
    element for element in FLOAT if element.bits > 8
)


def _layout(call: Call, index: int) -> list[int] | None:
    """The shape that puts operand ``index``, a vector, along ``axis`` of operand 0; None where it broadcasts as it is.

    Raises TypeMismatch for a rank that fits neither form.
    """
    x, vector = call.tensor(0), call.tensor(index)
    block = call.integer("block")
    if vector.rank == 0:
        return None
    if block and vector.rank == x.rank:
        return None
    if vector.rank != 1 or block:
        msg = f"scale or zero point {vector} for {x} with block {block}; expected a scalar, a vector, or blocks"
        raise TypeMismatch(msg)
    if vector.dims == (1,):
        return []
    axis = normalize_axis("quantization axis", call.integer("axis"), x.rank)
    size, wanted = vector.known_dims[0], x.known_dims[axis]
    if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
        msg = f"scale or zero point of {size} entries; expected {wanted} for axis {axis} of {x}"
        raise TypeMismatch(msg)
    return [-1 if d == axis else 1 for d in range(x.rank)]


def _block_indices(call: Call) -> tuple[int, Array]:
    """The axis and, for each of its places, the block it lies in."""
    axis = normalize_axis("quantization axis", call.integer("axis"), call.tensor(0).rank)
    (size,) = known_sizes(call.tensor(0), (axis,))
    return axis, np.arange(size) // call.integer("block")


def _blocked(call: Call, index: int) -> bool:
    return bool(call.integer("block")) and call.tensor(index).rank > 0


def _emit_spread(call: Call, emit: Emit, index: int, value: Value) -> Value:
    """Operand ``index`` in a shape that broadcasts against operand 0."""
    layout = _layout(call, index)
    if layout is not None:
        return emit.reshape(value, layout)
    if not _blocked(call, index):
        return value
    axis, indices = _block_indices(call)
    return emit("gather", value, emit.constant(indices), axis=axis)


def _spread(call: Call, index: int, array: Array) -> Array:
    layout = _layout(call, index)
    if layout is not None:
        return array.reshape(layout)
    if not _blocked(call, index):
        return array
    axis, indices = _block_indices(call)
    return np.take(array, indices, axis)


@register
class Quantize(Rounded):
    """round(x / scale) + zero point, saturated to ``to``; ties go to even. For narrow floats: x / scale, cast.

    ``to`` absent: the zero point's type, else uint8. The quotient is taken at ``compute_type`` (ONNX's precision).
    ``saturate`` matters for narrow floats alone: without it what is too great becomes infinity or NaN.
    """

    name: ClassVar[str] = "quantize"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", FLOAT | {I32})),
        _SCALE,
        Operand("zero", Variable("Z", STORED), optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _AXIS,
        _BLOCK,
        Attribute("to", ELEMENT, None, "Stored type; absent: the zero point's, else uint8."),
        Attribute("saturate", FLAG, True, "Narrow floats: what is too great becomes the greatest finite value."),
        COMPUTE_TYPE,
    )

    def compute_element(self, call: Call) -> ElementType:
        """float32 for integers too."""
        found = super().compute_element(call)
        return found if found.is_float else F32

    def _stored(self, call: Call) -> ElementType:
        to = call.get("to")
        zero = call.tensor(2).element if call.has(2) else None
        if isinstance(to, ElementType) and zero is not None and zero is not to:
            msg = f"quantize: to is {to} and the zero point is {zero}; expected one type"
            raise TypeMismatch(msg)
        stored = to if isinstance(to, ElementType) else zero or U8
        if stored not in STORED:
            msg = f"quantize: to is {stored}; expected an integer of 16 bits or a float of 8 bits at most"
            raise InvalidAttribute(msg)
        return stored

    def infer(self, call: Call) -> tuple[Type, ...]:
        if call.tensor(0).dims is not None:
            for index in range(1, len(call.types)):
                if call.has(index) and call.tensor(index).dims is not None:
                    _layout(call, index)
        return (call.tensor(0).with_element(self._stored(call)),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, zero = padded(operands, 3)
        assert x is not None
        assert scale is not None
        element, stored = self.compute_element(call), self._stored(call)
        quotient = emit("div", emit.cast(x, element), _emit_spread(call, emit, 1, scale))
        if stored.is_float:
            return (emit("cast", quotient, to=stored, saturate=call.flag("saturate")),)
        # Rounding and the zero point need the integers up to 65,535 exactly.
        whole = emit("round", emit.cast(quotient, widened(element)))
        if zero is not None:
            whole = emit("add", whole, _emit_spread(call, emit, 2, emit.cast(zero, widened(element))))
        low, high = limits(stored)
        ends = [emit.scalar(end, whole.tensor.element) for end in (low, high)]
        return (emit("cast", emit("clamp", whole, *ends), to=stored, saturate=True),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, zero = padded(operands, 3)
        element, stored = self.compute_element(call), self._stored(call)
        quotient = x.astype(element.dtype) / _spread(call, 1, scale).astype(element.dtype)
        if stored.is_float:
            return (convert(quotient.astype(element.dtype), stored, call.flag("saturate")),)
        whole = np.rint(quotient.astype(np.float64))
        if zero is not None:
            whole = whole + _spread(call, 2, zero).astype(np.float64)
        return (convert(whole, stored, True),)


@register
class Dequantize(Rounded):
    """(x - zero point) * scale, as ``to`` (absent: the scale's type). Integers are subtracted exactly, in int32."""

    name: ClassVar[str] = "dequantize"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("Q", STORED | {I32})),
        _SCALE,
        Operand("zero", Variable("Q", STORED | {I32}), optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _AXIS,
        _BLOCK,
        Attribute("to", ELEMENT, None, "Result type; absent: the scale's."),
        COMPUTE_TYPE,
    )

    def compute_element(self, call: Call) -> ElementType:
        """Of the scale, widened."""
        found = call.get("compute_type")
        return found if isinstance(found, ElementType) else widened(call.tensor(1).element)

    def infer(self, call: Call) -> tuple[Type, ...]:
        to = call.get("to")
        if call.tensor(0).dims is not None and call.tensor(1).dims is not None:
            _layout(call, 1)
        return (call.tensor(0).with_element(to if isinstance(to, ElementType) else call.tensor(1).element),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, zero = padded(operands, 3)
        assert x is not None
        assert scale is not None
        element = self.compute_element(call)
        known = call.value(2)
        if zero is not None and not (known is not None and not np.any(known.astype(np.float32))):
            exact = I32 if call.tensor(0).element.is_integer else element
            x = emit("sub", emit.cast(x, exact), _emit_spread(call, emit, 2, emit.cast(zero, exact)))
        return (emit("mul", emit.cast(x, element), _emit_spread(call, emit, 1, scale)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, zero = padded(operands, 3)
        element = self.compute_element(call)
        exact = I32 if element_of(x.dtype).is_integer else element
        wide = x.astype(exact.dtype)
        if zero is not None:
            wide = wide - _spread(call, 2, zero).astype(exact.dtype)
        return (wide.astype(element.dtype) * _spread(call, 1, scale).astype(element.dtype),)


@register
class DynamicQuantize(Rounded):
    """x to uint8 by its own range, which is made to hold 0. Results: y, scale, zero point (scalars).

    scale = (max - min) / 255 (1 / 255 where they are equal), zero point = round(-min / scale). Source: ONNX
    DynamicQuantizeLinear-11.
    """

    name: ClassVar[str] = "dynamic_quantize"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", frozenset({F32}))),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (call.tensor(0).with_element(U8), tensor(F32), tensor(U8))

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        del call
        x = operands[0]
        assert x is not None
        axes = range(x.tensor.rank)
        high = emit("max", emit.reduce("reduce_max", x, axes, keep_dims=False), 0.0)
        low = emit("min", emit.reduce("reduce_min", x, axes, keep_dims=False), 0.0)
        span = emit("sub", high, low)
        scale = emit("div", emit("select", emit("eq", span, 0.0), 1.0, span), 255.0)
        ends = [emit.scalar(end, F32) for end in (0, 255)]
        zero = emit("round", emit("clamp", emit("div", emit("neg", low), scale), *ends))
        shifted = emit("add", emit("round", emit("div", x, scale)), zero)
        y = emit("cast", emit("clamp", shifted, *ends), to=U8, saturate=True)
        return (y, scale, emit("cast", zero, to=U8, saturate=True))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        del call
        x = operands[0]
        high, low = np.maximum(x.max(), np.float32(0)), np.minimum(x.min(), np.float32(0))
        scale = np.float32(1 if high == low else high - low) / np.float32(255)
        zero = np.rint(np.clip(-low / scale, 0, 255))
        return (np.clip(np.rint(x / scale) + zero, 0, 255), scale, zero)
