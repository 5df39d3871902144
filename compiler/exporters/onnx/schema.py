"""What an operator set can say: nodes are held against the schemas of the onnx package."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import onnx
from onnx.defs import OpSchema

from compiler.exporters.onnx.forms import NoForm
from compiler.onnx_types import data_type_string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VARIADIC: Final = OpSchema.FormalParameterOption.Variadic

_SINCE: Final[Mapping[tuple[str, str, Any], int]] = {
    ("Pad", "mode", "wrap"): 19,
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"): 19,
    ("ScatterElements", "reduction", "max"): 18,
    ("ScatterElements", "reduction", "min"): 18,
    ("ScatterND", "reduction", "max"): 18,
    ("ScatterND", "reduction", "min"): 18,
}
"""Values of attributes that are younger than the attribute, which schemas do not list. Source: ONNX's Changelog.md."""

_RESULT_TYPES: Final = ("to", "dtype", "output_dtype")
"""Attributes that name the element type of the result."""


@cache
def find(operator: str, domain: str, version: int) -> OpSchema | None:
    """The schema in force; None where the operator set lacks the operator, or deprecates it."""
    try:
        schema = onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@cache
def _allowed(operator: str, domain: str, since: int) -> dict[str, frozenset[str]]:
    """The types that each type variable of a schema stands for, in the notation of its constraints."""
    schema = onnx.defs.get_schema(operator, since, domain)
    return {item.type_param_str: frozenset(item.allowed_type_strs) for item in schema.type_constraints}


@cache
def _defaults(operator: str, domain: str) -> dict[str, Any]:
    """The defaults of the newest schema's attributes."""
    schema = onnx.defs.get_schema(operator, domain)
    found = {}
    for name, spec in schema.attributes.items():
        if spec.default_value.name:
            value = onnx.helper.get_attribute_value(spec.default_value)
            found[name] = value.decode() if isinstance(value, bytes) else value
    return found


def takes(operator: str, version: int, type_: str) -> bool:
    """Whether an operator of ai.onnx takes a first input of this type."""
    try:
        Spelled(operator, "", version, {}).take([type_])
    except NoForm:
        return False
    return True


class Spelled:
    """A node as an operator set has it, or NoForm with the reason why it has not."""

    __slots__ = ("_allowed", "_bound", "_schema", "attributes", "operator")

    def __init__(self, operator: str, domain: str, version: int, attributes: Mapping[str, Any]) -> None:
        schema = find(operator, domain, version)
        if schema is None:
            raise NoForm(f"there is no {operator}")
        self.operator = operator
        self._schema = schema
        self._allowed = _allowed(operator, domain, schema.since_version)
        self._bound: dict[str, str] = {}
        self.attributes = {}
        for name, value in attributes.items():
            if name in schema.attributes:
                self._require_value(name, value, version)
                self.attributes[name] = value
            elif _defaults(operator, domain).get(name) != value:
                raise NoForm(f"{operator} has no attribute '{name}'")

    def _require_value(self, name: str, value: Any, version: int) -> None:  # noqa: ANN401 - any attribute
        key = (self.operator, name, value) if isinstance(value, str) else None
        if key is not None and _SINCE.get(key, 0) > version:
            raise NoForm(f"{self.operator}'s attribute '{name}' cannot be {value!r}")

    def take(self, types: Sequence[str]) -> None:
        """Hold the inputs' types against the schema; "" is one that is not known, or of an omitted input."""
        formals = self._schema.inputs
        if len(types) > self._schema.max_input:
            raise NoForm(f"{self.operator} has no input {self._schema.max_input}")
        for index, type_ in enumerate(types):
            self._require_type(formals[min(index, len(formals) - 1)], type_, "input")

    def give(self, types: Sequence[str]) -> list[str]:
        """Hold the outputs' types against the schema; those that are "" are filled in where they can be told."""
        formals = self._schema.outputs
        if len(types) > self._schema.max_output:
            raise NoForm(f"{self.operator} has no output {self._schema.max_output}")
        found = []
        for index, type_ in enumerate(types):
            formal = formals[min(index, len(formals) - 1)]
            self._require_type(formal, type_, "output")
            found.append(type_ or self._told(formal))
        return found

    def _require_type(self, formal: OpSchema.FormalParameter, type_: str, what: str) -> None:
        if not type_:
            return
        if type_ not in self._allowed.get(formal.type_str, (formal.type_str,)):
            raise NoForm(f"{self.operator}'s {what} '{formal.name}' cannot be {type_}")
        if formal.option is _VARIADIC and not formal.is_homogeneous:
            return
        if self._bound.setdefault(formal.type_str, type_) != type_:
            raise NoForm(f"{self.operator}'s {what} '{formal.name}' cannot be {type_} beside others")

    def _told(self, formal: OpSchema.FormalParameter) -> str:
        if formal.type_str in self._bound:
            return self._bound[formal.type_str]
        allowed = self._allowed.get(formal.type_str, (formal.type_str,))
        if len(allowed) == 1:
            return str(next(iter(allowed)))
        named = [self.attributes[name] for name in _RESULT_TYPES if name in self.attributes]
        return data_type_string(named[0]) if named else ""
