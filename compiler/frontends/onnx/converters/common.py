"""What converters share: old broadcasting, shape arithmetic, casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ir import I64, ElementType, TensorType, Value, tensor
from compiler.ops.convert import Cast
from compiler.ops.movement import Concat
from compiler.ops.reduce import ReduceProd
from compiler.ops.reshape import Reshape, Squeeze, Unsqueeze
from compiler.ops.shape import ShapeOf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.onnx.site import Site


def cast(site: Site, value: Value, element: ElementType) -> Value:
    """The value in another element type; itself where it has that type."""
    return value if value.tensor.element is element else site.b(Cast, value, to=element)


def as_int64(site: Site, value: Value) -> Value:
    """A value operand as int64, a constant where it is known."""
    return site.folded(cast(site, site.folded(value), I64))


def unsqueeze(site: Site, value: Value, axes: Sequence[int]) -> Value:
    """Dims of size 1 put in at these places of the result."""
    return site.b(Unsqueeze, value, site.integers(*axes)) if axes else value


def squeeze(site: Site, value: Value, axes: Sequence[int]) -> Value:
    """Dims of size 1 taken out."""
    return site.b(Squeeze, value, site.integers(*axes)) if axes else value


def reshape(site: Site, value: Value, sizes: Sequence[int]) -> Value:
    """The value with these sizes, of which one may be -1."""
    return site.b(Reshape, value, site.integers(*sizes))


def reshape_like(site: Site, value: Value, like: Value) -> Value:
    """The value with the sizes of another one, which has as many elements."""
    type_ = like.tensor
    result = site.b(Reshape, value, shape_of(site, like))
    if isinstance(result.type, TensorType) and type_.dims is not None:
        result.type = tensor(result.type.element, type_.dims)
    return result


def shape_of(site: Site, value: Value, start: int = 0, end: int | None = None) -> Value:
    """The sizes of dims ``start`` to ``end`` - 1 as an int64 vector; a constant where they are known."""
    dims = value.tensor.dims
    if dims is None:
        return site.b(ShapeOf, value) if end is None and not start else site.b(ShapeOf, value, start=start, **_end(end))
    stop = len(dims) if end is None else end
    if all(isinstance(dim, int) for dim in dims[start:stop]):
        return site.integers(*(int(dim) for dim in dims[start:stop]))
    return site.b(ShapeOf, value, start=start, end=stop)


def _end(end: int | None) -> dict[str, int]:
    return {} if end is None else {"end": end}


def size_of_dims(site: Site, value: Value, start: int, end: int) -> Value:
    """The product of the sizes of dims ``start`` to ``end`` - 1 as a vector of one int64."""
    return site.folded(site.b(ReduceProd, shape_of(site, value, start, end), axes=(0,), keep_dims=True))


def concat(site: Site, values: Sequence[Value], axis: int = 0) -> Value:
    """The values one after the other; the only one itself."""
    return values[0] if len(values) == 1 else site.b(Concat, *values, axis=axis)


def matrix(site: Site, value: Value, axis: int) -> Value:
    """The value as a matrix: dims before ``axis`` are the rows, the others the columns."""
    rank = site.rank(value)
    sizes = [size_of_dims(site, value, 0, axis), size_of_dims(site, value, axis, rank)]
    return site.b(Reshape, value, site.folded(concat(site, sizes)))


def aligned(site: Site, a: Value, b: Value) -> Value:
    """Operand b of an operator before version 7, brought to numpy's broadcasting.

    With ``broadcast`` set, b is aligned with a's dims from ``axis`` on, by default with its last ones; without it the
    shapes must be equal. Raises InvalidModel where they are not.
    """
    if not site.attribute("broadcast"):
        left, right = a.tensor, b.tensor
        if left.is_static and right.is_static and left.shape != right.shape:
            site.bad_shape(f"shapes {list(left.shape)} and {list(right.shape)} differ, and 'broadcast' is not set")
        return b
    axis = site.attribute("axis")
    if axis is None:
        return b
    rank, width = site.rank(a), site.rank(b)
    behind = rank - (axis + rank if axis < 0 else axis) - width
    if not 0 <= behind <= rank - width:
        site.bad_shape(f"axis {axis} leaves no room for rank {width} within rank {rank}")
    return unsqueeze(site, b, tuple(range(width, width + behind)))
