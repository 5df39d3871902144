"""Twins: a modern model with the meaning of an old operator version, from the text in its manifest."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import jinja2

from generators.case import Case
from opsets import Item, ManifestError
from opsets.elements import proto_name
from opsets.expressions import FUNCTIONS
from opsets.signature import onnx_versions

if TYPE_CHECKING:
    import onnx

_TEXT_TYPES = {"FLOAT": "float", "DOUBLE": "double"}


@cache
def _template(text: str) -> jinja2.Template:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701 - ONNX text
    environment.globals |= FUNCTIONS
    return environment.from_string(text)


def _number(element: str) -> int:
    """Number of an element type in ``TensorProto.DataType``."""
    import onnx

    return int(onnx.TensorProto.DataType.Value(proto_name(element)))


def make_twin(case: Case, item: Item, names: dict[str, object], model: onnx.ModelProto) -> onnx.ModelProto:
    """The twin of a case. Its graph inputs, initializers and outputs are those of the case's own model.

    :raises ManifestError: if the text is no template, or what it renders is no list of nodes in ONNX's text syntax.
    """
    import onnx.checker
    import onnx.helper

    spec = item.entry.twin
    assert spec is not None
    if spec.nodes == "same":
        nodes = [_modernized(model.graph.node[0], spec.opset, case.domain)]
    else:
        nodes = _parsed(spec.nodes, case, item, names)
    graph = onnx.helper.make_graph(
        nodes, "twin", model.graph.input, model.graph.output, initializer=model.graph.initializer
    )
    twin = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", spec.opset)], ir_version=max(8, model.ir_version)
    )
    try:
        onnx.checker.check_model(twin)
    except onnx.checker.ValidationError as error:
        line = str(error).splitlines()[0]
        raise ManifestError(f"{item.source}: {item.operator}-{item.since_version}.twin: {line}") from error
    return twin


def _modernized(node: onnx.NodeProto, opset: int, domain: str) -> onnx.NodeProto:
    import onnx

    versions = [one for one in onnx_versions()[domain, node.op_type] if one.since_version <= opset]
    known = versions[-1].attributes
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    result.attribute.extend(one for one in node.attribute if one.name in known)
    return result


def _parsed(text: str, case: Case, item: Item, names: dict[str, object]) -> list[onnx.NodeProto]:
    import onnx.parser

    where = f"{item.source}: {item.operator}-{item.since_version}.twin"
    assert item.entry.twin is not None
    header = f'<ir_version: 8, opset_import: ["" : {item.entry.twin.opset}]> twin (float[?] unused) => (float[?] none)'
    try:
        shown = {key: list(value) if isinstance(value, tuple) else value for key, value in names.items()}
        body = _template(text).render(shown, number=_number, operator=case.operator)
        model = onnx.parser.parse_model(f"{header} {{ {body} }}")
    except (jinja2.TemplateError, onnx.parser.ParseError) as error:
        raise ManifestError(f"{where}: {' '.join(str(error).split())}") from error
    return list(model.graph.node)
