"""Prints a graph in MLIR's generic syntax; :mod:`compiler.ir.parser` reads it back to the bit.

``%y = "add"(%x, %c) {attributes} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32> loc("node"("Operator"("file")))``

Names of values and graphs are kept as identifiers (``$XX`` for characters that MLIR does not allow there, ``$_n`` after
the n-th repetition); values without a name are numbered. Omitted optional operands show in ``operandSegmentSizes``. A
constant of more than 16 elements prints as ``dense_resource<...>`` with its digest; its data stays where it is and is
handed to the parser by :func:`resources`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.errors import InvalidGraph
from compiler.ir.constant import Constant
from compiler.ir.literal import dense_text, float_text, identifier
from compiler.ir.types import ElementType, Type, quoted, type_text

if TYPE_CHECKING:
    from compiler.ir.constant import Array
    from compiler.ir.definition import AttributeValue
    from compiler.ir.graph import Graph, Op, Value
    from compiler.ir.location import Location, Node

LARGEST_INLINE: Final = 16
"""Constants of more elements print as their digest."""

SEGMENTS: Final = "operandSegmentSizes"
OUTPUT_NAMES: Final = "output_names"
UNNAMED_BLOCK: Final = "bb0"


def print_graph(graph: Graph) -> str:
    """The graph as text. Raises InvalidGraph for an attribute that has no text form."""
    return _Printer().print(graph)


def resources(graph: Graph) -> dict[str, Array]:
    """The data of the constants that print only as a digest: what the parser needs beside the text."""
    found = {}
    for constant in graph.constants():
        if not _is_inline(constant):
            found[resource_key(constant)] = constant.array
    return found


def resource_key(constant: Constant) -> str:
    """Name of a constant's data beside the text: its digest."""
    return f"blob_{constant.digest.hex()}"


def _is_inline(constant: Constant) -> bool:
    return constant.is_abstract or constant.array.size <= LARGEST_INLINE


def constant_text(constant: Constant) -> str:
    """The constant as an attribute."""
    type_ = type_text(constant.type)
    if constant.is_abstract:
        return f"#ir.abstract<{constant.seed}> : {type_}"
    if not _is_inline(constant):
        return f"dense_resource<{resource_key(constant)}> : {type_}"
    return f"dense<{dense_text(constant.array, constant.type.element)}> : {type_}"


def attribute_text(value: AttributeValue) -> str:
    """The attribute in MLIR's notation. Raises InvalidGraph where it has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        shown = float_text(float(value))
        return f"{shown} : f64" if shown.startswith("0x") else shown
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, ElementType):
        return value.name
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, Constant):
        return constant_text(value)
    if isinstance(value, tuple):
        return f"[{', '.join([attribute_text(item) for item in value])}]"
    msg = f"attribute value {value!r} of {type(value).__name__} has no text form"
    raise InvalidGraph(msg)


def _node_text(node: Node) -> str:
    if node.source:
        return f"{quoted(node.name)}({quoted(node.operator)}({quoted(node.source)}))"
    return f"{quoted(node.name)}({quoted(node.operator)})" if node.operator else quoted(node.name)


def location_text(location: Location) -> str:
    """The location as MLIR's name location, or fused when it stands for several nodes."""
    nodes = location.nodes
    if len(nodes) == 1:
        return f"loc({_node_text(nodes[0])})"
    return f"loc(fused[{', '.join([_node_text(node) for node in nodes])}])" if nodes else "loc(unknown)"


class _Printer:
    """Text pieces of one graph, with the names given so far."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.copies: dict[str, int] = {}
        self.types: dict[Type, str] = {}
        self.unnamed = 0
        self.lines: list[str] = []

    def print(self, graph: Graph) -> str:
        self.lines.append('"graph"() ({')
        self.block(graph, "")
        self.lines.append("}) : () -> ()\n")
        return "\n".join(self.lines)

    def block(self, graph: Graph, indent: str) -> None:
        label = identifier(graph.name)
        label = "$62b0" if label == UNNAMED_BLOCK else label or UNNAMED_BLOCK
        arguments = ", ".join([f"{self.define(value)}: {self.type(value.type)}" for value in graph.inputs])
        self.lines.append(f"{indent}^{label}({arguments}):" if arguments else f"{indent}^{label}:")
        inner = indent + "  "
        for op in graph.ops:
            self.op(op, inner)

    def define(self, value: Value) -> str:
        """Name a value."""
        if value.name:
            name = identifier(value.name)
            count = self.copies.get(name)
            if count is not None:
                self.copies[name] = count + 1
                name = f"{name}$_{count}"
            else:
                self.copies[name] = 1
            shown = "%" + name
        else:
            shown = f"%{self.unnamed}"
            self.unnamed += 1
        self.names[value] = shown
        return shown

    def type(self, type_: Type) -> str:
        found = self.types.get(type_)
        if found is None:
            found = self.types[type_] = type_text(type_)
        return found

    def attributes(self, op: Op) -> str:
        entries = [f"{_key_text(name)} = {attribute_text(value)}" for name, value in op.attributes.items()]
        if None in op.operands:
            flags = ", ".join(["0" if operand is None else "1" for operand in op.operands])
            entries.append(f"{SEGMENTS} = array<i32: {flags}>")
        if op.definition.terminator and op.graph is not None and op.graph.output_names:
            entries.append(f"{OUTPUT_NAMES} = {attribute_text(op.graph.output_names)}")
        return f" {{{', '.join(entries)}}}" if entries else ""

    def op(self, op: Op, indent: str) -> None:
        operands = [operand for operand in op.operands if operand is not None]
        used = ", ".join([self.names.get(operand) or self.define(operand) for operand in operands])
        start = f'{indent}"{op.definition.name}"({used})'
        if op.regions:
            self.lines.append(f"{indent}{self.results(op)}{start.lstrip()} ({{")
            for index, region in enumerate(op.regions):
                if index:
                    self.lines.append(f"{indent}}}, {{")
                self.block(region, indent)
            start = f"{indent}}})"
        elif op.results:
            start = f"{indent}{self.results(op)}{start[len(indent) :]}"
        attributes = self.attributes(op)
        taken = ", ".join([self.type(operand.type) for operand in operands])
        given = ", ".join([self.type(result.type) for result in op.results])
        given = given if len(op.results) == 1 else f"({given})"
        location = f" {location_text(op.location)}" if op.location.nodes else ""
        self.lines.append(f"{start}{attributes} : ({taken}) -> {given}{location}")

    def results(self, op: Op) -> str:
        return f"{', '.join([self.define(result) for result in op.results])} = " if op.results else ""


def _key_text(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else quoted(name)
