"""Resizing by interpolation along axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch, UnsupportedType
from compiler.ir import F32, I64, STRING, UNKNOWN, Call, Dim, ElementType, Type, Value, element_of, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, known_sizes
from compiler.ops.convert import convert
from compiler.ops.registry import (
    ANY,
    COMPLEX,
    FLAG,
    FLOAT,
    NUMBER,
    NUMERIC,
    Attribute,
    Operand,
    Variable,
    choice,
    integers,
    register,
)
from compiler.ops.resize_plan import COORDINATES, NEAREST, Axis, Sampling, Taps, taps
from compiler.ops.shapes import normalize_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_POLICIES: Final = ("stretch", "not_larger", "not_smaller")


@register
class Resize(Rounded):
    """x with other sizes along ``axes`` (empty: all), by ``scales`` or to ``sizes``. Source: ONNX Resize-19.

    Value operands, of one entry an axis (roi: all starts, then all ends); an empty one counts as omitted, and one of
    scales and sizes is needed. A new size is floor(scale * size), the product in float32. With a policy, one scale
    serves all axes: the least (not_larger) or the greatest (not_smaller) of those that ``sizes`` asks for. Integers are
    interpolated in float32, rounded to even and saturated; complex numbers as they are. Booleans and strings take mode
    nearest alone. Raises TypeMismatch for wrong numbers of entries.
    """

    name: ClassVar[str] = "resize"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", ANY)),
        Operand("roi", Variable("R", FLOAT), optional=True, value=True),
        Operand("scales", Variable("S", frozenset({F32})), optional=True, value=True),
        Operand("sizes", Variable("I", frozenset({I64})), optional=True, value=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("mode", choice("nearest", "linear", "cubic"), "nearest", "How neighbours are joined."),
        Attribute("coordinates", choice(*COORDINATES), "half_pixel", "Where a new element lies in the old ones."),
        Attribute("nearest_mode", choice(*NEAREST), "round_prefer_floor", "Rounding of a place, for mode nearest."),
        Attribute("cubic_coefficient", NUMBER, -0.75, "The parameter a of Keys' kernel."),
        Attribute("antialias", FLAG, False, "Widen the kernel where the result is smaller."),
        Attribute("exclude_outside", FLAG, False, "Leave neighbours beyond an end out, instead of repeating the end."),
        Attribute("extrapolation_value", NUMBER, 0.0, "Outside, for coordinates 'tf_crop_and_resize'."),
        Attribute("axes", integers(), (), "Dims that scales, sizes and roi are for; empty: all."),
        Attribute("policy", choice(*_POLICIES), "stretch", "Whether sizes keep the aspect ratio, and how."),
        COMPUTE_TYPE,
    )
    narrow: ClassVar[frozenset[int]] = frozenset({1, 2})

    def check(self, call: Call) -> None:
        """Antialias needs weights. Raises InvalidAttribute, TypeMismatch."""
        super().check(call)
        if call.flag("antialias") and call.text("mode") == "nearest":
            msg = "resize: antialias with mode 'nearest'; expected 'linear' or 'cubic'"
            raise InvalidAttribute(msg)
        element, mode = call.tensor(0).element, call.text("mode")
        if mode != "nearest" and element not in NUMERIC:
            msg = f"resize: mode '{mode}' of elements {element}, of which there are no sums; expected 'nearest'"
            raise TypeMismatch(msg)
        if not call.has(2) and not call.has(3):
            msg = "resize: neither scales nor sizes are given; expected one of them"
            raise TypeMismatch(msg)

    def compute_element(self, call: Call) -> ElementType:
        """float32 for integers too; a complex type is its own."""
        found = super().compute_element(call)
        if call.tensor(0).element in COMPLEX:
            return call.tensor(0).element
        return found if found.is_float else F32

    @staticmethod
    def sampling(call: Call) -> Sampling:
        """The attributes that say how an axis is sampled."""
        return Sampling(
            call.text("mode"),
            call.text("coordinates"),
            call.text("nearest_mode"),
            call.number("cubic_coefficient"),
            call.flag("antialias"),
            call.flag("exclude_outside"),
            call.number("extrapolation_value"),
        )

    def _axes(self, call: Call, rank: int) -> tuple[int, ...]:
        return normalize_axes(self.name, call.integers("axes") or range(rank), rank)

    def plan(self, call: Call, shape: Sequence[int], values: Sequence[Array | None]) -> list[Axis]:
        """The axes of x with this shape; ``values`` are roi, scales, sizes. Raises TypeMismatch."""
        axes = self._axes(call, len(shape))
        roi, scales, sizes = (None if value is None or np.size(value) == 0 else value for value in values)
        region = [0.0] * len(axes) + [1.0] * len(axes) if roi is None else [float(x) for x in np.asarray(roi)]
        given = sizes if sizes is not None else scales
        count = 0 if given is None else len(given)
        if count != len(axes) or len(region) != 2 * len(axes):
            msg = f"resize: {count} scales or sizes and {len(region)} roi entries for {len(axes)} axes"
            raise TypeMismatch(msg)
        old = [shape[axis] for axis in axes]
        if sizes is not None:
            pairs = self._by_sizes(call, old, [int(size) for size in sizes])
        else:
            assert scales is not None
            pairs = [(new_size(size, float(scale)), float(scale)) for size, scale in zip(old, scales, strict=True)]
        for size, (out, _) in zip(old, pairs, strict=True):
            if out > 0 == size:
                msg = f"resize: {out} elements from a dim of none; expected a size of at least 1"
                raise TypeMismatch(msg)
        return [
            Axis(axis, size, out, scale, region[k], region[len(axes) + k])
            for k, (axis, size, (out, scale)) in enumerate(zip(axes, old, pairs, strict=True))
        ]

    @staticmethod
    def _by_sizes(call: Call, old: list[int], sizes: list[int]) -> list[tuple[int, float]]:
        ratios = [new / size if size else 1.0 for new, size in zip(sizes, old, strict=True)]
        policy = call.text("policy")
        if policy == "stretch":
            return list(zip(sizes, ratios, strict=True))
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        return [(int(scale * size + 0.5), scale) for size in old]

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Sizes where scales or sizes, and the old sizes they apply to, are known."""
        x = call.tensor(0)
        if x.dims is None:
            return (x,)
        axes = self._axes(call, x.rank)
        dims: list[Dim] = list(x.dims)
        sizes = call.value(3) if call.has(3) and call.tensor(3).dims != (0,) else None
        old = [dims[axis] for axis in axes]
        if all(isinstance(dim, int) for dim in old) and (sizes is not None or call.value(2) is not None):
            shape = [dim if isinstance(dim, int) else 0 for dim in dims]
            for axis in self.plan(call, shape, [None, call.value(2), sizes]):
                dims[axis.axis] = axis.out
        else:
            for k, axis_number in enumerate(axes):
                dims[axis_number] = self._symbolic(call, old[k], k, sizes)
        return (tensor(x.element, dims),)

    @staticmethod
    def _symbolic(call: Call, old: Dim, k: int, sizes: Array | None) -> Dim:
        if sizes is not None:
            return int(sizes[k]) if call.text("policy") == "stretch" else UNKNOWN
        scales = call.value(2)
        if scales is None or scales.size == 0:
            return UNKNOWN
        if isinstance(old, int):
            return new_size(old, float(scales[k]))
        return old if float(scales[k]) == 1 else UNKNOWN

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """Along each axis a gather of neighbours by constant indices, times constant weights, summed."""
        x, element = operands[0], call.tensor(0).element
        assert x is not None
        values = [call.value(index) for index in (1, 2, 3)]
        for index, value in enumerate(values, 1):
            if value is None and call.has(index):
                msg = f"resize: the value of operand '{self.operands[index].name}' is needed and not known"
                raise UnsupportedType(msg)
        sampling = self.sampling(call)
        used = self._axes(call, x.tensor.rank)
        known_sizes(x.tensor, used)
        shape = [dim if isinstance(dim, int) else 0 for dim in x.tensor.known_dims]
        plans = [axis for axis in self.plan(call, shape, values) if not axis.is_identity(sampling)]
        if sampling.mode != "nearest" and plans:
            x = emit.cast(x, self.compute_element(call))
        for axis in plans:
            x = _emit_axis(emit, x, axis, taps(axis, sampling), sampling.extrapolation)
        if x.tensor.element.is_float and not element.is_float:
            x = emit("cast", emit("round", x), to=element, saturate=True)
        return (x,)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Neighbour by neighbour, axis after axis, at the compute type."""
        x, element = operands[0], call.tensor(0).element
        values = [np.asarray(value) if value is not None else None for value in [*operands[1:], None, None, None][:3]]
        sampling = self.sampling(call)
        plans = [axis for axis in self.plan(call, x.shape, values) if not axis.is_identity(sampling)]
        if sampling.mode != "nearest" and plans:
            x = x.astype(self.compute_element(call).dtype)
        for axis in plans:
            x = _resampled(x, axis, taps(axis, sampling), sampling.extrapolation)
        if not element.is_float and element_of(x.dtype).is_float:
            x = convert(np.rint(x), element, True)
        return (x,)


def new_size(size: int, scale: float) -> int:
    """floor(size * scale), the product rounded to float32 as ONNX's shape inference and onnxruntime do.

    Raises InvalidAttribute for a scale that is not a finite number greater than 0.
    """
    if not 0 < scale < math.inf:
        msg = f"resize: a scale is {scale}; expected a finite number greater than 0"
        raise InvalidAttribute(msg)
    return int(np.floor(np.float32(size) * np.float32(scale)))


def _outside(extrapolation: float, element: ElementType) -> Array:
    """The extrapolation value as an element. Raises UnsupportedType for strings unless it is 0: the empty string."""
    if element is not STRING:
        return np.asarray(extrapolation).astype(element.dtype)
    if extrapolation != 0:
        msg = f"resize: the extrapolation value is {extrapolation}, which is no string; expected 0, the empty one"
        raise UnsupportedType(msg)
    return np.array("", element.dtype)


def _column(vector: Array, axis: int, rank: int, dtype: np.dtype[Any]) -> Array:
    """A vector along ``axis`` of a tensor of ``rank`` dims."""
    return vector.astype(dtype).reshape([-1 if d == axis else 1 for d in range(rank)])


def _emit_axis(emit: Emit, x: Value, axis: Axis, source: Taps, extrapolation: float) -> Value:
    rank, dtype, place = x.tensor.rank, x.tensor.element.dtype, axis.axis
    if source.weights is None or np.all(source.weights == 1):
        result = emit("gather", x, emit.constant(source.indices[:, 0]), axis=place)
    else:
        neighbours = emit("gather", x, emit.constant(source.indices), axis=place)
        shape = [1] * place + list(source.weights.shape) + [1] * (rank - place - 1)
        weights = emit.constant(source.weights.astype(dtype).reshape(shape))
        result = emit.reduce("reduce_sum", emit("mul", neighbours, weights), (place + 1,), keep_dims=False)
    if source.outside is None:
        return result
    mask = emit.constant(_column(source.outside, place, rank, np.dtype(np.bool_)))
    return emit("select", mask, emit.constant(_outside(extrapolation, x.tensor.element)), result)


def _resampled(x: Array, axis: Axis, source: Taps, extrapolation: float) -> Array:
    place = axis.axis
    result = np.take(x, source.indices[:, 0], place)
    if source.weights is not None:
        result = result * _column(source.weights[:, 0], place, x.ndim, x.dtype)
        for k in range(1, source.indices.shape[1]):
            weights = _column(source.weights[:, k], place, x.ndim, x.dtype)
            result = result + np.take(x, source.indices[:, k], place) * weights
    if source.outside is not None:
        mask = _column(source.outside, place, x.ndim, np.dtype(np.bool_))
        result = np.where(mask, _outside(extrapolation, element_of(x.dtype)), result)
    return result
