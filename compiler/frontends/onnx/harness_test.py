"""Small models for tests, and the two ways to run them: the importer with the interpreter, and onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from compiler.frontends.onnx import import_model
from compiler.ir import element_of
from compiler.onnx_types import DATA_TYPES
from compiler.ops.interpreter import interpret


def info(name, dims=(), element=onnx.TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, dims)


def info_of(name, array):
    array = np.asarray(array)
    return helper.make_tensor_value_info(name, DATA_TYPES[element_of(array.dtype)], array.shape)


def model_of(nodes, inputs, outputs, opset=18, initializers=(), ir_version=10, functions=(), domains=(), name="g"):
    graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=list(functions))


def node_model(op_type, arrays, opset, outputs=1, **attributes):
    """A model of one node whose inputs are graph inputs; None omits an input. Output types are left open."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    outs = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, outs, **attributes)
    inputs = [info_of(name, array) for name, array in zip(names, arrays, strict=True) if name]
    open_outputs = [onnx.ValueInfoProto(name=out) for out in outs]
    ir_version = 10 if opset <= 21 else 14
    return model_of([node], inputs, open_outputs, opset, ir_version=ir_version)


def run_node(op_type, arrays, opset, outputs=1, known=(), **attributes):
    """Import and interpret one node. ``known`` lists positions of inputs whose data the importer is given."""
    model = node_model(op_type, arrays, opset, outputs, **attributes)
    data = {f"x{position}": arrays[position] for position in known}
    graph = import_model(model, known=data)
    return interpret(graph, [array for array in arrays if array is not None])


def run(model, *arrays):
    return interpret(import_model(model), list(arrays))


def run_onnxruntime(model, *arrays):
    """All outputs by onnxruntime without its optimizer."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays, strict=True)))


def agrees_with_onnxruntime(op_type, arrays, opset, outputs=1, known=(), **attributes):
    given = [array for array in arrays if array is not None]
    expected = run_onnxruntime(node_model(op_type, arrays, opset, outputs, **attributes), *given)
    got = run_node(op_type, arrays, opset, outputs, known=known, **attributes)
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=5e-6)
