"""What the frontends that read whole programs share: constants, casts, shapes and slices of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.ir import BOOL, I64, ElementType, Value
from compiler.ops.compare import Ne
from compiler.ops.convert import Cast
from compiler.ops.indexing import Gather
from compiler.ops.movement import BroadcastTo, Concat, Slice, Transpose
from compiler.ops.reduce import ReduceProd
from compiler.ops.reshape import Reshape, Squeeze, Unsqueeze
from compiler.ops.shape import ShapeOf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.onnx.fold import Folder
    from compiler.ir import Array, Builder, Definition


class Assembly:
    """Base of what converters are given: a builder, and what constants decide."""

    __slots__ = ()

    b: Builder
    folder: Folder

    def known(self, value: Value) -> Array | None:
        """The value's data where constants decide it, else None."""
        return self.folder.known(value)

    def folded(self, value: Value) -> Value:
        """The value as a constant where its data is known, else itself."""
        if value.op is not None and value.op.definition.holds_constant:
            return value
        found = self.folder.known(value)
        return value if found is None else self.b.constant(found)

    def constant(self, data: Any, element: ElementType) -> Value:  # noqa: ANN401 - whatever numpy takes
        """A constant of an element type; numbers are converted as C does, so that -1 is the greatest unsigned one."""
        array = np.asarray(data)
        if element.is_integer and array.dtype.kind in "iu":
            array = array.astype(np.int64, copy=False) if array.dtype.kind == "i" else array
        with np.errstate(all="ignore"):
            return self.b.constant(array.astype(element.dtype))

    def integers(self, *values: int) -> Value:
        """An int64 vector."""
        return self.b.constant(np.array(values, np.int64))

    def op(self, definition: type[Definition], *operands: Value | None, **attributes: Any) -> Value:  # noqa: ANN401
        """An operation with one result."""
        return self.b(definition, *operands, **attributes)


FAR: Final = 2**31 - 1
"""An end that means: to the last one."""


def cast(site: Assembly, value: Value, element: ElementType) -> Value:
    """The value in another element type; itself where it has that type. What is not 0 is true."""
    if value.tensor.element is element:
        return value
    if element is BOOL:
        return site.op(Ne, value, site.constant(0, value.tensor.element))
    return site.op(Cast, value, to=element)


def operand(site: Assembly, found: Any, element: ElementType) -> Value:  # noqa: ANN401 - a value or a Python number
    """A value or a Python number as a value of an element type."""
    if isinstance(found, Value):
        return cast(site, found, element)
    return number(site, found, element)


def number(site: Assembly, found: complex, element: ElementType) -> Value:
    """A Python number as a constant of rank 0; integers wrap, as C has it."""
    if element.is_integer and isinstance(found, int):
        bits = element.bits
        wrapped = int(found) & (2**bits - 1)
        signed = element.dtype.kind == "i" and wrapped >= 2 ** (bits - 1)
        return site.b.constant(np.array(wrapped - 2**bits if signed else wrapped, element.dtype))
    return site.constant(found, element)


def dims_of(value: Value) -> tuple[int | str, ...]:
    """The dims, whose number is always known here."""
    return value.tensor.known_dims


def rank_of(value: Value) -> int:
    """The rank."""
    return len(dims_of(value))


def shape_of(site: Assembly, value: Value, start: int = 0, end: int | None = None) -> Value:
    """The sizes of dims ``start`` to ``end`` - 1 as an int64 vector; a constant where they are known."""
    dims = dims_of(value)
    stop = len(dims) if end is None else end
    if all(isinstance(dim, int) for dim in dims[start:stop]):
        return site.integers(*(int(dim) for dim in dims[start:stop]))
    return site.op(ShapeOf, value, start=start, end=stop)


def size_value(site: Assembly, value: Value, axis: int) -> Value:
    """One size as an int64 scalar."""
    return site.folded(squeeze(site, shape_of(site, value, axis, axis + 1), (0,)))


def vector(site: Assembly, sizes: Sequence[Any]) -> Value:
    """Sizes, some perhaps symbolic, as an int64 vector."""
    if all(not isinstance(size, Value) for size in sizes):
        return site.integers(*sizes)
    parts = [
        unsqueeze(site, cast(site, size, I64), (0,)) if isinstance(size, Value) else site.integers(size)
        for size in sizes
    ]
    return site.folded(concat(site, parts, 0))


def reshape(site: Assembly, value: Value, sizes: Sequence[Any]) -> Value:
    """The value with these sizes, of which one may be -1."""
    if tuple(sizes) == value.tensor.dims:
        return value
    sizes = _settled(value, sizes)
    return site.op(Reshape, value, vector(site, sizes))


def _settled(value: Value, sizes: Sequence[Any]) -> Sequence[Any]:
    """The sizes with -1 replaced where all else is known: a size of 0 elsewhere leaves -1 open."""
    if -1 not in [size for size in sizes if isinstance(size, int)] or not value.tensor.is_static:
        return sizes
    if any(isinstance(size, Value) for size in sizes):
        return sizes
    rest = 1
    for size in sizes:
        rest *= 1 if size == -1 else size
    return [value.tensor.size // rest if size == -1 and rest else size for size in sizes]


def reshape_to(site: Assembly, value: Value, shape: Value) -> Value:
    """The value with the sizes that an int64 vector gives."""
    return site.op(Reshape, value, shape)


def flat(site: Assembly, value: Value) -> Value:
    """The value as a vector."""
    return reshape(site, value, [value.tensor.size] if value.tensor.is_static else [-1])


def expand(site: Assembly, value: Value, shape: Value) -> Value:
    """The value repeated to the sizes that an int64 vector gives."""
    known = site.known(shape)
    if known is not None and tuple(known.tolist()) == value.tensor.dims:
        return value
    return site.op(BroadcastTo, value, shape)


def expand_like(site: Assembly, value: Value, like: Value) -> Value:
    """The value repeated to the sizes of another."""
    if value.tensor.dims == like.tensor.dims and value.tensor.is_static:
        return value
    return expand(site, value, shape_of(site, like))


def unsqueeze(site: Assembly, value: Value, axes: Sequence[int]) -> Value:
    """Dims of size 1 put in at these places of the result."""
    return site.op(Unsqueeze, value, site.integers(*axes)) if axes else value


def squeeze(site: Assembly, value: Value, axes: Sequence[int]) -> Value:
    """Dims of size 1 taken out."""
    return site.op(Squeeze, value, site.integers(*axes)) if axes else value


def concat(site: Assembly, values: Sequence[Value], axis: int) -> Value:
    """The values one after the other; the only one itself."""
    return values[0] if len(values) == 1 else site.op(Concat, *values, axis=axis)


def transpose(site: Assembly, value: Value, order: Sequence[int]) -> Value:
    """The value with its dims in another order."""
    if tuple(order) == tuple(range(len(order))):
        return value
    return site.op(Transpose, value, permutation=tuple(order))


def swap(site: Assembly, value: Value, a: int, b: int) -> Value:
    """The value with two dims swapped."""
    order = list(range(rank_of(value)))
    order[a], order[b] = order[b], order[a]
    return transpose(site, value, order)


def cut(site: Assembly, value: Value, axis: int, start: Any = 0, end: Any = FAR, step: int = 1) -> Value:  # noqa: ANN401
    """``start:end:step`` along one axis; bounds may be symbolic."""
    if isinstance(start, int) and isinstance(end, int) and start == 0 and end >= FAR and step == 1:
        return value
    bounds = [vector(site, [bound if isinstance(bound, Value) else _bounded(bound)]) for bound in (start, end)]
    return site.op(Slice, value, *bounds, site.integers(axis), site.integers(step))


def _bounded(bound: int) -> int:
    return max(min(bound, FAR), -FAR)


def pick(site: Assembly, value: Value, axis: int, index: Any) -> Value:  # noqa: ANN401 - an int or a symbolic one
    """One slice along an axis, without that dim."""
    if isinstance(index, Value):
        return site.op(Gather, value, cast(site, index, I64), axis=axis)
    end = FAR if index == -1 else index + 1
    return squeeze(site, cut(site, value, axis, index, end), (axis,))


def count(site: Assembly, value: Value, axes: Sequence[int], element: ElementType) -> Value:
    """The number of elements along some dims, as a scalar of an element type."""
    dims = dims_of(value)
    if all(isinstance(dims[axis], int) for axis in axes):
        total = 1
        for axis in axes:
            total *= int(dims[axis])
        return number(site, total, element)
    sizes = concat(site, [shape_of(site, value, axis, axis + 1) for axis in axes], 0)
    return cast(site, site.op(ReduceProd, sizes, axes=(0,), keep_dims=False), element)
