"""Deformable convolution: each tap of the kernel reads x at a place of its own."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import I64, UNKNOWN, Call, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, known_sizes, padded
from compiler.ops.contraction import product
from compiler.ops.registry import FLOAT, Attribute, Operand, Variable, integer, register
from compiler.ops.windows import GROUPS, WINDOW, WindowPlan, Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T: Final = Variable("T", FLOAT)


@register
class DeformConv(Rounded):
    """Convolution of x [N, C, H, W] with w [M, C / groups, K, L] whose taps are moved by offset -> [N, M, O, P].

    offset [N, G * K * L * 2, O, P], G being ``offset_groups``, holds for each tap how far down and right it is moved;
    x is read there bilinearly, 0 outside, and multiplied by mask [N, G * K * L, O, P] where that is given. Source: ONNX
    DeformConv-22. Raises TypeMismatch where sizes do not fit.
    """

    name: ClassVar[str] = "deform_conv"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _T),
        Operand("w", _T),
        Operand("offset", _T),
        Operand("mask", _T, optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *WINDOW,
        GROUPS,
        Attribute("offset_groups", integer(1), 1, "Groups of channels of x that share offsets."),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        x, w, offset = (call.tensor(index) for index in range(3))
        if x.dims is None or w.dims is None or offset.dims is None:
            return (tensor(x.element, None),)
        if not x.rank == w.rank == offset.rank == 4:
            msg = f"deform_conv: x {x}, w {w}, offset {offset}; expected rank 4"
            raise TypeMismatch(msg)
        if not all(isinstance(dim, int) for dim in (*x.dims[1:], *w.dims)):
            return (tensor(x.element, (x.dims[0], w.dims[0], UNKNOWN, UNKNOWN)),)
        (channels, inner), groups = (known_sizes(x, (1,))[0], known_sizes(w, (1,))[0]), call.integer("groups")
        taps, moved = math.prod(known_sizes(w, (2, 3))), call.integer("offset_groups")
        counts = tuple(window.count for window in self._windows(call))
        wanted = (2 * moved * taps, *counts)
        fits = all(isinstance(a, str) or a == b for a, b in zip(offset.dims[1:], wanted, strict=True))
        if channels != inner * groups or channels % moved or not fits:
            found = f"x {x}, w {w}, offset {offset}"
            msg = f"deform_conv: {found}; expected {inner * groups} channels, offsets {list(wanted)}"
            raise TypeMismatch(msg)
        return (tensor(x.element, (x.dims[0], w.dims[0], *counts)),)

    def _windows(self, call: Call) -> tuple[Windows, ...]:
        plan = WindowPlan.of(self.name, call, known_sizes(call.tensor(1), (2, 3)))
        return plan.windows(known_sizes(call.tensor(0), (2, 3)))

    def _places(self, call: Call, dtype: np.dtype[Any]) -> list[Array]:
        """Row and column that each tap reads at each place of the result when nothing is moved, [K * L, O * P] each."""
        rows, columns = self._windows(call)
        down, right = (
            np.arange(w.count)[None, :] * w.stride - w.low + np.arange(w.kernel)[:, None] * w.dilation
            for w in (rows, columns)
        )
        shape = (rows.kernel, columns.kernel, rows.count, columns.count)
        grids = (down[:, None, :, None], right[None, :, None, :])
        return [np.broadcast_to(g, shape).reshape(shape[0] * shape[1], -1).astype(dtype) for g in grids]

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """Four gathers, weighted and summed, then one product a group."""
        x, w, offset, mask = padded(operands, 4)
        batch, element = x.tensor.known_dims[0], self.compute_element(call)
        (channels, height, width), moved = known_sizes(x.tensor, (1, 2, 3)), call.integer("offset_groups")
        (outputs, inner, *kernel), groups = w.tensor.shape, call.integer("groups")
        taps, counts = math.prod(kernel), [window.count for window in self._windows(call)]
        points = math.prod(counts)
        flat = emit.reshape(x, [batch, moved, channels // moved, height * width])
        rows = emit.transpose(flat, (0, 1, 3, 2))
        shifts = emit.reshape(offset, [batch, moved, taps, 2, points])
        places = [
            emit("add", emit.squeeze(emit.slice(shifts, 3, k, k + 1), [3]), emit.constant(still))
            for k, still in enumerate(self._places(call, element.dtype))
        ]
        samples = self._emit_samples(emit, rows, places, (height, width), [batch, moved, taps * points])
        if mask is not None:
            samples = emit("mul", samples, emit.reshape(mask, [batch, moved, taps * points, 1]))
        columns = emit.reshape(emit.transpose(samples, (0, 1, 3, 2)), [batch, groups, inner * taps, points])
        kernels = emit.reshape(w, [groups, outputs // groups, inner * taps])
        return (emit.reshape(emit("matmul", kernels, columns), [batch, outputs, *counts]),)

    @staticmethod
    def _emit_samples(
        emit: Emit, rows: Value, places: Sequence[Value], sizes: tuple[int, int], shape: Sequence[Any]
    ) -> Value:
        """The elements [N, G, points, C / G] at these places, bilinearly."""
        axes = []
        for place, size in zip(places, sizes, strict=True):
            flat = emit.reshape(place, shape)
            low = emit("floor", flat)
            upper = emit("sub", flat, low)
            lower = emit("sub", emit.scalar(1, flat.tensor.element), upper)
            axes.append([(low, lower, size), (emit("add", low, 1.0), upper, size)])
        total: Value | None = None
        for (row, row_weight, height), (column, column_weight, width) in itertools.product(*axes):
            ends = [(row, height), (column, width)]
            inside = [emit("ge", place, 0.0) for place, _ in ends] + [emit("lt", p, float(size)) for p, size in ends]
            seen = inside[0]
            for condition in inside[1:]:
                seen = emit("and", seen, condition)
            index = emit("select", seen, emit("add", emit("mul", row, float(width)), column), 0.0)
            weight = emit("select", seen, emit("mul", row_weight, column_weight), 0.0)
            taken = emit("gather_nd", rows, emit.unsqueeze(emit.cast(index, I64), [3]), batch_dims=2)
            part = emit("mul", taken, emit.unsqueeze(weight, [3]))
            total = part if total is None else emit("add", total, part)
        assert total is not None
        return total

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, w, offset, mask = padded(operands, 4)
        batch, moved, groups = x.shape[0], call.integer("offset_groups"), call.integer("groups")
        taps, counts = math.prod(w.shape[2:]), [window.count for window in self._windows(call)]
        shifts = offset.reshape(batch, moved, taps, 2, -1)
        down, right = (shifts[:, :, :, k] + still for k, still in enumerate(self._places(call, x.dtype)))
        image = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]).reshape(batch, moved, -1, x.shape[2] + 2, x.shape[3] + 2)
        down, right = np.clip(down, -1, x.shape[2]) + 1, np.clip(right, -1, x.shape[3]) + 1
        top, left = np.minimum(np.floor(down), x.shape[2]), np.minimum(np.floor(right), x.shape[3])
        entries, owners = np.arange(batch)[:, None, None, None], np.arange(moved)[None, :, None, None]
        samples = np.zeros((batch, moved, taps, down.shape[-1], image.shape[2]), x.dtype)
        for i, j in itertools.product((0, 1), (0, 1)):
            weight = np.abs(1 - i - (down - top)) * np.abs(1 - j - (right - left))
            place = (top + i).astype(np.int64), (left + j).astype(np.int64)
            samples += image[entries, owners, :, place[0], place[1]] * weight[..., None]
        if mask is not None:
            samples *= mask.reshape(batch, moved, taps, -1, 1)
        columns = samples.transpose(0, 1, 4, 2, 3).reshape(batch, groups, w.shape[1] * taps, -1)
        kernels = w.reshape(groups, w.shape[0] // groups, w.shape[1] * taps)
        return (product(kernels, columns, self.compute_element(call)).reshape(batch, w.shape[0], *counts),)
