"""Operator schemas: the one in force for a node, and checks of a node's inputs against it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import onnx
from onnx.defs import OpSchema

from compiler.errors import InvalidModel, TypeMismatch, UnsupportedOperator
from compiler.frontends.onnx.site import converter_for
from compiler.onnx_types import type_string
from compiler.ops.extensions import load_extensions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Type, Value

_OPTIONAL: Final = OpSchema.FormalParameterOption.Optional
_VARIADIC: Final = OpSchema.FormalParameterOption.Variadic


@cache
def known_domains() -> frozenset[str]:
    """The domains for which onnx has schemas."""
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas_with_history())


@cache
def _find(domain: str, name: str, opset: int) -> OpSchema | None:
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def _versions(domain: str, name: str) -> tuple[int, ...]:
    found = [
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == domain and schema.name == name
    ]
    return tuple(sorted(found))


def _extended_by(domain: str) -> bool:
    """Whether an extension brings the domain. Raises BrokenExtension."""
    if load_extensions():
        known_domains.cache_clear()
    return domain in known_domains()


def schema_for(domain: str, name: str, opsets: Mapping[str, int], node: str) -> OpSchema:
    """The schema of the operator at the imported version of its domain.

    Raises InvalidModel where the model does not import the domain, UnsupportedOperator for an operator that onnx does
    not know in that version or domain.
    """
    opset = opsets.get(domain)
    if opset is None:
        shown = f"{domain or 'ai.onnx'}.{name}"
        raise InvalidModel(f"node '{node}' uses {shown}, and the model imports no operator set of it")
    if domain not in known_domains() and not _extended_by(domain):
        raise UnsupportedOperator(domain, name, opset, "the domain is unknown", node=node)
    found = _find(domain, name, opset)
    if found is None:
        versions = _versions(domain, name)
        reason = f"it exists since operator set {versions[0]}" if versions else "no such operator"
        raise UnsupportedOperator(domain, name, opset, reason, node=node)
    if found.deprecated and converter_for(domain, name, found.since_version) is None:
        reason = f"it was taken out in operator set {found.since_version}"
        raise UnsupportedOperator(domain, name, opset, reason, node=node)
    return found


def check_arity(schema: OpSchema, inputs: Sequence[str], outputs: Sequence[str], what: str) -> None:
    """Check the numbers of inputs and outputs and that required ones are named. Raises InvalidModel."""
    for kind, given, low, high, formals in (
        ("inputs", inputs, schema.min_input, schema.max_input, schema.inputs),
        ("outputs", outputs, schema.min_output, schema.max_output, schema.outputs),
    ):
        if not low <= len(given) <= high:
            wanted = str(low) if low == high else f"{low} to {high}" if high < 2**31 - 1 else f"at least {low}"
            raise InvalidModel(f"{what} has {len(given)} {kind}; {schema.name}-{schema.since_version} takes {wanted}")
        if kind == "inputs":
            for index, name in enumerate(given):
                formal = formals[min(index, len(formals) - 1)]
                if not name and formal.option != _OPTIONAL and not _omittable(schema, index):
                    raise InvalidModel(f"{what} omits input {index} ('{formal.name}'), which is required")


def _omittable(schema: OpSchema, index: int) -> bool:
    """Variadic inputs of function-like operators may be empty beyond the least number."""
    formal = schema.inputs[min(index, len(schema.inputs) - 1)]
    return bool(formal.option == _VARIADIC) and index >= schema.min_input


@cache
def _constraints(schema: OpSchema) -> dict[str, frozenset[str]]:
    return {spec.type_param_str: frozenset(spec.allowed_type_strs) for spec in schema.type_constraints}


def check_types(schema: OpSchema, inputs: Sequence[Value | None], what: str) -> None:
    """Check the inputs' types against the schema's type variables. Raises TypeMismatch."""
    constraints = _constraints(schema)
    bound: dict[str, str] = {}
    for index, value in enumerate(inputs):
        if value is None:
            continue
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        found = type_string(value.type)
        allowed = constraints.get(formal.type_str, frozenset({formal.type_str}))
        if found not in allowed:
            _refuse(schema, index, formal.name, value.type, sorted(allowed), what)
        if formal.type_str in constraints and (formal.option != _VARIADIC or formal.is_homogeneous):
            wanted = bound.setdefault(formal.type_str, found)
            if wanted != found:
                _refuse(schema, index, formal.name, value.type, [f"{wanted} like the inputs before"], what)


def _refuse(schema: OpSchema, index: int, name: str, type_: Type, allowed: Sequence[str], what: str) -> None:
    shown = ", ".join(allowed)
    operator = f"{schema.name}-{schema.since_version}"
    raise TypeMismatch(f"input {index} ('{name}') of {what} has type {type_}; {operator} takes {shown}")
