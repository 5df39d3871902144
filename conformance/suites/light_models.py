"""The networks that the onnx package ships without weights, given weights that make them compute something.

As shipped, every weight is a ConstantOfShape of 0.02 and the output is the same for any input. Here convolutions and
matrix products get normal weights scaled after He et al. (2015, "Delving Deep into Rectifiers"), batch normalizations
the mean and variance of what really arrives at them for a seeded input: found by running onnxruntime node by node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

from conformance.onnxruntime_runner import open_session

FloatArray = NDArray[np.float32]
_Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]

_EPSILON = 1e-5
"""Added to a calibrated variance: a dead channel must not divide by zero."""


def _he(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Weights [outputs, inputs, ...]: standard deviation sqrt(2 / fan-in)."""
    fan_in = max(int(np.prod(shape[1:])), 1)
    return np.asarray(generator.standard_normal(shape) * np.sqrt(2.0 / fan_in), np.float32)


def _near_one(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return generator.uniform(0.8, 1.2, shape).astype(np.float32)


def _near_zero(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return (generator.standard_normal(shape) * 0.1).astype(np.float32)


_ROLES: Mapping[tuple[str, int], _Draw] = {
    ("Conv", 1): _he,
    ("Conv", 2): _near_zero,
    ("Gemm", 1): _he,
    ("Gemm", 2): _near_zero,
    ("BatchNormalization", 1): _near_one,
    ("BatchNormalization", 2): _near_zero,
    ("BatchNormalization", 3): _near_zero,
    ("BatchNormalization", 4): _near_one,
    ("Mul", 1): _near_one,
    ("Add", 1): _near_zero,
}
"""(operator, operand index) -> how a parameter in that place is drawn."""


def light_model(name: str) -> ModelProto:
    """Return the network `name`, such as ``resnet50``, with calibrated weights; the same bytes every time."""
    path = files("onnx") / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.load_from_string(path.read_bytes())
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    parameters = _draw_parameters(model, np.random.default_rng(seed))
    _calibrate(model, parameters, seeded_image(model, seed))
    return _with_parameters(model, parameters)


def seeded_image(model: ModelProto, seed: int) -> FloatArray:
    """Return a random image of the shape of the model's data input."""
    shape = next(
        [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
        if len(value.type.tensor_type.shape.dim) == 4 and value.type.tensor_type.shape.dim[1].dim_value == 3
    )
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _draw_parameters(model: ModelProto, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Return a value for each float parameter, by the first place that it is used in."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    shapes = {name: array.shape for name, array in constants.items() if array.dtype == np.float32}
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in constants:
            shapes[node.output[0]] = tuple(int(size) for size in constants[node.input[0]])
    roles = _roles(model)
    return {name: roles[name](generator, shapes[name]) for name in sorted(shapes) if name in roles}


def _roles(model: ModelProto) -> dict[str, _Draw]:
    """Map names to their place of use, through the Unsqueeze that makes a channel vector broadcast."""
    roles: dict[str, _Draw] = {}
    behind: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "Unsqueeze":
            behind[node.output[0]] = node.input[0]
        for index, name in enumerate(node.input):
            draw = _ROLES.get((node.op_type, index))
            if draw is not None:
                roles.setdefault(behind.get(name, name), draw)
    return roles


def _calibrate(model: ModelProto, parameters: dict[str, FloatArray], image: FloatArray) -> None:
    """Run the network node by node; set each batch normalization's statistics to those of its input."""
    values: dict[str, NDArray[np.generic]] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    data = next(value.name for value in model.graph.input if value.name not in values)
    values |= {data: image} | parameters
    last_use = {name: position for position, node in enumerate(model.graph.node) for name in node.input}
    for position, node in enumerate(model.graph.node):
        if node.output[0] in parameters:
            continue
        if node.op_type == "BatchNormalization":
            arriving = values[node.input[0]].astype(np.float64)
            parameters[node.input[3]] = arriving.mean(axis=(0, 2, 3)).astype(np.float32)
            parameters[node.input[4]] = (arriving.var(axis=(0, 2, 3)) + _EPSILON).astype(np.float32)
            values |= {name: parameters[name] for name in node.input[3:5]}
        for name, array in zip(node.output, _run_node(node, values, model), strict=False):
            values[name] = array
        for name in node.input:
            if last_use[name] == position and name not in parameters:
                values.pop(name, None)


def _run_node(
    node: NodeProto, values: Mapping[str, NDArray[np.generic]], model: ModelProto
) -> list[NDArray[np.generic]]:
    names = list(dict.fromkeys(name for name in node.input if name))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
        for name in names
    ]
    outputs = [helper.make_empty_tensor_value_info(node.output[0])]
    graph = helper.make_graph([node], "node", inputs, outputs)
    single = helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=8)
    session = open_session(single, optimize=False)
    found: list[NDArray[np.generic]] = session.run(None, {name: values[name] for name in names})
    return found


def _with_parameters(model: ModelProto, parameters: Mapping[str, FloatArray]) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    given = set(parameters) | {tensor.name for tensor in graph.initializer}
    nodes = [node for node in graph.node if node.output[0] not in parameters]
    used = {name for node in nodes for name in node.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in used and tensor.name not in parameters]
    tensors += [numpy_helper.from_array(parameters[name], name) for name in sorted(parameters) if name in used]
    inputs = [value for value in graph.input if value.name not in given]
    for field, items in ((graph.node, nodes), (graph.initializer, tensors), (graph.input, inputs)):
        del field[:]
        field.extend(items)
    # Initializers need not be inputs from IR version 4 on.
    made.ir_version = 8
    return made
