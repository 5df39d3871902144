"""Shape arithmetic that operators share: broadcasting, axes, with symbolic dims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Dim, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
    """Dims of the broadcast of ``types``; None where a rank is unknown. Raises TypeMismatch naming operator ``name``."""
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
