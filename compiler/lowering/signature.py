"""What kernels have in common: two nests with equal signatures differ in nothing but their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ops.work import Index

if TYPE_CHECKING:
    from collections.abc import Hashable

    from compiler.lowering.nests import Dims, Nest, Read


def signature(nest: Nest) -> Hashable:
    """A key of the nest's loops, reads, bodies and types. Values are numbered in the order of their first read."""
    numbers: dict[int, int] = {}

    def of_dims(dims: Dims) -> Hashable:
        return tuple(dim if isinstance(dim, Index) else (of_read(dim.read), dim.extent, dim.rule) for dim in dims)

    def of_read(read: Read) -> Hashable:
        number = numbers.setdefault(id(read.value), len(numbers))
        return (number, read.value.type, of_dims(read.dims), repr(read.fill))

    return (
        nest.iterators,
        tuple(of_read(read) for read in nest.reads),
        nest.body,
        of_dims(nest.write),
        (numbers.get(id(nest.result)), nest.result.type, nest.parts, nest.continues),
        (nest.combiner, repr(nest.initial), nest.accumulate),
        nest.finish,
        tuple(of_read(read) for read in nest.finish_reads),
    )
