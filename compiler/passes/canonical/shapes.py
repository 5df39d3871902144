"""What rules ask about shapes and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.ir import UNKNOWN, TensorType, known_value

if TYPE_CHECKING:
    from compiler.ir import Array, Dim, Value


def dims_of(value: Value) -> tuple[Dim, ...] | None:
    """The dims of a tensor value, None where the rank is unknown or it is no tensor."""
    return value.type.dims if isinstance(value.type, TensorType) else None


def same_shape(a: Value, b: Value) -> bool:
    """Whether two values surely have one type and shape. Two unknown dims may differ, two equal symbols do not."""
    dims = dims_of(a)
    return a.type is b.type and dims is not None and UNKNOWN not in dims


def keeps_shape(x: Value, other: Value, result: Value) -> bool:
    """Whether broadcasting ``other`` against x gives ``result`` the shape of x."""
    if same_shape(x, result):
        return True
    dims, more = dims_of(x), dims_of(other)
    return dims is not None and more is not None and len(more) <= len(dims) and all(dim == 1 for dim in more)


def is_static(value: Value) -> bool:
    """Whether all sizes are numbers."""
    return isinstance(value.type, TensorType) and value.type.is_static


def integers_of(value: Value | None) -> tuple[int, ...] | None:
    """A constant's integers, flat; None where it is no constant or omitted."""
    array = None if value is None else known_value(value)
    return None if array is None else tuple(int(item) for item in np.asarray(array).reshape(-1))


def size_vector(sizes: tuple[int, ...]) -> Array:
    """Sizes as a value operand."""
    return np.array(sizes, np.int64)
