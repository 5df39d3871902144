"""What a form writes to: nodes of a graph, weights of the model, names and types of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from compiler.errors import OpatlasError, UnsupportedByOpset, UnsupportedType
from compiler.exporters.onnx.forms import NoForm, forms_of
from compiler.exporters.onnx.names import Names
from compiler.exporters.onnx.rewriting import rebuilt, ways_round
from compiler.exporters.onnx.schema import Spelled, takes
from compiler.ir import UNKNOWN_LOCATION, Array, Constant, ElementType, Location, Op, Value, captured, element_of
from compiler.onnx_types import DATA_TYPES, data_type_of, type_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.exporters.onnx.forms import Rewrite

VERSIONS: Final = {"ai.onnx.ml": 5}
"""Versions of further domains that forms write."""

_DEEPEST: Final = 16
"""Rewrites inside rewrites; more go round in a circle."""


class Model:
    """What all graphs of a model share: names, weights, the operator set."""

    __slots__ = ("_weights", "depth", "domains", "initializers", "names", "nodes", "opset", "probing")

    def __init__(self, opset: int, *, probing: bool = False) -> None:
        self.opset = opset
        self.probing = probing
        self.depth = 0
        self.domains: set[str] = set()
        self.names = Names()
        self.nodes = Names()
        self.initializers: list[onnx.TensorProto] = []
        self._weights: dict[Constant, str] = {}

    def weight(self, constant: Constant, wanted: str) -> str:
        """The name of the weight with this content; equal ones are written once. Raises AbstractConstant."""
        found = self._weights.get(constant)
        if found is None:
            proto = tensor_proto(constant.array, "")
            found = self._weights[constant] = proto.name = self.names.take(wanted)
            self.initializers.append(proto)
        return found

    def forget_weights(self, kept: int) -> None:
        """Drop all weights but the first ``kept``."""
        while len(self.initializers) > kept:
            self.initializers.pop()
            self._weights.popitem()


def tensor_proto(array: Array, name: str) -> onnx.TensorProto:
    """A weight; strings are written as UTF-8."""
    if array.dtype.hasobject:
        texts: Any = [str(item).encode() for item in array.reshape(-1)]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, texts)
    if array.dtype.isbuiltin != 1 and element_of(array.dtype).bits >= 8:
        # Releases of onnx before 1.19 do not know the types of ml_dtypes.
        data = np.ascontiguousarray(array).tobytes()
        return onnx.TensorProto(name=name, data_type=data_type_of(array.dtype), dims=array.shape, raw_data=data)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a model was written, to go back to when a form does not fit."""

    nodes: int
    bound: int
    weights: int
    names: int
    node_names: int
    location: Location


class Emit:
    """Writes the nodes of one graph. ``location`` is given to every node written."""

    __slots__ = ("_bound", "_known", "_types", "location", "model", "nodes")

    def __init__(self, model: Model) -> None:
        self.model = model
        self.nodes: list[onnx.NodeProto] = []
        self.location: Location = UNKNOWN_LOCATION
        self._known: dict[Value, str] = {}
        self._types: dict[str, str] = {}
        self._bound: list[Value] = []

    def inner(self) -> Emit:
        """For a subgraph, which sees the names so far."""
        inside = Emit(self.model)
        inside._known.update(self._known)
        inside._types.update(self._types)
        return inside

    def bind(self, value: Value, name: str) -> None:
        """Let ``name`` stand for the value."""
        if value not in self._known:
            self._bound.append(value)
        self._known[value] = name
        self._types[name] = type_string(value.type)

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
            self.bind(value, self.model.names.take(value.name or "value"))
        return self._known[value]

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:  # noqa: ANN401
        """Write a node; empty names at the end of the inputs are left out, attributes of None too.

        ``domain`` is the operator's, by default ai.onnx. Raises NoForm where the operator set has no such node.
        """
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        first = self.location.nodes[0] if self.location.nodes else None
        domain = attributes.pop("domain", "")
        version = VERSIONS.get(domain, self.model.opset)
        stated = {key: value for key, value in attributes.items() if value is not None}
        spelled = Spelled(operator, domain, version, stated)
        spelled.take([self._types.get(name, "") for name in given])
        types = spelled.give([self._types.get(name, "") for name in outputs])
        self._types.update(zip(outputs, types, strict=True))
        name = self.model.nodes.take((first.name if first else "") or operator)
        self.model.domains.add(domain)
        proto = onnx.helper.make_node(
            operator, given, list(outputs), name=name, domain=domain or None, **spelled.attributes
        )
        if first is not None:
            proto.doc_string = str(self.location)
        self.nodes.append(proto)

    def new(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Write a node with one output of a new name, which is returned."""
        name = self.model.names.take(operator.lower())
        self._types.pop(name, None)
        self.node(operator, inputs, [name], **attributes)
        return name

    def op(self, op: Op, operator: str, *inputs: str, **attributes: Any) -> None:  # noqa: ANN401
        """Write a node for all results of ``op``; without ``inputs`` its operands."""
        results = [self.result_name(result) for result in op.results]
        self.node(operator, inputs or self.inputs(op), results, **attributes)

    def same(self, name: str, wanted: str, value: Value) -> None:
        """Let a value have another name too. Raises UnsupportedByOpset where there is no Identity of its type."""
        try:
            self.node("Identity", [name], [wanted])
        except NoForm as error:
            text = type_string(value.type)
            later = range(self.model.opset + 1, onnx.defs.onnx_opset_version() + 1)
            since = next((version for version in later if takes("Identity", version, text)), None)
            raise UnsupportedByOpset("identity", str(self.location), self.model.opset, error.reason, since) from error

    def constant(self, array: Array, wanted: str = "constant") -> str:
        """The name of a weight with this data."""
        return self._weight(Constant.of(array), wanted)

    def _weight(self, constant: Constant, wanted: str) -> str:
        name = self.model.weight(constant, wanted)
        self._types[name] = type_string(constant.type)
        return name

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
        """Write one operation in the first form that the operator set can say.

        Raises UnsupportedByOpset where there is none.
        """
        self.location = op.location
        if op.definition.holds_constant:
            self._write_constant(op)
            return
        mark = self._mark()
        refusal: NoForm | None = None
        for form in forms_of(op.definition):
            try:
                form(op, self)
            except (NoForm, UnsupportedType) as error:
                self._go_back(mark)
                refusal = refusal or _as_no_form(error)
            else:
                return
        self.model.depth += 1
        try:
            for way in ways_round(op) if self.model.depth <= _DEEPEST else ():
                try:
                    self._rewritten(op, way)
                except (NoForm, OpatlasError) as error:
                    self._go_back(mark)
                    refusal = refusal or _as_no_form(error)
                else:
                    return
        finally:
            self.model.depth -= 1
        raise self._refused(op, refusal)

    def _write_constant(self, op: Op) -> None:
        constant = op.attributes["value"]
        assert isinstance(constant, Constant)
        name = self._weight(constant, op.result.name or "constant")
        if self.has(op.result):
            self.same(name, self.name(op.result), op.result)
        else:
            self.bind(op.result, name)

    def _rewritten(self, op: Op, way: Rewrite) -> None:
        """Write other operations that give the same results."""
        graph, values = rebuilt(op, way, self)
        for value, original in zip(values, op.results, strict=True):
            if value.op is not None and not self.has(value) and not value.op.definition.holds_constant:
                self.bind(value, self.result_name(original))
        for inner in graph.ops:
            self.write(inner)
        self.location = op.location
        for value, original in zip(values, op.results, strict=True):
            if self.name(value) != self.result_name(original):
                self.same(self.name(value), self.result_name(original), original)

    def _refused(self, op: Op, refusal: NoForm | None) -> UnsupportedByOpset:
        reason = "it has no ONNX form" if refusal is None else refusal.reason
        model = self.model
        since = None if model.depth or model.probing else _first_to_say(op, model.opset)
        return UnsupportedByOpset(op.name, str(op.location), model.opset, reason, since)

    def _mark(self) -> _Mark:
        model = self.model
        return _Mark(
            len(self.nodes),
            len(self._bound),
            len(model.initializers),
            len(model.names),
            len(model.nodes),
            self.location,
        )

    def _go_back(self, mark: _Mark) -> None:
        del self.nodes[mark.nodes :]
        while len(self._bound) > mark.bound:
            del self._known[self._bound.pop()]
        self.model.forget_weights(mark.weights)
        self.model.names.forget(mark.names)
        self.model.nodes.forget(mark.node_names)
        self.location = mark.location


def _as_no_form(error: NoForm | OpatlasError) -> NoForm:
    return error if isinstance(error, NoForm) else NoForm(error.message)


def _first_to_say(op: Op, above: int) -> int | None:
    """The first operator set above ``above`` in which the operation can be written; None where there is none."""
    for version in range(above + 1, onnx.defs.onnx_opset_version() + 1):
        probe = Emit(Model(version, probing=True))
        for value in dict.fromkeys((*op.operands, *captured(op))):
            if value is not None and value.op is not None and value.op.definition.holds_constant:
                probe.write(value.op)
            elif value is not None:
                probe.bind(value, probe.model.names.take(value.name or "input"))
        try:
            probe.write(op)
        except UnsupportedByOpset:
            continue
        return version
    return None
