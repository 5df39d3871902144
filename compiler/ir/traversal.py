"""Copies of graphs, and what regions use of the graphs around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ir.graph import Graph, Op

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compiler.ir.graph import Value


def clone_graph(graph: Graph, values: dict[Value, Value] | None = None) -> Graph:
    """A copy of the graph with its regions. Constants and locations are shared, not copied.

    ``values`` receives the copy of every value; values that it already maps (captured ones) are replaced on the way,
    others from outside stay as they are.
    """
    mapping: dict[Value, Value] = {} if values is None else values
    copy = Graph(graph.name)
    copy.output_names = graph.output_names
    for value in graph.inputs:
        mapping[value] = copy.add_input(value.type, value.name)
    for op in graph.ops:
        copy.append(clone_op(op, mapping))
    return copy


def clone_op(op: Op, values: dict[Value, Value]) -> Op:
    """A detached copy of the operation on the operands that ``values`` maps to; its results are entered there."""
    regions = [clone_graph(region, values) for region in op.regions]
    operands = [None if operand is None else values.get(operand, operand) for operand in op.operands]
    copy = Op(op.definition, operands, [result.type for result in op.results], op.attributes, regions, op.location)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name = old.name
        values[old] = new
    return copy


def captured(op: Op) -> tuple[Value, ...]:
    """The values from outside that the operation's regions use, in order of first use."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}
    for region in op.regions:
        _collect(region, inside, found)
    return tuple(found)


def _collect(region: Graph, inside: set[Value], found: dict[Value, None]) -> None:
    inside.update(region.inputs)
    for op in region.ops:
        for operand in op.operands:
            if operand is not None and operand not in inside:
                found[operand] = None
        for inner in op.regions:
            _collect(inner, inside, found)
        inside.update(op.results)


def operands_with_captures(op: Op) -> Iterable[Value]:
    """Every value that the operation reads: its operands that are given, and what its regions capture."""
    yield from (operand for operand in op.operands if operand is not None)
    if op.regions:
        yield from captured(op)
