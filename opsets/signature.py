"""What a framework's own schema says of one operator version, in a form that does not depend on the framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from opsets.elements import element_of, rank_of


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal input or output. ``type_name`` is a type parameter of the signature or None where ``elements`` is fixed.

    ``kind`` is ``tensor`` where a plain tensor is allowed, else ``sequence`` or ``optional``.
    """

    name: str
    type_name: str | None
    elements: tuple[str, ...]
    kind: str
    optional: bool
    variadic: bool
    tensors: tuple[str, ...] = ()
    """The elements that a plain tensor may have, without those of sequences and optionals alone."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: kind is the framework's name for its type, such as ``INTS``."""

    name: str
    kind: str
    required: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs, outputs, attributes and type parameters of an operator version."""

    domain: str
    operator: str
    since_version: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    min_outputs: int
    max_outputs: int
    attributes: Mapping[str, Attribute]
    types: Mapping[str, tuple[str, ...]]

    @property
    def elements(self) -> tuple[str, ...]:
        """Element types that any input allows; of the outputs where there are no inputs."""
        found = {element for formal in self.inputs or self.outputs for element in formal.elements}
        return tuple(sorted(found, key=rank_of))

    @property
    def tensor_elements(self) -> frozenset[str]:
        """Element types of plain tensors that any input allows."""
        return frozenset(element for formal in self.inputs for element in formal.tensors)


@cache
def onnx_versions() -> Mapping[tuple[str, str], tuple[Signature, ...]]:
    """Every version of every operator that the installed onnx knows, by (domain, name), oldest first."""
    import onnx.defs

    found: dict[tuple[str, str], list[Signature]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain or "ai.onnx", schema.name)
        found.setdefault(key, []).append(_signature(schema))
    return {key: tuple(sorted(listed, key=lambda one: one.since_version)) for key, listed in found.items()}


@cache
def newest_opset(domain: str) -> int:
    """The newest opset of a domain that the installed onnx knows."""
    import onnx.defs

    return (
        max(
            schema.since_version
            for schema in onnx.defs.get_all_schemas_with_history()
            if (schema.domain or "ai.onnx") == domain
        )
        if domain != "ai.onnx"
        else onnx.defs.onnx_opset_version()
    )


def _signature(schema: Any) -> Signature:  # noqa: ANN401 - onnx.defs.OpSchema is a C++ class without annotations
    allowed = {item.type_param_str: frozenset(item.allowed_type_strs) for item in schema.type_constraints}
    types = {name: _elements(texts) for name, texts in allowed.items()}
    # Constraints spell maps as map(int64, float), formals as map(int64,tensor(float)).
    types |= {one.type_str: _elements(one.types) for one in schema.inputs if not types.get(one.type_str, True)}
    return Signature(
        domain=schema.domain or "ai.onnx",
        operator=schema.name,
        since_version=schema.since_version,
        deprecated=schema.deprecated,
        inputs=tuple(_parameter(formal, types, allowed) for formal in schema.inputs),
        outputs=tuple(_parameter(formal, types, allowed) for formal in schema.outputs),
        min_outputs=schema.min_output,
        max_outputs=schema.max_output,
        attributes={name: _attribute(item) for name, item in schema.attributes.items()},
        types=types,
    )


def _parameter(
    formal: Any,  # noqa: ANN401
    types: Mapping[str, tuple[str, ...]],
    allowed: Mapping[str, frozenset[str]],
) -> Parameter:
    try:
        texts = frozenset(formal.types)
    except TypeError:  # onnx 1.20 cannot give them to Python
        texts = allowed.get(formal.type_str, frozenset({formal.type_str}))
    return Parameter(
        name=formal.name,
        type_name=formal.type_str if formal.type_str in types else None,
        elements=_elements(texts),
        kind=_kind(texts),
        optional=formal.option.name == "Optional",
        variadic=formal.option.name == "Variadic",
        tensors=_elements(text for text in texts if text.startswith("tensor(")),
    )


def _kind(type_strings: Any) -> str:  # noqa: ANN401
    if any(text.startswith("tensor(") for text in type_strings):
        return "tensor"
    return "sequence" if any(text.startswith("seq(") for text in type_strings) else "optional"


def _attribute(item: Any) -> Attribute:  # noqa: ANN401
    import onnx.helper

    proto = item.default_value
    default = onnx.helper.get_attribute_value(proto) if proto.type else None
    if isinstance(default, bytes):
        default = default.decode()
    elif not isinstance(default, (int, float, str)) and default is not None:
        default = tuple(part.decode() if isinstance(part, bytes) else part for part in default)
    return Attribute(item.name, item.type.name, item.required, default)


def _elements(type_strings: Any) -> tuple[str, ...]:  # noqa: ANN401
    found = {element for text in type_strings if (element := element_of(text)) is not None}
    return tuple(sorted(found, key=rank_of))
