"""An ONNX model with every float type made wider: the same mathematics with the roundings taken out.

The float64 form of a model, run by `onnx.reference`, gives the exact value that tolerances are measured from; with its
data replaced by absolute values or by ones it gives the other two runs of the dot-product class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper

Transform = Callable[[NDArray[np.generic]], NDArray[np.generic]]

_STANDARD_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
_NARROW_FLOATS = frozenset(
    number for name, number in TensorProto.DataType.items() if name.startswith(("FLOAT8", "FLOAT4", "FLOAT6"))
)
_FLOATS = _STANDARD_FLOATS | _NARROW_FLOATS

_OF_ML_DTYPES: Mapping[int, np.dtype[Any]] = {
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorProto.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    TensorProto.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    TensorProto.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    TensorProto.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
}

_BIT_LEVEL_OPERATORS = frozenset({"BitCast"})
_ROUNDING_OPERATORS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear", "Cast", "CastLike"})
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "softmax_precision", "precision"})
"""Attributes that name an element type. `stash_type` is left alone: `onnx.reference` knows only float32 there, and
computes in the type of the data anyway."""
_SCALAR_FACTORS: Mapping[str, frozenset[str]] = {"Gemm": frozenset({"alpha", "beta"})}


class CannotWiden(ValueError):
    """A model whose meaning depends on the width of its types; the message says where."""


@dataclass(frozen=True, slots=True)
class Wide:
    """A target of widening: the ONNX element type and numpy's."""

    onnx_type: int
    dtype: np.dtype[np.generic]


FLOAT32 = Wide(TensorProto.FLOAT, np.dtype(np.float32))
FLOAT64 = Wide(TensorProto.DOUBLE, np.dtype(np.float64))


def as_is(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the data unchanged."""
    return array


def absolute(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return |data|: a sum of products of it bounds the error of the sum (`bnd` of the dot-product class)."""
    return np.asarray(np.abs(array))


def ones(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return ones: a sum of products of them counts its terms (KS of the dot-product class)."""
    return np.ones_like(array)


def widen_model(model: ModelProto, wide: Wide, transform: Transform = as_is) -> ModelProto:
    """Return a copy of `model` whose float types are all `wide`; `transform` is applied to its float constants.

    Raises `CannotWiden` where widening changes what the model means: conversions to 8-bit and 4-bit floats round
    and saturate by definition, and BitCast reads bits.
    """
    _refuse_changed_meaning(model)
    widened = ModelProto()
    widened.CopyFrom(model)
    # Intermediate types are inferred again by whoever runs the model.
    del widened.graph.value_info[:]
    _widen_graph(widened.graph, wide, transform)
    for function in widened.functions:
        _widen_nodes(function.node, wide, transform)
        del function.value_info[:]
    return widened


def _refuse_changed_meaning(model: ModelProto) -> None:
    narrow = _uses_narrow_floats(model)
    for node in _all_nodes(model):
        if node.op_type in _BIT_LEVEL_OPERATORS:
            raise CannotWiden(f"{node.op_type} reads the bits of a float, which a wider type does not have")
        if narrow and node.op_type in _ROUNDING_OPERATORS:
            raise CannotWiden(f"{node.op_type} rounds to a type of 8 bits or fewer by definition")


def _uses_narrow_floats(model: ModelProto) -> bool:
    declared = {
        value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]
    }
    declared |= {tensor.data_type for tensor in model.graph.initializer}
    for node in _all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.type == AttributeProto.INT:
                declared.add(attribute.i)
            if attribute.type == AttributeProto.TENSOR:
                declared.add(attribute.t.data_type)
    return bool(declared & _NARROW_FLOATS)


def _all_nodes(model: ModelProto) -> Iterable[NodeProto]:
    yield from _nodes_of(model.graph.node)
    for function in model.functions:
        yield from _nodes_of(function.node)


def _nodes_of(nodes: Sequence[NodeProto]) -> Iterable[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes_of(attribute.g.node)
            for graph in attribute.graphs:
                yield from _nodes_of(graph.node)


def _widen_graph(graph: GraphProto, wide: Wide, transform: Transform) -> None:
    for value in [*graph.input, *graph.output, *graph.value_info]:
        _widen_type(value.type, wide)
    for tensor in graph.initializer:
        _widen_tensor(tensor, wide, transform)
    for sparse in graph.sparse_initializer:
        _widen_tensor(sparse.values, wide, transform)
    _widen_nodes(graph.node, wide, transform)


def _widen_type(declared: TypeProto, wide: Wide) -> None:
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(declared, kind)
        if tensor.elem_type in _FLOATS:
            tensor.elem_type = wide.onnx_type
    elif kind in ("sequence_type", "optional_type"):
        _widen_type(getattr(declared, kind).elem_type, wide)
    elif kind == "map_type":
        _widen_type(declared.map_type.value_type, wide)


def _widen_tensor(tensor: TensorProto, wide: Wide, transform: Transform) -> None:
    if tensor.data_type in _FLOATS:
        array = transform(_elements(tensor).astype(wide.dtype))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _elements(tensor: TensorProto) -> NDArray[Any]:
    """The tensor's elements; releases of onnx before 1.19 give the bits of 16- and 8-bit floats as integers."""
    array = np.asarray(numpy_helper.to_array(tensor))
    dtype = _OF_ML_DTYPES.get(tensor.data_type)
    return array if dtype is None or array.dtype == dtype else array.view(dtype)


def _widen_nodes(nodes: Sequence[NodeProto], wide: Wide, transform: Transform) -> None:
    for node in nodes:
        for attribute in node.attribute:
            _widen_attribute(node, attribute, wide, transform)
        if node.op_type == "Constant":
            _widen_constant(node, wide, transform)


def _widen_attribute(node: NodeProto, attribute: AttributeProto, wide: Wide, transform: Transform) -> None:
    if attribute.type == AttributeProto.TENSOR:
        _widen_tensor(attribute.t, wide, transform)
    elif attribute.type == AttributeProto.GRAPH:
        _widen_graph(attribute.g, wide, transform)
    elif attribute.type == AttributeProto.SPARSE_TENSOR:
        _widen_tensor(attribute.sparse_tensor.values, wide, transform)
    elif attribute.type == AttributeProto.TYPE_PROTO:
        _widen_type(attribute.tp, wide)
    elif attribute.name in _TYPE_ATTRIBUTES and attribute.type == AttributeProto.INT and attribute.i in _FLOATS:
        attribute.i = wide.onnx_type
    elif attribute.name in _SCALAR_FACTORS.get(node.op_type, ()) and attribute.type == AttributeProto.FLOAT:
        attribute.f = float(transform(np.asarray(attribute.f, np.float64)))
    for tensor in attribute.tensors:
        _widen_tensor(tensor, wide, transform)
    for graph in attribute.graphs:
        _widen_graph(graph, wide, transform)


def _widen_constant(node: NodeProto, wide: Wide, transform: Transform) -> None:
    """Turn the shorthand forms `value_float` and `value_floats`, which mean float32, into a tensor."""
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            data = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            array = transform(np.asarray(data, np.float32).astype(wide.dtype))
            attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(array)))
