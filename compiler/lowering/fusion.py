"""Which nests become one kernel: scalars as immediates, producers inlined, elementwise consumers as finish.

Everything is read off the nests; no operator is named. A nest that disappears into another moves to that one's place in
the order, which is later, so its operands are still there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from compiler.ir import Value, known_value
from compiler.lowering.nests import Nest, Read, append_finish, inline, is_identity, rewrite_expression
from compiler.ops.work import Apply, Arg, Expression, Index, IteratorKind, Literal, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_MOST_READS: Final = 8
"""Most operands of one kernel: each needs tiles of its own in SRAM."""

_MOST_NODES: Final = 96
"""Largest scalar body of one kernel."""


def expression_size(expression: Expression) -> int:
    """Number of nodes."""
    if isinstance(expression, Apply):
        return 1 + sum(expression_size(operand) for operand in expression.operands)
    return 1


def with_immediates(nest: Nest) -> Nest:
    """Constants of one element become literals of the body: they need no memory."""
    body, reads = _immediate(nest.body, nest.reads, 0)
    if nest.finish is None:
        return replace(nest, body=body, reads=reads)
    finish, finish_reads = _immediate(nest.finish, nest.finish_reads, 1)
    return replace(nest, body=body, reads=reads, finish=finish, finish_reads=finish_reads)


def _immediate(expression: Expression, reads: Sequence[Read], first: int) -> tuple[Expression, tuple[Read, ...]]:
    arguments: dict[int, Expression] = {}
    kept: list[Read] = []
    for number, read in enumerate(reads, first):
        literal = _literal(read)
        if literal is None:
            arguments[number] = Arg(len(kept) + first, read.value.tensor.element)
            kept.append(read)
        else:
            arguments[number] = literal
    rewritten = rewrite_expression(expression, arguments, {})
    assert rewritten is not None
    return rewritten, tuple(kept)


def _literal(read: Read) -> Literal | None:
    if not read.is_affine or read.fill is not None:
        return None
    data = known_value(read.value)
    if data is None or data.size != 1:
        return None
    element = read.value.tensor.element
    if not (element.is_float or element.is_integer or data.dtype == bool):
        return None
    item = data.reshape(()).item()
    return Literal(item if isinstance(item, (bool, int, float)) else float(item), element)


def fuse(
    nests: Sequence[Nest], kept: Iterable[Value], is_contraction: Callable[[Nest], bool], most_inputs: int
) -> list[Nest]:
    """Join nests into kernels. ``kept`` are values needed outside the sequence; they are always written.

    ``is_contraction`` tells the nests that the matrix array takes; only movement is inlined into those. ``most_inputs``
    is how many operands a vector instruction of the target reads.
    """
    return _Fusion(nests, frozenset(kept), is_contraction, most_inputs).run()


class _Fusion:
    def __init__(
        self, nests: Sequence[Nest], kept: frozenset[Value], is_contraction: Callable[[Nest], bool], most_inputs: int
    ) -> None:
        self._nests: dict[int, Nest] = dict(enumerate(nests))
        self._kept = kept
        self._is_contraction = is_contraction
        self._most_inputs = most_inputs
        self._readers: dict[Value, set[int]] = {}
        self._producers: dict[Value, int] = {}
        for number, nest in self._nests.items():
            self._producers[nest.result] = number
            self._register(number, nest)

    def _register(self, number: int, nest: Nest) -> None:
        for value in _values(nest):
            self._readers.setdefault(value, set()).add(number)

    def _unregister(self, number: int, nest: Nest) -> None:
        for value in _values(nest):
            self._readers[value].discard(number)

    def run(self) -> list[Nest]:
        for number in list(self._nests):
            while self._inline_one(number):
                pass
        for number in sorted(self._nests):
            if number in self._nests:
                self._finish(number)
        return [self._nests[number] for number in sorted(self._nests)]

    def _only_reader(self, value: Value, number: int) -> bool:
        return value not in self._kept and self._readers.get(value) == {number}

    def _inline_one(self, number: int) -> bool:
        consumer = self._nests[number]
        for read in consumer.all_reads:
            producer_number = self._producers.get(read.value)
            producer = None if producer_number is None else self._nests.get(producer_number)
            if producer_number is None or producer is None or not self._only_reader(read.value, number):
                continue
            if not self._may_inline(producer, consumer):
                continue
            joined = inline(producer, consumer)
            if joined is None or not self._is_small(joined):
                continue
            self._replace(producer_number, producer, number, consumer, joined)
            return True
        return False

    def _replace(self, gone: int, producer: Nest, place: int, consumer: Nest, joined: Nest) -> None:
        self._unregister(gone, producer)
        self._unregister(place, consumer)
        self._register(place, joined)
        del self._nests[gone]
        self._nests[place] = joined
        self._producers[joined.result] = place

    def _may_inline(self, producer: Nest, consumer: Nest) -> bool:
        if producer.combiner is not None or producer.parts > 1 or not is_identity(producer.write, producer.extents):
            return False
        moves = producer.moves_only
        affine = all(read.is_affine for read in producer.reads)
        if not (moves and affine) and (self._is_contraction(consumer) or consumer.points > producer.points):
            return False
        if _in_lookup(consumer, producer.result):
            return False
        permutes = moves and affine and _is_permutation(producer)
        return all(read.fill is None or permutes for read in consumer.all_reads if read.value is producer.result) and (
            not _has_window(consumer) or moves
        )

    def _finish(self, number: int) -> None:
        while True:
            anchor = self._nests[number]
            readers = self._readers.get(anchor.result, set())
            if anchor.combiner is None or anchor.is_scan or anchor.parts > 1 or anchor.result in self._kept:
                return
            if len(readers) != 1:
                return
            (reader,) = readers
            consumer = self._nests[reader]
            if not _finishes(anchor, consumer):
                return
            joined = append_finish(anchor, consumer)
            if joined is None or not self._is_small(joined):
                return
            self._replace(number, anchor, reader, consumer, joined)
            number = reader

    def _is_small(self, nest: Nest) -> bool:
        size = expression_size(nest.body) + (expression_size(nest.finish) if nest.finish is not None else 0)
        # A finish reads the accumulators beside its own operands.
        inputs = max(len(nest.reads), 1 + len(nest.finish_reads))
        return len(nest.all_reads) <= _MOST_READS and inputs <= self._most_inputs and size <= _MOST_NODES


def _values(nest: Nest) -> set[Value]:
    """The values that a nest reads, index tables included."""
    pending = [*nest.all_reads, *(dim.read for dim in nest.write if not isinstance(dim, Index))]
    found: set[Value] = set()
    while pending:
        read = pending.pop()
        found.add(read.value)
        pending.extend(dim.read for dim in read.dims if not isinstance(dim, Index))
    return found


def _in_lookup(consumer: Nest, value: Value) -> bool:
    """Whether the value serves as an index table; those stay tensors."""
    tables = [
        dim.read.value
        for dims in (*(read.dims for read in consumer.all_reads), consumer.write)
        for dim in dims
        if not isinstance(dim, Index)
    ]
    return value in tables


def _has_window(nest: Nest) -> bool:
    return any(iterator.kind is IteratorKind.WINDOW for iterator in nest.iterators)


def _is_permutation(nest: Nest) -> bool:
    read = nest.reads[nest.body.index] if isinstance(nest.body, Arg) else None
    if read is None or read.fill is not None:
        return False
    used = [dim.terms for dim in read.dims if isinstance(dim, Index) and dim.offset == 0]
    return sorted(used) == [((loop, 1),) for loop in range(len(nest.iterators))]


def _finishes(anchor: Nest, consumer: Nest) -> bool:
    if consumer.combiner is not None or consumer.parts > 1 or consumer.continues:
        return False
    if _in_lookup(consumer, anchor.result) or consumer.extents != anchor.result.tensor.shape:
        return False
    if _has_position(consumer.body):
        return False
    reads = [read for read in consumer.reads if read.value is anchor.result]
    return all(is_identity(read.dims, consumer.extents) and read.fill is None for read in reads) and all(
        isinstance(dim, Index) for dim in (*anchor.write, *consumer.write)
    )


def _has_position(expression: Expression) -> bool:
    if isinstance(expression, Apply):
        return any(_has_position(operand) for operand in expression.operands)
    return isinstance(expression, Position)
