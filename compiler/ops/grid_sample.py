"""Sampling a tensor at the points of a grid, and the grid of an affine map."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch, UnsupportedType
from compiler.ir import C128, F32, F64, I64, UNKNOWN, Call, ElementType, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, known_sizes
from compiler.ops.convert import convert
from compiler.ops.padding import zero_of
from compiler.ops.registry import (
    ANY,
    COMPLEX,
    FLAG,
    FLOAT,
    INTEGER,
    NUMERIC,
    Attribute,
    Operand,
    Variable,
    choice,
    register,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array

_ALIGN: Final = Attribute(
    "align_corners", FLAG, False, "-1 and 1 are the centres of the outer elements, not their edges."
)
_CUBIC: Final = -0.75


def _ends(size: int, *, align: bool) -> tuple[float, float]:
    """Where -1 and 1 lie, in elements."""
    return (0.0, size - 1.0) if align else (-0.5, size - 0.5)


@register
class GridSample(Rounded):
    """x [N, C, *S] at the points of grid [N, *O, n], n spatial dims -> [N, C, *O].

    A point gives coordinates from -1 to 1, that of the last spatial dim first. 'nearest' rounds to even, 'cubic' is
    Keys' kernel with -0.75. Outside, 'zeros' reads 0 (the empty string), 'border' the nearest element, 'reflection'
    mirrors at the ends. 'border' is for points as a whole, but for cubic sampling for each neighbour alone, where
    ONNX's text is silent: what torch and onnxruntime do. A NaN coordinate counts as the first element. Booleans and
    strings take mode nearest alone. Source: ONNX GridSample-22.
    """

    name: ClassVar[str] = "grid_sample"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", ANY)),
        Operand("grid", Variable("G", FLOAT)),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("mode", choice("nearest", "linear", "cubic"), "linear", "how elements around a point are joined"),
        Attribute("padding", choice("zeros", "border", "reflection"), "zeros", "what is read outside"),
        _ALIGN,
        COMPUTE_TYPE,
    )

    def compute_element(self, call: Call) -> ElementType:
        """That of points and weights: float32 for integers too, the type of the parts for complex numbers."""
        found = super().compute_element(call)
        if call.tensor(0).element is C128:
            return F64
        return found if found.is_float else F32

    def value_element(self, call: Call) -> ElementType:
        """That of weighted elements."""
        element = call.tensor(0).element
        return element if element in COMPLEX else self.compute_element(call)

    def check(self, call: Call) -> None:
        """Joining needs sums. Raises TypeMismatch, InvalidAttribute."""
        super().check(call)
        element, mode = call.tensor(0).element, call.text("mode")
        if mode != "nearest" and element not in NUMERIC:
            msg = f"grid_sample: mode '{mode}' of elements {element}, of which there are no sums; expected 'nearest'"
            raise TypeMismatch(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where the ranks do not fit."""
        x, grid = call.tensor(0), call.tensor(1)
        if x.dims is None or grid.dims is None:
            return (tensor(x.element, None),)
        if x.rank != grid.rank or x.rank < 3 or grid.dims[-1] not in {x.rank - 2, *filter(_is_symbol, grid.dims)}:
            msg = f"grid_sample: x {x} and grid {grid}; expected [N, C, *S] and [N, *O, n] for n spatial dims"
            raise TypeMismatch(msg)
        return (tensor(x.element, (*x.dims[:2], *grid.dims[1:-1])),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """Taps of each dim as indices and weights; each combination is gathered, weighted and summed."""
        x, grid = operands
        assert x is not None
        assert grid is not None
        batch, channels = x.tensor.known_dims[:2]
        sizes = known_sizes(x.tensor, range(2, x.tensor.rank))
        out = known_sizes(grid.tensor, range(1, grid.tensor.rank - 1))
        element, points = self.compute_element(call), math.prod(out)
        flat = emit.reshape(emit.cast(grid, element), [batch, points, len(sizes)])
        nearest = call.text("mode") == "nearest"
        rows = emit.transpose(emit.reshape(x, [batch, channels, math.prod(sizes)]), (0, 2, 1))
        rows = rows if nearest else emit.cast(rows, self.value_element(call))
        axes = [
            self._emit_taps(call, emit, emit.squeeze(emit.slice(flat, 2, d, d + 1), [2]), size)
            for d, size in zip(reversed(range(len(sizes))), sizes, strict=True)
        ]
        total: Value | None = None
        for combination in itertools.product(*axes):
            part = self._emit_part(call, emit, rows, sizes, combination)
            total = part if total is None else emit("add", total, part)
        assert total is not None
        if total.tensor.element.is_float and not call.tensor(0).element.is_float:
            total = emit("cast", emit("round", total), to=call.tensor(0).element, saturate=True)
        return (emit.reshape(emit.transpose(total, (0, 2, 1)), [batch, channels, *out]),)

    def _emit_taps(self, call: Call, emit: Emit, n: Value, size: int) -> list[tuple[Value, Value | None]]:
        """The places [N, Q] that one dim reads, each with its weight."""
        low, high = _ends(size, align=call.flag("align_corners"))
        x = emit("add", emit("mul", emit("add", n, 1.0), (high - low) / 2), low)
        if call.text("mode") == "nearest":
            x = emit("round", x)
        outside = emit("or", emit("lt", x, low), emit("gt", x, high))
        if call.text("padding") == "border" and call.text("mode") != "cubic":
            x = emit("select", outside, _emit_clamped(emit, x, size), x)
        elif call.text("padding") == "reflection":
            x = emit("select", outside, _emit_reflected(emit, x, low, high), x)
        if call.text("mode") == "nearest":
            return [(x, None)]
        base = emit("floor", x)
        t = emit("sub", x, base)
        weights = _emit_linear(emit, t) if call.text("mode") == "linear" else _emit_cubic(emit, t)
        first = -(len(weights) // 2) + 1
        return [(emit("add", base, float(first + k)), weight) for k, weight in enumerate(weights)]

    def _emit_part(
        self, call: Call, emit: Emit, rows: Value, sizes: Sequence[int], taps: Sequence[tuple[Value, Value | None]]
    ) -> Value:
        index: Value | None = None
        weight: Value | None = None
        inside: list[Value] = []
        for (place, share), size in zip(taps, sizes, strict=True):
            low, high = _ends(size, align=call.flag("align_corners"))
            if call.text("padding") == "zeros":
                inside += [emit("ge", place, 0.0), emit("le", place, size - 1.0)]
            elif call.text("padding") == "reflection":
                beyond = emit("or", emit("lt", place, low), emit("gt", place, high))
                place = emit("select", beyond, _emit_reflected(emit, place, low, high), place)  # noqa: PLW2901
            whole = emit("cast", _emit_clamped(emit, place, size), to=I64)
            index = whole if index is None else emit("add", emit("mul", index, size), whole)
            if share is not None:
                weight = share if weight is None else emit("mul", weight, share)
        assert index is not None
        part = emit("gather_nd", rows, emit.unsqueeze(index, [2]), batch_dims=1)
        if inside:
            seen = inside[0]
            for condition in inside[1:]:
                seen = emit("and", seen, condition)
            nothing = emit.constant(np.array(zero_of(part.tensor.element), part.tensor.element.dtype))
            part = emit("select", emit.unsqueeze(seen, [2]), part, nothing)
        if weight is None:
            return part
        return emit("mul", part, emit.cast(emit.unsqueeze(weight, [2]), part.tensor.element))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, grid = operands
        element, spatial = self.compute_element(call), x.ndim - 2
        mode, padding, align = call.text("mode"), call.text("padding"), call.flag("align_corners")
        values = x if mode == "nearest" else x.astype(self.value_element(call).dtype)
        places, weights = [], []
        for d, size in enumerate(x.shape[2:]):
            low, high = _ends(size, align=align)
            point = (grid[..., spatial - 1 - d].astype(element.dtype) + 1) * ((high - low) / 2) + low
            point = np.rint(point) if mode == "nearest" else point
            if mode != "cubic" or padding != "border":
                point = np.where((point < low) | (point > high), _PAD[padding](point, low, high, size), point)
            base = np.floor(point)
            kernel = _KERNELS[mode](point - base)
            first = -(len(kernel) // 2) + 1 if len(kernel) > 1 else 0
            places.append([base + first + k for k in range(len(kernel))])
            weights.append(kernel)
        total: Array | None = None
        batch = np.arange(x.shape[0]).reshape(-1, *[1] * spatial)
        for taps in itertools.product(*(range(len(kernel)) for kernel in weights)):
            chosen = [places[d][k] for d, k in enumerate(taps)]
            whole = [_whole(place, size, padding, align=align) for place, size in zip(chosen, x.shape[2:], strict=True)]
            picked = np.moveaxis(values.swapaxes(0, 1)[(slice(None), batch, *whole)], 0, 1)
            if padding == "zeros":
                pairs = zip(chosen, x.shape[2:], strict=True)
                inside = np.logical_and.reduce([(place >= 0) & (place <= size - 1) for place, size in pairs])
                picked = np.where(inside[:, None], picked, zero_of(call.tensor(0).element)).astype(values.dtype)
            if mode == "nearest":
                return (picked,)
            share = np.prod(np.stack([weights[d][k] for d, k in enumerate(taps)]), axis=0)
            part = picked * share[:, None].astype(values.dtype)
            total = part if total is None else total + part
        assert total is not None
        kept = call.tensor(0).element
        return (convert(np.rint(total), kept, True) if kept in INTEGER else total,)


def _is_symbol(dim: object) -> bool:
    return isinstance(dim, str)


def _emit_clamped(emit: Emit, x: Value, size: int) -> Value:
    """Into 0 .. size - 1; NaN becomes 0."""
    last = emit.scalar(size - 1, x.tensor.element)
    capped = emit("select", emit("lt", x, last), x, last)
    return emit("select", emit("gt", x, 0.0), capped, 0.0)


def _emit_reflected(emit: Emit, x: Value, low: float, high: float) -> Value:
    """Mirrored at both ends until inside: a triangle wave of the distance to ``low``."""
    extent = high - low
    if extent <= 0:
        return emit("mul", x, 0.0)
    phase = emit("rem", emit("abs", emit("sub", x, low)), 2 * extent)
    folded = emit("sub", emit.scalar(extent, x.tensor.element), emit("abs", emit("sub", phase, extent)))
    return emit("add", folded, low)


def _emit_linear(emit: Emit, t: Value) -> list[Value]:
    return [emit("sub", emit.scalar(1, t.tensor.element), t), t]


def _emit_cubic(emit: Emit, t: Value) -> list[Value]:
    one = emit.scalar(1, t.tensor.element)
    rest = emit("sub", one, t)

    def near(x: Value) -> Value:
        inner = emit("sub", emit("mul", x, _CUBIC + 2), _CUBIC + 3)
        return emit("add", emit("mul", emit("mul", inner, x), x), 1.0)

    def far(x: Value) -> Value:
        inner = emit("add", emit("mul", emit("sub", emit("mul", x, _CUBIC), 5 * _CUBIC), x), 8 * _CUBIC)
        return emit("sub", emit("mul", inner, x), 4 * _CUBIC)

    return [far(emit("add", t, 1.0)), near(t), near(rest), far(emit("add", rest, 1.0))]


def _near(x: Array) -> Array:
    return np.asarray(((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1)


def _far(x: Array) -> Array:
    return np.asarray(((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC)


_KERNELS: Final[dict[str, Callable[[Array], list[Array]]]] = {
    "nearest": lambda t: [np.ones_like(t)],
    "linear": lambda t: [1 - t, t],
    "cubic": lambda t: [_far(1 + t), _near(t), _near(1 - t), _far(2 - t)],
}


def _mirrored(x: Array, low: float, high: float, size: int) -> Array:
    del size
    extent = high - low
    folded = np.fmod(np.abs(x - low), 2 * extent) if extent > 0 else x * 0
    return np.asarray(low + extent - np.abs(folded - extent))


_PAD: Final[dict[str, Callable[[Array, float, float, int], Array]]] = {
    "zeros": lambda x, _low, _high, _size: x,
    "border": lambda x, _low, _high, size: np.clip(x, 0, size - 1),
    "reflection": _mirrored,
}


def _whole(place: Array, size: int, padding: str, *, align: bool) -> Array:
    """A place as an index of a dim of ``size``."""
    low, high = _ends(size, align=align)
    if padding == "reflection":
        place = np.where((place < low) | (place > high), _mirrored(place, low, high, size), place)
    return np.asarray(np.clip(np.nan_to_num(place), 0, size - 1), np.int64)


@register
class AffineGrid(Rounded):
    """The grid [N, *S, n] that theta [N, n, n + 1] makes of the regular one; ``size`` is [N, C, *S], n of 2 or 3.

    Source: ONNX AffineGrid-20.
    """

    name: ClassVar[str] = "affine_grid"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("theta", Variable("T", FLOAT)),
        Operand("size", Variable("I", frozenset({I64})), value=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (_ALIGN, COMPUTE_TYPE)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where theta or the number of sizes does not fit."""
        theta, size = call.tensor(0), call.value(1)
        if theta.dims is None or theta.rank != 3 or not isinstance(theta.dims[1], int):
            return (tensor(theta.element, None),)
        spatial = theta.dims[1]
        if theta.dims[2] != spatial + 1 or (size is not None and len(size) != spatial + 2):
            msg = f"affine_grid: theta {theta} and sizes {size}; expected [N, n, n + 1] and n + 2 sizes"
            raise TypeMismatch(msg)
        dims = [UNKNOWN] * spatial if size is None else [int(item) for item in size[2:]]
        return (tensor(theta.element, (theta.dims[0], *dims, spatial)),)

    @staticmethod
    def _base(call: Call, sizes: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Points of the regular grid as columns, [n + 1, points]: the last dim's coordinate first, a 1 at the end."""
        axes = []
        for size in sizes:
            low, high = _ends(size, align=call.flag("align_corners"))
            axes.append((np.arange(size) - low) * (2 / (high - low) if high > low else 0.0) - 1)
        mesh = np.meshgrid(*axes, indexing="ij")
        return np.stack([*mesh[::-1], np.ones(sizes)]).reshape(len(sizes) + 1, -1).astype(dtype)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """Theta times the constant regular grid. Raises UnsupportedType where its size is not known."""
        theta, size = operands[0], call.value(1)
        assert theta is not None
        if size is None:
            msg = "affine_grid: the size of the grid is computed; its points are constants"
            raise UnsupportedType(msg)
        sizes = [int(item) for item in size[2:]]
        moved = emit("matmul", theta, emit.constant(self._base(call, sizes, theta.tensor.element.dtype)))
        return (emit.reshape(emit.transpose(moved, (0, 2, 1)), [theta.tensor.known_dims[0], *sizes, len(sizes)]),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        theta, sizes = operands[0], [int(item) for item in operands[1][2:]]
        base = self._base(call, sizes, np.dtype(np.float64))
        moved = np.einsum("nij,jp->npi", theta.astype(np.float64), base)
        return (moved.reshape(theta.shape[0], *sizes, len(sizes)),)
