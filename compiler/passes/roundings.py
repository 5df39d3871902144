"""How many roundings stand between a graph's inputs and an element of its outputs: what another order may change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from compiler.errors import OpatlasError
from compiler.ir import Builder, Graph, TensorType, clone_graph, known_value
from compiler.ops.control import Loop
from compiler.ops.registry import Composite, Operator
from compiler.ops.work import Arg, Combiner, IteratorKind

if TYPE_CHECKING:
    from compiler.ir import Op, Value
    from compiler.ops.work import Loops

_SUMS: Final = (Combiner.ADD, Combiner.MUL)


def roundings(graph: Graph) -> int:
    """The most roundings that one element of an output goes through, along the operations that it depends on.

    A sum of K terms counts K, other arithmetic 1, movement nothing; a composite counts as what it decomposes to, and
    the body of a loop as often as it is known to run. Where sizes are symbolic, every known dim may be summed over.
    Each rounding is by half a unit in the last place of what it rounds (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1), so that two orders of the same computation differ by so many units at most.
    """
    copy = clone_graph(graph)
    return _Count({}).block(copy)


class _Count:
    def __init__(self, found: dict[Value, int]) -> None:
        self._found = found

    def block(self, graph: Graph) -> int:
        for op in list(graph.ops):
            self._count(op)
        return max((self._found.get(value, 0) for value in graph.outputs), default=0)

    def _count(self, op: Op) -> None:
        definition = op.definition
        if definition.holds_constant or definition.terminator:
            return
        if isinstance(definition, Composite) and self._count_decomposed(op, definition):
            return
        before = max((self._found.get(value, 0) for value in op.operands if value is not None), default=0)
        own = sum(self.block(region) for region in op.regions) * _trips(op) if op.regions else _terms(op)
        self._found.update(dict.fromkeys(op.results, before + own))

    def _count_decomposed(self, op: Op, definition: Composite) -> bool:
        """Count what a composite is made of; False where its decomposition refuses it."""
        assert op.graph is not None
        previous = op.previous
        try:
            values = definition.decompose(op, Builder(op.graph, op, op.location))
        except OpatlasError:
            return False
        made = op.graph.first if previous is None else previous.next
        while made is not None and made is not op:
            self._count(made)
            made = made.next
        self._found.update(
            {result: self._found.get(value, 0) for result, value in zip(op.results, values, strict=True)}
        )
        return True


def _trips(op: Op) -> int:
    """How often the regions run, 1 where that is not known."""
    count = op.operands[0] if isinstance(op.definition, Loop) else None
    known = None if count is None else known_value(count)
    return 1 if known is None else max(int(known.reshape(-1)[0]), 1)


def _terms(op: Op) -> int:
    types = tuple(result.type for result in op.results)
    values = [value.type for value in op.operands if value is not None]
    if not all(isinstance(type_, TensorType) and type_.is_static for type_ in (*types, *values)):
        known = (dim for type_ in values if isinstance(type_, TensorType) for dim in type_.dims or ())
        return math.prod(dim for dim in known if isinstance(dim, int))
    definition = op.definition
    work = definition.work(op.call(), types) if isinstance(definition, Operator) else None
    return 1 if work is None else sum(_of_nest(nest) for nest in work)


def _of_nest(nest: Loops) -> int:
    if nest.combiner is None:
        return 0 if isinstance(nest.body, Arg) else 1
    if nest.combiner not in _SUMS:
        return 0
    return math.prod(it.extent for it in nest.iterators if it.kind is not IteratorKind.PARALLEL)
