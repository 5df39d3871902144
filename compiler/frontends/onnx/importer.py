"""Models to graphs: inputs, weights and nodes in order; functions inlined; subgraphs as regions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx import converters
from compiler.frontends.onnx.attributes import bound_attributes, checked_attributes
from compiler.frontends.onnx.data import constant_from, sparse_constant
from compiler.frontends.onnx.domains import CHECKED_DOMAINS, check_choices, check_sizes
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.onnx.functions import LocalFunctions, schema_function
from compiler.frontends.onnx.reader import Source, canonical_domain, read_model, read_opsets, require_text
from compiler.frontends.onnx.schema import check_arity, check_types, schema_for
from compiler.frontends.onnx.scope import Scope, missing_value, node_label
from compiler.frontends.onnx.site import Site, converter_for, result_values
from compiler.ir import UNKNOWN_LOCATION, Builder, Constant, Graph, Type, Value, at
from compiler.onnx_types import refined, type_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import onnx
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto
    from onnx.defs import OpSchema

    from compiler.ir import Array

_DEEPEST_CALL: Final = 100
_MOST_INLINED: Final = 500_000
"""Functions that call functions: 25 that call the next one twice would make 33 million nodes."""


def import_model(
    model: onnx.ModelProto | Path | str,
    *,
    folder: Path | None = None,
    known: Mapping[str, Array] | None = None,
    types: Mapping[str, Type] | None = None,
) -> Graph:
    """The graph of an ONNX model file or object, with the model's symbolic dims.

    ``folder`` holds the external data of a model object (a file's own folder is taken for a file). ``known`` gives
    data of graph inputs that decide what is computed (see ValueNeeded); such inputs stay in the signature. ``types``
    gives more precise types of graph inputs.

    Raises InvalidModel for a broken model, TypeMismatch for types that an operator does not take or that contradict
    the declared ones, UnsupportedOperator for operators and forms without a conversion, UnsupportedType.
    """
    try:
        return _Importer(read_model(model, folder), known or {}, types or {}).graph()
    except UnicodeError as error:
        # The protobuf library decodes a name where it is first read.
        raise InvalidModel(f"a name or a text in the model is not UTF-8: {error}") from error


def import_signature(model: onnx.ModelProto | Path | str) -> Graph:
    """A graph with the model's inputs and names and no operations: for a model whose inputs decide what is computed.

    Raises as :func:`import_model`.
    """
    try:
        return _Importer(read_model(model, None), {}, {}).signature()
    except UnicodeError as error:
        raise InvalidModel(f"a name in the model is not UTF-8: {error}") from error


@dataclass(frozen=True, slots=True)
class _Frame:
    """What holds for all nodes of a model or of one inlined function."""

    opsets: Mapping[str, int]
    source: str
    bindings: Mapping[str, AttributeProto] = field(default_factory=dict)
    stack: tuple[tuple[str, str, str], ...] = ()
    from_schema: bool = False


class _Importer:
    __slots__ = ("_folder", "_functions", "_inlined", "_known", "_source", "_types")

    def __init__(self, source: Source, known: Mapping[str, Array], types: Mapping[str, Type]) -> None:
        self._source = source
        self._known = known
        self._types = types
        self._folder = Folder(concrete=bool(types))
        self._functions = LocalFunctions(source.model.functions)
        self._inlined = 0

    def signature(self) -> Graph:
        """The main graph's inputs and output names, without its operations."""
        proto = self._source.model.graph
        graph = Graph(proto.name or "main")
        weights = {tensor.name for tensor in proto.initializer}
        weights.update(tensor.values.name for tensor in proto.sparse_initializer)
        for info in proto.input:
            if info.name not in weights:
                graph.add_input(type_from(info.type, f"input '{info.name}'"), info.name)
        graph.output_names = tuple(info.name for info in proto.output)
        Builder(graph).output()
        return graph

    def graph(self) -> Graph:
        """The main graph."""
        proto = self._source.model.graph
        graph, scope = Graph(proto.name or "main"), Scope()
        builder = Builder(graph)
        weights = {tensor.name for tensor in proto.initializer}
        weights.update(tensor.values.name for tensor in proto.sparse_initializer)
        declared: dict[str, Type] = {}
        for info in proto.input:
            if not info.name:
                raise InvalidModel("the graph has an input without a name")
            type_ = type_from(info.type, f"input '{info.name}'")
            if info.name in weights:
                if info.name in declared:
                    raise InvalidModel(f"the graph has two inputs '{info.name}'")
                declared[info.name] = type_
            else:
                precise = self._types.get(info.name)
                if precise is not None:
                    type_ = refined(precise, type_, f"input '{info.name}'")
                scope.define(info.name, graph.add_input(type_, info.name), "the graph")
        self._bind_known(graph, scope, builder)
        self._weights(proto, scope, builder, declared)
        outputs = self._body(proto, scope, builder, _Frame(self._source.opsets, self._source.name))
        builder.location = UNKNOWN_LOCATION
        builder.output(*outputs)
        graph.output_names = tuple(info.name for info in proto.output)
        return graph

    def _bind_known(self, graph: Graph, scope: Scope, builder: Builder) -> None:
        for value in graph.inputs:
            data = self._known.get(value.name)
            if data is None:
                continue
            constant = builder.constant(np.asarray(data))
            refined(constant.type, value.type, f"input '{value.name}'")
            constant.name = value.name
            scope.rebind(value.name, constant)

    def _weights(self, proto: GraphProto, scope: Scope, builder: Builder, declared: Mapping[str, Type]) -> None:
        folder = self._source.folder
        for tensor in proto.initializer:
            self._weight(
                tensor.name, constant_from(tensor, folder, f"weight '{tensor.name}'"), scope, builder, declared
            )
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            self._weight(name, sparse_constant(sparse, folder, f"sparse weight '{name}'"), scope, builder, declared)

    @staticmethod
    def _weight(name: str, constant: Constant, scope: Scope, builder: Builder, declared: Mapping[str, Type]) -> None:
        require_text("a weight", [name])
        if not name:
            raise InvalidModel("the graph has a weight without a name")
        builder.location = at(name, "initializer")
        value = builder.constant(constant)
        builder.location = UNKNOWN_LOCATION
        value.name = name
        if name in declared:
            refined(value.type, declared[name], f"weight '{name}'")
        scope.define(name, value, "a weight")

    def _body(self, proto: GraphProto, scope: Scope, builder: Builder, frame: _Frame) -> list[Value]:
        """The nodes of a graph whose inputs and weights are in ``scope``; its outputs."""
        require_text(f"graph '{proto.name}'", (proto.name, *(info.name for info in (*proto.input, *proto.output))))
        declared = {}
        for info in (*proto.value_info, *proto.output):
            if info.HasField("type") and info.type.WhichOneof("value"):
                declared[info.name] = type_from(info.type, f"value '{info.name}'")
        for node in proto.node:
            self._node(node, proto.node, scope, builder, frame, declared)
        outputs = []
        for info in proto.output:
            if not scope.has(info.name):
                raise InvalidModel(f"graph '{proto.name}' has output '{info.name}', which nothing defines")
            value = scope.get(info.name)
            if value is None:
                raise InvalidModel(f"graph '{proto.name}' has output '{info.name}', an input that the caller omits")
            if info.name in declared:
                refined(value.type, declared[info.name], f"output '{info.name}'")
            outputs.append(value)
        return outputs

    def _node(
        self,
        node: NodeProto,
        nodes: Sequence[NodeProto],
        scope: Scope,
        builder: Builder,
        frame: _Frame,
        declared: Mapping[str, Type],
    ) -> None:
        label = node_label(node)
        what = f"node '{label}' ({node.op_type})"
        require_text(what, (node.name, node.op_type, node.domain, *node.input, *node.output))
        inputs: list[Value | None] = []
        for name in node.input:
            if name and not scope.has(name):
                raise missing_value(name, nodes, what)
            inputs.append(scope.get(name) if name else None)
        attributes = bound_attributes(node.attribute, frame.bindings, what)
        function = self._functions.find(canonical_domain(node.domain), node.op_type, node.overload)
        if function is not None:
            results: Sequence[Value | None] = self._inline(function, node, inputs, attributes, builder, frame)
        else:
            results = self._operator(node, label, inputs, attributes, scope, builder, frame)
        if len(node.output) > len(results):
            raise InvalidModel(f"{what} has {len(node.output)} outputs; expected at most {len(results)}")
        for name, value in zip(node.output, results, strict=False):
            if not name:
                continue
            if value is None:
                domain = canonical_domain(node.domain)
                reason = f"output '{name}' has no conversion"
                raise UnsupportedOperator(domain, node.op_type, frame.opsets.get(domain), reason, node=label)
            self._define(name, value, scope, what, declared)

    @staticmethod
    def _define(name: str, value: Value, scope: Scope, what: str, declared: Mapping[str, Type]) -> None:
        scope.define_result(name, value, what)
        is_new = value.op is not None and not value.name
        if name in declared:
            type_ = refined(value.type, declared[name], f"output '{name}' of {what}")
            if is_new:
                value.type = type_
        if is_new:
            value.name = name

    def _operator(
        self,
        node: NodeProto,
        label: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        scope: Scope,
        builder: Builder,
        frame: _Frame,
    ) -> Sequence[Value | None]:
        domain = canonical_domain(node.domain)
        what = f"node '{label}' ({node.op_type})"
        schema = schema_for(domain, node.op_type, frame.opsets, label)
        check_arity(schema, node.input, node.output, what)
        values = checked_attributes(attributes, schema, self._source.folder, what)
        if not frame.from_schema:
            # A schema's own body may use operators beyond the types that those list: bfloat16 in a loss, say.
            check_types(schema, inputs, what)
        if schema.domain in CHECKED_DOMAINS:
            check_choices(schema.name, values, what)
            check_sizes(schema.name, values, inputs, what)
        builder.location = at(label, node.op_type, frame.source)
        converter = converter_for(domain, node.op_type, schema.since_version)
        if converter is None:
            return self._inline_schema(schema, node, label, inputs, attributes, builder, frame)

        def inline(proto: GraphProto, given: Sequence[Value], within: Builder, name: str) -> list[Value]:
            return self._subgraph(proto, given, within, f"{label}/{name}", scope, frame)

        site = Site(
            domain,
            node.op_type,
            schema.since_version,
            label,
            tuple(inputs),
            tuple(node.output),
            values,
            builder,
            self._folder,
            inline,
        )
        return result_values(converter(site))

    def _inline_schema(
        self,
        schema: OpSchema,
        node: NodeProto,
        label: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        builder: Builder,
        frame: _Frame,
    ) -> Sequence[Value | None]:
        opset = frame.opsets[schema.domain]
        types = [None if value is None else value.type for value in inputs]
        function = schema_function(schema, opset, node, attributes, types)
        if function is None:
            raise UnsupportedOperator(
                schema.domain, schema.name, schema.since_version, "it has no conversion", node=label
            )
        given = {name: spec.default_value for name, spec in schema.attributes.items() if spec.default_value.type}
        given.update(attributes)
        return self._inline(function, node, inputs, given, builder, replace(frame, from_schema=True))

    def _inline(
        self,
        function: FunctionProto,
        node: NodeProto,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        builder: Builder,
        frame: _Frame,
    ) -> Sequence[Value | None]:
        """The body of a function in place of the node; its results."""
        key = (canonical_domain(function.domain), function.name, function.overload)
        what = f"function '{function.name}' (node '{node_label(node)}')"
        if key in frame.stack:
            raise InvalidModel(f"{what} calls itself")
        self._inlined += len(function.node)
        if len(frame.stack) >= _DEEPEST_CALL or self._inlined > _MOST_INLINED:
            raise InvalidModel(
                f"{what} is called {len(frame.stack)} functions deep, after {self._inlined} nodes of functions; "
                f"expected at most {_DEEPEST_CALL} and {_MOST_INLINED}"
            )
        if len(inputs) > len(function.input):
            raise InvalidModel(f"{what} is given {len(inputs)} inputs; expected at most {len(function.input)}")
        bindings = {proto.name: proto for proto in function.attribute_proto}
        unknown = set(attributes) - set(function.attribute) - set(bindings)
        if unknown and self._functions.find(*key) is function:
            raise InvalidModel(f"{what} has attribute '{min(unknown)}', which the function does not declare")
        bindings.update(attributes)
        scope = Scope()
        for position, name in enumerate(function.input):
            scope.define(name, inputs[position] if position < len(inputs) else None, what)
        source = f"{frame.source}: " if frame.source else ""
        inner = replace(
            frame,
            opsets={**frame.opsets, **read_opsets(function.opset_import, what)},
            source=f"{source}{node_label(node)}/{function.name}",
            bindings=bindings,
            stack=(*frame.stack, key),
        )
        for step in function.node:
            self._node(step, function.node, scope, builder, inner, {})
        # The bodies of schemas leave out what computes an optional output that the node does not ask for.
        results: list[Value | None] = []
        for position, name in enumerate(function.output):
            if not scope.has(name) and position < len(node.output) and node.output[position]:
                raise InvalidModel(f"{what} has output '{name}', which nothing defines")
            results.append(scope.get(name) if scope.has(name) else None)
        return results

    def _subgraph(
        self, proto: GraphProto, given: Sequence[Value], builder: Builder, name: str, outer: Scope, frame: _Frame
    ) -> list[Value]:
        """The nodes of a subgraph whose inputs stand for given values, which must not contradict declared types."""
        if len(proto.input) != len(given):
            raise InvalidModel(f"subgraph '{name}' has {len(proto.input)} inputs; expected {len(given)}")
        scope = Scope(outer)
        for info, value in zip(proto.input, given, strict=True):
            if info.HasField("type") and info.type.WhichOneof("value"):
                shown = f"input '{info.name}' of subgraph '{name}'"
                refined(value.type, type_from(info.type, shown), shown)
            scope.define(info.name, value, f"subgraph '{name}'")
        self._weights(proto, scope, builder, {})
        return self._body(proto, scope, builder, frame)


__all__ = ["converters", "import_model"]
