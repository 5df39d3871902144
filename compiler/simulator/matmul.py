"""The matrix array: products of strided views through BLAS, exact for integers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.simulator.convert import convert
from compiler.simulator.unit import Unit
from compiler.simulator.views import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array, ElementType
    from compiler.program.instructions import Matmul
    from compiler.simulator.memory import Layout, Memories

_FLOAT32_EXACT: Final = 1 << 24
_FLOAT64_EXACT: Final = 1 << 53


class Factor:
    """One factor as a (batch, rows, columns) array that BLAS takes: a view where strides allow, else a copy.

    The copy is laid out along whichever side has the longer contiguous runs in the source: windows of a convolution
    copy rows of pixels, not rows of three taps.
    """

    __slots__ = ("dtype", "merged", "order", "sizes", "view")

    def __init__(self, view: View, batch: int, rows: int, dtype: np.dtype[Any]) -> None:
        self.view = view
        self.dtype = dtype
        shape, strides = view.shape, view.strides
        groups = (slice(0, batch), slice(batch, batch + rows), slice(batch + rows, len(shape)))
        self.sizes = tuple(math.prod(shape[group]) for group in groups)
        merged = [merge(shape[group], strides[group]) for group in groups]
        self.merged: tuple[int, ...] | None = None
        if all(stride is not None for stride in merged) and view.dtype == dtype and not view.packed:
            found = tuple(stride for stride in merged if stride is not None)
            if _fits_blas(self.sizes[1:], found[1:], dtype.itemsize):
                self.merged = found
        row_axes = list(range(batch, batch + rows))
        column_axes = list(range(batch + rows, len(shape)))
        run_rows = _run(shape[groups[1]], strides[groups[1]])
        run_columns = _run(shape[groups[2]], strides[groups[2]])
        turned = run_rows > run_columns
        self.order = (*range(batch), *(column_axes + row_axes if turned else row_axes + column_axes))

    def read(self, memories: Memories, k: int) -> Array:
        """The factor of instance ``k``, shape (batch, rows, columns)."""
        batch, rows, columns = self.sizes
        if self.merged is not None:
            memory, start = memories[self.view.segment], self.view.starts[k]
            return np.ndarray(self.sizes, self.dtype, memory, start, self.merged)
        source = self.view.read(memories, k).transpose(self.order)
        copied = np.empty(source.shape, self.dtype)
        np.copyto(copied, source, casting="unsafe")
        if self.order == tuple(range(len(self.order))):
            return copied.reshape(batch, rows, columns)
        return copied.reshape(batch, columns, rows).transpose(0, 2, 1)


def merge(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride of these loops walked as one; None where there is none. Loops of one step do not count."""
    loops = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    if not loops:
        return 0
    for (_, outer), (extent, inner) in pairwise(loops):
        if outer != inner * extent:
            return None
    return loops[-1][1]


def _fits_blas(sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    def leads(inner: int, outer: int) -> bool:
        contiguous = strides[inner] == itemsize or sizes[inner] == 1
        rows_apart = strides[outer] % itemsize == 0 and strides[outer] >= sizes[inner] * itemsize
        return contiguous and (rows_apart or sizes[outer] == 1)

    return leads(1, 0) or leads(0, 1)


def _run(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements that lie evenly spaced along the last loops: what one inner loop of a copy handles."""
    loops = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    if not loops:
        return 1
    length, stride = loops[-1]
    for extent, outer in reversed(loops[:-1]):
        if outer != stride * length:
            break
        length *= extent
    return length


def compute_type(a: ElementType, b: ElementType, depth: int) -> np.dtype[Any] | None:
    """The BLAS type in which ``depth`` products of these types are summed exactly, or float32 for floats.

    None: no BLAS type is wide enough. Integer products up to 2^24 (2^53) in all are exact in float32 (float64).
    """
    if a.is_float:
        return np.dtype(np.float64 if a.bits == 64 else np.float32)
    largest = depth * (1 << (a.bits + b.bits))
    if largest <= _FLOAT32_EXACT:
        return np.dtype(np.float32)
    return np.dtype(np.float64) if largest <= _FLOAT64_EXACT else None


class MatmulUnit(Unit):
    """One matmul instruction, compiled."""

    __slots__ = ("a", "accumulate", "b", "merged_out", "out", "sizes")

    def __init__(self, matmul: Matmul, counts: tuple[int, ...], layout: Layout, who: str) -> None:
        batch, m, n, k = matmul.batch, matmul.m, matmul.n, matmul.k
        a = View(matmul.a, batch + m + k, counts, layout, who)
        b = View(matmul.b, batch + k + n, counts, layout, who)
        self.out = View(matmul.out, batch + m + n, counts, layout, who, writes=True)
        dtype = compute_type(matmul.a.element, matmul.b.element, math.prod(k)) or np.dtype(np.int64)
        self.a = Factor(a, len(batch), len(m), dtype)
        self.b = Factor(b, len(batch), len(k), dtype)
        self.accumulate = matmul.accumulate
        self.sizes = (math.prod(batch), math.prod(m), math.prod(n))
        self.merged_out = self._merge_out(len(batch), len(m), dtype)
        super().__init__([a, b, self.out] if self.accumulate else [a, b], [self.out])

    def _merge_out(self, batch: int, rows: int, dtype: np.dtype[Any]) -> tuple[int, ...] | None:
        out = self.out
        if self.accumulate or out.dtype != dtype or dtype.kind != "f":
            return None
        groups = (slice(0, batch), slice(batch, batch + rows), slice(batch + rows, len(out.shape)))
        merged = [merge(out.shape[group], out.strides[group]) for group in groups]
        found = tuple(stride for stride in merged if stride is not None)
        return found if len(found) == 3 and _fits_blas(self.sizes[1:], found[1:], dtype.itemsize) else None

    def _product(self, memories: Memories, k: int) -> Array:
        a, b = self.a.read(memories, k), self.b.read(memories, k)
        product = np.asarray(np.matmul(a[0], b[0])[None] if self.sizes[0] == 1 else np.matmul(a, b))
        if self.out.element.is_integer and product.dtype.kind == "f":
            product = product.astype(np.int64)
        return product.reshape(self.out.shape)

    def perform(self, memories: Memories, k: int) -> None:
        if self.merged_out is None:
            self.prepare(memories, k)()
            return
        a, b = self.a.read(memories, k), self.b.read(memories, k)
        memory, start = memories[self.out.segment], self.out.starts[k]
        out: Array = np.ndarray(self.sizes, self.out.dtype, memory, start, self.merged_out)
        if self.sizes[0] == 1:
            np.matmul(a[0], b[0], out=out[0])
        else:
            np.matmul(a, b, out=out)

    def prepare(self, memories: Memories, k: int) -> Callable[[], None]:
        product = self._product(memories, k)
        out = self.out
        if self.accumulate:
            held = out.read(memories, k)
            product = np.asarray(held + convert(product, out.element))
        else:
            product = convert(product, out.element)
        return lambda: out.write(memories, k, product)
