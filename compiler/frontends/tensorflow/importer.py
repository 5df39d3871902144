"""From a TensorFlow graph to a graph of the IR: node by node, functions inlined, nothing folded by TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidGraph, InvalidModel, UnsupportedOperator, UnsupportedType
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.tensorflow import converters
from compiler.frontends.tensorflow.site import Item, Site, converter_for, result_items, trace_of
from compiler.frontends.tensorflow.types import refine, type_from
from compiler.frontends.tensorflow.variables import Variable
from compiler.ir import UNKNOWN_LOCATION, Builder, Constant, Graph, TensorType, Value, at
from compiler.onnx_types import refined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.frontends.tensorflow.program import Program
    from compiler.ir import Array, Type

_BATCH: Final = "batch"


def import_program(
    program: Program, *, types: Mapping[str, Type] | None = None, known: Mapping[str, Array] | None = None
) -> Graph:
    """The graph of a TensorFlow program, with a symbol for each size that is open.

    Inputs and outputs are the program's, in its order. ``types`` gives inputs more precise types, ``known`` the values
    of inputs that decide what is computed. Raises UnsupportedOperator for nodes without a conversion and for variables
    that are written to, UnsupportedType, ValueNeeded, InvalidModel.
    """
    graph = signature(program, types)
    body = Body(Builder(graph), Folder(concrete=types is not None), program)
    for (name, value), given in zip(program.inputs, graph.inputs, strict=True):
        data = (known or {}).get(name)
        body.env[value.name] = given if data is None else body.b.constant(np.asarray(data))
    body.b.location = UNKNOWN_LOCATION
    wanted = [value for _, value in program.outputs]
    body.run(program.graph, wanted)
    body.b.location = UNKNOWN_LOCATION
    body.b.output(*[body.tensor(name, value) for name, value in program.outputs])
    graph.output_names = tuple(name for name, _ in program.outputs)
    return graph


def signature(program: Program, types: Mapping[str, Type] | None = None) -> Graph:
    """A graph with the program's inputs and output names and no operations. Raises UnsupportedType, TypeMismatch."""
    graph = Graph("main")
    for name, value in program.inputs:
        type_: Type = _input_type(program, name, value)
        precise = (types or {}).get(name)
        if precise is not None:
            type_ = refined(precise, type_, f"input '{name}'")
        graph.add_input(type_, name)
    graph.output_names = tuple(name for name, _ in program.outputs)
    return graph


def _input_type(program: Program, name: str, value: Any) -> TensorType:  # noqa: ANN401 - a symbolic tensor
    type_ = type_from(value, name)
    if program.batched and type_.dims and isinstance(type_.dims[0], str):
        return type_.with_dims([_BATCH, *type_.dims[1:]])
    return type_


class Body:
    """The nodes of a graph, or of a function, with what their tensors stand for."""

    def __init__(self, builder: Builder, folder: Folder, program: Program, scope: str = "") -> None:
        self.b = builder
        self.folder = folder
        self.program = program
        self.scope = scope
        self.env: dict[str, Value | Item | None] = {}
        """Name of a symbolic tensor -> what it is."""

    def run(self, graph: Any, wanted: Sequence[Any]) -> None:  # noqa: ANN401 - a tf.Graph and symbolic tensors
        """Convert the nodes that ``wanted`` needs, in the graph's order.

        Raises UnsupportedOperator where a node that would run writes to a variable: a compiled model keeps no state.
        All nodes of a function run; of a plain graph, which holds its own initialization too, those that an output
        waits for.
        """
        needed = self._needed(wanted)
        runs = None if hasattr(graph, "control_outputs") else self._needed(wanted, controls=True)
        for operation in graph.get_operations():
            if operation.name in needed:
                self._convert(operation)
            elif runs is None or operation.name in runs:
                self._refuse_write(operation)

    def _needed(self, wanted: Iterable[Any], *, controls: bool = False) -> set[str]:
        """Names of the nodes on which values depend; with ``controls`` also of those that only run before them."""
        stack = [value.op for value in wanted if value.name not in self.env]
        needed = {operation.name for operation in stack}
        while stack:
            operation = stack.pop()
            before = [value.op for value in operation.inputs if value.name not in self.env]
            for source in [*before, *operation.control_inputs] if controls else before:
                if source.name not in needed:
                    needed.add(source.name)
                    stack.append(source)
        return needed

    def _refuse_write(self, operation: Any) -> None:  # noqa: ANN401
        if str(operation.type) in converters.WRITES:
            self._site(operation, ()).refuse("it writes to a variable, and a compiled model keeps no state")

    def _convert(self, operation: Any) -> None:  # noqa: ANN401
        name = str(operation.type)
        self.b.location = at(operation.name, name, self.scope or self.program.source)
        site = self._site(operation, tuple(self._item(value) for value in operation.inputs))
        converter = converter_for(name)
        if converter is None:
            site.refuse("it has no conversion")
        try:
            results = result_items(converter(site))
        except (InvalidGraph, UnsupportedType) as error:
            # TensorFlow takes this node, so what the IR does not take is a form without a conversion.
            raise UnsupportedOperator("tf", name, None, error.message, node=site.node) from error
        for value, found in zip(operation.outputs, results, strict=False):
            if isinstance(found, Value) and isinstance(found.type, TensorType):
                _refine(found, value)
            self.env[value.name] = found

    def _site(self, operation: Any, inputs: tuple[Value | Item | None, ...]) -> Site:  # noqa: ANN401
        return Site(operation, inputs, self.b, self.folder, self)

    def _item(self, value: Any) -> Value | Item | None:  # noqa: ANN401 - a symbolic tensor
        if value.name in self.env:
            return self.env[value.name]
        raise InvalidModel(f"node '{value.op.name}' ({value.op.type}) is used before it is there: the graph is cyclic")

    def captured(self, operation: Any) -> Value | Item | None:  # noqa: ANN401
        """What a placeholder stands for that is no input: a captured tensor or variable. None where there is none."""
        found = self.program.captured.get(operation.name)
        if found is None:
            return None
        if operation.outputs[0].dtype.name == "resource":
            return Variable(found, operation.name)
        if isinstance(found, np.ndarray):
            return self.b.constant(Constant.of(found))
        return self.b.constant(Constant.of(np.asarray(found.numpy()))) if hasattr(found, "numpy") else None

    def tensor(self, name: str, value: Any) -> Value:  # noqa: ANN401 - a symbolic tensor
        """The value of an output. Raises UnsupportedOperator where it is no tensor."""
        found = self._item(value)
        if not isinstance(found, Value):
            what = "nothing that has a conversion" if found is None else found.what
            node = f"{value.op.name} at {trace_of(value.op)}" if self.program.traced else value.op.name
            raise UnsupportedOperator(
                "tf", str(value.op.type), None, f"output '{name}' is {what}; expected a tensor", node=node
            )
        return found


def _refine(found: Value, value: Any) -> None:  # noqa: ANN401
    if found.op is not None and not found.op.definition.holds_constant:
        found.type = refine(found.tensor, value)
