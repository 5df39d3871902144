"""Reads and writes at places that data decides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import BOOL, I64, STRING, UNKNOWN, Array, Dim, Kind, TensorType, Type, tensor
from compiler.ops.compose import Emit
from compiler.ops.movement import T, X, copy, integer_list, result_tensor
from compiler.ops.registry import (
    INTEGER,
    REAL,
    Attribute,
    Composite,
    Operand,
    Operator,
    Variable,
    choice,
    integer,
    register,
)
from compiler.ops.scalars import apply_scalar
from compiler.ops.shapes import join_dims, known_integers, normalize_axis
from compiler.ops.work import (
    Access,
    Apply,
    Arg,
    Combiner,
    Index,
    Indirect,
    Loops,
    Position,
    identity_access,
    nests,
    parallel,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder, Call, Op, RunRegion, Value
    from compiler.ops.work import Work

INDICES: Final = Operand("indices", Variable("I", INTEGER))


def wrapped(name: str, indices: Any, size: int) -> Array:  # noqa: ANN401 - what an evaluator gets
    """Indices counted from the front. Raises EvaluationError for one outside -size..size-1."""
    found = np.asarray(indices).astype(np.int64)
    outside = (found < -size) | (found >= size)
    if outside.any():
        msg = f"{name}: index {int(found[outside].reshape(-1)[0])} is outside [{-size}, {size - 1}]"
        raise EvaluationError(msg)
    return np.where(found < 0, found + size, found)


def loops(first: int, count: int) -> tuple[Index, ...]:
    """Consecutive dims indexed by consecutive loops."""
    return tuple(Index(((loop, 1),)) for loop in range(first, first + count))


@register
class Gather(Operator):
    """Slices of x at ``indices`` along ``axis``: numpy's take (ONNX Gather). Negative indices count from the end.

    The result's dims are x's with dim ``axis`` replaced by those of the indices. Raises EvaluationError for an index
    outside.
    """

    name: ClassVar[str] = "gather"
    operands: ClassVar[tuple[Operand, ...]] = (X, INDICES)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), 0, "the dim of x that is looked up, negative from the end"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's dims around those of the indices."""
        x, indices = call.tensor(0), call.tensor(1)
        if x.dims is None or indices.dims is None:
            return (tensor(x.element, None),)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        return (tensor(x.element, (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :])),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's take. Raises EvaluationError for an index outside."""
        x = np.asarray(operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        found = np.take(x, wrapped(self.name, operands[1], x.shape[axis]), axis)
        return (_boxed(found, x.dtype),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result; one read goes through the indices."""
        x, indices, result = call.tensor(0), call.tensor(1), result_tensor(results)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        where = Indirect(Access(1, loops(axis, indices.rank)), x.shape[axis])
        read = Access(0, (*loops(0, axis), where, *loops(axis + indices.rank, x.rank - axis - 1)))
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))


def _boxed(found: Any, dtype: np.dtype[Any]) -> Array:  # noqa: ANN401 - a scalar or an array
    """An array again, where numpy took a single element out (a string, too)."""
    if isinstance(found, np.ndarray):
        return found
    array = np.empty((), dtype)
    array[()] = found
    return array


@register
class GatherElements(Operator):
    """result[i, j, ...] = x with the coordinate along ``axis`` replaced by indices[i, j, ...] (ONNX GatherElements).

    The indices have x's rank and, off the axis, at most its sizes. Raises EvaluationError for an index outside.
    """

    name: ClassVar[str] = "gather_elements"
    operands: ClassVar[tuple[Operand, ...]] = (X, INDICES)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("axis", integer(), 0, "the dim that is looked up"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The dims of the indices. Raises TypeMismatch for another rank or sizes beyond x's."""
        x, indices = call.tensor(0), call.tensor(1)
        if x.dims is not None and indices.dims is not None:
            check_within(self.name, x, indices, normalize_axis(self.name, call.integer("axis"), x.rank))
        return (tensor(x.element, indices.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By index grids. Raises EvaluationError for an index outside."""
        x = np.asarray(operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        indices = wrapped(self.name, operands[1], x.shape[axis])
        return (x[element_grid(indices, axis)],)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result; one read goes through the indices."""
        x, result = call.tensor(0), result_tensor(results)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        read = Access(0, element_dims(1, x.shape, axis))
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))


def check_within(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    """Raises TypeMismatch where the indices' rank is another or a size off the axis is beyond x's."""
    if x.rank != indices.rank:
        msg = f"{name}: indices have type {indices}; expected the rank of {x}"
        raise TypeMismatch(msg)
    for dim, (size, count) in enumerate(zip(x.known_dims, indices.known_dims, strict=True)):
        if dim != axis and isinstance(size, int) and isinstance(count, int) and count > size:
            msg = f"{name}: indices have size {count} in dim {dim}; expected at most {size}, as x has"
            raise TypeMismatch(msg)


def element_grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """Numpy's index of the elements that GatherElements and ScatterElements mean."""
    grid = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    grid[axis] = indices
    return tuple(grid)


def element_dims(operand: int, shape: Sequence[int], axis: int) -> tuple[Index | Indirect, ...]:
    """The dims of an access whose coordinate along ``axis`` is read from operand ``operand``."""
    where = Indirect(identity_access(operand, len(shape)), shape[axis])
    return tuple(where if dim == axis else Index(((dim, 1),)) for dim in range(len(shape)))


@register
class GatherNd(Operator):
    """Slices of x at coordinates: indices[..., :] are the leading coordinates after the batch dims (ONNX GatherND).

    The result's dims are those of the indices but the last, then the dims of x that the coordinates leave. Raises
    EvaluationError for a coordinate outside.
    """

    name: ClassVar[str] = "gather_nd"
    operands: ClassVar[tuple[Operand, ...]] = (X, INDICES)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("batch_dims", integer(0), 0, "number of leading dims that x and indices share"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Unknown rank where the number of coordinates is. Raises TypeMismatch for too many coordinates."""
        x, indices, batch = call.tensor(0), call.tensor(1), call.integer("batch_dims")
        if x.dims is None or indices.dims is None:
            return (tensor(x.element, None),)
        count = coordinates(self.name, indices, x.rank - batch)
        if count is None:
            return (tensor(x.element, None),)
        shared = join_dims(self.name, "batch dims", x.dims[:batch], indices.dims[:batch])
        return (tensor(x.element, (*shared, *indices.dims[batch:-1], *x.dims[batch + count :])),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By index grids. Raises EvaluationError for a coordinate outside."""
        x, indices, batch = np.asarray(operands[0]), np.asarray(operands[1]), call.integer("batch_dims")
        count, outer = indices.shape[-1], indices.shape[:-1]
        grid = [
            np.arange(size).reshape([-1 if dim == d else 1 for d in range(len(outer))])
            for dim, size in enumerate(outer[:batch])
        ]
        grid += [wrapped(self.name, indices[..., c], x.shape[batch + c]) for c in range(count)]
        if not grid:
            return (np.broadcast_to(x, (*outer, *x.shape)).copy(),)
        return (_boxed(x[tuple(grid)], x.dtype).reshape((*outer, *x.shape[batch + count :])),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result; a read through each coordinate."""
        x, indices, result = call.tensor(0), call.tensor(1), result_tensor(results)
        batch, count = call.integer("batch_dims"), indices.shape[-1]
        where = coordinate_dims(1, indices.rank - 1, x.shape[batch : batch + count])
        rest = loops(indices.rank - 1, x.rank - batch - count)
        read = Access(0, (*loops(0, batch), *where, *rest))
        return nests(copy(read, x.element, parallel(result.shape), identity_access(0, result.rank)))


def coordinates(name: str, indices: TensorType, most: int) -> int | None:
    """How many coordinates the last dim of the indices holds, None if unknown. Raises TypeMismatch beyond ``most``."""
    if indices.rank < 1:
        msg = f"{name}: indices are {indices}; expected at least one dim"
        raise TypeMismatch(msg)
    count = indices.known_dims[-1]
    if not isinstance(count, int):
        return None
    if count > most:
        msg = f"{name}: indices hold {count} coordinates; expected at most {most}"
        raise TypeMismatch(msg)
    return count


def coordinate_dims(operand: int, outer: int, sizes: Sequence[int]) -> tuple[Indirect, ...]:
    """An index a coordinate, read from the last dim of an operand whose other dims are loops 0..outer-1."""
    return tuple(
        Indirect(Access(operand, (*loops(0, outer), Index((), coordinate))), size)
        for coordinate, size in enumerate(sizes)
    )


REDUCTION: Final = Attribute(
    "reduction", choice("none", "add", "mul", "max", "min"), "none", "how an update joins the element that is there"
)
_UFUNCS: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_COMBINERS: Final = {
    "none": None,
    "add": Combiner.ADD,
    "mul": Combiner.MUL,
    "max": Combiner.MAX,
    "min": Combiner.MIN,
}


class Scatter(Operator):
    """Base: a copy of x with updates put in, or joined to what is there, in the order of the updates."""

    operands: ClassVar[tuple[Operand, ...]] = (X, INDICES, Operand("updates", T))

    def scattered(self, x: Array, places: tuple[Any, ...], updates: Array, reduction: str) -> Array:
        """The copy. For duplicates the last update stays, or each joins in turn."""
        found = x.copy()
        if reduction == "none":
            found[places] = updates
            return found
        if x.dtype.isbuiltin == 1:
            with np.errstate(all="ignore"):
                _UFUNCS[reduction].at(found, places, updates)
            return found
        # One place after the other: numpy's `at` does not do the types that it does not know itself.
        grid = np.broadcast_arrays(*[np.asarray(place) for place in places])
        flat, where = found.reshape(-1), np.ravel_multi_index(tuple(grid), x.shape).reshape(-1)
        for place, update in zip(where.tolist(), updates.reshape(-1), strict=True):
            flat[place] = apply_scalar(reduction, flat[place], np.asarray(update, x.dtype))
        return found

    def nests(self, x: TensorType, updates: TensorType, write: Access, reduction: str) -> Work | None:
        """The copy, then a nest over the updates that writes through the indices. None for strings that join."""
        whole = identity_access(0, x.rank)
        combiner = _COMBINERS[reduction]
        if combiner is not None and x.element is STRING:
            return None
        update = Loops(parallel(updates.shape), (identity_access(2, updates.rank),), Arg(0, x.element), write, combiner)
        return nests(copy(whole, x.element, parallel(x.shape), whole), update)


@register
class ScatterElements(Scatter):
    """A copy of x with the element whose coordinate along ``axis`` is indices[...] set to updates[...].

    Among duplicates the last stays; with a reduction each update joins in turn (ONNX ScatterElements-18). Raises
    EvaluationError for an index outside.
    """

    name: ClassVar[str] = "scatter_elements"
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), 0, "the dim that is looked up, negative from the end"),
        REDUCTION,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's type. Raises TypeMismatch where indices and updates do not fit."""
        x, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
        if x.dims is not None and indices.dims is not None:
            check_within(self.name, x, indices, normalize_axis(self.name, call.integer("axis"), x.rank))
        if updates.dims is not None and indices.dims is not None:
            join_dims(self.name, "indices and updates", indices.dims, updates.dims)
        return (tensor(x.element, x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By index grids. Raises EvaluationError for an index outside."""
        x = np.asarray(operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        indices = wrapped(self.name, operands[1], x.shape[axis])
        places = element_grid(indices, axis)
        return (self.scattered(x, places, np.asarray(operands[2]), call.text("reduction")),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """A copy, then writes through the indices."""
        x = call.tensor(0)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        write = Access(0, element_dims(1, x.shape, axis))
        return self.nests(x, call.tensor(2), write, call.text("reduction"))


@register
class ScatterNd(Scatter):
    """A copy of x with the slices at coordinates indices[..., :] set to updates (ONNX ScatterND-18).

    Among duplicates the last stays; with a reduction each update joins in turn. Raises EvaluationError for a
    coordinate outside.
    """

    name: ClassVar[str] = "scatter_nd"
    attributes: ClassVar[tuple[Attribute, ...]] = (REDUCTION,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's type. Raises TypeMismatch where indices and updates do not fit."""
        x, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
        if x.dims is not None and indices.dims is not None and updates.dims is not None:
            count = coordinates(self.name, indices, x.rank)
            if count is not None:
                join_dims(self.name, "slices and updates", (*indices.dims[:-1], *x.dims[count:]), updates.dims)
        return (tensor(x.element, x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By index grids. Raises EvaluationError for a coordinate outside."""
        x, indices, updates = np.asarray(operands[0]), np.asarray(operands[1]), np.asarray(operands[2])
        count, outer = indices.shape[-1], indices.shape[:-1]
        rest = x.ndim - count
        places = [wrapped(self.name, indices[..., c], x.shape[c]).reshape(*outer, *(1,) * rest) for c in range(count)]
        for dim in range(count, x.ndim):
            shape = [1] * len(outer) + [-1 if d == dim else 1 for d in range(count, x.ndim)]
            places.append(np.arange(x.shape[dim]).reshape(shape))
        if count == 0:
            return (self._repeated(x, outer, updates, call.text("reduction")),)
        return (self.scattered(x, tuple(places), updates, call.text("reduction")),)

    def _repeated(self, x: Array, outer: Sequence[int], updates: Array, reduction: str) -> Array:
        """Coordinates of no dims: each update is the whole of x."""
        found = x.copy()
        for update in updates.reshape(math.prod(outer), *x.shape):
            found = update.copy() if reduction == "none" else apply_scalar(reduction, found, update)
        return found

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """A copy, then writes through the coordinates."""
        x, indices = call.tensor(0), call.tensor(1)
        count, outer = indices.shape[-1], indices.rank - 1
        where = coordinate_dims(1, outer, x.shape[:count])
        write = Access(0, (*where, *loops(outer, x.rank - count)))
        return self.nests(x, call.tensor(2), write, call.text("reduction"))


@register
class OneHot(Operator):
    """values[1] where the position along a new dim ``axis`` of size ``depth`` is the index, else values[0].

    Indices -depth..-1 count from the end; others outside give values[0] alone; float indices are truncated
    (ONNX OneHot-11).
    """

    name: ClassVar[str] = "one_hot"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("indices", Variable("I", REAL)),
        Operand("depth", Variable("D", REAL), value=True),
        Operand("values", T),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), -1, "the new dim's place in the result, negative from the end"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The indices' dims with ``depth`` put in."""
        indices, values, depth = call.tensor(0), call.tensor(2), known_integers(call, 1)
        if indices.dims is None:
            return (tensor(values.element, None),)
        axis = normalize_axis(self.name, call.integer("axis"), indices.rank + 1)
        size: Dim = UNKNOWN if depth is None else max(depth[0], 0)
        return (tensor(values.element, (*indices.dims[:axis], size, *indices.dims[axis:])),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """By comparison with the positions."""
        indices, values = np.asarray(operands[0]).astype(np.int64), np.asarray(operands[2])
        depth = integer_list(operands[1])[0]
        axis = normalize_axis(self.name, call.integer("axis"), indices.ndim + 1)
        counted = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
        position = np.arange(depth).reshape([-1 if dim == axis else 1 for dim in range(indices.ndim + 1)])
        return (values[(counted == position).astype(np.int64)],)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops over the result; the body compares the index with the position. None for strings, unknown depth."""
        indices, values, result = call.tensor(0), call.tensor(2), result_tensor(results)
        depth = known_integers(call, 1)
        if depth is None or values.element is STRING:
            return None
        axis = normalize_axis(self.name, call.integer("axis"), result.rank)
        index: Arg | Apply = Arg(0, indices.element)
        if indices.element is not I64:
            index = Apply("cast", (index,), I64)
        hit: Apply = Apply("eq", (index, Position(axis, I64)), BOOL)
        if indices.element.kind is not Kind.UNSIGNED:
            hit = Apply("or", (hit, Apply("eq", (index, Position(axis, I64, 1, -depth[0])), BOOL)), BOOL)
        body = Apply("select", (hit, Arg(2, values.element), Arg(1, values.element)), values.element)
        reads = (
            Access(0, (*loops(0, axis), *loops(axis + 1, indices.rank - axis))),
            Access(2, (Index((), 0),)),
            Access(2, (Index((), 1),)),
        )
        return nests(Loops(parallel(result.shape), reads, body, identity_access(0, result.rank)))


@register
class ReverseSequence(Composite):
    """Each batch entry's first ``lengths[b]`` steps along the time dim turned round (ONNX ReverseSequence-10).

    Raises EvaluationError for a length beyond the time dim's size.
    """

    name: ClassVar[str] = "reverse_sequence"
    operands: ClassVar[tuple[Operand, ...]] = (X, Operand("lengths", Variable("I", INTEGER)))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("batch_axis", integer(0), 1, "the dim of the batch entries"),
        Attribute("time_axis", integer(0), 0, "the dim that is turned round"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's type. Raises TypeMismatch where there are not as many lengths as batch entries."""
        x, lengths = call.tensor(0), call.tensor(1)
        if x.dims is not None:
            batch = normalize_axis(self.name, call.integer("batch_axis"), x.rank)
            normalize_axis(self.name, call.integer("time_axis"), x.rank)
            if lengths.dims is not None:
                join_dims(self.name, "lengths and batch", lengths.dims, (x.dims[batch],))
        return (tensor(x.element, x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Entry by entry."""
        x, lengths = np.asarray(operands[0]), integer_list(operands[1])
        batch, time = call.integer("batch_axis"), call.integer("time_axis")
        found = x.copy()
        source, target = (np.moveaxis(array, (batch, time), (0, 1)) for array in (x, found))
        for entry, length in enumerate(lengths):
            if not 0 <= length <= x.shape[time]:
                msg = f"reverse_sequence: length {length} of entry {entry}; expected 0..{x.shape[time]}"
                raise EvaluationError(msg)
            target[entry, :length] = source[entry, :length][::-1]
        return (found,)

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """A lookup along time at t < length ? length - 1 - t : t."""
        emit, call = Emit(builder), op.call()
        x = op.operand(0)
        type_, batch, time = x.tensor, call.integer("batch_axis"), call.integer("time_axis")
        shape = emit.integers(type_.shape) if type_.is_static else emit("shape_of", x)
        steps = emit("iota", shape, axis=time, to=I64)
        sizes = [-1 if dim == batch else 1 for dim in range(type_.rank)]
        lengths = emit.reshape(emit.cast(op.operand(1), I64), sizes)
        turned = emit("sub", emit("sub", lengths, 1), steps)
        where = emit("select", emit("lt", steps, lengths), turned, steps)
        return (emit("gather_elements", x, where, axis=time),)
