"""Models in memory that break one rule each, named by what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSET = 21

Dims = Sequence[int | str | None] | None
Typed = tuple[str, int, Dims]


def _value(typed: Typed) -> ValueInfoProto:
    return helper.make_tensor_value_info(*typed)


def _model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Typed] = (("x", FLOAT, [2, 3]),),
    outputs: Sequence[Typed] = (("y", FLOAT, None),),
    constants: Mapping[str, object] | None = None,
    opset: int = OPSET,
) -> ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "broken", [_value(i) for i in inputs], [_value(o) for o in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _one(
    operator: str,
    *inputs: Typed,
    output: int = FLOAT,
    constants: Mapping[str, object] | None = None,
    **attributes: Any,  # noqa: ANN401 - whatever ONNX's helper takes
) -> ModelProto:
    """Return a model of one node that reads the inputs, then the constants, and writes y."""
    names = [name for name, _, _ in inputs] + list(constants or {})
    node = helper.make_node(operator, names, ["y"], name="broken_node", **attributes)
    return _model([node], inputs, [("y", output, None)], constants)


def _node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:  # noqa: ANN401
    return helper.make_node(operator, list(inputs), list(outputs), **attributes)


def _with_domain() -> ModelProto:
    model = _model([helper.make_node("Relu", ["x"], ["y"], domain="com.nowhere")])
    model.opset_import.append(helper.make_opsetid("com.nowhere", 1))
    return model


def _without_opset() -> ModelProto:
    model = _model([_node("Relu", ["x"], ["y"])])
    del model.opset_import[:]
    return model


def _with_tensor(change: Callable[[TensorProto], None]) -> ModelProto:
    model = _model([_node("Add", ["x", "w"], ["y"])], constants={"w": np.ones((2, 3), np.float32)})
    change(model.graph.initializer[0])
    return model


def _shorten(tensor: TensorProto) -> None:
    tensor.raw_data = tensor.raw_data[:-4]


def _lengthen(tensor: TensorProto) -> None:
    tensor.raw_data += b"\0" * 8


def _set_type(tensor: TensorProto, number: int) -> None:
    tensor.data_type = number


def _set_negative(tensor: TensorProto) -> None:
    tensor.dims[0] = -2


def _twice_initialized() -> ModelProto:
    model = _model([_node("Add", ["x", "w"], ["y"])], constants={"w": np.ones((2, 3), np.float32)})
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((2, 3), np.float32), "w"))
    return model


def _branch(name: str, outputs: int) -> GraphProto:
    nodes = [_node("Relu", ["x"], [f"{name}_{i}"]) for i in range(outputs)]
    return helper.make_graph(nodes, name, [], [_value((f"{name}_{i}", FLOAT, None)) for i in range(outputs)])


def _if(then_outputs: int, else_outputs: int | None, condition: Typed = ("c", BOOL, [])) -> ModelProto:
    branches: dict[str, Any] = {"then_branch": _branch("then", then_outputs)}
    if else_outputs is not None:
        branches["else_branch"] = _branch("else", else_outputs)
    node = helper.make_node("If", ["c"], ["y"], **branches)
    return _model([node], [condition, ("x", FLOAT, [2, 3])])


def _loop(body_inputs: Sequence[Typed]) -> ModelProto:
    nodes = [_node("Identity", ["cond_in"], ["cond_out"]), _node("Relu", ["v_in"], ["v_out"])]
    outputs = [_value(("cond_out", BOOL, [])), _value(("v_out", FLOAT, None))]
    body = helper.make_graph(nodes, "body", [_value(v) for v in body_inputs], outputs)
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    return _model([node], [("n", INT64, []), ("x", FLOAT, [2, 3])])


def _function(nodes: Sequence[NodeProto]) -> ModelProto:
    model = _model([helper.make_node("F", ["x"], ["y"], domain="local")])
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    model.opset_import.append(imports[1])
    model.functions.append(helper.make_function("local", "F", ["a"], ["b"], nodes, imports))
    return model


def _attribute_of_wrong_type() -> ModelProto:
    return _one("Softmax", ("x", FLOAT, [2, 3]), axis=1.5)


X23: Typed = ("x", FLOAT, [2, 3])

BROKEN_MODELS: Mapping[str, Callable[[], ModelProto]] = {
    "unknown-operator": partial(_one, "Nonsense", X23),
    "unknown-domain": _with_domain,
    "opset-0": lambda: _model([_node("Relu", ["x"], ["y"])], opset=0),
    "opset-of-the-future": lambda: _model([_node("Relu", ["x"], ["y"])], opset=9999),
    "operator-newer-than-the-opset": lambda: _model([_node("Gelu", ["x"], ["y"])], opset=13),
    "no-opset": _without_opset,
    "cycle": lambda: _model([_node("Add", ["x", "b"], ["a"]), _node("Relu", ["a"], ["b"]), _node("Neg", ["b"], ["y"])]),
    "self-cycle": lambda: _model([_node("Add", ["x", "y"], ["y"])]),
    "undefined-input": lambda: _model([_node("Add", ["x", "nowhere"], ["y"])]),
    "used-before-defined": lambda: _model([_node("Relu", ["a"], ["y"]), _node("Neg", ["x"], ["a"])]),
    "output-not-produced": lambda: _model([_node("Relu", ["x"], ["z"])]),
    "no-output": lambda: _model([_node("Relu", ["x"], ["y"])], outputs=()),
    "value-defined-twice": lambda: _model([_node("Relu", ["x"], ["y"]), _node("Neg", ["x"], ["y"])]),
    "value-shadows-input": lambda: _model([_node("Relu", ["x"], ["x"]), _node("Neg", ["x"], ["y"])]),
    "input-twice": lambda: _model([_node("Relu", ["x"], ["y"])], [X23, X23]),
    "initializer-twice": _twice_initialized,
    "input-missing": partial(_one, "Add", X23),
    "input-too-many": lambda: _model([_node("Relu", ["x", "x"], ["y"])]),
    "output-too-many": lambda: _model([_node("Relu", ["x"], ["y", "z"])]),
    "required-input-empty": lambda: _model([_node("Add", ["x", ""], ["y"])]),
    "attribute-missing": lambda: _model([_node("Concat", ["x", "x"], ["y"])]),
    "attribute-unknown": partial(_one, "Relu", X23, slope=0.5),
    "attribute-of-wrong-type": _attribute_of_wrong_type,
    "cast-to-no-type": partial(_one, "Cast", X23, to=0),
    "cast-to-unknown-type": partial(_one, "Cast", X23, to=99),
    "types-differ": partial(_one, "Add", X23, ("i", INT64, [2, 3])),
    "type-not-allowed": partial(_one, "MatMul", ("a", BOOL, [2, 2]), ("b", BOOL, [2, 2]), output=BOOL),
    "output-type-wrong": partial(_one, "Relu", X23, output=INT64),
    "output-rank-wrong": lambda: _model([_node("Relu", ["x"], ["y"])], outputs=[("y", FLOAT, [2, 3, 4])]),
    "output-shape-wrong": lambda: _model([_node("Relu", ["x"], ["y"])], outputs=[("y", FLOAT, [7, 3])]),
    "broadcast-impossible": partial(_one, "Add", X23, ("b", FLOAT, [4])),
    "matmul-sizes-differ": partial(_one, "MatMul", X23, ("b", FLOAT, [4, 5])),
    "gemm-of-rank-3": partial(_one, "Gemm", ("a", FLOAT, [2, 2, 2]), ("b", FLOAT, [2, 2])),
    "concat-sizes-differ": partial(_one, "Concat", X23, ("b", FLOAT, [2, 4]), axis=0),
    "conv-channels-differ": partial(_one, "Conv", ("a", FLOAT, [1, 3, 5, 5]), ("w", FLOAT, [4, 2, 3, 3])),
    "conv-kernel-rank": partial(_one, "Conv", ("a", FLOAT, [1, 2, 5, 5]), ("w", FLOAT, [4, 2, 3, 3]), kernel_shape=[3]),
    "conv-strides-rank": partial(_one, "Conv", ("a", FLOAT, [1, 2, 5, 5]), ("w", FLOAT, [4, 2, 3, 3]), strides=[1]),
    "batch-norm-channels": lambda: _model(
        [_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"])],
        [("x", FLOAT, [1, 3, 2, 2]), ("s", FLOAT, [4])],
    ),
    "reshape-size": partial(_one, "Reshape", X23, constants={"s": np.array([4, 2])}),
    "reshape-two-unknowns": partial(_one, "Reshape", X23, constants={"s": np.array([-1, -1])}),
    "expand-impossible": partial(_one, "Expand", X23, constants={"s": np.array([4, 4])}),
    "tile-length": partial(_one, "Tile", X23, constants={"r": np.array([2])}),
    "pad-length": partial(_one, "Pad", X23, constants={"p": np.array([1, 1])}),
    "split-sum": lambda: _model(
        [_node("Split", ["x", "s"], ["y", "z"], axis=1)],
        outputs=[("y", FLOAT, None), ("z", FLOAT, None)],
        constants={"s": np.array([1, 1])},
    ),
    "squeeze-of-3": partial(_one, "Squeeze", X23, constants={"a": np.array([1])}),
    "unsqueeze-twice": partial(_one, "Unsqueeze", X23, constants={"a": np.array([0, 0])}),
    "transpose-perm-twice": partial(_one, "Transpose", X23, perm=[0, 0]),
    "transpose-perm-length": partial(_one, "Transpose", X23, perm=[0, 1, 2]),
    "softmax-axis": partial(_one, "Softmax", X23, axis=5),
    "gather-axis": partial(_one, "Gather", X23, ("i", INT64, [1]), axis=-3),
    "gather-index": partial(_one, "Gather", X23, constants={"i": np.array([7])}),
    "reduce-axis": partial(_one, "ReduceSum", X23, constants={"a": np.array([2])}),
    "topk-too-many": lambda: _model(
        [_node("TopK", ["x", "k"], ["y", "i"])],
        outputs=[("y", FLOAT, None), ("i", INT64, None)],
        constants={"k": np.array([9])},
    ),
    "einsum-equation": partial(_one, "Einsum", X23, equation="ijk->i"),
    "einsum-sizes-differ": partial(_one, "Einsum", X23, ("b", FLOAT, [4, 5]), equation="ij,jk->ik"),
    "weights-too-few": partial(_with_tensor, _shorten),
    "weights-too-many": partial(_with_tensor, _lengthen),
    "weights-of-unknown-type": partial(_with_tensor, partial(_set_type, number=999)),
    "weights-of-no-type": partial(_with_tensor, partial(_set_type, number=0)),
    "weights-of-negative-size": partial(_with_tensor, _set_negative),
    "if-without-else": partial(_if, 1, None),
    "if-branches-differ": partial(_if, 1, 2),
    "if-condition-not-bool": partial(_if, 1, 1, ("c", FLOAT, [])),
    "loop-body-arity": partial(_loop, [("i", INT64, []), ("cond_in", BOOL, [])]),
    "loop-carried-type": partial(_loop, [("i", INT64, []), ("cond_in", BOOL, []), ("v_in", INT64, [2, 3])]),
    "function-calls-itself": lambda: _function([helper.make_node("F", ["a"], ["b"], domain="local")]),
    "function-output-missing": lambda: _function([_node("Relu", ["a"], ["c"])]),
    "function-undefined-input": lambda: _function([_node("Add", ["a", "nowhere"], ["b"])]),
}
"""Name -> a function that makes the broken model."""
