import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compiler.errors import AbstractConstant, ExportError, UnsupportedByOpset
from compiler.exporters.onnx import OLDEST, export_model, exported_operators
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import info, model_of, node_model, run_onnxruntime
from compiler.ir import F32, I8, I64, U8, Builder, Constant, Graph, at, tensor
from compiler.ops import Composite, operators
from compiler.ops.compare import IsFinite
from compiler.ops.contraction import DotGeneral
from compiler.ops.creation import Iota
from compiler.ops.elementwise import Add, Atan2, Expm1, Log1p, Neg, Rsqrt, Trunc
from compiler.ops.indexing import ScatterNd
from compiler.ops.interpreter import interpret
from compiler.ops.logic import BitAnd
from compiler.ops.ml_coupling import PairCoupling
from compiler.ops.normalization import LayerNorm
from compiler.ops.padding import Pad, Trilu
from compiler.ops.reduce import CumProd
from compiler.ops.reshape import Reshape

RANDOM = np.random.default_rng(23)
X = RANDOM.normal(size=(2, 4, 5, 6)).astype(np.float32)
ROW = RANDOM.normal(size=6).astype(np.float32)
CHANNEL = np.abs(RANDOM.normal(size=4)).astype(np.float32)
BOOL = X > 0
SMALL = RANDOM.integers(0, 9, (3, 4)).astype(np.uint8)
SEQUENCE = RANDOM.normal(size=(3, 2, 4)).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def recurrent(gates):
    return [SEQUENCE, *(RANDOM.normal(size=(1, gates * 5, size)).astype(np.float32) for size in (4, 5))]


ONE_NODE = [
    ("Add", [X, ROW], {}),
    ("Sub", [X, ROW], {}),
    ("Mul", [X, ROW], {}),
    ("Div", [X, ROW], {}),
    ("Max", [X, X * 2, ROW], {}),
    ("Mod", [SMALL, SMALL + 1], {}),
    ("Mod", [X, ROW], {"fmod": 1}),
    ("Pow", [np.abs(X), ROW], {}),
    ("Mean", [X, X * 2], {}),
    ("Clip", [X, np.array(-0.5, np.float32), np.array(1, np.float32)], {}),
    ("Clip", [X, None, np.array(1, np.float32)], {}),
    ("Erf", [X], {}),
    ("Sigmoid", [X], {}),
    ("IsInf", [X], {"detect_negative": 0}),
    ("IsNaN", [X], {}),
    ("Not", [BOOL], {}),
    ("And", [BOOL, ~BOOL], {}),
    ("Where", [BOOL, X, ROW], {}),
    ("GreaterOrEqual", [X, ROW], {}),
    ("Equal", [X, ROW], {}),
    ("BitShift", [SMALL, SMALL % 5], {"direction": "LEFT"}),
    ("BitwiseXor", [SMALL, SMALL[::-1].copy()], {}),
    ("Cast", [X], {"to": TensorProto.FLOAT16}),
    ("Cast", [X], {"to": TensorProto.INT8}),
    ("Relu", [X], {}),
    ("LeakyRelu", [X], {"alpha": 0.3}),
    ("Elu", [X], {}),
    ("Selu", [X], {}),
    ("Celu", [X], {"alpha": 0.5}),
    ("HardSigmoid", [X], {}),
    ("HardSwish", [X], {}),
    ("Mish", [X], {}),
    ("Softplus", [X], {}),
    ("Softsign", [X], {}),
    ("Gelu", [X], {"approximate": "tanh"}),
    ("PRelu", [X, ROW], {}),
    ("Shrink", [X], {}),
    ("ThresholdedRelu", [X], {}),
    ("ReduceSum", [X, ints(1, -1)], {"keepdims": 0}),
    ("ReduceMean", [X], {}),
    ("ReduceL2", [X, ints(2)], {}),
    ("ReduceMax", [X, ints()], {"noop_with_empty_axes": 1}),
    ("ReduceLogSumExp", [X, ints(0, 3)], {}),
    ("ArgMax", [X], {"axis": 2, "select_last_index": 1}),
    ("CumSum", [X, np.array(1)], {"exclusive": 1, "reverse": 1}),
    ("Reshape", [X, ints(0, -1)], {}),
    ("Transpose", [X], {"perm": [0, 2, 3, 1]}),
    ("Expand", [ROW, ints(2, 1, 6)], {}),
    ("Flatten", [X], {"axis": 2}),
    ("Squeeze", [X[:, :1]], {}),
    ("Unsqueeze", [X, ints(0, -1)], {}),
    ("Tile", [ROW, ints(3)], {}),
    ("Slice", [X, ints(3, 4), ints(-9, 0), ints(1, 2), ints(-2, -1)], {}),
    ("Concat", [X, X], {"axis": -2}),
    ("Pad", [X, ints(1, 0, 2, -1), np.array(3, np.float32), ints(0, 3)], {}),
    ("Pad", [X, ints(0, 0, 1, 1, 0, 0, 2, 1)], {"mode": "reflect"}),
    ("Trilu", [X, np.array(1)], {"upper": 0}),
    ("DepthToSpace", [X], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", [X[:, :, :4]], {"blocksize": 2}),
    ("Shape", [X], {"start": 1, "end": -1}),
    ("Size", [X], {}),
    ("Range", [np.array(1.0, np.float32), np.array(3, np.float32), np.array(0.5, np.float32)], {}),
    ("ConstantOfShape", [ints(2, 3)], {}),
    ("EyeLike", [SMALL.astype(np.float32)], {"k": 1}),
    ("Gather", [X, ints(3, -1)], {"axis": 2}),
    ("GatherElements", [X, np.zeros((1, 4, 5, 6), np.int64)], {"axis": 0}),
    ("GatherND", [X, ints([0, 1], [1, -1])], {}),
    ("ScatterElements", [X, ints([[[0]]], [[[1]]]), X[:, :1, :1, :1].copy()], {"axis": 1, "reduction": "add"}),
    ("ScatterND", [X, ints([0, 1], [1, 2]), X[:, 0].copy()], {}),
    ("OneHot", [ints(0, 2), np.array(3), np.array([1, 5], np.float32)], {"axis": 0}),
    ("ReverseSequence", [SEQUENCE, ints(1, 3)], {}),
    ("Compress", [X, np.array([True, False, True])], {"axis": 1}),
    ("NonZero", [SMALL], {}),
    ("MatMul", [X, ROW], {}),
    ("Gemm", [X[0, 0], X[0, 0], X[0, 0][:, :5].copy()], {"transB": 1, "alpha": 0.5}),
    (
        "Conv",
        [X, RANDOM.normal(size=(4, 2, 3, 2)).astype(np.float32), CHANNEL],
        {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
    ("Conv", [X, RANDOM.normal(size=(4, 4, 3, 3)).astype(np.float32)], {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    (
        "ConvTranspose",
        [X, RANDOM.normal(size=(4, 2, 3, 2)).astype(np.float32)],
        {"strides": [2, 2], "output_padding": [1, 1]},
    ),
    ("Einsum", [X, X], {"equation": "abcd,abed->ce"}),
    ("MaxPool", [X], {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 1]}),
    ("AveragePool", [X], {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "count_include_pad": 1}),
    ("LpPool", [X], {"kernel_shape": [2, 2], "p": 1}),
    ("GlobalAveragePool", [X], {}),
    ("GlobalMaxPool", [X], {}),
    ("Softmax", [X], {"axis": 1}),
    ("LogSoftmax", [X], {}),
    ("Hardmax", [X], {}),
    ("LayerNormalization", [X, ROW, ROW], {"epsilon": 0.01}),
    ("GroupNormalization", [X, CHANNEL, CHANNEL], {"num_groups": 2}),
    ("InstanceNormalization", [X, CHANNEL, CHANNEL], {}),
    ("BatchNormalization", [X, CHANNEL, CHANNEL, CHANNEL, CHANNEL], {}),
    ("LRN", [X], {"size": 3}),
    ("MeanVarianceNormalization", [X], {}),
    ("LpNormalization", [X], {"axis": 1, "p": 1}),
    ("QuantizeLinear", [X, np.array([0.1, 0.2, 0.3, 0.4], np.float32), np.zeros(4, np.int8)], {"axis": 1}),
    ("DequantizeLinear", [SMALL, np.array(0.5, np.float32), np.array(3, np.uint8)], {}),
    ("MatMulInteger", [SMALL, SMALL.T.copy(), np.array(3, np.uint8)], {}),
    (
        "QLinearMatMul",
        [
            SMALL,
            np.float32([0.5]),
            np.uint8([1]),
            SMALL.T.copy(),
            np.float32([0.5]),
            np.uint8([2]),
            np.float32([1.5]),
            np.uint8([7]),
        ],
        {},
    ),
    ("Resize", [X, None, None, ints(2, 4, 7, 9)], {"mode": "cubic"}),
    ("Resize", [X, None, np.float32([0.6, 2])], {"axes": [2, 3], "mode": "linear"}),
]
SEVERAL_OUTPUTS = [
    ("Split", [X, ints(1, 5)], 2, {"axis": -1}),
    ("Split", [X], 3, {"axis": 2, "num_outputs": 3}),
    ("TopK", [X, ints(2)], 2, {"axis": 1, "largest": 0}),
    ("Unique", [SMALL.astype(np.float32)], 4, {"sorted": 1}),
    ("MaxPool", [X], 2, {"kernel_shape": [2, 2], "storage_order": 1}),
    ("DynamicQuantizeLinear", [X], 3, {}),
    ("LayerNormalization", [X, ROW], 3, {}),
    ("RNN", recurrent(1), 2, {"hidden_size": 5, "activations": ["Relu"]}),
    ("GRU", recurrent(3), 2, {"hidden_size": 5, "linear_before_reset": 1, "direction": "reverse"}),
    ("LSTM", recurrent(4), 3, {"hidden_size": 5, "clip": 0.5}),
]
OPSET = 21
VALUES = {"ReduceSum", "ReduceL2", "ReduceMax", "ReduceLogSumExp", "CumSum"}


def checked(graph, opset=None):
    exported = export_model(graph, opset)
    onnx.checker.check_model(exported, full_check=True)
    return exported


def holds(model, arrays, opset):
    """onnxruntime gives the same for a model and for what was read of it and written back."""
    decided = {f"x{i}": a for i, a in enumerate(arrays) if model.graph.node[0].op_type in VALUES and i > 0}
    graph = import_model(model, known=decided)
    exported = export_model(graph, opset=opset)
    onnx.checker.check_model(exported, full_check=True)
    given = [array for array in arrays if array is not None]
    expected, got = run_onnxruntime(model, *given), run_onnxruntime(exported, *given)
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("opset", [OLDEST, 17, OPSET])
@pytest.mark.parametrize(
    ("op_type", "arrays", "attributes"), ONE_NODE, ids=[f"{i}-{c[0]}" for i, c in enumerate(ONE_NODE)]
)
def test_round_trip_of_one_node(op_type, arrays, attributes, opset):
    if opset < 18 and op_type.startswith("Bitwise"):
        pytest.skip("operator sets before 18 have no operators on bits")
    holds(node_model(op_type, arrays, OPSET, **attributes), arrays, opset)


@pytest.mark.parametrize("opset", [OLDEST, 17, OPSET])
@pytest.mark.parametrize(("op_type", "arrays", "outputs", "attributes"), SEVERAL_OUTPUTS)
def test_round_trip_of_several_outputs(op_type, arrays, outputs, attributes, opset):
    holds(node_model(op_type, arrays, OPSET, outputs, **attributes), arrays, opset)


def loop_and_branch():
    """A branch inside a loop, with values captured through both, and names used twice."""
    negate = helper.make_graph([helper.make_node("Sub", ["bias", "v"], ["r"])], "negate", [], [info("r", (3,))])
    keep = helper.make_graph([helper.make_node("Add", ["v", "bias"], ["s"])], "keep", [], [info("s", (3,))])
    body = helper.make_graph(
        [
            helper.make_node("Mod", ["i", "two"], ["rest"]),
            helper.make_node("Equal", ["rest", "two_minus_two"], ["even"]),
            helper.make_node("If", ["even"], ["w"], then_branch=negate, else_branch=keep),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("v", (3,))],
        [info("on", (), TensorProto.BOOL), info("w", (3,)), info("v", (3,))],
        [
            helper.make_tensor("two", TensorProto.INT64, [], [2]),
            helper.make_tensor("two_minus_two", TensorProto.INT64, [], [0]),
        ],
    )
    nodes = [
        helper.make_node("Neg", ["x"], ["bias"]),
        helper.make_node("Loop", ["n", "", "x"], ["y", "each"], body=body),
    ]
    outputs = [info("y", (3,)), info("each", (None, 3)), info("x", (3,))]
    return model_of(nodes, [info("n", (), TensorProto.INT64), info("x", (3,))], outputs)


def test_round_trip_of_regions():
    model = loop_and_branch()
    exported = checked(import_model(model))
    x = np.array([1, -2, 3], np.float32)
    for trips in (0, 1, 4):
        for got, expected in zip(
            run_onnxruntime(exported, np.array(trips), x), run_onnxruntime(model, np.array(trips), x), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


def small_graph():
    graph = Graph("net", [tensor(F32, ("N", 3))], ["x"])
    builder = Builder(graph, location=at("sum", "Add", "net.onnx"))
    total = builder(Add, graph.inputs[0], builder.constant(np.ones(3, np.float32)))
    builder.location = at("sum", "Add", "net.onnx")
    builder.output(builder(Neg, total), graph.inputs[0], total, total)
    graph.output_names = ("y", "x", "y", "z")
    return graph


def test_names_are_unique_and_outputs_keep_theirs_where_they_can():
    exported = checked(small_graph())
    assert [value.name for value in exported.graph.input] == ["x"]
    assert [value.name for value in exported.graph.output] == ["y", "x_1", "y_1", "z"]
    names = [node.name for node in exported.graph.node]
    assert len(set(names)) == len(names)
    x = np.array([[1, 2, 3]], np.float32)
    for got, expected in zip(run_onnxruntime(exported, x), interpret(small_graph(), [x]), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_symbols_and_locations_are_kept():
    exported = checked(small_graph())
    assert exported.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert exported.graph.node[0].doc_string == "net.onnx: sum (Add)"


def test_same_graph_same_bytes():
    assert export_model(small_graph()).SerializeToString() == export_model(small_graph()).SerializeToString()


def test_equal_weights_are_written_once():
    graph = Graph("net", [tensor(F32, (3,))], ["x"])
    builder = Builder(graph)
    ones = [builder.constant(np.ones(3, np.float32)) for _ in range(2)]
    builder.output(builder(Add, builder(Add, graph.inputs[0], ones[0]), ones[1]))
    assert len(checked(graph).graph.initializer) == 1


def test_weight_as_an_output():
    graph = Graph("net")
    builder = Builder(graph)
    builder.output(builder.constant(np.ones(3, np.float32)))
    graph.output_names = ("y",)
    assert run_onnxruntime(checked(graph))[0].tolist() == [1, 1, 1]


def test_composite_without_an_onnx_form_is_decomposed():
    graph = Graph("net", [tensor(F32, (2, 3))], ["x"])
    builder = Builder(graph)
    builder.output(builder(LayerNorm, graph.inputs[0], None, None, axis=1, epsilon=0.1))
    x = RANDOM.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(run_onnxruntime(checked(graph), x)[0], interpret(graph, [x])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [1, 12, 999])
def test_operator_set_out_of_range_is_refused(opset):
    with pytest.raises(ExportError, match=f"operator set {opset} cannot be written"):
        export_model(small_graph(), opset)


def test_operation_that_no_operator_set_can_say_is_refused_with_its_place():
    graph = Graph("net", [tensor(F32, (2, 3))], ["x"])
    builder = Builder(graph, location=at("votes"))
    builder.output(builder(PairCoupling, graph.inputs[0], classes=3))
    with pytest.raises(UnsupportedByOpset, match=r"'pair_coupling' \(at votes\) .* set 21: .*; no operator set can"):
        export_model(graph, OPSET)


def test_refusal_names_the_first_operator_set_that_can():
    graph = Graph("net", [tensor(U8, (3,)), tensor(U8, (3,))], ["a", "b"])
    builder = Builder(graph, location=at("mask"))
    builder.output(builder(BitAnd, *graph.inputs))
    with pytest.raises(
        UnsupportedByOpset, match=r"'bitand' \(at mask\).* set 13: there is no BitwiseAnd; .* 18 is the first"
    ):
        export_model(graph, 13)
    assert export_model(graph, 18).graph.node[0].op_type == "BitwiseAnd"


ODD = np.array([0.0, -0.0, 1, -1, 3, -2, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("opset", [OLDEST, OPSET])
def test_angles_in_all_quadrants(opset):
    graph = Graph("net", [tensor(F32, (9, 1)), tensor(F32, (9,))], ["y", "x"])
    builder = Builder(graph)
    builder.output(builder(Atan2, *graph.inputs))
    (got,) = run_onnxruntime(checked(graph, opset), ODD[:, None].copy(), ODD)
    np.testing.assert_allclose(got, np.arctan2(ODD[:, None], ODD), rtol=1e-6)
    assert (np.signbit(got) == np.signbit(np.arctan2(ODD[:, None], ODD)))[~np.isnan(got)].all()


@pytest.mark.parametrize("opset", [OLDEST, OPSET])
def test_padding_between_elements(opset):
    graph = Graph("net", [tensor(F32, (2, 3))], ["x"])
    builder = Builder(graph)
    pads, value = (builder.constant(np.array(data)) for data in ([0, 1, 1, 2], np.float32(7)))
    builder.output(builder(Pad, graph.inputs[0], pads, value, None, interior=(0, 2)))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = np.full((3, 10), 7, np.float32)
    expected[:2, 1:8:3] = x
    np.testing.assert_array_equal(run_onnxruntime(checked(graph, opset), x)[0], expected)


@pytest.mark.parametrize("flags", [{}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}])
def test_running_products_by_a_scan(flags):
    graph = Graph("net", [tensor(F32, (2, 3))], ["x"])
    builder = Builder(graph)
    builder.output(builder(CumProd, graph.inputs[0], axis=1, **flags))
    x = np.array([[2, 3, 5], [1, 0.5, 4]], np.float32)
    turned = x[:, ::-1] if "reverse" in flags else x
    expected = np.cumprod(turned, 1)
    if "exclusive" in flags:
        expected = np.concatenate([np.ones((2, 1)), expected[:, :-1]], 1)
    expected = expected[:, ::-1] if "reverse" in flags else expected
    np.testing.assert_array_equal(run_onnxruntime(checked(graph, OLDEST), x)[0], expected)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles_by_comparison(upper, k):
    graph = Graph("net", [tensor(F32, (2, 3, 4))], ["x"])
    builder = Builder(graph)
    builder.output(builder(Trilu, graph.inputs[0], builder.constant(np.array(k)), upper=upper))
    x = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    expected = np.triu(x, k) if upper else np.tril(x, k)
    np.testing.assert_array_equal(run_onnxruntime(checked(graph, OLDEST), x)[0], expected)


@pytest.mark.parametrize(("reduction", "function"), [("add", np.add), ("mul", np.multiply), ("max", np.maximum)])
def test_duplicate_places_are_joined_one_by_one(reduction, function):
    graph = Graph("net", [tensor(F32, (3, 2)), tensor(I64, (4, 1)), tensor(F32, (4, 2))], ["x", "i", "u"])
    builder = Builder(graph)
    builder.output(builder(ScatterNd, *graph.inputs, reduction=reduction))
    x, places, updates = RANDOM.normal(size=(3, 2)), ints([2], [0], [-1], [2]), RANDOM.normal(size=(4, 2))
    x, updates = x.astype(np.float32), updates.astype(np.float32)
    expected = x.copy()
    function.at(expected, places[:, 0], updates)
    (got,) = run_onnxruntime(checked(graph, OLDEST), x, places, updates)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_narrow_integers_wrap_also_where_the_operator_is_for_wide_ones():
    graph = Graph("net", [tensor(I8, (3,)), tensor(I8, (3,))], ["a", "b"])
    builder = Builder(graph)
    builder.output(builder(Add, *graph.inputs))
    a, b = np.array([127, -128, 5], np.int8), np.array([1, -1, 6], np.int8)
    assert run_onnxruntime(checked(graph, OLDEST), a, b)[0].tolist() == [-128, 127, 11]


@pytest.mark.parametrize("sizes", [(0, 3), (2, 3)])
def test_sizes_of_nothing_that_are_computed(sizes):
    graph = Graph("net", [tensor(F32, ("N", 3)), tensor(I64, (2,))], ["x", "sizes"])
    builder = Builder(graph)
    builder.output(builder(Reshape, *graph.inputs))
    x = np.ones(sizes, np.float32)
    assert run_onnxruntime(checked(graph, OLDEST), x, ints(*sizes[::-1]))[0].shape == sizes[::-1]


def test_weight_without_data_is_refused():
    graph = Graph("net")
    builder = Builder(graph)
    builder.output(builder.constant(Constant.abstract(tensor(F32, (3,)))))
    with pytest.raises(AbstractConstant):
        export_model(graph)


@pytest.mark.parametrize("definition", [Trunc, Log1p, Expm1, Rsqrt, IsFinite], ids=lambda d: d.name)
def test_operators_that_onnx_has_only_in_parts(definition):
    graph = Graph("net", [tensor(F32, (12,))], ["x"])
    builder = Builder(graph)
    builder.output(builder(definition, graph.inputs[0]))
    x = np.array([-0.0, 1e-12, -1e-7, 0.3, -0.4, 0.7, -0.9, 2.5, -3.5, 80, np.inf, np.nan], np.float32)
    exact = {Trunc: np.trunc, Log1p: np.log1p, Expm1: np.expm1, Rsqrt: lambda v: 1 / np.sqrt(v), IsFinite: np.isfinite}
    with np.errstate(all="ignore"):
        expected = exact[definition](x.astype(np.float64))
    np.testing.assert_allclose(run_onnxruntime(checked(graph), x)[0], expected, rtol=5e-7)


def test_counted_numbers():
    graph = Graph("net", [tensor(I64, (3,))], ["shape"])
    builder = Builder(graph)
    builder.output(builder(Iota, graph.inputs[0], axis=1, to=F32))
    (got,) = run_onnxruntime(checked(graph), np.array([2, 3, 2]))
    np.testing.assert_array_equal(got, np.broadcast_to(np.arange(3.0)[:, None], (2, 3, 2)))


def test_contraction_over_any_dims():
    graph = Graph("net", [tensor(F32, (2, 3, 4, 5)), tensor(F32, (4, 2, 6, 3))], ["a", "b"])
    builder = Builder(graph)
    dims = {"a_batch": (0,), "b_batch": (1,), "a_contract": (1, 2), "b_contract": (3, 0)}
    builder.output(builder(DotGeneral, *graph.inputs, **dims))
    a, b = (RANDOM.normal(size=value.tensor.shape).astype(np.float32) for value in graph.inputs)
    (got,) = run_onnxruntime(checked(graph), a, b)
    np.testing.assert_allclose(got, np.einsum("nijk,jnmi->nkm", a, b), rtol=1e-5, atol=1e-5)


def test_what_cannot_be_written_is_known():
    """Composites are decomposed."""
    written = set(exported_operators())
    missing = {name for name, op in operators().items() if name not in written and not isinstance(op, Composite)}
    # What ONNX has no operators for: complex numbers, factorizations, special functions.
    unsaid = {op.name for op in operators().values() if op.family in ("complex_numbers", "factorizations")}
    assert missing <= {"pair_coupling", "special_function"} | unsaid
