"""What an emitter writes to: nodes of a graph, weights of the model, names of values; and the table of emitters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import onnx
from onnx import numpy_helper

from compiler.errors import ExportError
from compiler.exporters.onnx.names import Names
from compiler.ir import UNKNOWN_LOCATION, Array, Builder, Constant, Definition, ElementType, Graph, Location, Op, Value
from compiler.onnx_types import DATA_TYPES
from compiler.ops import Composite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Emitter: TypeAlias = "Callable[[Op, Emit], None]"
_Function = TypeVar("_Function", bound="Callable[[Op, Emit], None]")

_EMITTERS: dict[Definition, Emitter] = {}


def exports(*definitions: type[Definition]) -> Callable[[_Function], _Function]:
    """Decorator: enter the emitter of these operators."""

    def enter(function: _Function) -> _Function:
        for definition in definitions:
            _EMITTERS[definition.instance()] = function
        return function

    return enter


def exported_operators() -> tuple[str, ...]:
    """Names of the operators that have an emitter, sorted."""
    return tuple(sorted(definition.name for definition in _EMITTERS))


class Model:
    """What all graphs of a model share: names, weights, the operator set."""

    __slots__ = ("_weights", "domains", "initializers", "names", "nodes", "opset")

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.domains: set[str] = set()
        self.names = Names()
        self.nodes = Names()
        self.initializers: list[onnx.TensorProto] = []
        self._weights: dict[Constant, str] = {}

    def weight(self, constant: Constant, wanted: str) -> str:
        """The name of the weight with this content; equal ones are written once. Raises AbstractConstant."""
        found = self._weights.get(constant)
        if found is None:
            found = self._weights[constant] = self.names.take(wanted)
            self.initializers.append(tensor_proto(constant.array, found))
        return found


def tensor_proto(array: Array, name: str) -> onnx.TensorProto:
    """A weight; strings are written as UTF-8."""
    if array.dtype.hasobject:
        texts: Any = [str(item).encode() for item in array.reshape(-1)]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, texts)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


class Emit:
    """Writes the nodes of one graph. ``location`` is given to every node written."""

    __slots__ = ("_known", "location", "model", "nodes")

    def __init__(self, model: Model, outer: Emit | None = None) -> None:
        self.model = model
        self.nodes: list[onnx.NodeProto] = []
        self.location: Location = UNKNOWN_LOCATION
        self._known: dict[Value, str] = {} if outer is None else outer.known_names()

    def known_names(self) -> dict[Value, str]:
        """The names so far, for a subgraph to start with."""
        return dict(self._known)

    def bind(self, value: Value, name: str) -> None:
        """Let ``name`` stand for the value."""
        self._known[value] = name

    def has(self, value: Value) -> bool:
        """Whether the value has a name already."""
        return value in self._known

    def name(self, value: Value | None) -> str:
        """The value's name; the empty one for an omitted operand."""
        return "" if value is None else self._known[value]

    def inputs(self, op: Op) -> list[str]:
        """Names of all operands, empty for omitted ones."""
        return [self.name(operand) for operand in op.operands]

    def result_name(self, value: Value) -> str:
        """The name under which a result is to be written: that of a graph output, or a new one."""
        if value not in self._known:
            self._known[value] = self.model.names.take(value.name or "value")
        return self._known[value]

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:  # noqa: ANN401
        """Write a node; empty names at the end of the inputs are left out, attributes of None too.

        ``domain`` is the operator's, by default ai.onnx.
        """
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        first = self.location.nodes[0] if self.location.nodes else None
        name = self.model.nodes.take((first.name if first else "") or operator)
        set_ones = {key: value for key, value in attributes.items() if value is not None}
        self.model.domains.add(set_ones.get("domain", ""))
        proto = onnx.helper.make_node(operator, given, list(outputs), name=name, **set_ones)
        if first is not None:
            proto.doc_string = str(self.location)
        self.nodes.append(proto)

    def new(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Write a node with one output of a new name, which is returned."""
        name = self.model.names.take(operator.lower())
        self.node(operator, inputs, [name], **attributes)
        return name

    def op(self, op: Op, operator: str, *inputs: str, **attributes: Any) -> None:  # noqa: ANN401
        """Write a node for all results of ``op``; without ``inputs`` its operands."""
        results = [self.result_name(result) for result in op.results]
        self.node(operator, inputs or self.inputs(op), results, **attributes)

    def constant(self, array: Array, wanted: str = "constant") -> str:
        """The name of a weight with this data."""
        return self.model.weight(Constant.of(array), wanted)

    def integers(self, values: Sequence[int]) -> str:
        """The name of an int64 vector."""
        return self.constant(np.array(values, np.int64).reshape(-1))

    def scalar(self, value: float, element: ElementType) -> str:
        """The name of a weight of rank 0."""
        return self.constant(np.array(value).astype(element.dtype))

    def cast(self, name: str, element: ElementType) -> str:
        """The value in another element type."""
        return self.new("Cast", name, to=DATA_TYPES[element])

    def write(self, op: Op) -> None:
        """Write one operation. Raises ExportError where it has neither an emitter nor a decomposition."""
        self.location = op.location
        if op.definition.holds_constant:
            constant = op.attributes["value"]
            assert isinstance(constant, Constant)
            name = self.model.weight(constant, op.result.name or "constant")
            if self.has(op.result):
                self.node("Identity", [name], [self.name(op.result)])
            else:
                self.bind(op.result, name)
            return
        emitter = _EMITTERS.get(op.definition)
        if emitter is not None:
            emitter(op, self)
        elif isinstance(op.definition, Composite):
            self.decomposed(op)
        else:
            raise ExportError(f"'{op.name}' (at {op.location}) has no ONNX form")

    def decomposed(self, op: Op) -> None:
        """Write a composite as the simpler operators that define it."""
        assert isinstance(op.definition, Composite)
        graph = Graph("decomposition")
        builder = Builder(graph, location=op.location)
        operands: list[Value | None] = []
        for operand in op.operands:
            if operand is None:
                operands.append(None)
            elif operand.op is not None and operand.op.definition.holds_constant:
                operands.append(builder.constant(operand.op.call().constant("value")))
            else:
                operands.append(graph.add_input(operand.type))
                self.bind(graph.inputs[-1], self.name(operand))
        attributes: dict[str, Any] = dict(op.attributes)
        whole = builder.op(op.definition, operands, **attributes)
        for result, original in zip(whole.results, op.results, strict=True):
            result.type = original.type
        values = op.definition.decompose(whole, builder)
        for value, original in zip(values, op.results, strict=True):
            if value.op is not None and not self.has(value) and not value.op.definition.holds_constant:
                self.bind(value, self.result_name(original))
        for inner in graph.ops:
            if inner is not whole:
                self.write(inner)
        for value, original in zip(values, op.results, strict=True):
            if self.name(value) != self.result_name(original):
                self.node("Identity", [self.name(value)], [self.result_name(original)])
