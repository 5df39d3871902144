"""Normalizations: composites that divide by a statistic of the operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import Call, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Pointwise, Rounded, known_sizes, padded
from compiler.ops.registry import FLAG, FLOAT, NUMBER, Attribute, Operand, Variable, integer, integers, register
from compiler.ops.shapes import normalize_axes, normalize_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T = Variable("T", FLOAT)
_SCALE = Variable("S", FLOAT)
_STATISTIC = Variable("U", FLOAT)
_X: Final = (Operand("x", _T),)
_AXIS: Final = Attribute("axis", integer(), -1, "The dim, or the first of the dims, that statistics are taken over.")


def _epsilon(default: float = 1e-5) -> Attribute:
    return Attribute("epsilon", NUMBER, default, "Added to the variance (or mean square) before the root.")


def _axis(call: Call) -> int:
    return normalize_axis("axis", call.integer("axis"), call.tensor(0).rank)


def _moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Mean and population variance, dims kept."""
    mean = x.mean(axis=axes, keepdims=True, dtype=x.dtype)
    return mean, np.square(x - mean).mean(axis=axes, keepdims=True, dtype=x.dtype)


def _emit_centered(emit: Emit, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """Mean, x minus mean, population variance."""
    mean = emit.mean(x, axes)
    centered = emit("sub", x, mean)
    return mean, centered, emit.mean(emit("mul", centered, centered), axes)


def _emit_inverse(emit: Emit, variance: Value, epsilon: float) -> Value:
    return emit("rsqrt", emit("add", variance, epsilon))


def _inverse(variance: Array, epsilon: float) -> Array:
    return np.asarray(1 / np.sqrt(variance + np.asarray(epsilon, variance.dtype)))


def _emit_affine(emit: Emit, x: Value, scale: Value | None, bias: Value | None) -> Value:
    scaled = x if scale is None else emit("mul", x, scale)
    return scaled if bias is None else emit("add", scaled, bias)


def _affine(x: Array, scale: Array | None, bias: Array | None) -> Array:
    scaled = x if scale is None else x * scale
    return scaled if bias is None else scaled + bias


@register
class LayerNorm(Rounded):
    """(x - mean) / sqrt(variance + epsilon) over the dims from ``axis`` on, times scale, plus bias.

    Results: y; with ``statistics`` also the mean and 1 / sqrt(variance + epsilon), with the normalized dims kept as 1,
    in the compute type (ONNX's stash_type). Source: ONNX LayerNormalization-17.
    """

    name: ClassVar[str] = "layer_norm"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _T),
        Operand("scale", _SCALE, optional=True),
        Operand("bias", _SCALE, optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _AXIS,
        _epsilon(),
        Attribute("statistics", FLAG, False, "Give mean and inverse deviation as results too."),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        x = call.tensor(0)
        for index in (1, 2):
            _check_broadcast(self.name, call, index)
        result = x.with_element(x.element)
        if not call.flag("statistics"):
            return (result,)
        dims = None if x.dims is None else [dim if d < _axis(call) else 1 for d, dim in enumerate(x.dims)]
        statistic = tensor(self.compute_element(call), dims)
        return (result, statistic, statistic)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, bias = padded(operands, 3)
        mean, centered, variance = _emit_centered(emit, x, range(_axis(call), x.tensor.rank))
        inverse = _emit_inverse(emit, variance, call.number("epsilon"))
        result = _emit_affine(emit, emit("mul", centered, inverse), scale, bias)
        return (result, mean, inverse) if call.flag("statistics") else (result,)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, bias = padded(operands, 3)
        mean, variance = _moments(x, tuple(range(_axis(call), x.ndim)))
        inverse = _inverse(variance, call.number("epsilon"))
        result = _affine((x - mean) * inverse, scale, bias)
        return (result, mean, inverse) if call.flag("statistics") else (result,)


@register
class RmsNorm(Rounded):
    """x / sqrt(mean of x^2 + epsilon) over the dims from ``axis`` on, times scale. Source: ONNX RMSNormalization-23."""

    name: ClassVar[str] = "rms_norm"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T), Operand("scale", _SCALE, optional=True))
    attributes: ClassVar[tuple[Attribute, ...]] = (_AXIS, _epsilon(), COMPUTE_TYPE)

    def infer(self, call: Call) -> tuple[Type, ...]:
        # ONNX types the result as the scale, where that differs from x.
        x = call.tensor(0)
        return (x.with_element(call.tensor(1).element if call.has(1) else x.element),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale = padded(operands, 2)
        mean = emit.mean(emit("mul", x, x), range(_axis(call), x.tensor.rank))
        return (_emit_affine(emit, emit("mul", x, _emit_inverse(emit, mean, call.number("epsilon"))), scale, None),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale = padded(operands, 2)
        mean = np.square(x).mean(axis=tuple(range(_axis(call), x.ndim)), keepdims=True, dtype=x.dtype)
        return (_affine(x * _inverse(mean, call.number("epsilon")), scale, None),)


def _channels(rank: int) -> list[int]:
    """The shape that puts a vector of channels at dim 1 of a tensor of this rank."""
    return [-1, *[1] * max(rank - 2, 0)]


class _Channelwise(Rounded):
    """Base: x [N, C, *S], then vectors a channel, which may have a type of their own."""

    def infer(self, call: Call) -> tuple[Type, ...]:
        x = call.tensor(0)
        return (x.with_element(x.element),)

    def _check_vectors(self, call: Call, allowed: Sequence[object]) -> None:
        """Raises TypeMismatch for an operand that is no vector of one of the ``allowed`` sizes; symbolic sizes pass."""
        if not all(isinstance(size, int) for size in allowed):
            return
        for index in range(1, len(call.types)):
            type_ = call.tensor(index)
            if type_.rank != 1 or (isinstance(type_.known_dims[0], int) and type_.known_dims[0] not in allowed):
                shown = " or ".join(map(str, allowed))
                found = f"operand {index} ('{self.operands[index].name}') is {type_}"
                msg = f"{self.name}: {found}; expected a vector of {shown}"
                raise TypeMismatch(msg)


@register
class GroupNorm(_Channelwise):
    """Normalizes x [N, C, *S] over each of ``num_groups`` groups of channels, times scale, plus bias.

    Scale and bias have one entry a channel, or one a group (ONNX GroupNormalization-18). Source: ONNX
    GroupNormalization-21. Raises TypeMismatch where the groups do not divide the channels.
    """

    name: ClassVar[str] = "group_norm"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T), Operand("scale", _SCALE), Operand("bias", _SCALE))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("num_groups", integer(1), doc="Number of groups of channels."),
        _epsilon(),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        dims, groups = call.tensor(0).dims, call.integer("num_groups")
        if dims is not None:
            channels = dims[1] if len(dims) > 1 else 0
            if not isinstance(channels, int):
                return super().infer(call)
            if channels == 0 or channels % groups:
                msg = f"group_norm: {channels} channels in {groups} groups; expected a multiple"
                raise TypeMismatch(msg)
            self._check_vectors(call, (channels, groups))
        return super().infer(call)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, bias = padded(operands, 3)
        groups, dims = call.integer("num_groups"), x.tensor.known_dims
        sizes = known_sizes(x.tensor, range(1, x.tensor.rank))
        grouped = emit.reshape(x, [dims[0], groups, int(np.prod(sizes)) // groups])
        _, centered, variance = _emit_centered(emit, grouped, (2,))
        normal = emit("mul", centered, _emit_inverse(emit, variance, call.number("epsilon")))
        per_channel = [self._emit_channels(emit, vector, sizes, groups) for vector in (scale, bias)]
        return (_emit_affine(emit, emit.reshape(normal, dims), per_channel[0], per_channel[1]),)

    @staticmethod
    def _emit_channels(emit: Emit, vector: Value, sizes: tuple[int, ...], groups: int) -> Value:
        """A vector of one entry a channel or a group, as [C, 1, ...]; ``sizes`` are those of x after the first."""
        channels = sizes[0]
        if vector.tensor.shape != (channels,):
            vector = emit("gather", vector, emit.constant(np.arange(channels) // (channels // groups)), axis=0)
        return emit.reshape(vector, [channels, *[1] * (len(sizes) - 1)])

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, bias = operands
        groups = call.integer("num_groups")
        grouped = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups)
        mean, variance = _moments(grouped, (2,))
        normal = ((grouped - mean) * _inverse(variance, call.number("epsilon"))).reshape(x.shape)
        wide = [np.repeat(vector, x.shape[1] // vector.size).reshape(_channels(x.ndim)) for vector in (scale, bias)]
        return (_affine(normal, wide[0], wide[1]),)


@register
class InstanceNorm(_Channelwise):
    """Normalizes each channel of each instance of x [N, C, *S] over S, times scale [C], plus bias [C].

    Source: ONNX InstanceNormalization-6.
    """

    name: ClassVar[str] = "instance_norm"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T), Operand("scale", _SCALE), Operand("bias", _SCALE))
    attributes: ClassVar[tuple[Attribute, ...]] = (_epsilon(), COMPUTE_TYPE)

    def infer(self, call: Call) -> tuple[Type, ...]:
        dims = call.tensor(0).dims
        if dims is not None and len(dims) > 1:
            self._check_vectors(call, (dims[1],))
        return super().infer(call)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, bias = padded(operands, 3)
        rank = x.tensor.rank
        _, centered, variance = _emit_centered(emit, x, range(2, rank))
        normal = emit("mul", centered, _emit_inverse(emit, variance, call.number("epsilon")))
        shape = _channels(rank)
        return (_emit_affine(emit, normal, emit.reshape(scale, shape), emit.reshape(bias, shape)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, bias = operands
        mean, variance = _moments(x, tuple(range(2, x.ndim)))
        shape = _channels(x.ndim)
        normal = (x - mean) * _inverse(variance, call.number("epsilon"))
        return (_affine(normal, scale.reshape(shape), bias.reshape(shape)),)


_BATCH_OPERANDS: Final = (
    Operand("x", _T),
    Operand("scale", _SCALE),
    Operand("bias", _SCALE),
    Operand("mean", _STATISTIC),
    Operand("variance", _STATISTIC),
)


@register
class BatchNorm(_Channelwise):
    """(x - mean) * (scale / sqrt(variance + epsilon)) + bias with given statistics. x [N, C, *S], vectors [C].

    Source: ONNX BatchNormalization-15 with training_mode 0.
    """

    name: ClassVar[str] = "batch_norm"
    operands: ClassVar[tuple[Operand, ...]] = _BATCH_OPERANDS
    attributes: ClassVar[tuple[Attribute, ...]] = (_epsilon(), COMPUTE_TYPE)

    def infer(self, call: Call) -> tuple[Type, ...]:
        dims = call.tensor(0).dims
        if dims is not None:
            self._check_vectors(call, (dims[1] if len(dims) > 1 else 1,))
        return super().infer(call)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, bias, mean, variance = padded(operands, 5)
        shape = _channels(x.tensor.rank)
        factor = emit("mul", scale, _emit_inverse(emit, variance, call.number("epsilon")))
        centered = emit("sub", x, emit.reshape(mean, shape))
        return (_emit_affine(emit, centered, emit.reshape(factor, shape), emit.reshape(bias, shape)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, bias, mean, variance = operands
        shape = _channels(x.ndim)
        factor = scale * _inverse(variance, call.number("epsilon"))
        return (_affine(x - mean.reshape(shape), factor.reshape(shape), bias.reshape(shape)),)


@register
class BatchNormTraining(_Channelwise):
    """Batch norm with the statistics of x itself over N and S. Results: y, running mean, running variance.

    A running statistic is given * momentum + x's own * (1 - momentum), the variance being the population's. Source:
    ONNX BatchNormalization-15 with training_mode 1.
    """

    name: ClassVar[str] = "batch_norm_training"
    operands: ClassVar[tuple[Operand, ...]] = _BATCH_OPERANDS
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _epsilon(),
        Attribute("momentum", NUMBER, 0.9, "Share that the given statistics keep."),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        mean, variance = call.tensor(3), call.tensor(4)
        return (*super().infer(call), mean.with_element(mean.element), variance.with_element(variance.element))

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, scale, bias, mean, variance = padded(operands, 5)
        rank, momentum = x.tensor.rank, call.number("momentum")
        own_mean, centered, own_variance = _emit_centered(emit, x, [d for d in range(rank) if d != 1])
        inverse = _emit_inverse(emit, own_variance, call.number("epsilon"))
        shape = _channels(rank)
        normal = emit("mul", centered, inverse)
        result = _emit_affine(emit, normal, emit.reshape(scale, shape), emit.reshape(bias, shape))

        def running(given: Value, own: Value) -> Value:
            return emit("add", emit("mul", given, momentum), emit("mul", emit.reshape(own, [-1]), 1 - momentum))

        return (result, running(mean, own_mean), running(variance, own_variance))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, scale, bias, mean, variance = operands
        keep = np.asarray(call.number("momentum"), x.dtype)
        own_mean, own_variance = _moments(x, tuple(d for d in range(x.ndim) if d != 1))
        shape = _channels(x.ndim)
        normal = (x - own_mean) * _inverse(own_variance, call.number("epsilon"))
        y = _affine(normal, scale.reshape(shape), bias.reshape(shape))
        own = 1 - keep
        return (y, mean * keep + own_mean.reshape(-1) * own, variance * keep + own_variance.reshape(-1) * own)


@register
class Lrn(Pointwise):
    """x / (bias + alpha / size * sum of x^2 over ``size`` neighbouring channels)^beta. x [N, C, *S].

    The window of channel c is c - floor((size - 1) / 2) .. c + ceil((size - 1) / 2). Source: ONNX LRN-13.
    """

    name: ClassVar[str] = "lrn"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("size", integer(1), doc="Number of channels that are summed over."),
        Attribute("alpha", NUMBER, 0.0001, "Factor of the mean square."),
        Attribute("beta", NUMBER, 0.75, "Exponent."),
        Attribute("bias", NUMBER, 1.0, "Added to the mean square."),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        size, dims = call.integer("size"), x.tensor.known_dims
        before, inner = (size - 1) // 2, known_sizes(x.tensor, range(2, x.tensor.rank))
        squares = emit.reshape(emit("mul", x, x), [dims[0], 1, dims[1], int(np.prod(inner, initial=1))])
        sums = emit("sum_pool", squares, kernel=(size, 1), pads=(before, 0, size - 1 - before, 0))
        base = emit("add", emit("mul", emit.reshape(sums, dims), call.number("alpha") / size), call.number("bias"))
        return emit("div", x, emit("pow", base, call.number("beta")))

    def values(self, call: Call, x: Array) -> Array:
        size, channels = call.integer("size"), x.shape[1]
        sums = np.zeros_like(x)
        for channel in range(channels):
            low = max(0, channel - (size - 1) // 2)
            high = min(channels, channel + size - (size - 1) // 2)
            sums[:, channel] = np.square(x[:, low:high]).sum(axis=1, dtype=x.dtype)
        numbers = (call.number("alpha") / size, call.number("bias"), call.number("beta"))
        factor, bias, beta = (np.asarray(number, x.dtype) for number in numbers)
        return np.asarray(x / (bias + factor * sums) ** beta)


@register
class MeanVarianceNorm(Pointwise):
    """(x - mean) / (standard deviation + 1e-9) over ``axes``. Source: ONNX MeanVarianceNormalization-13."""

    name: ClassVar[str] = "mean_variance_norm"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axes", integers(), (0, 2, 3), "Dims that statistics are taken over."),
        COMPUTE_TYPE,
    )

    def _axes(self, call: Call) -> tuple[int, ...]:
        return normalize_axes(self.name, call.integers("axes"), call.tensor(0).rank)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        _, centered, variance = _emit_centered(emit, x, self._axes(call))
        return emit("div", centered, emit("add", emit("sqrt", variance), 1e-9))

    def values(self, call: Call, x: Array) -> Array:
        mean, variance = _moments(x, self._axes(call))
        return np.asarray((x - mean) / (np.sqrt(variance) + np.asarray(1e-9, x.dtype)))


@register
class LpNorm(Pointwise):
    """x / norm along ``axis``, the sum of |x| (p = 1) or the root of the sum of squares (p = 2); 0 where the norm is 0.

    Source: ONNX LpNormalization-22 and its reference.
    """

    name: ClassVar[str] = "lp_norm"
    operands: ClassVar[tuple[Operand, ...]] = _X
    attributes: ClassVar[tuple[Attribute, ...]] = (
        _AXIS,
        Attribute("p", integer(1, 2), 2, "Order of the norm."),
        COMPUTE_TYPE,
    )

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        axes = (_axis(call),)
        if call.integer("p") == 1:
            norm = emit.reduce("reduce_sum", emit("abs", x), axes)
        else:
            norm = emit("sqrt", emit.reduce("reduce_sum", emit("mul", x, x), axes))
        return emit("div", x, emit("select", emit("eq", norm, 0.0), 1.0, norm))

    def values(self, call: Call, x: Array) -> Array:
        norm = np.linalg.norm(x, ord=call.integer("p"), axis=_axis(call), keepdims=True)
        return x / np.where(norm == 0, np.asarray(1, x.dtype), norm)


def _check_broadcast(name: str, call: Call, index: int) -> None:
    """A scale or bias broadcasts to x without widening it. Raises TypeMismatch where known sizes say otherwise."""
    x, given = call.tensor(0), call.tensor(index) if call.has(index) else None
    if given is None or given.dims is None or x.dims is None:
        return
    pairs = list(zip(reversed(given.dims), reversed(x.dims), strict=False))
    fits = all(isinstance(a, str) or isinstance(b, str) or a in (1, b) for a, b in pairs)
    if given.rank > x.rank or not fits:
        msg = f"{name}: operand {index} is {given}; expected one that broadcasts to {x}"
        raise TypeMismatch(msg)
