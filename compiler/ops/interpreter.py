"""Reference evaluation of a graph: each operation by its own ``evaluate``, in order, regions included.

It is the meaning that passes and lowering are held to. A value is dropped after its last use, so that peak memory is
that of the values alive and not of the whole graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.errors import EvaluationError, InvalidGraph, InvalidInput, OpatlasError
from compiler.ir import STRING, Graph, MapType, Op, OptionalType, SequenceType, TensorType, Type, Value, element_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array


def interpret(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of ``graph`` for ``inputs``: numpy arrays, lists for sequences, None for an empty optional.

    Raises InvalidInput for inputs that do not fit the graph's input types, EvaluationError (naming the operation's
    location) where an operator has no meaning for its operands, InvalidGraph where a result contradicts its type.
    """
    if len(inputs) != len(graph.inputs):
        msg = f"graph '{graph.name}': {len(inputs)} inputs given; expected {len(graph.inputs)}"
        raise InvalidInput(msg)
    sizes: dict[str, int] = {}
    for value, given in zip(graph.inputs, inputs, strict=True):
        _check_input(value.name or f"input {value.index}", value.type, given, sizes)
    with np.errstate(all="ignore"):
        return _Interpreter().run(graph, inputs)


def _check_input(name: str, type_: Type, given: object, sizes: dict[str, int]) -> None:
    """Named dims must have one size over all inputs; ``sizes`` collects them."""
    if isinstance(type_, OptionalType):
        if given is not None:
            _check_input(name, type_.element, given, sizes)
        return
    if isinstance(type_, SequenceType):
        if not isinstance(given, list):
            msg = f"{name} is {type(given).__name__}; expected a list for {type_}"
            raise InvalidInput(msg)
        for item in given:
            _check_input(name, type_.element, item, {})
        return
    if isinstance(type_, MapType):
        _check_map(name, type_, given)
        return
    assert isinstance(type_, TensorType)
    if not isinstance(given, (np.ndarray, np.generic)):
        msg = f"{name} is {type(given).__name__}; expected a numpy array for {type_}"
        raise InvalidInput(msg)
    _check_tensor(name, type_, np.asarray(given), sizes)


def _check_map(name: str, type_: MapType, given: object) -> None:
    """Keys are Python's integers or strings; scalar values may be Python's numbers and strings."""
    kind = str if type_.key is STRING else int
    if not isinstance(given, dict) or not all(isinstance(key, kind) for key in given):
        msg = f"{name} is {type(given).__name__}; expected a dict with keys of type {kind.__name__} for {type_}"
        raise InvalidInput(msg)


def _check_tensor(name: str, type_: TensorType, given: Array, sizes: dict[str, int]) -> None:
    element = element_of(given.dtype)
    if element is not type_.element:
        msg = f"{name} has element type {element}; expected {type_.element} for {type_}"
        raise InvalidInput(msg)
    if type_.dims is None:
        return
    if given.ndim != len(type_.dims):
        msg = f"{name} has shape {list(given.shape)}; expected rank {len(type_.dims)} for {type_}"
        raise InvalidInput(msg)
    for dim, size in zip(type_.dims, given.shape, strict=True):
        if dim == "?":
            continue
        wanted = dim if isinstance(dim, int) else sizes.setdefault(dim, size)
        if size != wanted:
            msg = f"{name} has shape {list(given.shape)}; expected {dim} = {wanted} for {type_}"
            raise InvalidInput(msg)


class _Interpreter:
    """Evaluates graphs over one environment: values are unique, so regions see the values around them."""

    def __init__(self) -> None:
        self._values: dict[Value, Any] = {}
        self._dying: dict[Graph, dict[Op, list[Value]]] = {}

    def run(self, graph: Graph, arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a graph or a region."""
        if len(arguments) != len(graph.inputs):
            msg = f"region '{graph.name}': {len(arguments)} arguments; expected {len(graph.inputs)}"
            raise InvalidGraph(msg)
        values = self._values
        values.update(zip(graph.inputs, arguments, strict=True))
        dying = self._dying.get(graph)
        if dying is None:
            dying = self._dying[graph] = last_uses(graph)
        for op in graph.ops:
            operands = [None if operand is None else values[operand] for operand in op.operands]
            if op.definition.terminator:
                return operands
            results = self._evaluate(op, operands)
            for value, result in zip(op.results, results, strict=True):
                values[value] = result
            for value in dying.get(op, ()):
                values.pop(value, None)
        msg = f"graph '{graph.name}' has no terminator"
        raise InvalidGraph(msg)

    def _evaluate(self, op: Op, operands: list[Any]) -> list[Any]:
        try:
            results = op.definition.evaluate(op.call(), operands, self.run)
        except OpatlasError as error:
            if str(op.location) not in error.message:
                error.message = f"{error.message} (evaluating '{op.name}' at {op.location})"
                error.args = (error.message,)
            raise
        except (ValueError, IndexError) as error:  # numpy's, for sizes that only data tells and that do not fit
            shapes = [
                list(operand.shape) if isinstance(operand, np.ndarray) else type(operand).__name__
                for operand in operands
            ]
            msg = f"'{op.name}' of operands {shapes}: {error} (at {op.location})"
            raise EvaluationError(msg) from error
        if len(results) != len(op.results):
            msg = f"'{op.name}' gave {len(results)} results; expected {len(op.results)} (at {op.location})"
            raise InvalidGraph(msg)
        return [_checked(op, value, result) for value, result in zip(op.results, results, strict=True)]


def _checked(op: Op, value: Value, result: object) -> object:
    type_ = value.type
    if not isinstance(type_, TensorType):
        return result
    array = np.asarray(result)
    fits = type_.dims is None or (
        array.ndim == len(type_.dims)
        and all(dim == size for dim, size in zip(type_.dims, array.shape, strict=True) if isinstance(dim, int))
    )
    if not fits or element_of(array.dtype) is not type_.element:
        msg = f"'{op.name}' gave {list(array.shape)} of {array.dtype}; expected {type_} (at {op.location})"
        raise InvalidGraph(msg)
    return array


def last_uses(graph: Graph) -> dict[Op, list[Value]]:
    """For each operation of ``graph`` the graph's own values that nothing after it uses; outputs are not among them.

    A value that a region uses counts as used by the operation that holds the region.
    """
    last: dict[Value, Op] = {}
    for op in graph.ops:
        for result in op.results:
            last[result] = op
        for inner in op.walk():
            for operand in inner.operands:
                if operand is not None and operand.owner is graph:
                    last[operand] = op
    dying: dict[Op, list[Value]] = {}
    for value, op in last.items():
        if not op.definition.terminator:
            dying.setdefault(op, []).append(value)
    return dying
