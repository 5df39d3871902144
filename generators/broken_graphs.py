"""Models whose shapes, scopes, subgraphs or operator sets break a rule: those that no schema states for a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET = 21
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

Dims = Sequence[int] | None


@dataclass(frozen=True, slots=True)
class BrokenGraph:
    """A broken model, what it breaks, and the class of diagnosis that is expected."""

    rule: str
    statement: str
    diagnosis: str
    operator: str
    build: Callable[[], ModelProto]


@dataclass(frozen=True, slots=True)
class Shapes:
    """A node whose operator does not take the shapes of its inputs; ``values`` are inputs with known content."""

    operator: str
    shapes: tuple[Dims, ...]
    attributes: Mapping[str, Any]
    values: Mapping[int, Any]
    elements: Mapping[int, int]

    def build(self) -> ModelProto:
        """The model of the one node."""
        names = [f"x{index}" for index in range(len(self.shapes))]
        inputs = [
            helper.make_tensor_value_info(name, self.elements.get(at, FLOAT), dims)
            for at, (name, dims) in enumerate(zip(names, self.shapes, strict=True))
            if at not in self.values and dims is not None
        ]
        weights = [numpy_helper.from_array(np.asarray(value), names[at]) for at, value in self.values.items()]
        given = [n if at in self.values or self.shapes[at] is not None else "" for at, n in enumerate(names)]
        node = helper.make_node(self.operator, given, ["y"], **self.attributes)
        return _model([node], inputs, [("y", self.elements.get(-1, FLOAT), None)], weights)


def _model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[tuple[str, int, Dims]] = (("y", FLOAT, None),),
    weights: Sequence[TensorProto] = (),
    opset: int = OPSET,
) -> ModelProto:
    declared = [helper.make_tensor_value_info(*one) for one in outputs]
    graph = helper.make_graph(nodes, "broken", inputs, declared, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _shapes(
    operator: str,
    *shapes: Dims,
    values: Mapping[int, Any] | None = None,
    elements: Mapping[int, int] | None = None,
    **attributes: Any,  # noqa: ANN401 - whatever ONNX's helper takes
) -> Shapes:
    return Shapes(operator, shapes, attributes, values or {}, elements or {})


_BROADCAST = "sizes of one dimension are equal or 1 in inputs that broadcast"
_RANK = "the input has the rank that the operator's specification asks for"
_SIZES = "sizes that the specification calls equal are equal"

_BOTH_BOOL: Mapping[int, int] = {0: BOOL, 1: BOOL, -1: BOOL}
_BYTES: Mapping[int, int] = {0: TensorProto.UINT8, 1: TensorProto.UINT8, -1: TensorProto.INT32}
_BOTH_INT: Mapping[int, int] = {0: INT64, 1: INT64, -1: INT64}
_TO_BOOL: Mapping[int, int] = {-1: BOOL}
_BINARY: Mapping[str, Mapping[int, int]] = {
    **{name: {} for name in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "PRelu")},
    **dict.fromkeys(("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"), _TO_BOOL),
    **dict.fromkeys(("And", "Or", "Xor"), _BOTH_BOOL),
    **dict.fromkeys(("Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), _BOTH_INT),
}  # fmt: skip

_RANKS: tuple[Shapes, ...] = (
    _shapes("Gemm", [2, 3, 4], [4, 5]),
    _shapes("Gemm", [3], [3, 5]),
    _shapes("Gemm", [2, 3], [3, 4, 5]),
    _shapes("MatMul", [], [3, 4]),
    _shapes("MatMul", [3, 4], []),
    _shapes("Conv", [3, 8], [4, 3, 3, 3]),
    _shapes("Conv", [1, 3, 8], [4, 3, 3, 3]),
    _shapes("Conv", [1, 3, 8, 8], [4, 3, 3]),
    _shapes("Conv", [1, 3, 8, 8], [4, 3, 3, 3], [4, 1]),
    _shapes("ConvTranspose", [1, 3, 8], [3, 4, 3, 3]),
    _shapes("ConvTranspose", [3], [3, 4, 3]),
    _shapes("MaxPool", [3, 8], kernel_shape=[2, 2]),
    _shapes("MaxPool", [1, 3, 8, 8], kernel_shape=[2]),
    _shapes("AveragePool", [8], kernel_shape=[2]),
    _shapes("AveragePool", [1, 3, 8], kernel_shape=[2, 2]),
    _shapes("LpPool", [1, 3, 8, 8], kernel_shape=[2]),
    _shapes("BatchNormalization", [1, 3, 4], [3, 1], [3], [3], [3]),
    _shapes("BatchNormalization", [1, 3, 4], [3], [3], [3, 3], [3]),
    _shapes("InstanceNormalization", [1, 3, 4], [1, 3], [3]),
    _shapes("DepthToSpace", [1, 8, 4], blocksize=2),
    _shapes("SpaceToDepth", [4, 4], blocksize=2),
    _shapes("Det", [3]),
    _shapes("LSTM", [2, 4], [1, 20, 4], [1, 20, 5], hidden_size=5),
    _shapes("LSTM", [3, 2, 4], [20, 4], [1, 20, 5], hidden_size=5),
    _shapes("GRU", [3, 2, 4], [1, 15, 4], [15, 5], hidden_size=5),
    _shapes("RNN", [3, 2, 4, 1], [1, 5, 4], [1, 5, 5], hidden_size=5),
    _shapes("Trilu", [4]),
    _shapes("GridSample", [1, 2, 4, 4], [1, 3, 3]),
    _shapes("RoiAlign", [2, 8, 8], [3, 4], [3], elements={2: INT64}),
    _shapes("RoiAlign", [1, 2, 8, 8], [3, 4, 1], [3], elements={2: INT64}),
    _shapes("MaxRoiPool", [1, 2, 6, 6], [3, 4], pooled_shape=[2, 2]),
    _shapes("ReverseSequence", [4, 3], [3, 1], elements={1: INT64}),
    _shapes("GatherElements", [3, 4], [3], elements={1: INT64}),
    _shapes("ScatterElements", [3, 4], [3], [3], elements={1: INT64}),
    _shapes("GatherND", [3, 4], [2, 3], elements={1: INT64}),
    _shapes("ScatterND", [3, 4], [2, 3], [2], elements={1: INT64}),
    _shapes("NonMaxSuppression", [6, 4], [1, 1, 6], elements={-1: INT64}),
    _shapes("Concat", [2, 3], [2, 3, 1], axis=0),
    _shapes("EyeLike", [3]),
    _shapes("AffineGrid", [2, 3], [4], values={1: np.array([2, 3, 4, 5])}),
    _shapes("NegativeLogLikelihoodLoss", [3, 5], [3, 1], elements={1: INT64}),
    _shapes("SoftmaxCrossEntropyLoss", [3, 5], [3, 1], elements={1: INT64}),
)

_UNEQUAL: tuple[Shapes, ...] = (
    _shapes("MatMul", [2, 3], [4, 5]),
    _shapes("MatMul", [3], [4]),
    _shapes("MatMul", [2, 3, 4], [3, 4, 5]),
    _shapes("MatMul", [2, 3, 4], [5]),
    _shapes("Gemm", [2, 3], [4, 5]),
    _shapes("Gemm", [2, 3], [3, 5], transB=1),
    _shapes("Gemm", [2, 3], [3, 5], transA=1),
    _shapes("Gemm", [2, 3], [3, 5], [4]),
    _shapes("Gemm", [2, 3], [3, 5], [3, 5]),
    _shapes("Conv", [1, 3, 8, 8], [4, 2, 3, 3]),
    _shapes("Conv", [1, 4, 8, 8], [3, 2, 3, 3], group=2),
    _shapes("Conv", [1, 3, 8, 8], [4, 3, 3, 3], [5]),
    _shapes("Conv", [1, 4, 8, 8], [4, 4, 3, 3], group=2),
    _shapes("ConvTranspose", [1, 3, 8, 8], [4, 2, 3, 3]),
    _shapes("ConvTranspose", [1, 3, 8, 8], [3, 2, 3, 3], [3]),
    _shapes("BatchNormalization", [1, 3, 4], [3], [3], [4], [3]),
    _shapes("BatchNormalization", [1, 3, 4], [4], [4], [4], [4]),
    _shapes("InstanceNormalization", [1, 3, 4], [2], [3]),
    _shapes("LayerNormalization", [2, 5], [4]),
    _shapes("LayerNormalization", [2, 5], [5], [3]),
    _shapes("GroupNormalization", [1, 4, 3], [3], [4], num_groups=2),
    _shapes("GroupNormalization", [1, 4, 3], [4], [4], num_groups=3),
    _shapes("Concat", [2, 3], [2, 4], axis=0),
    _shapes("Concat", [2, 3, 5], [2, 4, 6], axis=2),
    _shapes("DepthToSpace", [1, 6, 2, 2], blocksize=2),
    _shapes("SpaceToDepth", [1, 1, 3, 4], blocksize=2),
    _shapes("Det", [3, 4]),
    _shapes("LSTM", [3, 2, 4], [1, 20, 3], [1, 20, 5], hidden_size=5),
    _shapes("LSTM", [3, 2, 4], [1, 20, 4], [1, 20, 4]),
    _shapes("LSTM", [3, 2, 4], [1, 20, 4], [1, 20, 5], [1, 39], hidden_size=5),
    _shapes("LSTM", [3, 2, 4], [2, 20, 4], [2, 20, 5], hidden_size=5),
    _shapes("GRU", [3, 2, 4], [1, 14, 4], [1, 15, 5], hidden_size=5),
    _shapes("GRU", [3, 2, 4], [1, 15, 4], [1, 15, 5], None, None, [1, 3, 5], hidden_size=5),
    _shapes("RNN", [3, 2, 4], [1, 5, 4], [1, 5, 6]),
    _shapes("RNN", [3, 2, 4], [1, 5, 4], [1, 5, 5], [1, 9], hidden_size=5),
    _shapes("Einsum", [2, 3], [4, 5], equation="ij,jk->ik"),
    _shapes("Einsum", [2, 3], equation="ii->i"),
    _shapes("GridSample", [1, 2, 4, 4], [2, 3, 3, 2]),
    _shapes("GridSample", [1, 2, 4, 4], [1, 3, 3, 3]),
    _shapes("RoiAlign", [1, 2, 8, 8], [3, 4], [2], elements={2: INT64}),
    _shapes("RoiAlign", [1, 2, 8, 8], [3, 5], [3], elements={2: INT64}),
    _shapes("ReverseSequence", [4, 3], [2], elements={1: INT64}),
    _shapes("ScatterElements", [3, 4], [2, 2], [2, 3], elements={1: INT64}),
    _shapes("ScatterND", [3, 4], [2, 1], [2, 5], elements={1: INT64}),
    _shapes("ScatterND", [3, 4], [2, 1], [3, 4], elements={1: INT64}),
    _shapes("NonMaxSuppression", [1, 6, 4], [1, 1, 5], elements={-1: INT64}),
    _shapes("NonMaxSuppression", [1, 6, 3], [1, 1, 6], elements={-1: INT64}),
    _shapes("NegativeLogLikelihoodLoss", [3, 5], [4], elements={1: INT64}),
    _shapes("NegativeLogLikelihoodLoss", [3, 5], [3], [4], elements={1: INT64}),
    _shapes("SoftmaxCrossEntropyLoss", [3, 5, 2], [3, 3], elements={1: INT64}),
    _shapes("OneHot", [3], [], [3], elements={0: INT64, 1: INT64}),
    _shapes("Reshape", [2, 3], [2], values={1: np.array([4, 2])}),
    _shapes("Reshape", [2, 3], [2], values={1: np.array([-1, 4])}),
    _shapes("Expand", [2, 3], [2], values={1: np.array([4, 4])}),
    _shapes("Squeeze", [2, 3], [1], values={1: np.array([1])}),
    _shapes("Split", [2, 5], [2], values={1: np.array([2, 4])}, axis=1),
    _shapes("MaxUnpool", [1, 1, 2, 2], [1, 1, 2, 3], elements={1: INT64}, kernel_shape=[2, 2]),
    _shapes("MatMulInteger", [2, 3], [4, 5], elements=_BYTES),
    _shapes("ConvInteger", [1, 3, 6, 6], [4, 2, 3, 3], elements=_BYTES),
    _shapes("QuantizeLinear", [3, 4], [3], elements={-1: TensorProto.UINT8}, axis=1),
    _shapes("DequantizeLinear", [3, 4], [3], elements={0: TensorProto.UINT8}, axis=1),
    _shapes("Where", [2, 3], [2, 4], [2, 3], elements={0: BOOL}),
)  # fmt: skip

X = helper.make_tensor_value_info("x", FLOAT, [2, 3])
C = helper.make_tensor_value_info("c", BOOL, [])
N = helper.make_tensor_value_info("n", INT64, [])


def _node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:  # noqa: ANN401
    return helper.make_node(operator, list(inputs), list(outputs), **attributes)


def _ring(length: int) -> ModelProto:
    """A cycle of so many nodes beside an input."""
    nodes = [_node("Add", ["x", f"v{(at - 1) % length}"], [f"v{at}"]) for at in range(length)]
    return _model([*nodes, _node("Relu", ["v0"], ["y"])], [X])


def _branch(name: str, nodes: Sequence[NodeProto], outputs: Sequence[tuple[str, int, Dims]]) -> GraphProto:
    return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info(*one) for one in outputs])


def _if(then: GraphProto, other: GraphProto, outputs: int = 1, condition: ValueInfoProto = C) -> ModelProto:
    names = [f"y{at}" for at in range(outputs)]
    node = _node("If", [condition.name], names, then_branch=then, else_branch=other)
    return _model([node], [condition, X], [(name, FLOAT, None) for name in names])


def _relu(source: str, target: str) -> GraphProto:
    return _branch(target, [_node("Relu", [source], [target])], [(target, FLOAT, None)])


def _loop(
    nodes: Sequence[NodeProto],
    inputs: Sequence[tuple[str, int, Dims]] = (("i", INT64, []), ("going", BOOL, []), ("v", FLOAT, [2, 3])),
    outputs: Sequence[tuple[str, int, Dims]] = (("go", BOOL, []), ("w", FLOAT, None)),
    trip: ValueInfoProto = N,
    results: Sequence[str] = ("y",),
) -> ModelProto:
    taken, given = ([helper.make_tensor_value_info(*one) for one in part] for part in (inputs, outputs))
    body = helper.make_graph(list(nodes), "body", taken, given)
    node = _node("Loop", [trip.name, "", "x"], results, body=body)
    return _model([node], [trip, X], [(name, FLOAT, None) for name in results])


_GO = _node("Identity", ["going"], ["go"])
_STEP = _node("Relu", ["v"], ["w"])


def _scan(
    nodes: Sequence[NodeProto],
    inputs: Sequence[tuple[str, int, Dims]],
    count: int,
    **attributes: Any,  # noqa: ANN401
) -> ModelProto:
    body = helper.make_graph(
        list(nodes), "body", [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in ("t", "o")],
    )  # fmt: skip
    start = helper.make_tensor_value_info("s", FLOAT, [3])
    node = _node("Scan", ["s", "x"], ["last", "y"], body=body, num_scan_inputs=count, **attributes)
    return _model([node], [start, X], [("last", FLOAT, None), ("y", FLOAT, None)])


_ADDS = (_node("Add", ["a", "b"], ["t"]), _node("Identity", ["t"], ["o"]))
_STATE = (("a", FLOAT, [3]), ("b", FLOAT, [3]))


def _imports(*pairs: tuple[str, int]) -> ModelProto:
    model = _model([_node("Relu", ["x"], ["y"])], [X])
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*pair) for pair in pairs)
    return model


def _nodes(*nodes: NodeProto, outputs: Sequence[tuple[str, int, Dims]] = (("y", FLOAT, None),)) -> ModelProto:
    return _model(nodes, [X], outputs)


_SSA = "each value has one definition, before its first use, in a graph without cycles"
_SCOPE = "a subgraph sees the names of the graphs around it, and those around it see none of its own"
_BODY = "a subgraph has the inputs and outputs that its operator's specification asks for"
_BODY_TYPES = "values that a subgraph passes on have the types that they come in with"
_SET = "a model imports each operator set once, in a version that exists"

_STRUCTURE: tuple[tuple[str, str, str, str, Callable[[], ModelProto]], ...] = (
    *((f"cycle-of-{n}", _SSA, "InvalidModel", "Add", lambda n=n: _ring(n)) for n in (1, 2, 3, 7)),
    ("used-before-defined", _SSA, "InvalidModel", "Relu",
     lambda: _nodes(_node("Relu", ["a"], ["y"]), _node("Neg", ["x"], ["a"]))),
    ("never-defined", _SSA, "InvalidModel", "Add", lambda: _nodes(_node("Add", ["x", "nowhere"], ["y"]))),
    ("defined-twice", _SSA, "InvalidModel", "Relu",
     lambda: _nodes(_node("Relu", ["x"], ["y"]), _node("Neg", ["x"], ["y"]))),
    ("defined-twice-by-one-node", _SSA, "InvalidModel", "Split",
     lambda: _nodes(_node("Split", ["x"], ["y", "y"], num_outputs=2))),
    ("input-redefined", _SSA, "InvalidModel", "Relu",
     lambda: _nodes(_node("Relu", ["x"], ["x"]), _node("Neg", ["x"], ["y"]))),
    ("output-undefined", _SSA, "InvalidModel", "Relu", lambda: _nodes(_node("Relu", ["x"], ["z"]))),
    ("input-twice", _SSA, "InvalidModel", "Relu", lambda: _model([_node("Relu", ["x"], ["y"])], [X, X])),
    ("branch-value-leaks", _SCOPE, "InvalidModel", "If",
     lambda: _with_nodes(_if(_relu("x", "p"), _relu("x", "q")), _node("Neg", ["p"], ["z"]), output="z")),
    ("branch-reads-nowhere", _SCOPE, "InvalidModel", "If", lambda: _if(_relu("nowhere", "p"), _relu("x", "q"))),
    ("branch-reads-the-other", _SCOPE, "InvalidModel", "If", lambda: _if(_relu("x", "p"), _relu("p", "q"))),
    ("branch-redefines-outer", _SCOPE, "InvalidModel", "If", lambda: _if(_relu("x", "x"), _relu("x", "q"))),
    ("branch-cycle", _SSA, "InvalidModel", "If",
     lambda: _if(_branch("t", [_node("Add", ["x", "p"], ["p"])], [("p", FLOAT, None)]), _relu("x", "q"))),
    ("branch-outputs-differ", _BODY, "InvalidModel", "If",
     lambda: _if(_branch("t", [_node("Relu", ["x"], ["p"]), _node("Neg", ["x"], ["r"])],
                         [("p", FLOAT, None), ("r", FLOAT, None)]), _relu("x", "q"))),
    ("branch-outputs-too-few", _BODY, "InvalidModel", "If", lambda: _if(_relu("x", "p"), _relu("x", "q"), outputs=2)),
    ("branch-with-inputs", _BODY, "InvalidModel", "If", lambda: _if(_with_input(_relu("x", "p")), _relu("x", "q"))),
    ("branch-types-differ", _BODY_TYPES, "TypeMismatch", "If",
     lambda: _if(_branch("t", [_node("Cast", ["x"], ["p"], to=INT64)], [("p", INT64, None)]), _relu("x", "q"))),
    ("condition-is-float", "a condition is a boolean", "TypeMismatch", "If",
     lambda: _if(_relu("x", "p"), _relu("x", "q"), condition=helper.make_tensor_value_info("c", FLOAT, []))),
    ("condition-of-two", "a condition has one element", "TypeMismatch", "If",
     lambda: _if(_relu("x", "p"), _relu("x", "q"), condition=helper.make_tensor_value_info("c", BOOL, [2]))),
    ("body-inputs-too-few", _BODY, "InvalidModel", "Loop",
     lambda: _loop([_GO, _node("Relu", ["x"], ["w"])], (("i", INT64, []), ("going", BOOL, [])))),
    ("body-inputs-too-many", _BODY, "InvalidModel", "Loop",
     lambda: _loop([_GO, _STEP], (("i", INT64, []), ("going", BOOL, []), ("v", FLOAT, [2, 3]), ("u", FLOAT, [2])))),
    ("body-outputs-too-few", _BODY, "InvalidModel", "Loop", lambda: _loop([_GO, _STEP], outputs=(("go", BOOL, []),))),
    ("body-without-outputs", _BODY, "InvalidModel", "Loop", lambda: _loop([_GO, _STEP], outputs=())),
    ("body-condition-is-float", _BODY_TYPES, "TypeMismatch", "Loop",
     lambda: _loop([_node("Relu", ["v"], ["w"]), _node("Relu", ["v"], ["go"])],
                   outputs=(("go", FLOAT, None), ("w", FLOAT, None)))),
    ("body-carries-another-type", _BODY_TYPES, "TypeMismatch", "Loop",
     lambda: _loop([_GO, _node("Cast", ["v"], ["w"], to=INT64)], outputs=(("go", BOOL, []), ("w", INT64, None)))),
    ("body-input-of-another-type", _BODY_TYPES, "TypeMismatch", "Loop",
     lambda: _loop([_GO, _node("Identity", ["v"], ["w"])],
                   (("i", INT64, []), ("going", BOOL, []), ("v", INT64, [2, 3])),
                   (("go", BOOL, []), ("w", INT64, None)))),
    ("body-counter-is-float", _BODY_TYPES, "TypeMismatch", "Loop",
     lambda: _loop([_GO, _STEP], (("i", FLOAT, []), ("going", BOOL, []), ("v", FLOAT, [2, 3])))),
    ("body-reads-nowhere", _SCOPE, "InvalidModel", "Loop", lambda: _loop([_GO, _node("Relu", ["nowhere"], ["w"])])),
    ("body-redefines-its-input", _SSA, "InvalidModel", "Loop",
     lambda: _loop([_GO, _node("Relu", ["v"], ["v"]), _STEP])),
    ("trip-count-is-float", "a trip count is an int64", "TypeMismatch", "Loop",
     lambda: _loop([_GO, _STEP], trip=helper.make_tensor_value_info("n", FLOAT, []))),
    ("loop-results-too-many", _BODY, "InvalidModel", "Loop", lambda: _loop([_GO, _STEP], results=("y", "z"))),
    ("scan-inputs-too-many", _BODY, "InvalidModel", "Scan", lambda: _scan(_ADDS, _STATE, 3)),
    ("scan-body-inputs-too-few", _BODY, "InvalidModel", "Scan",
     lambda: _scan([_node("Relu", ["a"], ["t"]), _node("Identity", ["t"], ["o"])], _STATE[:1], 1)),
    ("scan-state-of-another-type", _BODY_TYPES, "TypeMismatch", "Scan",
     lambda: _scan(_ADDS, (("a", INT64, [3]), ("b", INT64, [3])), 1)),
    ("scan-axis", "a scan axis is an axis of its input", "InvalidAttribute", "Scan",
     lambda: _scan(_ADDS, _STATE, 1, scan_input_axes=[5])),
    ("scan-axes-too-many", "there is one axis for each scan input", "InvalidAttribute", "Scan",
     lambda: _scan(_ADDS, _STATE, 1, scan_input_axes=[0, 0])),
    ("scan-directions-too-many", "there is one direction for each scan input", "InvalidAttribute", "Scan",
     lambda: _scan(_ADDS, _STATE, 1, scan_input_directions=[0, 1])),
    ("scan-direction", "a direction is 0 or 1", "InvalidAttribute", "Scan",
     lambda: _scan(_ADDS, _STATE, 1, scan_input_directions=[2])),
    ("opset-0", _SET, "InvalidModel", "Relu", lambda: _imports(("", 0))),
    ("opset-negative", _SET, "InvalidModel", "Relu", lambda: _imports(("", -1))),
    ("opset-beyond-the-newest", _SET, "InvalidModel", "Relu", lambda: _imports(("", 999))),
    ("opset-of-ml-beyond-the-newest", _SET, "InvalidModel", "Relu", lambda: _imports(("", OPSET), ("ai.onnx.ml", 99))),
    ("opset-twice", _SET, "InvalidModel", "Relu", lambda: _imports(("", OPSET), ("", 13))),
    ("opset-missing", _SET, "InvalidModel", "Relu", lambda: _imports(("ai.onnx.ml", 3))),
    ("opset-none", _SET, "InvalidModel", "Relu", _imports),
)  # fmt: skip


def _with_nodes(model: ModelProto, *nodes: NodeProto, output: str) -> ModelProto:
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_tensor_value_info(output, FLOAT, None))
    return model


def _with_input(graph: GraphProto) -> GraphProto:
    graph.input.append(helper.make_tensor_value_info("extra", FLOAT, [1]))
    return graph


def _all() -> Iterator[tuple[str, BrokenGraph]]:
    for operator, elements in _BINARY.items():
        for at, (one, other) in enumerate((([2, 3], [4]), ([2, 3], [3, 3]), ([4, 1, 5], [3, 4]))):
            shapes = Shapes(operator, (one, other), {}, {}, elements)
            yield (
                f"broadcast-{operator}-{at}",
                BrokenGraph("broadcast", _BROADCAST, "TypeMismatch", operator, shapes.build),
            )
    for rule, statement, table in (("rank", _RANK, _RANKS), ("sizes", _SIZES, _UNEQUAL)):
        for shapes in table:
            sizes = "_".join("none" if one is None else "x".join(map(str, one)) or "scalar" for one in shapes.shapes)
            told = "".join(f"-{name}={value}" for name, value in shapes.attributes.items() if isinstance(value, int))
            told += "".join(f"-to={'x'.join(map(str, value))}" for value in shapes.values.values())
            identity = f"{rule}-{shapes.operator}-{sizes}{told}"
            yield identity, BrokenGraph(rule, statement, "TypeMismatch", shapes.operator, shapes.build)
    for name, statement, diagnosis, operator, build in _STRUCTURE:
        yield f"structure-{name}", BrokenGraph("structure", statement, diagnosis, operator, build)


GRAPHS: Mapping[str, BrokenGraph] = dict(_all())
"""Id -> broken model."""
