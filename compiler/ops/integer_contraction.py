"""Contractions of quantized integers less their zero points, exact in int32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import I32, Builder, Call, Op, Type, Value
from compiler.ops.compose import Emit, Evaluated, known_sizes, padded
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.registry import INTEGER, Attribute, Composite, Operand, Variable, register
from compiler.ops.windows import GROUPS, WINDOW, WindowPlan

if TYPE_CHECKING:
    from collections.abc import Sequence


_EIGHT: Final = frozenset(element for element in INTEGER if element.bits <= 8)
_A: Final = Variable("A", _EIGHT)
_B: Final = Variable("B", _EIGHT)


def nonzero_operand(call: Call, index: int) -> bool:
    """Whether a zero point is given and not known to be all zeros."""
    if not call.has(index):
        return False
    known = call.value(index)
    return known is None or bool(np.any(known.astype(np.int32)))


@register
class MatMulInteger(Evaluated, Composite):
    """(a - a_zero) x (b - b_zero), exact in int32 (wrapping). a [..., M, K], b [..., K, N], as matmul.

    ``a_zero`` is a scalar, one a row [M], or [..., M, 1]; ``b_zero`` a scalar, one a column [N], or [..., 1, N].
    Source: ONNX MatMulInteger-10. The decomposition multiplies the small integers themselves and corrects the product:
    a x b - a_zero * sum of b - b_zero * sum of a + K * a_zero * b_zero.
    """

    name: ClassVar[str] = "matmul_integer"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("a", _A),
        Operand("b", _B),
        Operand("a_zero", _A, optional=True),
        Operand("b_zero", _B, optional=True),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        return MatMul.instance().infer(Call(call.types[:2], {"to": I32}))

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        call, emit = op.call(), Emit(builder)
        a, b = op.operand(0), op.operand(1)
        with_a, with_b = nonzero_operand(call, 2), nonzero_operand(call, 3)
        depth = a.tensor.known_dims[-1]
        if min(a.tensor.rank, b.tensor.rank) < 2 or (with_a and with_b and not isinstance(depth, int)):
            return (self._subtracted(emit, op, with_a=with_a, with_b=with_b),)
        result = emit("matmul", a, b, to=I32)
        rows = columns = None
        if with_a:
            rows = self._emit_rows(emit, op.operand(2), a.tensor.rank)
            sums = emit.reduce("reduce_sum", emit.cast(b, I32), (b.tensor.rank - 2,))
            result = emit("sub", result, emit("mul", rows, sums))
        if with_b:
            columns = emit.cast(op.operand(3), I32)
            sums = emit.reduce("reduce_sum", emit.cast(a, I32), (a.tensor.rank - 1,))
            result = emit("sub", result, emit("mul", sums, columns))
        if rows is not None and columns is not None:
            assert isinstance(depth, int)
            result = emit("add", result, emit("mul", emit("mul", rows, columns), depth))
        return (result,)

    @staticmethod
    def _emit_rows(emit: Emit, zero: Value, rank: int) -> Value:
        wide = emit.cast(zero, I32)
        return emit.reshape(wide, [-1, 1]) if zero.tensor.rank == 1 and rank > 1 else wide

    def _subtracted(self, emit: Emit, op: Op, *, with_a: bool, with_b: bool) -> Value:
        a, b = (emit.cast(op.operand(index), I32) for index in (0, 1))
        if with_a:
            a = emit("sub", a, self._emit_rows(emit, op.operand(2), a.tensor.rank))
        if with_b:
            b = emit("sub", b, emit.cast(op.operand(3), I32))
        return emit("matmul", a, b)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Differences, then the product, in int32."""
        del call
        a, b = (np.asarray(operand).astype(np.int32) for operand in operands[:2])
        a_zero, b_zero = padded(operands, 4)[2:]
        if a_zero is not None:
            rows = a_zero.astype(np.int32)
            a = a - (rows.reshape(-1, 1) if rows.ndim == 1 and a.ndim > 1 else rows)
        if b_zero is not None:
            b = b - b_zero.astype(np.int32)
        return (np.asarray(np.matmul(a, b)),)


@register
class ConvInteger(Evaluated, Composite):
    """(x - x_zero) conv (w - w_zero), exact in int32 (wrapping); padding counts as x_zero, so as nothing.

    ``x_zero`` is a scalar; ``w_zero`` a scalar, or one an output channel [M]. Source: ONNX ConvInteger-10. Where w has
    no zero point the decomposition pads x with x_zero, convolves the small integers themselves, and takes off
    x_zero * sum of w; otherwise it subtracts first, in int32.
    """

    name: ClassVar[str] = "conv_integer"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _A),
        Operand("w", _B),
        Operand("x_zero", _A, optional=True),
        Operand("w_zero", _B, optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (*WINDOW, GROUPS)

    def infer(self, call: Call) -> tuple[Type, ...]:
        if call.has(2) and call.tensor(2).dims not in {None, (), (1,)}:
            msg = f"conv_integer: x_zero is {call.tensor(2)}; expected a scalar"
            raise TypeMismatch(msg)
        return Conv.instance().infer(Call(call.types[:2], {**call.attributes, "to": I32}))

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        call, emit = op.call(), Emit(builder)
        x, w, rank = op.operand(0), op.operand(1), op.operand(0).tensor.rank
        with_x, with_w = nonzero_operand(call, 2), nonzero_operand(call, 3)
        if with_w:
            x = emit.cast(x, I32)
            if with_x:
                x = emit("sub", x, emit.reshape(emit.cast(op.operand(2), I32), []))
            return (emit("conv", x, self._less_zero(emit, w, op.operand(3)), **call.attributes),)
        if not with_x:
            return (emit("conv", x, w, to=I32, **call.attributes),)
        zero = emit.reshape(op.operand(2), [])
        result = emit("conv", self._padded(call, emit, x, zero), w, to=I32, **self._unpadded(call))
        sums = emit.reduce("reduce_sum", emit.cast(w, I32), range(1, rank), keep_dims=False)
        correction = emit("mul", emit.reshape(sums, [-1, *[1] * (rank - 2)]), emit.cast(zero, I32))
        return (emit("sub", result, correction),)

    @staticmethod
    def _less_zero(emit: Emit, w: Value, zero: Value) -> Value:
        wide = emit.cast(zero, I32)
        if zero.tensor.rank:
            wide = emit.reshape(wide, [-1, *[1] * (w.tensor.rank - 1)])
        return emit("sub", emit.cast(w, I32), wide)

    @staticmethod
    def _padded(call: Call, emit: Emit, x: Value, zero: Value) -> Value:
        sizes, kernel = (known_sizes(type_, range(2, type_.rank)) for type_ in (call.tensor(0), call.tensor(1)))
        windows = WindowPlan.of("conv_integer", call, kernel).windows(sizes)
        pads = [0, 0, *(window.low for window in windows), 0, 0, *(window.high for window in windows)]
        return emit("pad", x, emit.integers(pads), zero) if any(pads) else x

    @staticmethod
    def _unpadded(call: Call) -> dict[str, Any]:
        return {name: call.attributes[name] for name in ("strides", "dilations", "groups")}

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Differences, then the convolution, in int32."""
        x, w = (np.asarray(operand).astype(np.int32) for operand in operands[:2])
        x_zero, w_zero = padded(operands, 4)[2:]
        if x_zero is not None:
            x = x - x_zero.astype(np.int32).reshape(())
        if w_zero is not None:
            w = w - w_zero.astype(np.int32).reshape([-1, *[1] * (w.ndim - 1)])
        types = [call.tensor(index).with_element(I32) for index in (0, 1)]
        return Conv.instance().compute(Call(types, {**call.attributes, "to": I32}), [x, w])
