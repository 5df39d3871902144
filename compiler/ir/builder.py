"""Builds operations at an insertion point, with inferred result types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import OpatlasError
from compiler.ir.builtin import CONSTANT, RETURN
from compiler.ir.constant import Array, Constant
from compiler.ir.definition import Attributes, AttributeValue, Call, Definition
from compiler.ir.graph import Graph, Op, Value, known_value
from compiler.ir.location import UNKNOWN_LOCATION, Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir.types import Type


class Builder:
    """Inserts operations into ``graph``: before ``before``, or at the end.

    ``location`` is given to every operation built. Operands and attributes are checked against the definition's
    signature; refusals name the location.

    Calls without attributes and regions are inferred once for equal operand types and constants: inference is a pure
    function of the call, and large graphs repeat few calls many times.
    """

    __slots__ = ("_inferred", "before", "graph", "location")

    def __init__(self, graph: Graph, before: Op | None = None, location: Location = UNKNOWN_LOCATION) -> None:
        self.graph = graph
        self.before = before
        self.location = location
        self._inferred: dict[tuple[object, ...], tuple[Attributes, tuple[Type, ...]]] = {}

    def op(
        self,
        definition: Definition | type[Definition],
        operands: Sequence[Value | None] = (),
        regions: Sequence[Graph] = (),
        **attributes: AttributeValue,
    ) -> Op:
        """Build, insert and return an operation. Raises TypeMismatch, InvalidAttribute."""
        if not isinstance(definition, Definition):
            definition = definition.instance()
        if attributes or regions:
            completed, types = self._infer(definition, operands, regions, attributes)
        else:
            key = (definition, *[None if operand is None else _known(operand) for operand in operands])
            found = self._inferred.get(key)
            if found is None:
                found = self._inferred[key] = self._infer(definition, operands, regions, attributes)
            completed, types = found
        return self.graph.insert(Op(definition, operands, types, completed, regions, self.location), self.before)

    def _infer(
        self,
        definition: Definition,
        operands: Sequence[Value | None],
        regions: Sequence[Graph],
        attributes: Attributes,
    ) -> tuple[Attributes, tuple[Type, ...]]:
        completed = definition.complete(attributes)
        call = Call(
            [None if operand is None else operand.type for operand in operands],
            completed,
            [None if operand is None else known_value(operand) for operand in operands],
            regions,
        )
        try:
            definition.check(call)
            return completed, definition.infer(call)
        except OpatlasError as error:
            error.args = (f"{error.message} (building '{definition.name}' at {self.location})",)
            error.message = error.args[0]
            raise

    def __call__(
        self, definition: Definition | type[Definition], *operands: Value | None, **attributes: AttributeValue
    ) -> Value:
        """Build an operation with one result and return that result."""
        return self.op(definition, operands, (), **attributes).result

    def constant(self, data: Array | Constant) -> Value:
        """A constant operation's result."""
        value = data if isinstance(data, Constant) else Constant.of(data)
        return self.op(CONSTANT, value=value).result

    def output(self, *values: Value) -> Op:
        """End the graph: these values are its outputs."""
        return self.op(RETURN, values)


def _known(operand: Value) -> Op | Type:
    """What inference can know of an operand: the constant that defines it, else its type."""
    op = operand.op
    return op if op is not None and op.definition.holds_constant else operand.type
