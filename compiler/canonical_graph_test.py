"""One block written in several frameworks reaches one canonical graph, up to names and the order of independent steps.

Where a framework says something else, the difference is listed with its reason; an entry that is not needed fails.
"""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.frontends.onnx import import_model
from compiler.ir import Constant
from compiler.passes.canonicalize import Canonicalize
from compiler.passes.common_subexpressions import CommonSubexpressions
from compiler.passes.dead_code import DeadCode
from compiler.passes.fold import Fold
from compiler.passes.manager import run_passes

RANDOM = np.random.default_rng(7)


def weights(*shape):
    return (RANDOM.standard_normal(shape) / 4).astype(np.float32)


def canonical(graph):
    """The graph as nested tuples from its outputs on: operator, attributes, types and operands, without names."""
    run_passes(graph, (Fold(), Canonicalize(), CommonSubexpressions(), DeadCode()))
    known = {value: ("input", index, str(value.type)) for index, value in enumerate(graph.inputs)}

    def of(value):
        if value is None:
            return None
        if value not in known:
            op = value.op
            given = tuple(sorted((name, told(item)) for name, item in op.attributes.items()))
            operands = tuple(of(operand) for operand in op.operands)
            known[value] = (op.name, given, operands, op.results.index(value), str(value.type))
        return known[value]

    return tuple(of(value) for value in graph.outputs)


def told(attribute):
    """ONNX and Caffe store numbers as float32, torch as float64."""
    if isinstance(attribute, Constant):
        return hash(attribute.array.tobytes())
    return float(np.float32(attribute)) if isinstance(attribute, float) else str(attribute)


def from_onnx(nodes, shape, constants=(), element=TensorProto.FLOAT):
    """A model of one input x and one output y; nodes are (operator, inputs, attributes)."""
    made = []
    for number, (operator, inputs, attributes) in enumerate(nodes):
        output = "y" if number == len(nodes) - 1 else f"v{number}"
        made.append(helper.make_node(operator, inputs.split(), [output], **attributes))
    graph = helper.make_graph(
        made,
        "block",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in dict(constants).items()],
    )
    return canonical(import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)))


def from_torch(forward, *shape, element="float32"):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    from compiler.frontends.torch import exported, import_torch

    class Block(torch.nn.Module):
        def forward(self, x):
            return forward(torch, x)

    return canonical(import_torch(exported(Block(), [torch.zeros(shape, dtype=getattr(torch, element))])))


def from_tensorflow(forward, *shape, element="float32"):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is an extra")
    from compiler.frontends.tensorflow import import_tensorflow

    function = tf.function(lambda x: forward(tf, x)).get_concrete_function(tf.TensorSpec(shape, element))
    return canonical(import_tensorflow(function))


def from_caffe(layers, shape, blobs=None):
    from compiler.frontends.caffe import import_caffe
    from compiler.frontends.caffe.reader import PB

    dims = " ".join(f"dim: {size}" for size in shape)
    net = PB.NetParameter()
    for name, arrays in (blobs or {}).items():
        layer = net.layer.add(name=name)
        for array in arrays:
            blob = layer.blobs.add()
            blob.shape.dim.extend(array.shape)
            blob.data.extend(array.reshape(-1).tolist())
    text = f'input: "x" input_shape {{ {dims} }}\n{layers}'
    return canonical(import_caffe(text, net.SerializeToString() if blobs else None))


W, B = weights(4, 3, 3, 3), weights(4)
FC, FB = weights(5, 6), weights(5)
GAMMA, BETA, MEAN, VARIANCE = weights(4), weights(4), weights(4), np.abs(weights(4)) + 0.5
ROW, SHIFT = weights(6), weights(6)
UP, UPB, DOWN, DOWNB = weights(8, 6), weights(8), weights(6, 8), weights(6)
TABLE = weights(9, 4)


def t(torch, array):
    return torch.from_numpy(array.copy())


BLOCKS = {
    "convolution, batch norm, relu": (
        lambda: from_onnx(
            [
                ("Conv", "x w b", {"pads": [1, 1, 1, 1]}),
                ("BatchNormalization", "v0 gamma beta mean var", {"epsilon": 1e-3}),
                ("Relu", "v1", {}),
            ],
            (1, 3, 6, 6),
            {"w": W, "b": B, "gamma": GAMMA, "beta": BETA, "mean": MEAN, "var": VARIANCE},
        ),
        lambda: from_torch(
            lambda torch, x: torch.relu(
                torch.nn.functional.batch_norm(
                    torch.nn.functional.conv2d(x, t(torch, W), t(torch, B), padding=1),
                    t(torch, MEAN), t(torch, VARIANCE), t(torch, GAMMA), t(torch, BETA), eps=1e-3,
                )
            ),
            1, 3, 6, 6,
        ),
        None,
    ),
    "linear, exact gelu": (
        lambda: from_onnx([("Gemm", "x w b", {"transB": 1}), ("Gelu", "v0", {})], (2, 6), {"w": FC, "b": FB}),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.gelu(torch.nn.functional.linear(x, t(torch, FC), t(torch, FB))), 2, 6
        ),
        None,
    ),
    "gelu by tanh": (
        lambda: from_onnx([("Gelu", "x", {"approximate": "tanh"})], (2, 6)),
        lambda: from_torch(lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"), 2, 6),
        None,
    ),
    "layer norm": (
        lambda: from_onnx([("LayerNormalization", "x s b", {"epsilon": 1e-5})], (2, 6), {"s": ROW, "b": SHIFT}),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.layer_norm(x, (6,), t(torch, ROW), t(torch, SHIFT), 1e-5), 2, 6
        ),
        None,
    ),
    "softmax": (
        lambda: from_onnx([("Softmax", "x", {"axis": 1})], (2, 6)),
        lambda: from_torch(lambda torch, x: torch.softmax(x, 1), 2, 6),
        lambda: from_caffe('layer { name: "s" type: "Softmax" bottom: "x" top: "y" }', (2, 6)),
    ),
    "max pool": (
        lambda: from_onnx([("MaxPool", "x", {"kernel_shape": [2, 2], "strides": [2, 2]})], (1, 3, 6, 6)),
        lambda: from_torch(lambda torch, x: torch.nn.functional.max_pool2d(x, 2), 1, 3, 6, 6),
        lambda: from_caffe(
            'layer { name: "p" type: "Pooling" bottom: "x" top: "y" pooling_param { kernel_size: 2 stride: 2 } }',
            (1, 3, 6, 6),
        ),
    ),
    "average pool": (
        lambda: from_onnx([("AveragePool", "x", {"kernel_shape": [2, 2], "strides": [2, 2]})], (1, 3, 6, 6)),
        lambda: from_torch(lambda torch, x: torch.nn.functional.avg_pool2d(x, 2), 1, 3, 6, 6),
        lambda: from_caffe(
            'layer { name: "p" type: "Pooling" bottom: "x" top: "y" '
            "pooling_param { pool: AVE kernel_size: 2 stride: 2 } }",
            (1, 3, 6, 6),
        ),
    ),
    "pad, convolution": (
        lambda: from_onnx(
            [("Pad", "x pads", {}), ("Conv", "v0 w", {})],
            (1, 3, 6, 6),
            {"w": W, "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])},
        ),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.conv2d(torch.nn.functional.pad(x, (1, 1, 1, 1)), t(torch, W)),
            1, 3, 6, 6,
        ),
        None,
    ),
    "residual": (
        lambda: from_onnx([("Relu", "x", {}), ("Add", "x v0", {})], (2, 6)),
        lambda: from_torch(lambda torch, x: x + torch.relu(x), 2, 6),
        lambda: from_caffe(
            'layer { name: "r" type: "ReLU" bottom: "x" top: "r" } '
            'layer { name: "e" type: "Eltwise" bottom: "x" bottom: "r" top: "y" }',
            (2, 6),
        ),
    ),
    "transpose, reshape to heads": (
        lambda: from_onnx(
            [("Reshape", "x s", {}), ("Transpose", "v0", {"perm": [0, 2, 1, 3]})],
            (2, 4, 6),
            {"s": np.array([2, 4, 3, 2])},
        ),
        lambda: from_torch(lambda torch, x: x.reshape(2, 4, 3, 2).transpose(1, 2), 2, 4, 6),
        None,
    ),
    "embedding": (
        lambda: from_onnx([("Gather", "table x", {})], (2, 3), {"table": TABLE}, TensorProto.INT64),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.embedding(x, t(torch, TABLE)), 2, 3, element="int64"
        ),
        None,
    ),
    "leaky relu": (
        lambda: from_onnx([("LeakyRelu", "x", {"alpha": 0.25})], (2, 6)),
        lambda: from_torch(lambda torch, x: torch.nn.functional.leaky_relu(x, 0.25), 2, 6),
        lambda: from_caffe(
            'layer { name: "r" type: "ReLU" bottom: "x" top: "y" relu_param { negative_slope: 0.25 } }', (2, 6)
        ),
    ),
    "clip": (
        lambda: from_onnx(
            [("Clip", "x low high", {})], (2, 6), {"low": np.float32(-1).reshape(()), "high": np.float32(2).reshape(())}
        ),
        lambda: from_torch(lambda torch, x: torch.clamp(x, -1.0, 2.0), 2, 6),
        lambda: from_caffe(
            'layer { name: "c" type: "Clip" bottom: "x" top: "y" clip_param { min: -1 max: 2 } }', (2, 6)
        ),
    ),
    "global pool, linear": (
        lambda: from_onnx(
            [("GlobalAveragePool", "x", {}), ("Flatten", "v0", {}), ("Gemm", "v1 w b", {"transB": 1})],
            (2, 6, 4, 4),
            {"w": FC, "b": FB},
        ),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.linear(
                torch.flatten(torch.nn.functional.adaptive_avg_pool2d(x, 1), 1), t(torch, FC), t(torch, FB)
            ),
            2, 6, 4, 4,
        ),
        None,
    ),
    "two layers": (
        lambda: from_onnx(
            [
                ("Gemm", "x u ub", {"transB": 1}),
                ("Relu", "v0", {}),
                ("Gemm", "v1 d db", {"transB": 1}),
            ],
            (2, 6),
            {"u": UP, "ub": UPB, "d": DOWN, "db": DOWNB},
        ),
        lambda: from_torch(
            lambda torch, x: torch.nn.functional.linear(
                torch.relu(torch.nn.functional.linear(x, t(torch, UP), t(torch, UPB))), t(torch, DOWN), t(torch, DOWNB)
            ),
            2, 6,
        ),
        lambda: from_caffe(
            'layer { name: "u" type: "InnerProduct" bottom: "x" top: "u" inner_product_param { num_output: 8 } } '
            'layer { name: "r" type: "ReLU" bottom: "u" top: "r" } '
            'layer { name: "d" type: "InnerProduct" bottom: "r" top: "y" inner_product_param { num_output: 6 } }',
            (2, 6),
            {"u": [UP, UPB], "d": [DOWN, DOWNB]},
        ),
    ),
}  # fmt: skip
TENSORFLOW = {
    "linear, exact gelu": lambda: from_tensorflow(lambda tf, x: tf.nn.gelu(tf.matmul(x, FC.T.copy()) + FB), 2, 6),
    "softmax": lambda: from_tensorflow(lambda tf, x: tf.nn.softmax(x), 2, 6),
    "residual": lambda: from_tensorflow(lambda tf, x: x + tf.nn.relu(x), 2, 6),
    "transpose, reshape to heads": lambda: from_tensorflow(
        lambda tf, x: tf.transpose(tf.reshape(x, (2, 4, 3, 2)), (0, 2, 1, 3)), 2, 4, 6
    ),
    "embedding": lambda: from_tensorflow(lambda tf, x: tf.gather(TABLE, x), 2, 3, element="int64"),
    "leaky relu": lambda: from_tensorflow(lambda tf, x: tf.nn.leaky_relu(x, 0.25), 2, 6),
    "two layers": lambda: from_tensorflow(
        lambda tf, x: tf.matmul(tf.nn.relu(tf.matmul(x, UP.T.copy()) + UPB), DOWN.T.copy()) + DOWNB, 2, 6
    ),
}
DIFFERENT = {
    ("torch", "average pool"): "torch counts padding by default, of which there is none; the flag is not dropped",
    ("caffe", "average pool"): "Caffe counts padding, of which there is none; the flag is not dropped",
    ("caffe", "max pool"): "Caffe has no dilation, and it is left out; ONNX's default of 1 is written out",
    ("tensorflow", "softmax"): "TensorFlow's axis counts from the end, and no rule counts it from the front",
    ("tensorflow", "linear, exact gelu"): "TensorFlow writes gelu out by erfc, and no rule puts it together again",
    ("torch", "pad, convolution"): "torch states the value that is ONNX's default",
}


@pytest.mark.parametrize("framework", ["torch", "caffe", "tensorflow"])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_another_framework_is_the_graph_that_onnx_gives(name, framework):
    written, torch, caffe = BLOCKS[name]
    other = {"torch": torch, "caffe": caffe, "tensorflow": TENSORFLOW.get(name)}[framework]
    if other is None:
        pytest.skip("the framework has no such block, or writes it in other layers")
    same = written() == other()
    assert same is ((framework, name) not in DIFFERENT), DIFFERENT.get((framework, name), f"\n{written()}\n{other()}")
