"""Names of values: lexical scopes of graphs, and diagnoses for names that nothing defines."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from compiler.errors import InvalidModel
from compiler.frontends.onnx.attributes import graph_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx import GraphProto, NodeProto

    from compiler.ir import Value


class Scope:
    """Names of one graph, inside those of the graphs around it.

    Inputs and weights of a subgraph may hide outer names; results of nodes may not (single assignment). None stands
    for an optional input that the caller of a function omits.
    """

    __slots__ = ("_names", "_parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self._names: dict[str, Value | None] = {}
        self._parent = parent

    def has(self, name: str) -> bool:
        """Whether the name is visible here."""
        return name in self._names or (self._parent is not None and self._parent.has(name))

    def get(self, name: str) -> Value | None:
        """The value of a name that is visible."""
        if name in self._names:
            return self._names[name]
        assert self._parent is not None
        return self._parent.get(name)

    def define(self, name: str, value: Value | None, what: str) -> None:
        """Give a name to an input or a weight. Raises InvalidModel where this graph has it already."""
        if name in self._names:
            raise InvalidModel(f"{what} defines value '{name}', which is defined before")
        self._names[name] = value

    def rebind(self, name: str, value: Value) -> None:
        """Let a name of this graph stand for another value."""
        self._names[name] = value

    def define_result(self, name: str, value: Value, what: str) -> None:
        """Give a name to a node's output. Raises InvalidModel where the name is visible already."""
        if self.has(name):
            raise InvalidModel(f"{what} defines value '{name}', which is defined before")
        self._names[name] = value


def missing_value(name: str, nodes: Sequence[NodeProto], what: str) -> InvalidModel:
    """Why a name is not visible at the node ``what``: a cycle, a wrong order of nodes, or no definition at all."""
    makers = {output: other for other in nodes for output in other.output if output}
    if name not in makers:
        return InvalidModel(f"{what} uses value '{name}', which nothing defines")
    sorter: TopologicalSorter[int] = TopologicalSorter()
    positions = {id(other): position for position, other in enumerate(nodes)}
    for position, other in enumerate(nodes):
        sources = {positions[id(makers[used])] for used in used_names(other) if used in makers}
        sorter.add(position, *sources)
    try:
        sorter.prepare()
    except CycleError as error:
        shown = " -> ".join(f"'{node_label(nodes[position])}'" for position in error.args[1])
        return InvalidModel(f"the graph has a cycle: {shown}")
    return InvalidModel(f"{what} uses value '{name}' before node '{node_label(makers[name])}' defines it")


def node_label(node: NodeProto) -> str:
    """The node's name, else that of its first output, else its operator."""
    return node.name or next(filter(None, node.output), "") or node.op_type


def used_names(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, those that its subgraphs capture included."""
    yield from filter(None, node.input)
    for graph in graph_attributes(node.attribute):
        yield from captured_names(graph)


def captured_names(graph: GraphProto) -> Iterator[str]:
    """The names that a subgraph uses and does not define itself."""
    own = {value.name for value in graph.input}
    own.update(tensor.name for tensor in graph.initializer)
    own.update(tensor.values.name for tensor in graph.sparse_initializer)
    own.update(output for node in graph.node for output in node.output)
    for node in graph.node:
        yield from (name for name in used_names(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)
