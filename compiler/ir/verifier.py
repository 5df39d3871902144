"""Checks every rule of the IR; cheap enough to run after each pass.

In order: links and terminator, dominance (a value is defined before its use, in this graph or one around it), use
lists, signatures and attribute domains, and result types, inferred again. Recorded types may be more precise than
inferred ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from compiler.errors import InvalidGraph, OpatlasError
from compiler.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

if TYPE_CHECKING:
    from compiler.ir.graph import Graph, Op, Value


def verify(graph: Graph) -> None:
    """Check the graph and its regions.

    Raises InvalidGraph, TypeMismatch or InvalidAttribute, naming the operation, its location and what is wrong.
    """
    verifier = _Verifier()
    verifier.graph(graph, None)
    if verifier.uses_recorded != verifier.uses_found:
        _fail_stale_use(graph)


def compatible(recorded: Type, inferred: Type) -> bool:
    """Whether the two types can belong to one value: nothing that both know differs."""
    if recorded is inferred:
        return True
    if isinstance(recorded, TensorType) and isinstance(inferred, TensorType):
        if recorded.element is not inferred.element or recorded.quantization != inferred.quantization:
            return False
        if recorded.dims is None or inferred.dims is None:
            return True
        return len(recorded.dims) == len(inferred.dims) and all(
            a == b or isinstance(a, str) or isinstance(b, str)
            for a, b in zip(recorded.dims, inferred.dims, strict=True)
        )
    if isinstance(recorded, SequenceType) and isinstance(inferred, SequenceType):
        return compatible(recorded.element, inferred.element)
    if isinstance(recorded, OptionalType) and isinstance(inferred, OptionalType):
        return compatible(recorded.element, inferred.element)
    if isinstance(recorded, MapType) and isinstance(inferred, MapType):
        return recorded.key is inferred.key and compatible(recorded.value, inferred.value)
    return False


def _fail(op: Op, what: str) -> NoReturn:
    given = ", ".join(f"'{result.name}'" for result in op.results if result.name)
    shown = f" giving {given}" if given else ""
    msg = f"operation '{op.name}'{shown} at {op.location}: {what}"
    raise InvalidGraph(msg)


class _Verifier:
    """What is visible so far, the uses counted from both sides, and calls already inferred."""

    def __init__(self) -> None:
        self.visible: set[Value] = set()
        self.uses_recorded = 0
        self.uses_found = 0
        self.inferred: dict[tuple[object, ...], tuple[Type, ...]] = {}

    def graph(self, graph: Graph, parent: Op | None) -> None:
        if graph.parent is not parent:
            msg = f"graph '{graph.name}' names {graph.parent} as its parent; expected {parent}"
            raise InvalidGraph(msg)
        visible = self.visible
        defined = list(graph.inputs)
        for index, value in enumerate(graph.inputs):
            if value.op is not None or value.graph is not graph or value.index != index:
                msg = f"input {index} ('{value.name}') of graph '{graph.name}' is not linked to it"
                raise InvalidGraph(msg)
            self.uses_recorded += len(value.users)
        visible.update(defined)
        previous = None
        op = graph.first
        while op is not None:
            if op.graph is not graph or op.previous is not previous:
                _fail(op, "is not linked to its graph and its predecessor")
            if previous is not None and previous.definition.terminator:
                _fail(previous, f"ends graph '{graph.name}', but '{op.name}' follows")
            self.op(op)
            results = op.results
            visible.update(results)
            defined.extend(results)
            previous, op = op, op.next
        if previous is not graph.last:
            msg = f"graph '{graph.name}': the last operation is not the end of the list"
            raise InvalidGraph(msg)
        if previous is None or not previous.definition.terminator:
            msg = f"graph '{graph.name}' has no terminator; expected 'return' as its last operation"
            raise InvalidGraph(msg)
        visible.difference_update(defined)

    def op(self, op: Op) -> None:
        visible = self.visible
        operands = op.operands
        for index, operand in enumerate(operands):
            if operand is None:
                continue
            if operand not in visible:
                _fail(op, f"operand {index} ('{operand.name}') is not defined before it, in its graph or one around it")
            recorded = operand.users.get(op)
            if recorded != 1 and recorded != operands.count(operand):
                wanted = operands.count(operand)
                _fail(op, f"operand {index} ('{operand.name}') records {recorded or 0} uses; it has {wanted}")
            if recorded == 1 or operands.index(operand) == index:
                self.uses_found += 1
        for index, result in enumerate(op.results):
            if result.op is not op or result.index != index:
                _fail(op, f"result {index} is not linked to it")
            self.uses_recorded += len(result.users)
        for region in op.regions:
            self.graph(region, op)
        inferred = self.infer(op)
        if len(inferred) != len(op.results):
            _fail(op, f"has {len(op.results)} results; expected {len(inferred)}")
        for index, (result, type_) in enumerate(zip(op.results, inferred, strict=True)):
            if result.type is not type_ and not compatible(result.type, type_):
                _fail(op, f"result {index} is recorded as {result.type}; inferred {type_}")

    def infer(self, op: Op) -> tuple[Type, ...]:
        """Check and infer, once for operations without attributes and regions that have equal operands."""
        if op.attributes or op.regions:
            return _infer(op)
        parts: list[object] = [op.definition]
        for operand in op.operands:
            source = None if operand is None else operand.op
            known = source is not None and source.definition.holds_constant
            parts.append(source if known or operand is None else operand.type)
        key = tuple(parts)
        found = self.inferred.get(key)
        if found is None:
            found = self.inferred[key] = _infer(op)
        return found


def _infer(op: Op) -> tuple[Type, ...]:
    call = op.call()
    try:
        op.definition.check(call)
        return op.definition.infer(call)
    except InvalidGraph as error:
        error.message = f"operation '{op.name}' at {op.location}: {error.message}"
        error.args = (error.message,)
        raise
    except OpatlasError as error:
        msg = f"operation '{op.name}' at {op.location}: {error.message}"
        raise InvalidGraph(msg) from error


def _fail_stale_use(graph: Graph) -> None:
    """Name the value that records a user which does not use it, or is not in the graph. Raises InvalidGraph."""
    ops = set(graph.walk())
    values = [value for op in ops for region in op.regions for value in region.inputs]
    values += [*graph.inputs, *(result for op in ops for result in op.results)]
    for value in values:
        for user in value.users:
            if user not in ops or value not in user.operands:
                shown = f"'{user.name}' at {user.location}"
                msg = f"value '{value.name}' records a use by {shown}, which is gone or does not use it"
                raise InvalidGraph(msg)
