"""Between torch's types and the IR's, without importing torch: types are told apart by their printed names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

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
    F8E8M0FNU,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    UNKNOWN,
    Constant,
    Dim,
    ElementType,
    TensorType,
    tensor,
)

if TYPE_CHECKING:
    from compiler.ir import Array

ELEMENTS: Final[dict[str, ElementType]] = {
    "torch.float64": F64,
    "torch.float32": F32,
    "torch.float16": F16,
    "torch.bfloat16": BF16,
    "torch.float8_e4m3fn": F8E4M3FN,
    "torch.float8_e4m3fnuz": F8E4M3FNUZ,
    "torch.float8_e5m2": F8E5M2,
    "torch.float8_e5m2fnuz": F8E5M2FNUZ,
    "torch.float8_e8m0fnu": F8E8M0FNU,
    "torch.int64": I64,
    "torch.int32": I32,
    "torch.int16": I16,
    "torch.int8": I8,
    "torch.uint64": U64,
    "torch.uint32": U32,
    "torch.uint16": U16,
    "torch.uint8": U8,
    "torch.bool": BOOL,
    "torch.complex64": C64,
    "torch.complex128": C128,
}
"""Printed name of a ``torch.dtype`` -> element type."""


def element_from(dtype: Any) -> ElementType:  # noqa: ANN401 - torch is not imported here
    """The element type of a ``torch.dtype``. Raises UnsupportedType."""
    found = ELEMENTS.get(str(dtype))
    if found is None:
        raise UnsupportedType(f"{dtype} has no element type; expected one of {', '.join(ELEMENTS)}")
    return found


def dim_from(size: Any) -> Dim:  # noqa: ANN401 - an int or a torch.SymInt
    """A size: a number, the name of a symbol, or unknown for an expression of symbols."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if expression.is_number:
        return int(expression)
    return str(expression.name) if expression.is_Symbol else UNKNOWN


def type_from(value: Any) -> TensorType:  # noqa: ANN401 - a torch.Tensor, fake or not
    """The type of a tensor, its symbols by name. Raises UnsupportedType for a tensor that is not dense."""
    if str(value.layout) != "torch.strided":
        raise UnsupportedType(f"a tensor has layout {value.layout}; expected a dense one, torch.strided")
    return tensor(element_from(value.dtype), [dim_from(size) for size in value.shape])


def array_from(value: Any) -> Array:  # noqa: ANN401 - a torch.Tensor
    """A view of a tensor's memory as numpy: nothing is copied but what torch itself holds lazily (conjugates)."""
    held = value.detach().resolve_conj().resolve_neg()
    dtype = element_from(held.dtype).dtype
    if dtype.kind != "V" and dtype.name in np.sctypeDict:
        return np.asarray(held.numpy())
    import torch

    carrier = {1: torch.uint8, 2: torch.int16}[dtype.itemsize]
    return np.asarray(held.view(carrier).numpy().view(dtype))


def constant_from(value: Any) -> Constant:  # noqa: ANN401 - a torch.Tensor
    """A parameter, buffer or lifted tensor as a constant; one without data (meta, fake) as an abstract one."""
    if value.is_meta or type(value).__name__ == "FakeTensor":
        return Constant.abstract(type_from(value))
    type_from(value)
    return Constant.of(array_from(value))
