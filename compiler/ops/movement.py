"""Data movement: the elements of the operands in another shape, order or number, none of them changed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Array, Dim, ElementType, TensorType, Type, tensor
from compiler.ops.elementwise import given_tensors
from compiler.ops.registry import (
    ANY,
    INTEGER,
    Attribute,
    Operand,
    Operator,
    Variable,
    integer,
    integers,
    register,
)
from compiler.ops.shapes import (
    broadcast_dims,
    join_dims,
    known_integers,
    normalize_axes,
    normalize_axis,
    slice_range,
    vector_length,
)
from compiler.ops.work import (
    Access,
    Arg,
    Index,
    Iterator,
    Loops,
    broadcast_access,
    identity_access,
    nests,
    parallel,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work

T: Final = Variable("T", ANY)
INDEX: Final = Variable("I", INTEGER)
X: Final = Operand("x", T)


def value_operand(name: str, *, optional: bool = False) -> Operand:
    """An integer vector (or scalar) that the result's shape depends on."""
    return Operand(name, Variable("I", INTEGER), optional=optional, value=True)


def integer_list(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - what an evaluator gets
    """An integer operand, flat."""
    return tuple(int(item) for item in np.asarray(value).reshape(-1).tolist())


def copy(read: Access, element: ElementType, iterators: Sequence[Iterator], write: Access) -> Loops:
    """A nest that moves one element a point."""
    return Loops(tuple(iterators), (read,), Arg(0, element), write)


def result_tensor(results: tuple[Type, ...], index: int = 0) -> TensorType:
    """The type of a result that is a tensor."""
    found = results[index]
    assert isinstance(found, TensorType)
    return found


def contiguous(array: Array) -> Array:
    """The array in row-major memory; numpy's own function makes a vector of a scalar."""
    return np.ascontiguousarray(array).reshape(array.shape)


@register
class Transpose(Operator):
    """Dim d of the result is dim ``permutation[d]`` of x."""

    name: ClassVar[str] = "transpose"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("permutation", integers(0), doc="the dims of x in their new order"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Permuted dims. Raises InvalidAttribute where it is no permutation of x's dims."""
        x, permutation = call.tensor(0), call.integers("permutation")
        if sorted(permutation) != list(range(len(permutation))) or (x.dims is not None and len(permutation) != x.rank):
            msg = f"transpose: permutation {list(permutation)} of {x}; expected each of its dims once"
            raise InvalidAttribute(msg)
        dims: Sequence[Dim] = (UNKNOWN,) * len(permutation) if x.dims is None else x.dims
        return (tensor(x.element, [dims[axis] for axis in permutation]),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """A contiguous copy."""
        return (contiguous(np.transpose(operands[0], call.integers("permutation"))),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result."""
        result, permutation = result_tensor(results), call.integers("permutation")
        read = Access(0, tuple(Index(((permutation.index(axis), 1),)) for axis in range(result.rank)))
        return nests(copy(read, result.element, parallel(result.shape), identity_access(0, result.rank)))


@register
class BroadcastTo(Operator):
    """x repeated to the broadcast of its own shape with ``shape`` (ONNX Expand: both may have dims of size 1)."""

    name: ClassVar[str] = "broadcast_to"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("shape"))
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Broadcast dims. Raises TypeMismatch where two sizes differ and neither is 1."""
        x, sizes = call.tensor(0), known_integers(call, 1)
        length = vector_length(call, 1)
        if x.dims is None or length is None:
            return (tensor(x.element, None),)
        wanted = tensor(x.element, (UNKNOWN,) * length if sizes is None else sizes)
        if sizes is None:
            return (tensor(x.element, (UNKNOWN,) * max(x.rank, length)),)
        return (tensor(x.element, broadcast_dims(self.name, (x, wanted))),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """A contiguous copy. Raises EvaluationError where the shapes do not broadcast."""
        x = np.asarray(operands[0])
        try:
            shape = np.broadcast_shapes(x.shape, integer_list(operands[1]))
        except ValueError as error:
            msg = f"broadcast_to: shape {list(x.shape)} does not broadcast with {list(integer_list(operands[1]))}"
            raise EvaluationError(msg) from error
        return (contiguous(np.broadcast_to(x, shape)),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result."""
        x, result = call.tensor(0), result_tensor(results)
        read = broadcast_access(0, x.shape, result.rank)
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))


@register
class Slice(Operator):
    """The elements starts, starts + steps, ... before ends along each of ``axes`` (ONNX Slice-13).

    Negative starts and ends count from the end, all are clamped to the dim, steps may be negative (then an end below
    -size means "down to the first"). Omitted axes are the first dims, omitted steps 1. Raises InvalidAttribute for a
    step of 0.
    """

    name: ClassVar[str] = "slice"
    operands: ClassVar[tuple[Operand, ...]] = (
        X,
        value_operand("starts"),
        value_operand("ends"),
        value_operand("axes", optional=True),
        value_operand("steps", optional=True),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Sizes where all values are known; unknown along every axis that may be cut otherwise."""
        x = call.tensor(0)
        if x.dims is None:
            return (tensor(x.element, None),)
        values = [known_integers(call, index) for index in range(1, 5)]
        axes = self._axes(call, x.rank, values[2])
        if axes is None:
            return (tensor(x.element, (UNKNOWN,) * x.rank),)
        dims = list(x.dims)
        steps = values[3] if call.has(4) else (1,) * len(axes)
        if values[0] is None or values[1] is None or steps is None:
            for axis in axes:
                dims[axis] = UNKNOWN
            return (tensor(x.element, dims),)
        for axis, start, end, step in self._matched(axes, values[0], values[1], steps):
            dims[axis] = _sliced_dim(dims[axis], start, end, step)
        return (tensor(x.element, dims),)

    def _axes(self, call: Call, rank: int, axes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if call.has(3):
            return None if axes is None else normalize_axes(self.name, axes, rank)
        length = vector_length(call, 1)
        return None if length is None else normalize_axes(self.name, range(length), rank)

    def _matched(self, *vectors: Sequence[int]) -> Iterable[tuple[int, ...]]:
        if len({len(vector) for vector in vectors}) > 1:
            counts = [len(vector) for vector in vectors]
            msg = f"slice: axes, starts, ends and steps have {counts} entries; expected as many each"
            raise TypeMismatch(msg)
        return zip(*vectors, strict=True)

    def ranges(self, shape: Sequence[int], vectors: Sequence[Sequence[int] | None]) -> list[tuple[int, int, int]]:
        """(first, count, step) a dim, for known starts, ends, axes and steps. Raises TypeMismatch, InvalidAttribute."""
        starts, ends, axes, steps = vectors
        assert starts is not None
        assert ends is not None
        found = [(0, size, 1) for size in shape]
        taken = normalize_axes(self.name, range(len(starts)) if axes is None else axes, len(shape))
        steps = (1,) * len(starts) if steps is None else steps
        for axis, start, end, step in self._matched(taken, starts, ends, steps):
            first, count = slice_range(shape[axis], start, end, step)
            found[axis] = (first, count, step)
        return found

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's basic indexing. Raises TypeMismatch, InvalidAttribute."""
        x = np.asarray(operands[0])
        padded = [*operands[1:], *[None] * (5 - len(operands))]
        ranges = self.ranges(x.shape, [None if value is None else integer_list(value) for value in padded])
        for axis, (first, count, step) in enumerate(ranges):
            if (first, count, step) != (0, x.shape[axis], 1):
                x = x[(slice(None),) * axis + (_numpy_slice(first, count, step),)]
        return (contiguous(x),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result with strided reads; None where starts, ends, axes or steps are not known."""
        x, result = call.tensor(0), result_tensor(results)
        vectors = [known_integers(call, index) for index in range(1, 5)]
        if any(vector is None and call.has(index) for index, vector in enumerate(vectors, 1)):
            return None
        ranges = self.ranges(x.shape, vectors)
        read = Access(0, tuple(Index(((d, step),), first) for d, (first, _, step) in enumerate(ranges)))
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))


_FAR: Final = 2**31 - 1
"""Ends from here on mean "to the end" (ONNX Slice: INT_MAX for unknown sizes)."""


def _sliced_dim(dim: Dim, start: int, end: int, step: int) -> Dim:
    if isinstance(dim, int):
        return slice_range(dim, start, end, step)[1]
    if abs(step) != 1:
        return UNKNOWN
    whole = (start == 0 and end >= _FAR) if step == 1 else (start in (-1, _FAR) and end <= -_FAR)
    if whole:
        return dim
    # From the end, as many as asked for: not known, since the dim may be smaller.
    return UNKNOWN


def _numpy_slice(first: int, count: int, step: int) -> slice:
    stop = first + count * step
    return slice(first, None if stop < 0 else stop, step)


@register
class Reverse(Operator):
    """x with the order of the elements along ``axes`` turned round."""

    name: ClassVar[str] = "reverse"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("axes", integers(), doc="dims, negative from the end"),)
    involution: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The operand's type. Raises InvalidAttribute for a wrong axis."""
        x = call.tensor(0)
        if x.dims is not None:
            normalize_axes(self.name, call.integers("axes"), x.rank)
        return (tensor(x.element, x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's flip."""
        x = np.asarray(operands[0])
        return (contiguous(np.flip(x, call.integers("axes"))),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """Reads count down."""
        x = call.tensor(0)
        axes = normalize_axes(self.name, call.integers("axes"), x.rank)
        dims = [Index(((d, -1),), size - 1) if d in axes else Index(((d, 1),)) for d, size in enumerate(x.shape)]
        return nests(copy(Access(0, tuple(dims)), x.element, parallel(x.shape), identity_access(0, x.rank)))


@register
class Concat(Operator):
    """The operands one after the other along ``axis``; all other sizes are equal."""

    name: ClassVar[str] = "concat"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", T, variadic=True),)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("axis", integer(), doc="the dim, negative from the end"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The sum of the sizes along the axis. Raises TypeMismatch for other sizes that differ, or no operand."""
        types = given_tensors(call)
        if not types:
            msg = "concat: no operands; expected at least one"
            raise TypeMismatch(msg)
        ranked = [type_.dims for type_ in types if type_.dims is not None]
        if len(ranked) < len(types):
            rank_known = len(ranked[0]) if ranked else None
            return (tensor(types[0].element, None if rank_known is None else (UNKNOWN,) * rank_known),)
        axis = normalize_axis(self.name, call.integer("axis"), len(ranked[0]))
        if len({len(dims) for dims in ranked}) > 1:
            msg = f"{self.name}: operands of ranks {[len(dims) for dims in ranked]}; expected one rank"
            raise TypeMismatch(msg)
        joined = ranked[0]
        for dims in ranked[1:]:
            joined = join_dims(self.name, "operands", _without_axis(joined, axis), _without_axis(dims, axis))
        sizes = [dims[axis] for dims in ranked]
        whole = [size for size in sizes if isinstance(size, int)]
        total: Dim = sum(whole) if len(whole) == len(sizes) else UNKNOWN
        if len(sizes) == 1:
            total = sizes[0]
        return (tensor(types[0].element, (*joined[:axis], total, *joined[axis + 1 :])),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's concatenate. Raises EvaluationError for sizes that differ."""
        arrays = [np.asarray(operand) for operand in operands]
        try:
            return (np.concatenate(arrays, call.integer("axis")),)
        except ValueError as error:
            msg = f"concat: shapes {[list(array.shape) for array in arrays]} along axis {call.integer('axis')}: {error}"
            raise EvaluationError(msg) from error

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """One nest an operand, which writes its slab; operands without elements have none."""
        result = result_tensor(results)
        axis = normalize_axis(self.name, call.integer("axis"), result.rank)
        parts, start = [], 0
        for index in range(len(call.types)):
            shape = call.shape(index)
            write = Access(0, tuple(Index(((d, 1),), start if d == axis else 0) for d in range(result.rank)))
            parts.append(copy(identity_access(index, result.rank), result.element, parallel(shape), write))
            start += shape[axis]
        return nests(*parts)


def _without_axis(dims: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
    return (*dims[:axis], 0, *dims[axis + 1 :])


@register
class Split(Operator):
    """x cut along ``axis`` into ``outputs`` results of the given sizes.

    Without sizes each part has ceil(size / outputs) elements and the last ones fewer or none (ONNX Split-18).
    Raises TypeMismatch where the sizes do not add up.
    """

    name: ClassVar[str] = "split"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("sizes", optional=True))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), 0, "the dim, negative from the end"),
        Attribute("outputs", integer(1), doc="number of results"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """One type a part; sizes along the axis are unknown where x's size or the parts' are."""
        x, count = call.tensor(0), call.integer("outputs")
        if x.dims is None:
            return (tensor(x.element, None),) * count
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        given = known_integers(call, 1)
        sizes: Sequence[Dim] = (UNKNOWN,) * count
        if isinstance(x.dims[axis], int) and (given is not None or not call.has(1)):
            sizes = self.sizes(int(x.dims[axis]), count, given)
        elif given is not None:
            sizes = given
        elif count == 1:
            sizes = (x.dims[axis],)
        return tuple(tensor(x.element, (*x.dims[:axis], size, *x.dims[axis + 1 :])) for size in sizes)

    def sizes(self, size: int, count: int, given: Sequence[int] | None) -> tuple[int, ...]:
        """The parts' sizes. Raises TypeMismatch where they do not add up."""
        if given is None:
            chunk = -(-size // count)
            return tuple(max(0, min(chunk, size - part * chunk)) for part in range(count))
        if len(given) != count or sum(given) != size or min(given) < 0:
            msg = f"split: sizes {list(given)}; expected {count} that add up to {size}"
            raise TypeMismatch(msg)
        return tuple(given)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Contiguous copies. Raises TypeMismatch where the sizes do not add up."""
        x = np.asarray(operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        given = integer_list(operands[1]) if len(operands) > 1 and operands[1] is not None else None
        sizes = self.sizes(x.shape[axis], call.integer("outputs"), given)
        starts = list(itertools.accumulate(sizes, initial=0))
        lead = (slice(None),) * axis
        return tuple(
            np.ascontiguousarray(x[(*lead, slice(start, start + size))])
            for start, size in zip(starts, sizes, strict=False)
        )

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """One nest a result; results without elements have none. None where the sizes are not known."""
        x = call.tensor(0)
        if call.has(1) and call.value(1) is None:
            return None
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        parts, start = [], 0
        for index in range(len(results)):
            shape = result_tensor(results, index).shape
            read = Access(0, tuple(Index(((d, 1),), start if d == axis else 0) for d in range(x.rank)))
            parts.append(copy(read, x.element, parallel(shape), identity_access(index, x.rank)))
            start += shape[axis]
        return nests(*parts)


@register
class Tile(Operator):
    """x repeated ``repeats[d]`` times along dim d (ONNX Tile, numpy's tile for as many repeats as dims)."""

    name: ClassVar[str] = "tile"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("repeats"))
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Products of sizes and repeats. Raises TypeMismatch for another number of repeats than dims."""
        x, repeats = call.tensor(0), known_integers(call, 1)
        if x.dims is None:
            return (tensor(x.element, None),)
        if repeats is None:
            return (tensor(x.element, (UNKNOWN,) * x.rank),)
        self._check_repeats(x.rank, repeats)
        return (tensor(x.element, [_times(dim, count) for dim, count in zip(x.dims, repeats, strict=True)]),)

    def _check_repeats(self, rank: int, repeats: Sequence[int]) -> None:
        if len(repeats) != rank or any(count < 0 for count in repeats):
            msg = f"tile: repeats {list(repeats)}; expected {rank} counts, one a dim"
            raise TypeMismatch(msg)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's tile. Raises TypeMismatch for another number of repeats than dims."""
        x, repeats = np.asarray(operands[0]), integer_list(operands[1])
        self._check_repeats(x.ndim, repeats)
        return (np.tile(x, repeats),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """A loop over the repeats and one over the size for each dim that needs both; None for unknown repeats."""
        x, repeats = call.tensor(0), known_integers(call, 1)
        if repeats is None:
            return None
        extents: list[int] = []
        read: list[Index] = []
        write: list[Index] = []
        for size, count in zip(x.shape, repeats, strict=True):
            outer = [(len(extents), size)] if count != 1 else []
            extents += [count] if count != 1 else []
            inner = [(len(extents), 1)] if size != 1 else []
            extents += [size] if size != 1 else []
            read.append(Index(tuple(inner)))
            write.append(Index((*outer, *inner)))
        return nests(copy(Access(0, tuple(read)), x.element, parallel(extents), Access(0, tuple(write))))


def _times(dim: Dim, count: int) -> Dim:
    if isinstance(dim, int):
        return dim * count
    if count == 0:
        return 0
    return dim if count == 1 else UNKNOWN
