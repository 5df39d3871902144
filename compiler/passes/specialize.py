"""Binds symbolic dims and value operands, so that as many sizes as possible become numbers.

The graph given is left as it is. Where a value operand (a shape, axes, pads, k) follows from known inputs, constants
and sizes through pure operators, it becomes a constant, and the types that depend on it are inferred again, through
regions too. What needs bulk data (the number of non-zero elements, say) stays dynamic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.errors import InvalidInput, OpatlasError
from compiler.ir import CONSTANT, Call, Constant, Graph, Op, TensorType, compatible, known_value, operands_with_captures
from compiler.ops.control import Loop
from compiler.ops.registry import Operator
from compiler.passes.knowledge import LARGEST_VALUE, SIZES_ONLY, Knowledge
from compiler.rewrite import is_pure
from compiler.rewrite.facts import refine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Dim, Type, Value


def specialize(graph: Graph, input_types: Sequence[Type], known: Mapping[Value, Any] | None = None) -> Graph:
    """A new graph for inputs of ``input_types`` (and, where ``known`` has an input of ``graph``, of that value).

    Raises InvalidInput where an input type contradicts the graph's or a symbol would have two sizes, TypeMismatch (with
    the location) where operators refuse these sizes.
    """
    symbols = _bind(graph, input_types)
    copy = Graph(graph.name)
    copy.output_names = graph.output_names
    values: dict[Value, Value] = {}
    for value, type_ in zip(graph.inputs, input_types, strict=True):
        values[value] = copy.add_input(type_, value.name)
    run = _Specializer(symbols, values, Knowledge({values[value]: data for value, data in (known or {}).items()}))
    run.block(graph, copy)
    return copy


def value_inputs(graph: Graph) -> list[int]:
    """Which inputs feed value operands through pure operators, beyond their sizes: binding them makes sizes known.

    Inputs that are known to have more than 4096 elements are left out; of others the caller checks the number.
    """
    pending = [value for op in graph.walk() for value in _value_operands(op)]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.op
        if op is None:
            parent = None if value.graph is None else value.graph.parent
            pending.extend(() if parent is None else operands_with_captures(parent))
        elif isinstance(op.definition, Operator) and is_pure(op) and not isinstance(op.definition, SIZES_ONLY):
            pending.extend(operands_with_captures(op))
            pending.extend(output for region in op.regions for output in region.outputs)
    return [index for index, value in enumerate(graph.inputs) if value in seen and _is_small(value)]


def _is_small(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, TensorType) and not (type_.is_static and type_.size > LARGEST_VALUE)


def _value_operands(op: Op) -> list[Value]:
    definition = op.definition
    if not isinstance(definition, Operator):
        return []
    return [
        operand
        for index, operand in enumerate(op.operands)
        if operand is not None and definition.signature_operand(index).value
    ]


def _bind(graph: Graph, input_types: Sequence[Type]) -> dict[str, int]:
    """Sizes of symbols. Raises InvalidInput."""
    if len(input_types) != len(graph.inputs):
        msg = f"{len(input_types)} input types given for graph '{graph.name}'; expected {len(graph.inputs)}"
        raise InvalidInput(msg)
    symbols: dict[str, int] = {}
    for value, type_ in zip(graph.inputs, input_types, strict=True):
        if not compatible(value.type, type_):
            msg = f"input '{value.name}' has type {type_}; expected {value.type}"
            raise InvalidInput(msg)
        if not isinstance(value.type, TensorType) or not isinstance(type_, TensorType):
            continue
        for dim, size in zip(value.type.dims or (), type_.dims or (), strict=False):
            if isinstance(dim, str) and dim != "?" and isinstance(size, int) and symbols.setdefault(dim, size) != size:
                msg = f"input '{value.name}' has size {size} for symbol '{dim}'; expected {symbols[dim]} as before"
                raise InvalidInput(msg)
    return symbols


class _Specializer:
    """Copies operations with new types and with constants for value operands."""

    def __init__(self, symbols: dict[str, int], values: dict[Value, Value], knowledge: Knowledge) -> None:
        self.symbols = symbols
        self.values = values
        self.knowledge = knowledge
        self.constants: dict[tuple[Value, Graph], Value] = {}

    def block(self, graph: Graph, into: Graph) -> None:
        for op in graph.ops:
            self.op(op, into)

    def region(self, region: Graph, types: Sequence[Type]) -> Graph:
        copy = Graph(region.name)
        copy.output_names = region.output_names
        for value, type_ in zip(region.inputs, types, strict=True):
            self.values[value] = copy.add_input(type_, value.name)
        self.block(region, copy)
        return copy

    def op(self, op: Op, into: Graph) -> None:
        operands = [None if operand is None else self.values.get(operand, operand) for operand in op.operands]
        definition = op.definition
        if isinstance(definition, Operator):
            operands = [
                self.constant(operand, into)
                if operand is not None and definition.signature_operand(index).value
                else operand
                for index, operand in enumerate(operands)
            ]
        regions = self.regions(op, operands)
        types = self.types(op, operands, regions)
        copy = into.append(Op(definition, operands, types, op.attributes, regions, op.location))
        for old, new in zip(op.results, copy.results, strict=True):
            new.name = old.name
            self.values[old] = new

    def constant(self, value: Value, into: Graph) -> Value:
        """The value as a constant where it is known, else itself."""
        if known_value(value) is not None:
            return value
        found = self.constants.get((value, into))
        if found is None:
            data = self.knowledge.value(value)
            if data is None or not isinstance(data, np.ndarray):
                return value
            constant = Constant.of(np.array(data))
            op = into.append(Op(CONSTANT, (), (constant.type,), {"value": constant}))
            found = self.constants[value, into] = op.result
            found.name = value.name
        return found

    def types(self, op: Op, operands: Sequence[Value | None], regions: Sequence[Graph]) -> list[Type]:
        """Inferred types, made more precise by the recorded ones where those say more."""
        recorded = [self.bound(result.type) for result in op.results]
        call = Call(
            [None if operand is None else operand.type for operand in operands],
            op.attributes,
            [None if operand is None else known_value(operand) for operand in operands],
            regions,
        )
        try:
            inferred = op.definition.infer(call)
        except OpatlasError as error:
            error.message = f"{error.message} (at '{op.name}', {op.location}, for the sizes given)"
            error.args = (error.message,)
            raise
        return [refine(new, old) if compatible(new, old) else new for new, old in zip(inferred, recorded, strict=True)]

    def bound(self, type_: Type) -> Type:
        """The type with the sizes of its symbols."""
        if not isinstance(type_, TensorType) or type_.dims is None or type_.is_static:
            return type_
        dims: list[Dim] = [self.symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in type_.dims]
        return type_.with_dims(dims)

    def regions(self, op: Op, operands: Sequence[Value | None]) -> list[Graph]:
        """The regions for the new types. A loop's carried types hold for every iteration: they are widened until so."""
        if not isinstance(op.definition, Loop):
            return [self.region(region, [self.bound(value.type) for value in region.inputs]) for region in op.regions]
        body = op.regions[0]
        original = [self.bound(value.type) for value in body.inputs]
        types = list(original)
        for place in range(2, len(types)):
            operand = operands[place]
            if operand is not None and compatible(original[place], operand.type):
                types[place] = refine(operand.type, original[place])
        for _ in range(len(types)):
            region = self.region(body, types)
            outputs = [value.type for value in region.outputs]
            wider = [*types[:2], *map(_widen, types[2:], outputs[1 : len(types) - 1])]
            if wider == types:
                return [region]
            region.clear()
            types = wider
        return [self.region(body, original)]


def _widen(before: Type, after: Type) -> Type:
    """The type of a carried value that starts as ``before`` and comes out of an iteration as ``after``."""
    if before is after or not isinstance(before, TensorType) or not isinstance(after, TensorType):
        return before
    if before.dims is None or after.dims is None or len(before.dims) != len(after.dims):
        return before.with_dims(None)
    return before.with_dims([x if x == y else "?" for x, y in zip(before.dims, after.dims, strict=True)])
