"""Regions compiled to views: one numpy array over a memory's bytes for each instance of an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidProgram
from compiler.ops.work import OutOfRange
from compiler.program.addresses import address_bounds, all_values, in_bytes, reach
from compiler.simulator.convert import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array
    from compiler.program.instructions import Lookup, Operand, Region
    from compiler.simulator.memory import Layout, Memories

_RAW: Final[dict[int, np.dtype[Any]]] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class View:
    """A region of affine addresses. ``starts[k]`` is the address of instance k inside the region's segment.

    ``low`` and ``high`` bound the bytes touched around a start. Loops of stride 0 have extent 1 in the views when
    ``thin``: they broadcast. ``raw`` views show unsigned integers of the element's size, which copy fastest.
    """

    __slots__ = ("count", "dtype", "element", "high", "low", "packed", "segment", "shape", "starts", "strides")

    def __init__(
        self,
        region: Region,
        extents: Sequence[int],
        counts: Sequence[int],
        layout: Layout,
        who: str,
        *,
        writes: bool = False,
        thin: bool = False,
        raw: bool = False,
    ) -> None:
        sizes, strides, size = in_bytes(region, extents)
        self.element = region.element
        self.packed = region.element.bits % 8 != 0
        self.count = extents[-1] if self.packed and extents and region.strides[-1] else 1
        if thin:
            last = len(sizes) - 1 if self.packed else -1
            sizes = tuple(1 if s == 0 and i != last else n for i, (n, s) in enumerate(zip(sizes, strides, strict=True)))
        if self.packed and (not extents or region.strides[-1] == 0):
            sizes, strides = (*sizes[:-1], 1), (*strides[:-1], 1)
        self.shape, self.strides = sizes, strides
        self.dtype: np.dtype[Any] = np.dtype(np.uint8) if self.packed else region.element.dtype
        if raw and size in _RAW:
            self.dtype = _RAW[size]
        low, high = address_bounds(region.address, counts)
        self.low, self.high = reach(region, extents)
        self.segment = layout.locate(region.memory, low + self.low, high + self.high, who, writes=writes)
        base = layout.all[self.segment].low
        self.starts = [start - base for start in all_values(region.address, counts)]

    def bytes_view(self, memories: Memories, k: int) -> Array:
        """The array over the memory for instance ``k``; packed elements show as bytes."""
        return np.ndarray(self.shape, self.dtype, memories[self.segment], self.starts[k], self.strides)

    def read(self, memories: Memories, k: int) -> Array:
        """The elements for instance ``k``: a view, unless they are packed."""
        view = np.ndarray(self.shape, self.dtype, memories[self.segment], self.starts[k], self.strides)
        return unpack(view, self.count, self.element) if self.packed else view

    def write(self, memories: Memories, k: int, values: Array) -> None:
        """Store ``values``, which broadcast to the region, for instance ``k``."""
        view = np.ndarray(self.shape, self.dtype, memories[self.segment], self.starts[k], self.strides)
        if self.packed:
            values = pack(np.broadcast_to(values, (*self.shape[:-1], self.count)), self.element)
        np.copyto(view, values)

    def touched(self, k: int) -> tuple[int, int, int]:
        """Segment and byte range (end exclusive) around instance ``k``."""
        start = self.starts[k]
        return self.segment, start + self.low, start + self.high


class Scattered:
    """An operand whose address has data-dependent terms: every point's address is computed."""

    __slots__ = ("element", "extents", "fill", "grid", "lookups", "segment", "size", "starts", "who", "whole")

    def __init__(
        self,
        operand: Operand,
        extents: Sequence[int],
        counts: Sequence[int],
        layout: Layout,
        who: str,
        *,
        writes: bool = False,
    ) -> None:
        region = operand.region
        if region.element.bits % 8:
            msg = f"{who}: a lookup into {region.element}; expected elements of whole bytes"
            raise InvalidProgram(msg)
        self.element, self.size, self.who = region.element, region.element.bits // 8, who
        self.extents = tuple(extents)
        self.fill = operand.fill
        self.grid = _grid(extents, region.strides)
        low, high = address_bounds(region.address, counts)
        own_low, own_high = reach(region, extents)
        far = sum(max(0, lookup.stride * (lookup.extent - 1)) for lookup in operand.lookups)
        near = sum(min(0, lookup.stride * (lookup.extent - 1)) for lookup in operand.lookups)
        self.segment = layout.locate(region.memory, low + own_low + near, high + own_high + far, who, writes=writes)
        segment = layout.all[self.segment]
        self.whole = segment.high - segment.low
        self.starts = [start - segment.low for start in all_values(region.address, counts)]
        self.lookups = [
            (lookup, View(lookup.index, extents[: len(lookup.index.strides)], counts, layout, who, thin=True))
            for lookup in operand.lookups
        ]

    def touched(self, k: int) -> tuple[int, int, int]:  # noqa: ARG002 - the interface of View
        """The whole segment: data decides where."""
        return self.segment, 0, self.whole

    def places(self, memories: Memories, k: int) -> tuple[Array, Array | None]:
        """The byte address of every point and, where some drop out, which do not. Raises EvaluationError."""
        addresses = self.grid + self.starts[k]
        kept: Array | None = None
        for lookup, view in self.lookups:
            index = view.read(memories, k).astype(np.int64)
            index = index.reshape(index.shape + (1,) * (self.grid.ndim - index.ndim))
            index, inside = _ruled(lookup, index, self.who)
            if inside is not None:
                kept = inside if kept is None else kept & inside
            addresses = addresses + index * lookup.stride
        return addresses, kept

    def read(self, memories: Memories, k: int) -> Array:
        """The elements of all points (shape: the extents, with 1 where they do not vary), ``fill`` where dropped."""
        addresses, kept = self.places(memories, k)
        values = (
            self.flat(memories)[self.slots(addresses)]
            if self._aligned(addresses)
            else self._bytewise(memories, addresses)
        )
        if kept is None:
            return np.asarray(values)
        values = np.array(np.broadcast_to(values, np.broadcast_shapes(values.shape, kept.shape)))
        fill = np.asarray(0 if self.fill is None else self.fill).astype(self.element.dtype)
        np.copyto(values, fill, where=~kept)
        return values

    def slots(self, addresses: Array) -> Array:
        """Addresses in elements."""
        return addresses // self.size if self.size > 1 else addresses

    def flat(self, memories: Memories) -> Array:
        """The segment as elements."""
        memory = memories[self.segment]
        return memory[: memory.size // self.size * self.size].view(self.element.dtype)

    def _aligned(self, addresses: Array) -> bool:
        return self.size == 1 or not np.any(addresses % self.size)

    def _bytewise(self, memories: Memories, addresses: Array) -> Array:
        each = memories[self.segment][addresses[..., None] + np.arange(self.size)]
        return np.ascontiguousarray(each).view(self.element.dtype)[..., 0]

    def check_aligned(self, addresses: Array) -> None:
        """Scattered writes need whole elements. Raises InvalidProgram."""
        if not self._aligned(addresses):
            msg = f"{self.who}: scattered addresses are no multiples of {self.size}, the element's bytes"
            raise InvalidProgram(msg)


def _grid(extents: Sequence[int], strides: Sequence[int]) -> Array:
    grid = np.zeros((1,) * len(extents), np.int64)
    for loop, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        if stride:
            grid = grid + (np.arange(extent) * stride).reshape([-1 if i == loop else 1 for i in range(len(extents))])
    return grid


def _ruled(lookup: Lookup, index: Array, who: str) -> tuple[Array, Array | None]:
    return _RULES[lookup.rule](index, lookup.extent, who)


def _wrap(index: Array, extent: int, who: str) -> tuple[Array, Array | None]:
    wrapped = np.where(index < 0, index + extent, index)
    outside = (wrapped < 0) | (wrapped >= extent)
    if outside.any():
        found = int(index[outside].ravel()[0])
        msg = f"{who}: index {found} is out of range; expected {-extent}..{extent - 1}"
        raise EvaluationError(msg)
    return wrapped, None


def _clamp(index: Array, extent: int, who: str) -> tuple[Array, Array | None]:  # noqa: ARG001 - one signature a rule
    return np.clip(index, 0, extent - 1), None


def _drop(index: Array, extent: int, who: str) -> tuple[Array, Array | None]:  # noqa: ARG001 - one signature a rule
    inside = (index >= 0) & (index < extent)
    return (index, None) if inside.all() else (np.where(inside, index, 0), inside)


_RULES = {OutOfRange.WRAP: _wrap, OutOfRange.CLAMP: _clamp, OutOfRange.DROP: _drop}


def readable(
    operand: Operand, extents: Sequence[int], counts: Sequence[int], layout: Layout, who: str
) -> View | Scattered:
    """The operand compiled for reading; constant loops broadcast."""
    if operand.lookups:
        return Scattered(operand, extents, counts, layout, who)
    return View(operand.region, extents, counts, layout, who, thin=True)
