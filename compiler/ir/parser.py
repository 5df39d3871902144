"""Reads the text that :mod:`compiler.ir.printer` writes; any layout and ``//`` comments are fine.

A hand-written recursive parser whose patterns take an operation's head and signature each in one match: combinators and
generated parsers measured tens of times slower on large graphs. The graph is built as written; checking it is the
verifier's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from compiler.errors import OpatlasError
from compiler.ir.attribute_parser import parse_attribute, parse_flags, parse_key, parse_location
from compiler.ir.definition import AttributeValue, Definition
from compiler.ir.graph import Graph, Op, Value
from compiler.ir.lexer import NAME, SPACE, STRING, Cursor
from compiler.ir.literal import name_of, unquoted
from compiler.ir.printer import OUTPUT_NAMES, SEGMENTS, UNNAMED_BLOCK
from compiler.ir.type_parser import parse_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compiler.ir.constant import Array
    from compiler.ir.types import Type

_VALUES: Final = rf"%{NAME}(?:\s*,\s*%{NAME})*+"
_HEAD: Final = re.compile(rf"{SPACE}(?:({_VALUES}){SPACE}={SPACE})?({STRING}){SPACE}\({SPACE}({_VALUES})?{SPACE}\)")
_VALUE: Final = re.compile(rf"{SPACE}%({NAME})")
_LABEL: Final = re.compile(rf"{SPACE}\^({NAME})")
_TYPES: Final = rf'(?:[^()"\n]|{STRING})*'
_SIGNATURE: Final = re.compile(rf" : (\({_TYPES}\) -> (?:\({_TYPES}\)|{_TYPES}))(?= loc\(|\n)")

_Signature = tuple[list["Type"], list["Type"]]


def parse_graph(text: str, lookup: Callable[[str], Definition], resources: Mapping[str, Array] | None = None) -> Graph:
    """The graph that ``text`` shows.

    ``lookup`` gives the definition of a name, ``resources`` the data of the constants that print as ``dense_resource``.

    Raises InvalidText: line:column, what was found, what was expected.
    """
    return _Parser(text, lookup, resources or {}).parse()


class _Parser:
    """One parse: the values in scope and what was already read of texts that repeat."""

    def __init__(self, text: str, lookup: Callable[[str], Definition], resources: Mapping[str, Array]) -> None:
        self.cursor = Cursor(text)
        self.lookup = lookup
        self.resources = resources
        self.values: dict[str, Value] = {}
        self.signatures: dict[str, _Signature] = {}
        self.definitions: dict[str, Definition] = {}

    def parse(self) -> Graph:
        cursor = self.cursor
        cursor.expect('"graph"', " at the start")
        cursor.expect("(")
        cursor.expect(")")
        cursor.expect("(")
        cursor.expect("{")
        graph = self.block()
        for symbol in (")", ":", "(", ")", "->", "(", ")"):
            cursor.expect(symbol, " at the end of the graph")
        cursor.skip()
        if cursor.position != len(cursor.text):
            cursor.fail("the end of the text")
        return graph

    def block(self) -> Graph:
        """A block up to and including its closing brace."""
        cursor = self.cursor
        cursor.enter()
        label = cursor.match(_LABEL)
        if label is None:
            cursor.fail("a block: '^' and its name")
        graph = Graph("" if label[1] == UNNAMED_BLOCK else name_of(label[1]))
        defined: list[str] = []
        if cursor.take("("):
            self.arguments(graph, defined)
        cursor.expect(":", " after the block's name and arguments")
        while not cursor.take("}"):
            self.op(graph, defined)
        for name in defined:
            del self.values[name]
        cursor.leave()
        return graph

    def arguments(self, graph: Graph, defined: list[str]) -> None:
        cursor = self.cursor
        while not cursor.take(")"):
            if graph.inputs:
                cursor.expect(",", " or ')' after a block argument")
            start = cursor.position
            found = cursor.match(_VALUE)
            if found is None:
                cursor.fail("a block argument: '%' and its name")
            cursor.expect(":", " after a block argument")
            self.define(found[1], graph.add_input(parse_type(cursor)), defined, start)

    def define(self, name: str, value: Value, defined: list[str], start: int) -> None:
        if name in self.values:
            self.cursor.fail("a name that is not taken", start, f"%{name}, defined before")
        if not name.isdigit():
            value.name = name_of(name)
        self.values[name] = value
        defined.append(name)

    def op(self, graph: Graph, defined: list[str]) -> None:
        cursor = self.cursor
        head = cursor.match(_HEAD)
        if head is None:
            self.fail_head()
        names, quoted_name, used = head.groups()
        definition = self.definitions.get(quoted_name) or self.find(quoted_name, head.start(2))
        operands = self.use(used, head.start(3)) if used else []
        regions: list[Graph] = []
        attributes: dict[str, AttributeValue] = {}
        flags = None
        if not cursor.text.startswith(" : ", cursor.position):
            regions = self.regions()
            if cursor.take("{"):
                flags = self.attributes(attributes)
        taken, given = self.signature()
        location = parse_location(cursor)
        self.check_operands(operands, taken, head)
        op = Op(
            definition,
            operands if flags is None else self.spread(operands, flags),
            given,
            attributes,
            regions,
            location,
        )
        output_names = attributes.get(OUTPUT_NAMES)
        if definition.terminator and isinstance(output_names, tuple):
            graph.output_names = tuple(str(name) for name in output_names)
            del op.attributes[OUTPUT_NAMES]
        graph.insert(op, None)
        self.results(op, names, defined, head)

    def results(self, op: Op, names: str | None, defined: list[str], head: re.Match[str]) -> None:
        given = [name.strip()[1:] for name in names.split(",")] if names else []
        if len(given) != len(op.results):
            self.cursor.fail(f"{len(op.results)} results, as the signature has", head.start(), f"{len(given)} results")
        for name, value in zip(given, op.results, strict=True):
            self.define(name, value, defined, head.start())

    def use(self, used: str, start: int) -> list[Value | None]:
        found: list[Value | None] = []
        for name in used.split(","):
            value = self.values.get(name.strip()[1:])
            if value is None:
                self.cursor.fail("a value defined before", start, name.strip())
            found.append(value)
        return found

    def find(self, quoted_name: str, start: int) -> Definition:
        try:
            found = self.lookup(unquoted(quoted_name[1:-1]))
        except OpatlasError as error:
            self.cursor.fail("the name of an operator", start, error.message)
        self.definitions[quoted_name] = found
        return found

    def regions(self) -> list[Graph]:
        cursor = self.cursor
        found: list[Graph] = []
        if cursor.take("("):
            while not cursor.take(")"):
                if found:
                    cursor.expect(",", " or ')' after a region")
                cursor.expect("{", " before a region")
                found.append(self.block())
        return found

    def attributes(self, into: dict[str, AttributeValue]) -> list[bool] | None:
        """Read attributes up to the closing brace; returns which operands are given, where that is said."""
        cursor = self.cursor
        flags = None
        first = True
        while not cursor.take("}"):
            if not first:
                cursor.expect(",", " or '}' after an attribute")
            first = False
            start = cursor.position
            key = parse_key(cursor)
            cursor.expect("=", " after the attribute's name")
            if key in into:
                cursor.fail("each attribute once", start, f"attribute '{key}' again")
            if key == SEGMENTS:
                flags = parse_flags(cursor)
            else:
                into[key] = parse_attribute(cursor, self.resources)
        return flags

    def spread(self, operands: list[Value | None], flags: list[bool]) -> list[Value | None]:
        if sum(flags) != len(operands):
            self.cursor.fail(f"{sum(flags)} operands, as {SEGMENTS} has", None, f"{len(operands)} operands")
        given = iter(operands)
        return [next(given) if flag else None for flag in flags]

    def check_operands(self, operands: list[Value | None], taken: list[Type], head: re.Match[str]) -> None:
        if len(operands) != len(taken):
            self.cursor.fail(f"{len(taken)} operands, as the signature has", head.start(), f"{len(operands)} operands")
        for operand, type_ in zip(operands, taken, strict=True):
            if operand is not None and operand.type is not type_:
                self.cursor.fail(f"an operand of type {type_}", head.start(), f"a value of type {operand.type}")

    def signature(self) -> _Signature:
        cursor = self.cursor
        candidate = _SIGNATURE.match(cursor.text, cursor.position)
        if candidate is not None:
            known = self.signatures.get(candidate[1])
            if known is not None:
                cursor.position = candidate.end()
                return known
        cursor.expect(":", " and the types of operands and results")
        taken = self.types()
        cursor.expect("->", " after the types of the operands")
        given = self.types() if cursor.sees("(") else [parse_type(cursor)]
        if candidate is not None and candidate.end() == cursor.position:
            self.signatures[candidate[1]] = taken, given
        return taken, given

    def types(self) -> list[Type]:
        cursor = self.cursor
        cursor.expect("(")
        found: list[Type] = []
        while not cursor.take(")"):
            if found:
                cursor.expect(",", " or ')' after a type")
            found.append(parse_type(cursor))
        return found

    def fail_head(self) -> NoReturn:
        """Step through an operation's head to the place where it goes wrong. Raises InvalidText."""
        cursor = self.cursor
        if cursor.sees("%"):
            while True:
                if cursor.match(_VALUE) is None:
                    cursor.fail("a result: '%' and its name")
                if not cursor.take(","):
                    break
            cursor.expect("=", " after the results")
        cursor.string("an operation: its name")
        cursor.expect("(", " before the operands")
        while cursor.match(_VALUE) is not None and cursor.take(","):
            pass
        cursor.expect(")", " after the operands")
        cursor.fail("an operation")
