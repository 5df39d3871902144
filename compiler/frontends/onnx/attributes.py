"""Attributes of a node as Python values, checked against the operator's schema of the version in force."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from onnx import AttributeProto, GraphProto
from onnx.defs import OpSchema

from compiler.errors import InvalidAttribute, InvalidModel
from compiler.frontends.onnx.data import constant_from, sparse_constant
from compiler.frontends.onnx.reader import require_text
from compiler.ir import Constant, Type
from compiler.onnx_types import type_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

OnnxValue: TypeAlias = "int | float | str | Constant | GraphProto | Type | tuple[OnnxValue, ...]"

_FIELDS: Final[tuple[tuple[str, int], ...]] = (
    ("f", AttributeProto.FLOAT),
    ("i", AttributeProto.INT),
    ("s", AttributeProto.STRING),
    ("t", AttributeProto.TENSOR),
    ("g", AttributeProto.GRAPH),
    ("floats", AttributeProto.FLOATS),
    ("ints", AttributeProto.INTS),
    ("strings", AttributeProto.STRINGS),
)
"""Models of IR version 1 say the type of an attribute only by the field that is filled."""


def _text(data: bytes) -> str:
    return data.decode()


_READERS: Final[dict[int, Callable[[AttributeProto, Path | None, str], OnnxValue]]] = {
    AttributeProto.FLOAT: lambda proto, _folder, _what: float(proto.f),
    AttributeProto.INT: lambda proto, _folder, _what: int(proto.i),
    AttributeProto.STRING: lambda proto, _folder, _what: _text(proto.s),
    AttributeProto.TENSOR: lambda proto, folder, what: constant_from(proto.t, folder, what),
    AttributeProto.SPARSE_TENSOR: lambda proto, folder, what: sparse_constant(proto.sparse_tensor, folder, what),
    AttributeProto.GRAPH: lambda proto, _folder, _what: proto.g,
    AttributeProto.TYPE_PROTO: lambda proto, _folder, what: type_from(proto.tp, what),
    AttributeProto.FLOATS: lambda proto, _folder, _what: tuple(map(float, proto.floats)),
    AttributeProto.INTS: lambda proto, _folder, _what: tuple(map(int, proto.ints)),
    AttributeProto.STRINGS: lambda proto, _folder, _what: tuple(map(_text, proto.strings)),
    AttributeProto.TENSORS: lambda proto, folder, what: tuple(constant_from(t, folder, what) for t in proto.tensors),
    AttributeProto.GRAPHS: lambda proto, _folder, _what: tuple(proto.graphs),
    AttributeProto.TYPE_PROTOS: lambda proto, _folder, what: tuple(type_from(t, what) for t in proto.type_protos),
}


def _type_name(number: int) -> str:
    return str(AttributeProto.AttributeType.Name(number))


def _type_of(proto: AttributeProto) -> int:
    if proto.type != AttributeProto.UNDEFINED:
        return int(proto.type)
    for field, number in _FIELDS:
        filled = proto.HasField(field) if field in {"f", "i", "s", "t", "g"} else len(getattr(proto, field)) > 0
        if filled:
            return number
    return int(AttributeProto.UNDEFINED)


def bound_attributes(
    protos: Iterable[AttributeProto], outer: Mapping[str, AttributeProto], what: str
) -> dict[str, AttributeProto]:
    """A node's attributes by name, references to those of the function around it replaced.

    A reference to an attribute that the caller did not set leaves the attribute out. Raises InvalidModel for an
    attribute that is given twice or has no name.
    """
    found: dict[str, AttributeProto] = {}
    seen: set[str] = set()
    for proto in protos:
        require_text(what, (proto.name, proto.ref_attr_name))
        if not proto.name or proto.name in seen:
            state = f"attribute '{proto.name}' twice" if proto.name else "an attribute without a name"
            raise InvalidModel(f"{what} has {state}")
        seen.add(proto.name)
        if not proto.ref_attr_name:
            found[proto.name] = proto
        elif proto.ref_attr_name in outer:
            copy = AttributeProto()
            copy.CopyFrom(outer[proto.ref_attr_name])
            copy.name = proto.name
            found[proto.name] = copy
    return found


def read_attribute(proto: AttributeProto, folder: Path | None, what: str) -> OnnxValue:
    """The attribute's value. Raises InvalidModel."""
    reader = _READERS.get(_type_of(proto))
    if reader is None:
        raise InvalidModel(f"attribute '{proto.name}' of {what} has no value of a known type")
    return reader(proto, folder, f"attribute '{proto.name}' of {what}")


@cache
def _defaults(schema: OpSchema) -> dict[str, OnnxValue]:
    found = {}
    for name, spec in schema.attributes.items():
        if spec.default_value.type != AttributeProto.UNDEFINED:
            found[name] = read_attribute(spec.default_value, None, schema.name)
    return found


def checked_attributes(
    protos: Mapping[str, AttributeProto], schema: OpSchema, folder: Path | None, what: str
) -> dict[str, Any]:
    """Values of all attributes, with the defaults of the schema's own version.

    Raises InvalidAttribute for an attribute that this version does not have, of another type, or required and missing.
    """
    specs = schema.attributes
    values: dict[str, Any] = dict(_defaults(schema))
    for name, proto in protos.items():
        spec = specs.get(name)
        if spec is None:
            known = ", ".join(sorted(specs)) or "none"
            raise InvalidAttribute(f"{what} has attribute '{name}'; {schema.name}-{schema.since_version} knows {known}")
        found, wanted = _type_name(_type_of(proto)), str(spec.type).rpartition(".")[2]
        if found != wanted:
            raise InvalidAttribute(f"attribute '{name}' of {what} is {found}; expected {wanted}")
        values[name] = read_attribute(proto, folder, what)
    for name, spec in specs.items():
        if spec.required and name not in protos:
            raise InvalidAttribute(
                f"{what} lacks attribute '{name}', which {schema.name}-{schema.since_version} requires"
            )
    return values


def graph_attributes(protos: Iterable[AttributeProto]) -> list[GraphProto]:
    """The subgraphs among the attributes."""
    found = []
    for proto in protos:
        if proto.type == AttributeProto.GRAPH:
            found.append(proto.g)
        found.extend(proto.graphs)
    return found
