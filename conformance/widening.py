"""The wide form of a case: its model by `generators.widening`, its inputs and outputs here."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import ModelProto, TypeProto

import generators.widening
from compiler.onnx_types import numpy_type
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.numerics import Kind, kind_of
from generators.widening import FLOAT32, FLOAT64, CannotWiden, Transform, Wide, absolute, as_is, ones

__all__ = [
    "FLOAT32",
    "FLOAT64",
    "Transform",
    "Wide",
    "absolute",
    "as_is",
    "ones",
    "output_types",
    "widen_inputs",
    "widen_model",
]


def widen_model(model: ModelProto, wide: Wide, transform: Transform = as_is) -> ModelProto:
    """Return the model with all float types wide. Raises `Unavailable` where widening changes what it means."""
    try:
        return generators.widening.widen_model(model, wide, transform)
    except CannotWiden as error:
        raise Unavailable(str(error)) from error


def widen_inputs(inputs: Iterable[Output], wide: Wide, transform: Transform = as_is) -> list[Output]:
    """Return the inputs with float tensors in the wide type, through sequences too."""
    return [_widen_value(value, wide, transform) for value in inputs]


def _widen_value(value: Output, wide: Wide, transform: Transform) -> Output:
    if isinstance(value, list | tuple):
        return [_widen_value(part, wide, transform) for part in value]
    if value is None or isinstance(value, dict) or kind_of(value.dtype) is not Kind.FLOAT:
        return value
    return transform(value.astype(wide.dtype))


def output_types(model: ModelProto) -> list[np.dtype[np.generic] | None]:
    """Return the declared element type of each graph output, through sequences and optionals; None for maps."""
    return [_tensor_dtype(value.type) for value in model.graph.output]


def _tensor_dtype(declared: TypeProto) -> np.dtype[np.generic] | None:
    kind = declared.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return _tensor_dtype(getattr(declared, kind).elem_type)
    if kind != "tensor_type" or not declared.tensor_type.elem_type:
        return None
    return numpy_type(declared.tensor_type.elem_type)
