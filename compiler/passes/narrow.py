"""Runs a graph in a narrower float type than the model's own, which the target lacks and the user allowed.

Inputs and outputs keep their types: they are cast at the border. An operator that refuses the narrow type, and one
that reads the bits of a float, keeps the wide one between casts; so do operands that decide shapes. What a composite
computes inside is its own matter (``compute_type``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.errors import InvalidGraph, InvalidTarget, UnsupportedType
from compiler.ir import (
    BF16,
    F16,
    F32,
    F64,
    UNKNOWN_LOCATION,
    Builder,
    Constant,
    ElementType,
    Graph,
    Op,
    TensorType,
    Type,
    Value,
)
from compiler.ops.convert import BitCast, Cast, convert
from compiler.ops.registry import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.ir import AttributeValue
    from compiler.targets import Target

NARROW: Final[Mapping[str, ElementType]] = {"float16": F16, "bfloat16": BF16}
"""Types that a precision may name."""

_WIDE: Final = (F64, F32)
_OWN_MATTER: Final = frozenset({"compute_type"})
"""Attributes that name an element type without making one."""


def narrow_for(graph: Graph, target: Target, precision: str) -> Graph:
    """A graph that computes in ``precision`` where the model's float type is one that ``target`` lacks.

    Raises InvalidTarget for a precision that is no narrow float type, or that the target lacks too.
    """
    to = NARROW.get(precision)
    if to is None:
        raise InvalidTarget(f"precision '{precision}' is unknown; expected one of {', '.join(NARROW)}")
    taken = target.vector.elements
    if to not in taken:
        floats = [name for name, element in NARROW.items() if element in taken]
        raise InvalidTarget(f"target '{target.name}' has no {precision}; expected one of {', '.join(floats) or 'none'}")
    wide = lacking(target)
    return narrow(graph, wide, to) if wide else graph


def narrow_to(graph: Graph, name: str) -> Graph:
    """A graph that computes in this float type where it computed in a wider one, whatever a target has.

    Raises InvalidTarget for a name that is none of float32, float16, bfloat16.
    """
    wider: Mapping[str, tuple[ElementType, ...]] = {F32.dtype.name: (F64,), **dict.fromkeys(NARROW, _WIDE)}
    if name not in wider:
        raise InvalidTarget(f"dtype '{name}' is unknown; expected one of {', '.join(wider)}")
    return narrow(graph, frozenset(wider[name]), NARROW.get(name, F32))


def lacking(target: Target) -> frozenset[ElementType]:
    """The wide float types that tensors on the target cannot have."""
    return frozenset(element for element in _WIDE if element not in target.vector.elements)


def narrow(graph: Graph, wide: frozenset[ElementType], to: ElementType) -> Graph:
    """A copy of the graph in which the ``wide`` float types are ``to``, but for inputs and outputs."""
    copy = Graph(graph.name)
    copy.output_names = graph.output_names
    narrower = _Narrower(wide, to)
    for value in graph.inputs:
        narrower.values[value] = copy.add_input(value.type, value.name)
    narrower.block(graph, copy, narrow_outputs=False)
    return copy


class _Narrower:
    """Copies operations; remembers each value as it was made, and its casts by graph."""

    def __init__(self, wide: frozenset[ElementType], to: ElementType) -> None:
        self.wide = wide
        self.to = to
        self.values: dict[Value, Value] = {}
        self.casts: dict[tuple[Value, ElementType, Graph], Value] = {}

    def block(self, graph: Graph, into: Graph, *, narrow_outputs: bool) -> None:
        builder = Builder(into)
        for op in graph.ops:
            builder.location = op.location
            if op.definition.terminator:
                builder.op(op.definition, [self.output(value, builder, narrow_outputs) for value in graph.outputs])
            else:
                self.op(op, builder)

    def output(self, value: Value, builder: Builder, narrow_outputs: bool) -> Value:
        builder.location = UNKNOWN_LOCATION if value.op is None else value.op.location
        return self.fetch(value, self.type(value.type) if narrow_outputs else value.type, builder)

    def op(self, op: Op, builder: Builder) -> None:
        made = self.attempt(op, builder, narrow_types=not isinstance(op.definition, BitCast))
        for old, new in zip(op.results, made.results, strict=True):
            new.name = old.name
            self.values[old] = new

    def attempt(self, op: Op, builder: Builder, *, narrow_types: bool) -> Op:
        """The operation on narrow operands; on wide ones, where it refuses these."""
        operands = [
            None if value is None else self.fetch(value, self.wanted(op, index, value, narrow_types), builder)
            for index, value in enumerate(op.operands)
        ]
        attributes = {name: self.attribute(name, value) for name, value in op.attributes.items()}
        regions = [self.region(region) for region in op.regions]
        try:
            return builder.op(op.definition, operands, regions, **(attributes if narrow_types else op.attributes))
        except (InvalidGraph, UnsupportedType):
            if not narrow_types or op.regions:
                raise
        return self.attempt(op, builder, narrow_types=False)

    def wanted(self, op: Op, index: int, value: Value, narrow_types: bool) -> Type:
        definition = op.definition
        decides_shape = isinstance(definition, Operator) and definition.signature_operand(index).value
        return self.type(value.type) if narrow_types and not decides_shape else value.type

    def fetch(self, value: Value, type_: Type, builder: Builder) -> Value:
        """The copy of ``value``, as ``type_`` has its element; constants are converted in place of being cast."""
        found = self.values.get(value, value)
        if not isinstance(type_, TensorType) or not isinstance(found.type, TensorType):
            return found
        element = type_.element
        if found.type.element is element:
            return found
        key = (found, element, builder.graph)
        if key not in self.casts:
            constant = found.op.attributes.get("value") if found.op and found.op.definition.holds_constant else None
            if isinstance(constant, Constant):
                self.casts[key] = builder.constant(_converted(constant, element))
            else:
                self.casts[key] = builder(Cast, found, to=element)
        return self.casts[key]

    def region(self, region: Graph) -> Graph:
        copy = Graph(region.name)
        copy.output_names = region.output_names
        for value in region.inputs:
            self.values[value] = copy.add_input(self.type(value.type), value.name)
        self.block(region, copy, narrow_outputs=True)
        return copy

    def type(self, type_: Type) -> Type:
        if isinstance(type_, TensorType) and type_.element in self.wide:
            return type_.with_element(self.to)
        return type_

    def attribute(self, name: str, value: AttributeValue) -> AttributeValue:
        if isinstance(value, ElementType):
            return self.to if value in self.wide and name not in _OWN_MATTER else value
        return value


def _converted(constant: Constant, element: ElementType) -> Constant:
    if constant.is_abstract:
        return Constant.abstract(constant.type.with_element(element), constant.seed)
    return Constant.of(convert(constant.array, element))
