"""Combiners: joining the bodies of one element, as reductions, as running combinations and one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.ir import element_of
from compiler.ops.work import Combiner
from compiler.simulator.convert import convert, is_plain, storage_int

if TYPE_CHECKING:
    from compiler.ir import Array, ElementType

UFUNCS: Final[dict[Combiner, np.ufunc]] = {
    Combiner.ADD: np.add,
    Combiner.MUL: np.multiply,
    Combiner.MAX: np.maximum,
    Combiner.MIN: np.minimum,
    Combiner.AND: np.bitwise_and,
    Combiner.OR: np.bitwise_or,
    Combiner.XOR: np.bitwise_xor,
}


@dataclass(frozen=True, slots=True)
class _Extreme:
    greatest: bool
    last: bool


EXTREMES: Final[dict[Combiner, _Extreme]] = {
    Combiner.ARGMAX: _Extreme(greatest=True, last=False),
    Combiner.ARGMIN: _Extreme(greatest=False, last=False),
    Combiner.ARGMAX_LAST: _Extreme(greatest=True, last=True),
    Combiner.ARGMIN_LAST: _Extreme(greatest=False, last=True),
}


def work_type(element: ElementType) -> np.dtype[Any]:
    """The numpy type that combines values of ``element``: its own, float32 for narrow floats, a byte for less."""
    if element.is_integer:
        return storage_int(element)
    return element.dtype if is_plain(element) else np.dtype(np.float32)


def reduced(
    combiner: Combiner, values: Array, axes: tuple[int, ...], element: ElementType, start: Array | None
) -> Array:
    """``values`` joined over ``axes`` in ``element``, from ``start`` (None: from the first value)."""
    ufunc = UFUNCS[combiner]
    work = work_type(element)
    wide = values if values.dtype == work else convert(values, element).astype(work)
    if start is None:
        joined = np.asarray(ufunc.reduce(wide, axis=axes, dtype=work))
    else:
        first = convert(start, element).astype(work)
        if wide.size:
            joined = np.asarray(ufunc(ufunc.reduce(wide, axis=axes, dtype=work), first))
        else:
            kept = [size for axis, size in enumerate(values.shape) if axis not in axes]
            joined = np.broadcast_to(first, kept)
    return convert(joined, element)


def running(combiner: Combiner, values: Array, element: ElementType, start: Array | None) -> Array:
    """Every prefix along the last axis joined; ``start`` (shape without that axis) comes before the first."""
    work = work_type(element)
    ufunc = UFUNCS[combiner]
    wide = convert(values, element).astype(work)
    if start is not None:
        first = convert(start, element).astype(work)[..., None]
        wide = np.concatenate([np.broadcast_to(first, (*wide.shape[:-1], 1)), wide], axis=-1)
        return convert(ufunc.accumulate(wide, axis=-1, dtype=work)[..., 1:], element)
    return convert(ufunc.accumulate(wide, axis=-1, dtype=work), element)


def extreme_position(combiner: Combiner, values: Array) -> Array:
    """The position along the last axis of the greatest or least value, the first or last such; NaN is beyond all."""
    rule = EXTREMES[combiner]
    element = element_of(values.dtype)
    wide = values if is_plain(element) else values.astype(work_type(element))
    find = np.argmax if rule.greatest else np.argmin
    if rule.last:
        return np.asarray(wide.shape[-1] - 1 - find(wide[..., ::-1], axis=-1))
    return np.asarray(find(wide, axis=-1))
