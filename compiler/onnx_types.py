"""ONNX's element, tensor, sequence and optional types and the IR's; merging of inferred and declared types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import TensorProto, TypeProto

from compiler import ir
from compiler.errors import InvalidModel, TypeMismatch, UnsupportedType
from compiler.ir import (
    Dim,
    ElementType,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    map_of,
    optional_of,
    sequence_of,
    tensor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ELEMENTS: Final[dict[int, ElementType]] = {
    TensorProto.FLOAT: ir.F32,
    TensorProto.DOUBLE: ir.F64,
    TensorProto.FLOAT16: ir.F16,
    TensorProto.BFLOAT16: ir.BF16,
    TensorProto.FLOAT8E4M3FN: ir.F8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: ir.F8E4M3FNUZ,
    TensorProto.FLOAT8E5M2: ir.F8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: ir.F8E5M2FNUZ,
    TensorProto.INT64: ir.I64,
    TensorProto.INT32: ir.I32,
    TensorProto.INT16: ir.I16,
    TensorProto.INT8: ir.I8,
    TensorProto.INT4: ir.I4,
    TensorProto.UINT64: ir.U64,
    TensorProto.UINT32: ir.U32,
    TensorProto.UINT16: ir.U16,
    TensorProto.UINT8: ir.U8,
    TensorProto.UINT4: ir.U4,
    TensorProto.BOOL: ir.BOOL,
    TensorProto.STRING: ir.STRING,
    TensorProto.COMPLEX64: ir.C64,
    TensorProto.COMPLEX128: ir.C128,
}
"""ONNX's data type numbers that every supported release of the package knows, with the IR's element type."""

_NEWER: Final[dict[str, ElementType]] = {
    "FLOAT8E8M0": ir.F8E8M0FNU,
    "FLOAT4E2M1": ir.F4E2M1FN,
    "FLOAT6E2M3": ir.F6E2M3FN,
    "FLOAT6E3M2": ir.F6E3M2FN,
    "INT2": ir.I2,
    "UINT2": ir.U2,
}
ELEMENTS.update({number: _NEWER[name] for name, number in TensorProto.DataType.items() if name in _NEWER})

DATA_TYPES: Final[dict[ElementType, int]] = {element: number for number, element in ELEMENTS.items()}
"""The other way: the IR's element type to ONNX's data type number."""

_NUMBERS: Final[dict[np.dtype[Any], int]] = {element.dtype: number for number, element in ELEMENTS.items()}
"""ONNX's number by numpy's type. Releases of the package before 1.19 do not know the types of ml_dtypes."""


def numpy_type(number: int) -> np.dtype[Any]:
    """The type of arrays of an ONNX data type. Raises KeyError for a number that is none."""
    return ELEMENTS[number].dtype


def data_type_of(dtype: np.dtype[Any]) -> int:
    """The ONNX data type of arrays of a type. Raises KeyError where there is none."""
    return TensorProto.STRING if dtype.kind in "OUST" else _NUMBERS[dtype]


_STRINGS: Final[dict[ElementType, str]] = {
    element: TensorProto.DataType.Name(number).lower() for number, element in ELEMENTS.items()
}


def element_from(number: int, what: str) -> ElementType:
    """The element type of an ONNX data type number. ``what`` names the holder. Raises InvalidModel."""
    found = ELEMENTS.get(number)
    if found is None:
        known = number in TensorProto.DataType.values()
        shown = TensorProto.DataType.Name(number) if known else str(number)
        msg = f"{what} has element type {shown}; expected one of ONNX's data types"
        raise InvalidModel(msg)
    return found


_UNKNOWN_SIZE: Final = -1


def dims_from(shape: onnx.TensorShapeProto, what: str) -> tuple[Dim, ...]:
    """Sizes, symbols and unknown dims of a shape; -1, which some exporters write, is an unknown dim.

    Raises InvalidModel for any other negative size.
    """
    dims: list[Dim] = []
    for position, dim in enumerate(shape.dim):
        kind = dim.WhichOneof("value")
        if kind == "dim_value" and dim.dim_value < _UNKNOWN_SIZE:
            msg = f"{what} has size {dim.dim_value} in dim {position}; expected a size or a symbol"
            raise InvalidModel(msg)
        if kind == "dim_value" and dim.dim_value != _UNKNOWN_SIZE:
            dims.append(int(dim.dim_value))
        else:
            dims.append(dim.dim_param if kind == "dim_param" and dim.dim_param else ir.UNKNOWN)
    return tuple(dims)


def type_from(proto: TypeProto, what: str) -> Type:
    """The type. ``what`` names the value for diagnoses. Raises InvalidModel, UnsupportedType (opaque types)."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        element = element_from(proto.tensor_type.elem_type, what)
        known = proto.tensor_type.HasField("shape")
        return tensor(element, dims_from(proto.tensor_type.shape, what) if known else None)
    if kind == "sequence_type":
        return sequence_of(type_from(proto.sequence_type.elem_type, what))
    if kind == "optional_type":
        return optional_of(type_from(proto.optional_type.elem_type, what))
    if kind == "map_type":
        key = element_from(proto.map_type.key_type, f"the key of {what}")
        return map_of(key, type_from(proto.map_type.value_type, f"the value of {what}"))
    if kind is None:
        msg = f"{what} has no type; expected a tensor, a sequence or an optional"
        raise InvalidModel(msg)
    msg = f"{what} is a {kind.removesuffix('_type').replace('_', ' ')}; expected a tensor, a sequence or an optional"
    raise UnsupportedType(msg)


def type_proto(type_: Type) -> TypeProto:
    """ONNX's form of the type. Raises UnsupportedType."""
    if isinstance(type_, SequenceType):
        return onnx.helper.make_sequence_type_proto(type_proto(type_.element))
    if isinstance(type_, OptionalType):
        return onnx.helper.make_optional_type_proto(type_proto(type_.element))
    if isinstance(type_, MapType):
        return onnx.helper.make_map_type_proto(DATA_TYPES[type_.key], type_proto(type_.value))
    if not isinstance(type_, TensorType):
        msg = f"{type_!r} has no ONNX type"
        raise UnsupportedType(msg)
    dims = None if type_.dims is None else [None if dim == ir.UNKNOWN else dim for dim in type_.dims]
    return onnx.helper.make_tensor_type_proto(DATA_TYPES[type_.element], dims)


def type_string(type_: Type) -> str:
    """The type in the notation of operator schemas: ``tensor(float)``, ``seq(tensor(int64))``."""
    if isinstance(type_, SequenceType):
        return f"seq({type_string(type_.element)})"
    if isinstance(type_, OptionalType):
        return f"optional({type_string(type_.element)})"
    if isinstance(type_, MapType):
        # Schemas leave out that the values are tensors.
        value = type_string(type_.value).removeprefix("tensor(").removesuffix(")")
        return f"map({_STRINGS[type_.key]}, {value})"
    assert isinstance(type_, TensorType)
    return f"tensor({_STRINGS[type_.element]})"


def data_type_string(number: int) -> str:
    """A tensor's type in that notation, by ONNX's number of its element type."""
    return f"tensor({_STRINGS[ELEMENTS[number]]})"


def _merge_dims(inferred: Sequence[Dim], declared: Sequence[Dim]) -> tuple[Dim, ...] | None:
    merged: list[Dim] = []
    for found, said in zip(inferred, declared, strict=True):
        if isinstance(found, int) and isinstance(said, int) and found != said:
            return None
        if isinstance(found, int) or said == ir.UNKNOWN:
            merged.append(found)
        elif isinstance(said, int) or found == ir.UNKNOWN:
            merged.append(said)
        else:
            merged.append(found)
    return tuple(merged)


def refined(inferred: Type, declared: Type, what: str) -> Type:
    """The more precise of both types, dim by dim; a number goes before a symbol, a symbol before the unknown.

    Raises TypeMismatch, with both types, where they contradict each other.
    """
    if inferred is declared:
        return inferred
    if isinstance(inferred, TensorType) and isinstance(declared, TensorType) and inferred.element is declared.element:
        if inferred.dims is None:
            return inferred.with_dims(declared.dims)
        if declared.dims is None:
            return inferred
        if len(inferred.dims) == len(declared.dims):
            merged = _merge_dims(inferred.dims, declared.dims)
            if merged is not None:
                return inferred.with_dims(merged)
    if isinstance(inferred, SequenceType) and isinstance(declared, SequenceType):
        return sequence_of(refined(inferred.element, declared.element, what))
    if isinstance(inferred, OptionalType) and isinstance(declared, OptionalType):
        return optional_of(refined(inferred.element, declared.element, what))
    if isinstance(inferred, MapType) and isinstance(declared, MapType) and inferred.key is declared.key:
        return map_of(inferred.key, refined(inferred.value, declared.value, what))
    msg = f"{what} is declared as {declared}, but has type {inferred}"
    raise TypeMismatch(msg)
