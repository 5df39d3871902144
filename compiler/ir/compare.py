"""Equality of attributes and of whole graphs, exact to the bit: NaN equals the same NaN, -0.0 differs from 0.0."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from compiler.ir.constant import Constant

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from compiler.ir.definition import AttributeValue
    from compiler.ir.graph import Graph, Op, Value


def attribute_key(value: AttributeValue) -> Hashable:
    """What two equal attribute values share; 1, 1.0 and true differ."""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, tuple):
        return (tuple, *[attribute_key(item) for item in value])
    if isinstance(value, Constant):
        return value.key
    return (type(value), value)


def attributes_key(attributes: Mapping[str, AttributeValue]) -> Hashable:
    """What two equal sets of attributes share, in whatever order they were set."""
    return frozenset([(name, attribute_key(value)) for name, value in attributes.items()])


def graphs_equal(a: Graph, b: Graph, *, locations: bool = False) -> bool:
    """Whether two graphs have the same operations, attributes, types and links, up to names.

    Locations are compared only when asked for.
    """
    return _graphs_equal(a, b, {}, locations)


def _graphs_equal(a: Graph, b: Graph, pairs: dict[Value, Value], locations: bool) -> bool:
    if [value.type for value in a.inputs] != [value.type for value in b.inputs]:
        return False
    pairs.update(zip(a.inputs, b.inputs, strict=True))
    other = b.first
    for op in a.ops:
        if other is None or not _ops_equal(op, other, pairs, locations):
            return False
        pairs.update(zip(op.results, other.results, strict=True))
        other = other.next
    return other is None


def _ops_equal(a: Op, b: Op, pairs: dict[Value, Value], locations: bool) -> bool:
    return (
        a.definition is b.definition
        and len(a.operands) == len(b.operands)
        and all(x is y if x is None else pairs.get(x, x) is y for x, y in zip(a.operands, b.operands, strict=True))
        and [value.type for value in a.results] == [value.type for value in b.results]
        and attributes_key(a.attributes) == attributes_key(b.attributes)
        and (not locations or a.location == b.location)
        and len(a.regions) == len(b.regions)
        and all(_graphs_equal(x, y, pairs, locations) for x, y in zip(a.regions, b.regions, strict=True))
    )
