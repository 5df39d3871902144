"""Transposed convolution, as a convolution of the spread-out operand with the turned-round kernel."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Builder, Call, Dim, ElementType, Op, Type, Value, tensor
from compiler.ops.compose import Emit, Evaluated, known_sizes, widened
from compiler.ops.contraction import TO
from compiler.ops.registry import FLOAT, Attribute, Composite, Operand, Variable, integers, register
from compiler.ops.windows import AUTO_PAD, DILATIONS, GROUPS, PADS, STRIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T: Final = Variable("T", FLOAT)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial dim: element i of x meets tap j of the kernel at i * stride + j * dilation - low of the result."""

    size: int
    kernel: int
    stride: int
    dilation: int
    low: int
    out: int

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @property
    def spread(self) -> int:
        """Size of x with stride - 1 zeros between elements."""
        return max((self.size - 1) * self.stride + 1, 0)

    @property
    def margins(self) -> tuple[int, int]:
        """Zeros around the spread-out x with which a convolution gives the result; negative ones cut."""
        before = self.reach - 1 - self.low
        return before, self.out + self.reach - 1 - self.spread - before


@register
class ConvTranspose(Evaluated, Composite):
    """The transpose of conv: x [N, C, *S] with w [C, M / groups, *K] -> [N, M, *O].

    O = stride * (S - 1) + output_padding + reach - padding, reach being (K - 1) * dilation + 1. ``output_shape``
    (spatial) sets O and, with ``auto_pad``, the padding, as ONNX ConvTranspose-11 says; 'same_*' without it means
    O = S * stride.
    Sums are taken at the accumulate type of conv and rounded once. The decomposition multiplies weights with the zeros
    that it puts in: where a weight is infinite or NaN it gives NaN in places that the definition leaves out.
    """

    name: ClassVar[str] = "conv_transpose"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T), Operand("w", _T))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        STRIDES,
        DILATIONS,
        PADS,
        AUTO_PAD,
        Attribute("output_padding", integers(0), (), "Elements added after each spatial dim; empty: 0."),
        Attribute("output_shape", integers(0), (), "Sizes of the spatial dims of the result; empty: by the formula."),
        GROUPS,
        TO,
    )

    @staticmethod
    def _element(call: Call) -> ElementType:
        found = call.get("to")
        return found if isinstance(found, ElementType) else call.tensor(0).element

    def check(self, call: Call) -> None:
        """``to`` must be a float. Raises InvalidAttribute, TypeMismatch."""
        super().check(call)
        if not self._element(call).is_float:
            msg = f"conv_transpose: attribute 'to' is {self._element(call)}; expected a floating-point type"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Sizes where those of x and w are known. Raises TypeMismatch where ranks, channels or groups do not fit."""
        x, w, groups = call.tensor(0), call.tensor(1), call.integer("groups")
        if x.dims is None or w.dims is None:
            return (tensor(self._element(call), None),)
        if x.rank != w.rank or x.rank < 2:
            msg = f"conv_transpose: x {x} and w {w}; expected equal ranks of at least 2"
            raise TypeMismatch(msg)
        channels, inputs, outputs = x.dims[1], w.dims[0], w.dims[1]
        if isinstance(inputs, int) and isinstance(channels, int) and (channels != inputs or inputs % groups):
            msg = f"conv_transpose: x has {channels} channels, w {inputs}, in {groups} groups; expected one multiple"
            raise TypeMismatch(msg)
        spatial: list[Dim] = [
            axis.out if axis is not None else self._symbolic(call, d)
            for d, axis in enumerate(self._axes(call, x.dims[2:], w.dims[2:]))
        ]
        return (
            tensor(
                self._element(call), (x.dims[0], outputs * groups if isinstance(outputs, int) else UNKNOWN, *spatial)
            ),
        )

    @staticmethod
    def _symbolic(call: Call, axis: int) -> Dim:
        shape = call.integers("output_shape")
        return shape[axis] if shape else UNKNOWN

    def _axes(self, call: Call, sizes: Sequence[Dim], kernel: Sequence[Dim]) -> list[_Axis | None]:
        rank = len(sizes)
        entries = {
            name: self._entries(call, name, count, default)
            for name, count, default in (
                ("strides", rank, 1),
                ("dilations", rank, 1),
                ("output_padding", rank, 0),
                ("pads", 2 * rank, 0),
                ("output_shape", rank, -1),
            )
        }
        return [self._axis(call, entries, d, sizes[d], kernel[d]) for d in range(rank)]

    def _entries(self, call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
        found = call.integers(name) or (default,) * count
        if len(found) != count:
            msg = f"conv_transpose: attribute '{name}' has {len(found)} entries; expected {count}"
            raise InvalidAttribute(msg)
        return found

    @staticmethod
    def _axis(call: Call, entries: dict[str, tuple[int, ...]], d: int, size: Dim, kernel: Dim) -> _Axis | None:
        if not isinstance(size, int) or not isinstance(kernel, int):
            return None
        stride, dilation, rank = entries["strides"][d], entries["dilations"][d], len(entries["strides"])
        full = stride * (size - 1) + entries["output_padding"][d] + (kernel - 1) * dilation + 1
        low, high, out = entries["pads"][d], entries["pads"][rank + d], entries["output_shape"][d]
        auto_pad = call.text("auto_pad")
        if out < 0 and auto_pad == "explicit":
            out = full - low - high
            if out < 0:
                msg = f"conv_transpose: padding {low} + {high} of spatial dim {d}; expected at most {full}"
                raise TypeMismatch(msg)
            return _Axis(size, kernel, stride, dilation, low, out)
        out = size * stride if out < 0 else out
        total = max(full - out, 0)
        low = total // 2 if auto_pad == "same_upper" else total - total // 2
        return _Axis(size, kernel, stride, dilation, low, out)

    def _static_axes(self, call: Call) -> list[_Axis]:
        sizes, kernel = (known_sizes(type_, range(2, type_.rank)) for type_ in (call.tensor(0), call.tensor(1)))
        return [axis for axis in self._axes(call, sizes, kernel) if axis is not None]

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """Pad (between, and around where it cuts), then conv with the kernel reversed and its channels exchanged."""
        call, emit = op.call(), Emit(builder)
        axes = self._static_axes(call)
        margins = [axis.margins for axis in axes]
        cuts = any(low < 0 or high < 0 for low, high in margins)
        around = [(0, 0)] * 2 + (margins if cuts else [(0, 0)] * len(axes))
        interior = (0, 0, *(axis.stride - 1 for axis in axes))
        x = op.operand(0)
        if cuts or any(interior):
            pads = emit.integers([low for low, _ in around] + [high for _, high in around])
            x = emit("pad", x, pads, interior=interior)
        padding = () if cuts else tuple([low for low, _ in margins] + [high for _, high in margins])
        weights = self._turned(emit, op.operand(1), call)
        dilations, groups = tuple(axis.dilation for axis in axes), call.integer("groups")
        wide = {} if self._element(call) is x.tensor.element else {"to": self._element(call)}
        return (emit("conv", x, weights, pads=padding, dilations=dilations, groups=groups, **wide),)

    @staticmethod
    def _turned(emit: Emit, w: Value, call: Call) -> Value:
        """[C, M / groups, *K] as [M, C / groups, *K], every K reversed."""
        shape, groups = w.tensor.shape, call.integer("groups")
        spatial = shape[2:]
        inputs, outputs = shape[0] // groups, shape[1]
        split = emit.reshape(w, [groups, inputs, outputs, *spatial])
        swapped = emit.transpose(split, [0, 2, 1, *range(3, 3 + len(spatial))])
        merged = emit.reshape(swapped, [groups * outputs, inputs, *spatial])
        axes = tuple(2 + d for d, size in enumerate(spatial) if size > 1)
        return emit("reverse", merged, axes=axes) if axes else merged

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Each tap of the kernel adds a strided slab to the result."""
        x, w = operands
        axes, groups = self._static_axes(call), call.integer("groups")
        dtype = widened(self._element(call)).dtype
        images, outputs, inputs = x.shape[0], w.shape[1], x.shape[1] // groups
        parts = x.astype(dtype).reshape(images, groups, inputs, -1)
        taps = w.astype(dtype).reshape(groups, inputs, outputs, *w.shape[2:])
        sizes = [max(axis.spread + axis.reach - 1, axis.low + axis.out) for axis in axes]
        full: Array = np.zeros((images, groups, outputs, *sizes), dtype)
        for tap in itertools.product(*(range(axis.kernel) for axis in axes)):
            slab = np.matmul(taps[(Ellipsis, *tap)].transpose(0, 2, 1), parts)
            places: tuple[Any, ...] = tuple(
                slice(j * axis.dilation, j * axis.dilation + axis.spread, axis.stride)
                for j, axis in zip(tap, axes, strict=True)
            )
            full[(..., *places)] += slab.reshape(images, groups, outputs, *x.shape[2:])
        window: tuple[Any, ...] = tuple(slice(axis.low, axis.low + axis.out) for axis in axes)
        kept = full[(..., *window)]
        return (kept.reshape(images, groups * outputs, *kept.shape[3:]).astype(self._element(call).dtype),)
