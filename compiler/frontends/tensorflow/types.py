"""Between TensorFlow's types and the IR's, without importing TensorFlow: types are told apart by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.errors import UnsupportedType
from compiler.ir import (
    BF16,
    BOOL,
    C64,
    C128,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F16,
    F32,
    F64,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    U2,
    U4,
    U8,
    U16,
    U32,
    U64,
    UNKNOWN,
    ElementType,
    TensorType,
    tensor,
)

if TYPE_CHECKING:
    from compiler.ir import Dim

ELEMENTS: Final[dict[str, ElementType]] = {
    "float64": F64,
    "float32": F32,
    "float16": F16,
    "bfloat16": BF16,
    "float8_e4m3fn": F8E4M3FN,
    "float8_e4m3fnuz": F8E4M3FNUZ,
    "float8_e5m2": F8E5M2,
    "float8_e5m2fnuz": F8E5M2FNUZ,
    "int64": I64,
    "int32": I32,
    "int16": I16,
    "int8": I8,
    "int4": I4,
    "int2": I2,
    "uint64": U64,
    "uint32": U32,
    "uint16": U16,
    "uint8": U8,
    "uint4": U4,
    "uint2": U2,
    "bool": BOOL,
    "complex64": C64,
    "complex128": C128,
}
"""Name of a ``tf.DType`` -> element type."""


def element_from(dtype: Any, what: str) -> ElementType:  # noqa: ANN401 - TensorFlow is not imported here
    """The element type of a ``tf.DType``; ``what`` names the holder. Raises UnsupportedType."""
    found = ELEMENTS.get(dtype.name)
    if found is None:
        raise UnsupportedType(f"{what} is of type {dtype.name}; expected one of {', '.join(ELEMENTS)}")
    return found


def dims_from(shape: Any) -> list[int | None] | None:  # noqa: ANN401 - a tf.TensorShape
    """The sizes of a shape, None for one that is unknown; None for an unknown rank."""
    return None if shape.rank is None else [None if size is None else int(size) for size in shape.as_list()]


def type_from(value: Any, name: str) -> TensorType:  # noqa: ANN401 - a symbolic tf.Tensor
    """The type of a graph's input ``name``: each unknown size gets the symbol ``name_axis``. Raises UnsupportedType."""
    element = element_from(value.dtype, f"input '{name}'")
    sizes = dims_from(value.shape)
    if sizes is None:
        return tensor(element, None)
    return tensor(element, [f"{name}_{axis}" if size is None else size for axis, size in enumerate(sizes)])


def refine(type_: TensorType, value: Any) -> TensorType:  # noqa: ANN401 - a symbolic tf.Tensor
    """The type with the rank and the sizes that TensorFlow's own inference knows where ours leaves them open."""
    sizes = None if type_.is_static else dims_from(value.shape)
    if sizes is None:
        return type_
    if type_.dims is None:
        return tensor(type_.element, [UNKNOWN if size is None else size for size in sizes])
    if len(sizes) != len(type_.dims):
        return type_
    dims: list[Dim] = [
        seen if own == UNKNOWN and seen is not None else own for own, seen in zip(type_.dims, sizes, strict=True)
    ]
    return type_.with_dims(dims)
