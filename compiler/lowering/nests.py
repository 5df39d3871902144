"""Loop nests bound to the values of a graph, and how one nest is composed into another.

A nest is an operator's :class:`~compiler.ops.work.Loops` with values in place of operand numbers. A producer without a
combiner can be *inlined* into a consumer: the consumer's index expressions replace the producer's iterators. A consumer
without a combiner can *finish* a reduction: it is then computed on each tile while that is still in SRAM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from compiler.ir import I64, Value
from compiler.ops.work import (
    Access,
    Apply,
    Arg,
    Combiner,
    Expression,
    Index,
    Indirect,
    Iterator,
    IteratorKind,
    Literal,
    Loops,
    OutOfRange,
    Position,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import ElementType, Op

Scalar: TypeAlias = "bool | int | float | complex"

ARGUMENT_COMBINERS = frozenset({Combiner.ARGMAX, Combiner.ARGMIN, Combiner.ARGMAX_LAST, Combiner.ARGMIN_LAST})
"""Combiners whose result is a position, an int64, and whose reduction cannot be cut into parts."""


@dataclass(frozen=True, slots=True)
class LookupIndex:
    """A data-dependent index of one dim: the element that ``read`` gives."""

    read: Read
    extent: int
    rule: OutOfRange


Dims: TypeAlias = tuple["Index | LookupIndex", ...]


@dataclass(frozen=True, slots=True)
class Read:
    """One element of ``value`` for each point of a nest. ``fill`` is read where an affine index lies outside."""

    value: Value
    dims: Dims
    fill: Scalar | None = None

    @property
    def is_affine(self) -> bool:
        """Whether no index depends on data."""
        return all(isinstance(dim, Index) for dim in self.dims)

    def iterators(self) -> frozenset[int]:
        """The loops that the element read depends on, through index tables too."""
        found: set[int] = set()
        for dim in self.dims:
            if isinstance(dim, Index):
                found.update(iterator for iterator, coefficient in dim.terms if coefficient)
            else:
                found |= dim.read.iterators()
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over values. The last loops are the reduced (or the sequential) ones, the others parallel.

    ``finish`` turns a combined element, its Arg(0), into the element written; its Arg(i) is ``finish_reads[i - 1]``.
    Without a combiner there is no finish. ``continues`` says that an earlier part of the same operator wrote elements
    of ``result`` that this one keeps or goes on from.
    """

    iterators: tuple[Iterator, ...]
    reads: tuple[Read, ...]
    body: Expression
    result: Value
    write: Dims
    ops: tuple[Op, ...]
    combiner: Combiner | None = None
    initial: bool | int | float | None = None
    accumulate: ElementType | None = None
    finish: Expression | None = None
    finish_reads: tuple[Read, ...] = ()
    continues: bool = False
    parts: int = 1

    @property
    def extents(self) -> tuple[int, ...]:
        """Trip count a loop."""
        return tuple(iterator.extent for iterator in self.iterators)

    @property
    def points(self) -> int:
        """Number of points of the iteration space."""
        return _product(self.extents)

    @property
    def parallel(self) -> tuple[int, ...]:
        """The parallel loops."""
        return tuple(i for i, it in enumerate(self.iterators) if it.kind is IteratorKind.PARALLEL)

    @property
    def folded(self) -> tuple[int, ...]:
        """The loops that are not parallel: reduction, window, sequential."""
        return tuple(i for i, it in enumerate(self.iterators) if it.kind is not IteratorKind.PARALLEL)

    @property
    def is_scan(self) -> bool:
        """Whether a loop is sequential."""
        return any(it.kind is IteratorKind.SEQUENTIAL for it in self.iterators)

    @property
    def moves_only(self) -> bool:
        """Whether every element written is an element read, unchanged."""
        return self.combiner is None and isinstance(self.body, Arg)

    @property
    def all_reads(self) -> tuple[Read, ...]:
        """The reads of body and finish."""
        return self.reads + self.finish_reads

    @property
    def combined_element(self) -> ElementType:
        """Element type of a combined element. Only for nests with a combiner."""
        assert self.accumulate is not None
        return I64 if self.combiner in ARGUMENT_COMBINERS else self.accumulate


def _product(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def nests_of(op: Op, work: Sequence[Loops]) -> list[Nest]:
    """The nests of an operation, in order. Several parts of one result are told apart by ``continues``."""
    written: dict[int, int] = {}
    total: dict[int, int] = {}
    for loops in work:
        total[loops.write.operand] = total.get(loops.write.operand, 0) + 1
    found = []
    for loops in work:
        target = loops.write.operand
        nest = _bind(op, loops)
        earlier = written.get(target, 0)
        found.append(replace(nest, continues=earlier > 0, parts=total[target]))
        written[target] = earlier + 1
    return found


def _bind(op: Op, loops: Loops) -> Nest:
    reads = tuple(_bind_access(op, access) for access in loops.reads)
    result = op.results[loops.write.operand]
    nest = Nest(
        loops.iterators,
        reads,
        loops.body,
        result,
        _bind_dims(op, loops.write.dims),
        (op,),
        loops.combiner,
        loops.initial,
        loops.accumulate or (loops.body.element if loops.combiner else None),
    )
    nest = _folded_last(nest)
    if nest.combiner is None:
        return nest
    element = result.tensor.element
    combined = Arg(0, nest.combined_element)
    return replace(nest, finish=combined if combined.element is element else Apply("cast", (combined,), element))


def _bind_access(op: Op, access: Access) -> Read:
    return Read(op.operand(access.operand), _bind_dims(op, access.dims), access.fill)


def _bind_dims(op: Op, dims: Sequence[Index | Indirect]) -> Dims:
    return tuple(
        dim if isinstance(dim, Index) else LookupIndex(_bind_access(op, dim.index), dim.extent, dim.rule)
        for dim in dims
    )


def _folded_last(nest: Nest) -> Nest:
    """Reorder loops so that the parallel ones come first."""
    order = [*nest.parallel, *nest.folded]
    if order == list(range(len(order))):
        return nest
    places = {old: Index(((new, 1),)) for new, old in enumerate(order)}
    return replace(
        nest,
        iterators=tuple(nest.iterators[old] for old in order),
        reads=tuple(substitute_read(read, places) for read in nest.reads),
        write=_substitute_dims(nest.write, places),
        body=_must(rewrite_expression(nest.body, {}, places)),
    )


def _must(expression: Expression | None) -> Expression:
    assert expression is not None
    return expression


def substitute(index: Index, places: Mapping[int, Index]) -> Index:
    """``index`` with each iterator replaced by an affine expression of other iterators."""
    offset = index.offset
    terms: dict[int, int] = {}
    for iterator, coefficient in index.terms:
        inner = places[iterator]
        offset += coefficient * inner.offset
        for other, factor in inner.terms:
            terms[other] = terms.get(other, 0) + coefficient * factor
    return Index(tuple((iterator, factor) for iterator, factor in sorted(terms.items()) if factor), offset)


def _substitute_dims(dims: Dims, places: Mapping[int, Index]) -> Dims:
    return tuple(
        substitute(dim, places)
        if isinstance(dim, Index)
        else LookupIndex(substitute_read(dim.read, places), dim.extent, dim.rule)
        for dim in dims
    )


def substitute_read(read: Read, places: Mapping[int, Index]) -> Read:
    """The read under other iterators."""
    return Read(read.value, _substitute_dims(read.dims, places), read.fill)


def rewrite_expression(
    expression: Expression, arguments: Mapping[int, Expression], places: Mapping[int, Index]
) -> Expression | None:
    """Replace arguments (those not in the mapping stay) and iterators; None where a position would need two loops."""
    if isinstance(expression, Arg):
        return arguments.get(expression.index, expression)
    if isinstance(expression, Literal):
        return expression
    if isinstance(expression, Position):
        return _rewrite_position(expression, places)
    operands = []
    for operand in expression.operands:
        rewritten = rewrite_expression(operand, arguments, places)
        if rewritten is None:
            return None
        operands.append(rewritten)
    return Apply(expression.function, tuple(operands), expression.element)


def _rewrite_position(position: Position, places: Mapping[int, Index]) -> Expression | None:
    index = places.get(position.iterator)
    if index is None:
        return position
    offset = position.offset + position.scale * index.offset
    if not index.terms:
        return Literal(offset, position.element)
    if len(index.terms) > 1:
        return None
    iterator, coefficient = index.terms[0]
    return Position(iterator, position.element, position.scale * coefficient, offset)


def is_identity(dims: Dims, extents: Sequence[int]) -> bool:
    """Whether dim d is indexed by loop d alone, for as many loops as there are dims (a size of 1 may be left out)."""
    return len(dims) == len(extents) and all(
        isinstance(dim, Index)
        and dim.offset == 0
        and (dim.terms == ((place, 1),) or (extents[place] == 1 and not dim.terms))
        for place, dim in enumerate(dims)
    )


class _Reads:
    """Collects reads without repeats and gives each its argument number."""

    def __init__(self, first: int = 0) -> None:
        self._numbers: dict[Read, int] = {}
        self._first = first

    def number(self, read: Read) -> int:
        return self._numbers.setdefault(read, len(self._numbers) + self._first)

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(self._numbers)


def _merge(
    expression: Expression,
    reads: Sequence[Read],
    inlined: Mapping[Read, tuple[Expression, tuple[Read, ...]]],
    first: int,
) -> tuple[Expression, tuple[Read, ...]]:
    """Replace the reads that are keys of ``inlined`` by expressions over reads of their own; number all anew."""
    collected = _Reads(first)
    arguments: dict[int, Expression] = {}
    for number, read in enumerate(reads, first):
        if read in inlined:
            inner, inner_reads = inlined[read]
            renumbered: dict[int, Expression] = {
                i: Arg(collected.number(inner_read), inner_read.value.tensor.element)
                for i, inner_read in enumerate(inner_reads)
            }
            arguments[number] = _must(rewrite_expression(inner, renumbered, {}))
        else:
            arguments[number] = Arg(collected.number(read), read.value.tensor.element)
    return _must(rewrite_expression(expression, arguments, {})), collected.reads


def inline(producer: Nest, consumer: Nest) -> Nest | None:
    """The consumer with every read of the producer's result replaced by the producer's body; None where it cannot be.

    The producer has one part, no combiner and an identity write; that is the caller's to check.
    """
    inlined: dict[Read, tuple[Expression, tuple[Read, ...]]] = {}
    for read in consumer.all_reads:
        if read.value is not producer.result or read in inlined:
            continue
        places = {}
        for place, dim in enumerate(read.dims):
            if not isinstance(dim, Index):
                return None
            places[place] = dim
        body = rewrite_expression(producer.body, {}, places)
        if body is None:
            return None
        reads = tuple(substitute_read(inner, places) for inner in producer.reads)
        if read.fill is not None:
            reads = tuple(replace(inner, fill=read.fill) for inner in reads)
        inlined[read] = (body, reads)
    body, reads = _merge(consumer.body, consumer.reads, inlined, 0)
    finish, finish_reads = consumer.finish, consumer.finish_reads
    if finish is not None:
        finish, finish_reads = _merge(finish, finish_reads, inlined, 1)
    ops = producer.ops + consumer.ops
    return replace(consumer, body=body, reads=reads, finish=finish, finish_reads=finish_reads, ops=ops)


def append_finish(anchor: Nest, consumer: Nest) -> Nest | None:
    """The reduction with an elementwise consumer of its result computed on each finished element, else None.

    The consumer has one part, no combiner, the shape of the anchor's result as its loops, and reads that result by the
    identity; that is the caller's to check.
    """
    places: dict[int, Index] = {}
    for place, dim in enumerate(anchor.write):
        if not isinstance(dim, Index):
            return None
        places[place] = dim
    assert anchor.finish is not None
    collected = _Reads(1)
    for read in anchor.finish_reads:
        collected.number(read)
    arguments: dict[int, Expression] = {}
    for number, read in enumerate(consumer.reads):
        if read.value is anchor.result:
            arguments[number] = anchor.finish
        else:
            placed = substitute_read(read, places)
            arguments[number] = Arg(collected.number(placed), read.value.tensor.element)
    positioned = rewrite_expression(consumer.body, {}, places)
    finish = None if positioned is None else rewrite_expression(positioned, arguments, {})
    if finish is None:
        return None
    return replace(
        anchor,
        result=consumer.result,
        write=_substitute_dims(consumer.write, places),
        finish=finish,
        finish_reads=collected.reads,
        ops=anchor.ops + consumer.ops,
    )
