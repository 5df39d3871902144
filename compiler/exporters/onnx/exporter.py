"""Graph to ONNX model: inputs, weights, nodes, regions as subgraphs, types of all values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import onnx

from compiler.errors import ExportError
from compiler.exporters.onnx.emit import VERSIONS, Emit, Model
from compiler.ir import UNKNOWN_LOCATION, Graph, Value
from compiler.onnx_types import type_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST: Final = 13
"""The first operator set that is written."""


def export_model(graph: Graph, opset: int | None = None) -> onnx.ModelProto:
    """The ONNX model of a graph, at the newest operator set that the onnx package knows, or at ``opset``.

    Inputs and outputs keep their names where those are unique. Each node's ``doc_string`` is the location of the
    operation. Same graph, same bytes. What the operator set has no operator for is written by others that give the same
    results. Raises UnsupportedByOpset where there are none, ExportError for an operator set out of range,
    AbstractConstant for weights without data.
    """
    newest = onnx.defs.onnx_opset_version()
    version = newest if opset is None else opset
    if not OLDEST <= version <= newest:
        raise ExportError(f"operator set {version} cannot be written; expected {OLDEST} to {newest}")
    model = Model(version)
    emit = Emit(model)
    proto = graph_proto(graph, emit, graph.name or "main")
    proto.initializer.extend(model.initializers)
    exported = onnx.helper.make_model(proto, opset_imports=_imports(model))
    exported.ir_version = onnx.helper.find_min_ir_version_for(exported.opset_import)
    exported.producer_name = "opatlas"
    return exported


def _imports(model: Model) -> list[onnx.OperatorSetIdProto]:
    """Ai.onnx at its version, and the other domains that nodes are of at their newest."""
    others = sorted(model.domains - {""})
    newest = [onnx.helper.make_opsetid(domain, VERSIONS[domain]) for domain in others]
    return [onnx.helper.make_opsetid("", model.opset), *newest]


def graph_proto(graph: Graph, emit: Emit, name: str) -> onnx.GraphProto:
    """One graph: its nodes through ``emit``; outputs that are no fresh results pass through an Identity."""
    for value in graph.inputs:
        emit.bind(value, emit.model.names.take(value.name or "input"))
    outputs = _output_names(graph, emit)
    for op in graph.ops:
        if not op.definition.terminator:
            emit.write(op)
    emit.location = UNKNOWN_LOCATION
    for value, wanted in zip(graph.outputs, outputs, strict=True):
        if emit.name(value) != wanted:
            emit.same(emit.name(value), wanted, value)
    return onnx.helper.make_graph(
        emit.nodes,
        name,
        [_info(emit.name(value), value) for value in graph.inputs],
        [_info(wanted, value) for value, wanted in zip(graph.outputs, outputs, strict=True)],
        value_info=_value_infos(graph, emit, set(outputs)),
    )


def _output_names(graph: Graph, emit: Emit) -> list[str]:
    """Output names; a value that an operation of this very graph makes is written under its first one."""
    hints: Sequence[str] = graph.output_names or [""] * len(graph.outputs)
    names = []
    for value, hint in zip(graph.outputs, hints, strict=True):
        name = emit.model.names.take(hint or value.name or "output")
        names.append(name)
        if value.op is not None and value.op.graph is graph and not emit.has(value):
            emit.bind(value, name)
    return names


def _info(name: str, value: Value) -> onnx.ValueInfoProto:
    return onnx.helper.make_value_info(name, type_proto(value.type))


def _value_infos(graph: Graph, emit: Emit, outputs: set[str]) -> list[onnx.ValueInfoProto]:
    infos = {}
    for op in graph.ops:
        if op.definition.holds_constant:
            continue
        for result in op.results:
            name = emit.name(result) if emit.has(result) else ""
            if name and name not in outputs:
                infos[name] = _info(name, result)
    return list(infos.values())
