"""A builder of ONNX networks with seeded weights, in float16, float32 or int8.

In int8, convolutions are QLinearConv and residual sums and activations are taken on dequantized values; linear layers
of transformers are MatMulInteger with the scales applied after it, between float16 activations. Scales are those of
unit variance, which He et al.'s initialization keeps ("Delving Deep into Rectifiers", 2015): numbers stay in range, so
results say something about correctness; they say nothing about accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any, Final

import ml_dtypes  # noqa: F401 - numpy then knows bfloat16 by name
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET: Final = 22
_LARGE: Final = 1 << 16
"""Weights of more elements stay without data where only types are asked for."""

_STEP: Final = 4.0 / 127
"""Real value of one step of an int8 activation: four standard deviations fit."""

_WEIGHT_STEP: Final = 3.0 / 127
"""The same for weights, in their standard deviations."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the network: its name, its shape, and the element type that it has."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(slots=True)
class Network:
    """Collects nodes. ``precision`` is float16 or int8, ``real`` the element type of real numbers.

    ``materialize`` False leaves large weights as inputs, named in ``weights``: who compiles for timing alone replaces
    them by constants without data.
    """

    name: str
    precision: str
    materialize: bool = True
    seed: int = 0
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    real: str = "float16"
    _count: int = 0

    @property
    def is_quantized(self) -> bool:
        """Whether products are of int8."""
        return self.precision == "int8"

    # ---- values

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Tensor:
        """An input of the model."""
        made = Tensor(name, tuple(shape), dtype)
        self.inputs.append(made)
        return made

    def constant(self, data: Any, dtype: str) -> str:  # noqa: ANN401 - whatever numpy makes an array of
        """The name of a small constant."""
        array = np.asarray(data, dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def weight(self, shape: Sequence[int], dtype: str, deviation: float) -> str:
        """The name of a normal weight tensor; int8 ones have ``_WEIGHT_STEP`` standard deviations a step."""
        if not self.materialize and prod(shape) > _LARGE:
            made = Tensor(f"w{len(self.weights)}", tuple(shape), dtype)
            self.weights.append(made)
            return made.name
        rng = np.random.default_rng((self.seed, len(self.constants)))
        data = rng.standard_normal(tuple(shape), np.float32)
        if dtype == "int8":
            return self.constant(np.clip(np.rint(data / _WEIGHT_STEP), -127, 127), dtype)
        return self.constant(data * deviation, dtype)

    def op(self, kind: str, operands: Sequence[str], shape: Sequence[int], dtype: str, **attributes: Any) -> Tensor:  # noqa: ANN401
        """Add a node with one result."""
        name = f"t{self._count}"
        self._count += 1
        self.nodes.append(helper.make_node(kind, list(operands), [name], name=f"{kind}_{name}", **attributes))
        return Tensor(name, tuple(shape), dtype)

    # ---- layers of convolutional networks

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = 1.0,
        pad: int | None = None,
    ) -> Tensor:
        """A convolution with bias, [N, C, H, W] to [N, filters, H', W']; ``gain`` scales its variance's root."""
        batch, channels, *sides = x.shape
        pad = kernel // 2 if pad is None else pad
        shape = (batch, filters, *((side + 2 * pad - kernel) // stride + 1 for side in sides))
        attributes = {"group": groups, "strides": [stride] * 2, "pads": [pad] * 4, "kernel_shape": [kernel] * 2}
        weights = (filters, channels // groups, kernel, kernel)
        deviation = gain * sqrt(2 / prod(weights[1:]))
        if not self.is_quantized:
            w, bias = self.weight(weights, self.real, deviation), self.weight((filters,), self.real, 0.1)
            return self.op("Conv", [x.name, w, bias], shape, self.real, **attributes)
        w = self.weight(weights, "int8", deviation)
        step, zero = self.constant(_STEP, "float32"), self.constant(0, "int8")
        scales = np.full(filters, deviation * _WEIGHT_STEP) * np.random.default_rng(filters).uniform(0.9, 1.1, filters)
        w_step, w_zero = self.constant(scales, "float32"), self.constant(np.zeros(filters), "int8")
        bias = self.constant(np.random.default_rng(filters).normal(0, 0.1, filters) / (scales * _STEP), "int32")
        operands = [x.name, step, zero, w, w_step, w_zero, step, zero, bias]
        return self.op("QLinearConv", operands, shape, "int8", **attributes)

    def quantize(self, x: Tensor) -> Tensor:
        """Int8 of real numbers of unit variance."""
        operands = [x.name, self.constant(_STEP, x.dtype), self.constant(0, "int8")]
        return self.op("QuantizeLinear", operands, x.shape, "int8")

    def dequantize(self, x: Tensor) -> Tensor:
        """Real numbers of int8."""
        operands = [x.name, self.constant(_STEP, self.real), self.constant(0, "int8")]
        return self.op("DequantizeLinear", operands, x.shape, self.real)

    def relu(self, x: Tensor) -> Tensor:
        """The greater of x and zero."""
        return self.op("Relu", [x.name], x.shape, x.dtype)

    def relu6(self, x: Tensor) -> Tensor:
        """x between 0 and 6; an int8 activation ends before 6, so there it is relu."""
        if x.dtype == "int8":
            return self.relu(x)
        return self.op("Clip", [x.name, self.constant(0, x.dtype), self.constant(6, x.dtype)], x.shape, x.dtype)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """A sum; of int8 by way of real numbers."""
        if a.dtype != "int8":
            return self.op("Add", [a.name, b.name], a.shape, a.dtype)
        left, right = self.dequantize(a), self.dequantize(b)
        return self.quantize(self.op("Add", [left.name, right.name], a.shape, self.real))

    def max_pool(self, x: Tensor, kernel: int, stride: int, pad: int) -> Tensor:
        """The greatest of each window."""
        shape = (*x.shape[:2], *((side + 2 * pad - kernel) // stride + 1 for side in x.shape[2:]))
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.op("MaxPool", [x.name], shape, x.dtype, **attributes)

    def upsample(self, x: Tensor) -> Tensor:
        """Each pixel four times."""
        shape = (*x.shape[:2], *(2 * side for side in x.shape[2:]))
        scales = self.constant([1, 1, 2, 2], "float32")
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.op("Resize", [x.name, "", scales], shape, x.dtype, **attributes)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors side by side."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.op("Concat", [part.name for part in parts], shape, parts[0].dtype, axis=axis)

    def global_average(self, x: Tensor) -> Tensor:
        """[N, C, H, W] to [N, C]: the mean of each channel, a real number."""
        x = self.dequantize(x) if x.dtype == "int8" else x
        axes = self.constant([2, 3], "int64")
        return self.op("ReduceMean", [x.name, axes], x.shape[:2], x.dtype, keepdims=0)

    # ---- layers of transformers

    def linear(self, x: Tensor, features: int, *, bias: bool = True, gain: float = 1.0) -> Tensor:
        """[..., K] to [..., features]; real numbers in and out, the product in int8 where the network is int8."""
        depth, shape = x.shape[-1], (*x.shape[:-1], features)
        deviation = gain / sqrt(depth)
        if self.is_quantized:
            w = self.weight((depth, features), "int8", deviation)
            product = self.op("MatMulInteger", [self.quantize(x).name, w], shape, "int32")
            wide = self.op("Cast", [product.name], shape, "float32", to=TensorProto.FLOAT)
            scale = self.constant(np.full(features, _STEP * _WEIGHT_STEP * deviation), "float32")
            scaled = self.op("Mul", [wide.name, scale], shape, "float32")
            y = self.op("Cast", [scaled.name], shape, self.real, to=_onnx_type(self.real))
        else:
            w = self.weight((depth, features), self.real, deviation)
            y = self.op("MatMul", [x.name, w], shape, self.real)
        return self.op("Add", [y.name, self.weight((features,), self.real, 0.1)], shape, self.real) if bias else y

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in another shape."""
        return self.op("Reshape", [x.name, self.constant(shape, "int64")], shape, x.dtype)

    def transpose(self, x: Tensor, permutation: Sequence[int]) -> Tensor:
        """Dims in another order."""
        return self.op("Transpose", [x.name], [x.shape[dim] for dim in permutation], x.dtype, perm=list(permutation))

    def scaled(self, x: Tensor, factor: float) -> Tensor:
        """x times a number."""
        return self.op("Mul", [x.name, self.constant(factor, x.dtype)], x.shape, x.dtype)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, mask: str | None = None) -> Tensor:
        """softmax(q k^T / sqrt(d) + mask) v of [batch, heads, length, d]."""
        *outer, length, width = q.shape
        keys = self.transpose(k, (0, 1, 3, 2))
        shape = (*outer, length, keys.shape[-1])
        scores = self.op("MatMul", [self.scaled(q, 1 / sqrt(width)).name, keys.name], shape, self.real)
        if mask is not None:
            scores = self.op("Add", [scores.name, mask], shape, self.real)
        shares = self.op("Softmax", [scores.name], shape, self.real, axis=-1)
        return self.op("MatMul", [shares.name, v.name], (*outer, length, v.shape[-1]), self.real)

    def heads(self, x: Tensor, count: int) -> Tensor:
        """[batch, length, count * d] to [batch, count, length, d]."""
        batch, length, features = x.shape
        return self.transpose(self.reshape(x, (batch, length, count, features // count)), (0, 2, 1, 3))

    def joined_heads(self, x: Tensor) -> Tensor:
        """[batch, heads, length, d] to [batch, length, heads * d]."""
        batch, count, length, width = x.shape
        return self.reshape(self.transpose(x, (0, 2, 1, 3)), (batch, length, count * width))

    def layer_norm(self, x: Tensor) -> Tensor:
        """Each row with mean 0 and variance 1, scaled and shifted."""
        size = x.shape[-1]
        scale = self.constant(np.random.default_rng(size).uniform(0.8, 1.2, size), x.dtype)
        bias = self.constant(np.zeros(size), x.dtype)
        return self.op("LayerNormalization", [x.name, scale, bias], x.shape, x.dtype, axis=-1, epsilon=1e-5)

    def rms_norm(self, x: Tensor) -> Tensor:
        """Each row over its root mean square, in float32 as Llama does it."""
        wide = self.op("Cast", [x.name], x.shape, "float32", to=TensorProto.FLOAT)
        square = self.op("Mul", [wide.name, wide.name], x.shape, "float32")
        row = (*x.shape[:-1], 1)
        mean = self.op("ReduceMean", [square.name, self.constant([-1], "int64")], row, "float32")
        shifted = self.op("Add", [mean.name, self.constant(1e-5, "float32")], row, "float32")
        root = self.op("Sqrt", [shifted.name], row, "float32")
        ratio = self.op("Div", [wide.name, root.name], x.shape, "float32")
        narrow = self.op("Cast", [ratio.name], x.shape, x.dtype, to=_onnx_type(x.dtype))
        scale = self.constant(np.random.default_rng(x.shape[-1]).uniform(0.8, 1.2, x.shape[-1]), x.dtype)
        return self.op("Mul", [narrow.name, scale], x.shape, x.dtype)

    def gelu(self, x: Tensor) -> Tensor:
        """x times the normal distribution function."""
        return self.op("Gelu", [x.name], x.shape, x.dtype)

    def silu(self, x: Tensor) -> Tensor:
        """x times its logistic function."""
        return self.op("Mul", [x.name, self.op("Sigmoid", [x.name], x.shape, x.dtype).name], x.shape, x.dtype)

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """A product, element by element."""
        return self.op("Mul", [a.name, b.name], a.shape, a.dtype)

    # ---- the model

    def model(self, *outputs: Tensor) -> ModelProto:
        """The model with these outputs."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [_info(value) for value in (*self.inputs, *self.weights)],
            [_info(value) for value in outputs],
            list(self.constants.values()),
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _info(value: Tensor) -> Any:  # noqa: ANN401 - onnx ships no annotations for it
    return helper.make_tensor_value_info(value.name, _onnx_type(value.dtype), value.shape)


def _onnx_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
