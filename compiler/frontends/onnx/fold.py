"""What constants decide while a model is read: shape arithmetic, mostly.

This is not the folding pass: it only answers questions of converters, and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import OpatlasError
from compiler.ir import Array, Call, Op, TensorType, Type, Value, known_value, type_of
from compiler.ops import Operator
from compiler.ops.shape import ShapeOf, SizeOf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Graph

_LIMIT: Final = 65536
"""Elements beyond which a value is no shape arithmetic any more."""


def _no_regions(_graph: Graph, _arguments: Sequence[object]) -> list[object]:
    raise AssertionError("operations with regions are not folded here")


class Folder:
    """Evaluates small constant expressions, each value once.

    ``concrete``: the model is read for given inputs, so that their values may be asked for.
    """

    __slots__ = ("_found", "concrete")

    def __init__(self, *, concrete: bool = False) -> None:
        self.concrete = concrete
        self._found: dict[Value, Array | None] = {}

    def assume(self, data: Mapping[Value, Array | None]) -> None:
        """Take values for known that nothing decides, such as the inputs of a region."""
        self._found.update(data)

    def known(self, value: Value) -> Array | None:
        """The value's data, or None where it is not decided, too large, or has no meaning."""
        constant = known_value(value)
        if constant is not None:
            return constant
        stack = [value]
        while stack:
            current = stack[-1]
            if current in self._found:
                stack.pop()
                continue
            waiting = [value for value in _needed(current) if value not in self._found and known_value(value) is None]
            if waiting and not _undecided(current):
                stack.extend(waiting)
                continue
            self._settle(current)
            stack.pop()
        return self._found[value]

    def undecided_input(self, value: Value) -> Value | None:
        """The first input of a graph on whose data the value depends, or None."""
        stack, seen = [value], {value}
        while stack:
            current = stack.pop()
            if current.op is None:
                return current
            if known_value(current) is None and self._found.get(current) is None:
                fresh = [operand for operand in current.op.operands if operand is not None and operand not in seen]
                seen.update(fresh)
                stack.extend(reversed(fresh))
        return None

    def _settle(self, value: Value) -> None:
        op = value.op
        if op is None or _undecided(value):
            self._found[value] = None
            return
        results = self._evaluate(op)
        for index, result in enumerate(op.results):
            self._found[result] = None if results is None else results[index]

    def _evaluate(self, op: Op) -> tuple[Array, ...] | None:
        if isinstance(op.definition, (ShapeOf, SizeOf)):
            return _from_type(op)
        arguments: list[Array | None] = []
        for operand in op.operands:
            if operand is None:
                arguments.append(None)
                continue
            data = known_value(operand)
            data = self._found.get(operand) if data is None else data
            if data is None:
                return None
            arguments.append(data)
        types = [None if data is None else type_of(data) for data in arguments]
        call = Call(types, op.attributes, arguments)
        try:
            if any(not _is_small(type_) for type_ in op.definition.infer(call)):
                return None
            return tuple(op.definition.evaluate(call, arguments, _no_regions))
        except OpatlasError:
            return None


def _is_small(type_: Type) -> bool:
    """Whether it is a tensor of known sizes and not many elements."""
    return isinstance(type_, TensorType) and type_.is_static and type_.size <= _LIMIT


def _needed(value: Value) -> list[Value]:
    if value.op is None or isinstance(value.op.definition, (ShapeOf, SizeOf)):
        return []
    return [operand for operand in value.op.operands if operand is not None]


def _undecided(value: Value) -> bool:
    op = value.op
    if op is None or op.regions or not isinstance(op.definition, Operator) or not op.definition.pure:
        return True
    return any(
        not isinstance(result.type, TensorType) or (result.type.is_static and result.type.size > _LIMIT)
        for result in op.results
    )


def _from_type(op: Op) -> tuple[Array, ...] | None:
    """Sizes that the operand's type says."""
    type_ = op.operand(0).tensor
    if type_.dims is None:
        return None
    if isinstance(op.definition, SizeOf):
        return (np.array(type_.size, np.int64),) if type_.is_static else None
    start, end = op.attributes.get("start", 0), op.attributes.get("end")
    assert isinstance(start, int)
    assert end is None or isinstance(end, int)
    dims = type_.dims[start:end]
    if not all(isinstance(dim, int) for dim in dims):
        return None
    return (np.array(dims, np.int64),)
