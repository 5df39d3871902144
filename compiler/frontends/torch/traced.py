"""A module of ATen calls as torch.compile hands it to a backend: tensors and numbers as inputs, no signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.errors import InvalidModel
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.torch import symbolic
from compiler.frontends.torch.importer import Body
from compiler.frontends.torch.memory import Place
from compiler.frontends.torch.types import type_from
from compiler.ir import UNKNOWN_LOCATION, Builder, Graph, Value
from compiler.onnx_types import refined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.ir import Type


def import_traced(module: Any, types: Mapping[str, Type] | None = None) -> Graph:  # noqa: ANN401 - an fx.GraphModule
    """The graph of a traced module, with its symbolic dims. Results that are None are left out.

    ``types`` gives more precise types of inputs. Raises UnsupportedOperator, UnsupportedType, ValueNeeded where sizes
    decide what is computed and only ``types`` says them, and InvalidModel for an input that is no tensor or number.
    """
    precise = types or {}
    graph = Graph("main")
    body = Body(Builder(graph), Folder(concrete=bool(precise)))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            body.env[node] = _input(body, node, precise)
    body.run(module, module.graph.nodes)
    body.b.location = UNKNOWN_LOCATION
    output = next(node for node in module.graph.nodes if node.op == "output").args[0]
    items = output if isinstance(output, (list, tuple)) else [output]
    found = [value for value in map(body.value, items) if isinstance(value, Value)]
    body.b.output(*found)
    graph.output_names = tuple(f"output_{index}" for index in range(len(found)))
    return graph


def _input(body: Body, node: Any, precise: Mapping[str, Type]) -> Any:  # noqa: ANN401
    fake = node.meta.get("val")
    if isinstance(fake, (bool, int, float)):
        body.b.graph.add_input(symbolic.type_of_number(fake), node.name)
        return fake
    is_tensor = hasattr(fake, "shape")
    if not is_tensor and not hasattr(fake, "node"):
        raise InvalidModel(f"input '{node.name}' of the graph is a {type(fake).__name__}; expected tensors and numbers")
    type_: Type = type_from(fake) if is_tensor else symbolic.type_of(fake)
    if node.name in precise:
        type_ = refined(precise[node.name], type_, f"input '{node.name}'")
    value = body.b.graph.add_input(type_, node.name)
    return Place.of(value) if is_tensor else value
