"""Functions: those that a model brings, and those by which ONNX's schemas define operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from compiler.errors import InvalidModel
from compiler.frontends.onnx.reader import canonical_domain
from compiler.onnx_types import type_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onnx import AttributeProto, FunctionProto, NodeProto
    from onnx.defs import OpSchema

    from compiler.ir import Type


class LocalFunctions:
    """The functions of a model by domain, name and overload. Raises InvalidModel for two of one key."""

    __slots__ = ("_functions",)

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._functions: dict[tuple[str, str, str], FunctionProto] = {}
        for function in functions:
            key = (canonical_domain(function.domain), function.name, function.overload)
            if key in self._functions:
                raise InvalidModel(f"the model has two functions '{function.domain}.{function.name}'")
            self._functions[key] = function

    def find(self, domain: str, name: str, overload: str) -> FunctionProto | None:
        """The function, or None."""
        return self._functions.get((domain, name, overload))


def schema_function(
    schema: OpSchema,
    opset: int,
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    types: Sequence[Type | None],
) -> FunctionProto | None:
    """The function body of an operator for the imported version, or None where its schema has none.

    A body may depend on the node's attributes and input types; ``attributes`` are those of the node with references
    to an outer function resolved. The newest body that is not newer than ``opset`` is taken.
    """
    bodies: Any = schema  # the package's stubs lack the functions of a schema
    version = _newest(bodies.function_opset_versions, opset)
    if version is not None:
        return _parse(bodies.get_function_with_opset_version(version))
    version = _newest(bodies.context_dependent_function_opset_versions, opset)
    if version is None:
        return None
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    del plain.attribute[:]
    plain.attribute.extend(attributes.values())
    described = [b"" if type_ is None else type_proto(type_).SerializeToString() for type_ in types]
    try:
        body = bodies.get_context_dependent_function_with_opset_version(version, plain.SerializeToString(), described)
    except (RuntimeError, ValueError) as error:
        operator = f"{schema.name}-{schema.since_version}"
        raise InvalidModel(f"node '{node.name or node.op_type}' has no function body as {operator}: {error}") from error
    return _parse(body)


def _newest(versions: Iterable[int], opset: int) -> int | None:
    return max((version for version in versions if version <= opset), default=None)


def _parse(data: bytes) -> FunctionProto | None:
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function if function.node else None
