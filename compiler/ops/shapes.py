"""Shape arithmetic that operators share: broadcasting, axes, with symbolic dims."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Dim, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Call


def broadcast_pair(a: Dim, b: Dim) -> Dim | None:
    """The dim of two aligned dims under numpy's rule; None where it cannot be. Unknown where it is not decided."""
    if a == 1:
        return b
    if b == 1 or (a == b and a != UNKNOWN):
        return a
    if isinstance(a, int) and isinstance(b, int):
        return None
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) else UNKNOWN


def broadcast_dims(name: str, types: Sequence[TensorType]) -> tuple[Dim, ...] | None:
    """Dims of the broadcast of ``types``; None where a rank is unknown. Raises TypeMismatch naming ``name``."""
    if any(type_.dims is None for type_ in types):
        return None
    rank = max(type_.rank for type_ in types)
    dims: list[Dim] = [1] * rank
    for type_ in types:
        for position, dim in enumerate(type_.known_dims, rank - type_.rank):
            joined = broadcast_pair(dims[position], dim)
            if joined is None:
                shown = ", ".join(str(list(other.known_dims)) for other in types)
                msg = f"{name}: shapes {shown} do not broadcast: {dims[position]} against {dim} in dim {position}"
                raise TypeMismatch(msg)
            dims[position] = joined
    return tuple(dims)


def same_dim(name: str, what: str, a: Dim, b: Dim) -> Dim:
    """The dim of two that must be equal: the known one. Raises TypeMismatch where both are numbers and differ."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        msg = f"{name}: {what} have sizes {a} and {b}; expected the same"
        raise TypeMismatch(msg)
    if isinstance(a, int) or b == UNKNOWN:
        return a
    return b


def join_dims(name: str, what: str, a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    """Dims of two shapes that must be equal. Raises TypeMismatch where they cannot be."""
    if len(a) != len(b):
        msg = f"{name}: {what} have ranks {len(a)} and {len(b)}; expected the same"
        raise TypeMismatch(msg)
    return tuple(same_dim(name, f"{what} in dim {axis}", x, y) for axis, (x, y) in enumerate(zip(a, b, strict=True)))


def known_integers(call: Call, index: int) -> tuple[int, ...] | None:
    """The known value of an integer operand of rank 0 or 1, flat; None where it is unknown or omitted."""
    value = call.value(index)
    return None if value is None else tuple(int(item) for item in value.reshape(-1).tolist())


def vector_length(call: Call, index: int) -> int | None:
    """Number of entries of a value operand of rank 0 or 1, so far as its type tells. Raises TypeMismatch at rank 2."""
    dims = call.tensor(index).dims
    if dims is None:
        return None
    if len(dims) > 1:
        msg = f"operand {index} has type {call.tensor(index)}; expected a vector"
        raise TypeMismatch(msg)
    size = dims[0] if dims else 1
    return size if isinstance(size, int) else None


def slice_range(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """First index and count of ``start:end:step`` over ``size`` elements, clamped as ONNX Slice-13 does.

    Negative starts and ends count from the end. Unlike in Python, a start before the first element is the first one,
    with negative steps too. Raises InvalidAttribute for step 0.
    """
    if step == 0:
        msg = "slice: a step is 0; expected any other integer"
        raise InvalidAttribute(msg)
    taken = range(*slice(max(start, -size), end, step).indices(size))
    return (taken.start if taken else 0), len(taken)


def range_length(start: float, limit: float, delta: float) -> int:
    """max(ceil((limit - start) / delta), 0), the length of ONNX Range.

    Raises InvalidAttribute for delta 0, and for a length that is not finite.
    """
    if delta == 0:
        msg = "range: delta is 0; expected any other number"
        raise InvalidAttribute(msg)
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return max(-((start - limit) // delta), 0)
    length = (limit - start) / delta
    if not math.isfinite(length):
        msg = f"range: from {start} to {limit} in steps of {delta}; expected finite numbers"
        raise InvalidAttribute(msg)
    return max(math.ceil(length), 0)


def resolve_reshape(name: str, dims: Sequence[Dim] | None, sizes: Sequence[int]) -> tuple[Dim, ...]:
    """The dims that a reshape to ``sizes``, one of which may be -1, gives.

    Symbols that stand on both sides are divided out. Raises TypeMismatch where element counts differ.
    """
    if any(size < -1 for size in sizes) or list(sizes).count(-1) > 1:
        msg = f"{name}: shape {list(sizes)}; expected sizes, at most one of them -1"
        raise TypeMismatch(msg)
    if dims is None or any(not isinstance(dim, int) for dim in dims):
        return _resolve_symbolic(dims, sizes)
    count = math.prod(dim for dim in dims if isinstance(dim, int))
    given = math.prod(size for size in sizes if size >= 0)
    if -1 in sizes:
        if given == 0 or count % given:
            msg = f"{name}: {list(dims)} with {count} elements does not fit {list(sizes)}"
            raise TypeMismatch(msg)
        return tuple(count // given if size == -1 else size for size in sizes)
    if given != count:
        msg = f"{name}: {list(dims)} with {count} elements does not fit {list(sizes)} with {given}"
        raise TypeMismatch(msg)
    return tuple(sizes)


def _resolve_symbolic(dims: Sequence[Dim] | None, sizes: Sequence[int]) -> tuple[Dim, ...]:
    """A -1 is the one symbol whose other factors the sizes account for, else unknown."""
    rest: Dim = UNKNOWN
    symbols = [dim for dim in dims or () if not isinstance(dim, int)]
    if dims is not None and len(symbols) == 1:
        known = math.prod(dim for dim in dims if isinstance(dim, int))
        if known == math.prod(size for size in sizes if size >= 0) != 0:
            rest = symbols[0]
    return tuple(rest if size == -1 else size for size in sizes)


def normalize_axis(name: str, axis: int, rank: int) -> int:
    """The axis counted from the front. Raises InvalidAttribute outside -rank..rank-1."""
    if not -rank <= axis < rank:
        msg = f"{name}: axis {axis} is outside [{-rank}, {rank - 1}] for rank {rank}"
        raise InvalidAttribute(msg)
    return axis + rank if axis < 0 else axis


def normalize_axes(name: str, axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """The axes counted from the front, in the order given. Raises InvalidAttribute when one is outside or twice."""
    found = tuple(normalize_axis(name, axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        msg = f"{name}: axes {list(found)} name one axis twice"
        raise InvalidAttribute(msg)
    return found
