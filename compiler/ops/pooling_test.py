import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from torch.nn import functional

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import F32, Call, tensor
from compiler.ops.harness_test import run, run_decomposed, run_loops
from compiler.ops.pooling import MaxPool

RNG = np.random.default_rng(3)
PLAIN = pytest.mark.parametrize("way", [run, run_loops])
COMPOSED = pytest.mark.parametrize("way", [run, run_decomposed])


def normal(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def by_onnxruntime(operator, x, outputs=1, **attributes):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    names = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(operator, ["x"], names, **attributes)
    elements = (TensorProto.FLOAT, TensorProto.INT64)
    results = [helper.make_tensor_value_info(n, e, None) for n, e in zip(names, elements, strict=False)]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


WINDOWS = [
    {"kernel": (3, 2)},
    {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel": (2, 3), "strides": (2, 3), "ceil_mode": True, "pads": (1, 0, 1, 1)},
    {"kernel": (2, 2), "dilations": (2, 3), "pads": (1, 1, 0, 1)},
    {"kernel": (3, 2), "strides": (2, 2), "auto_pad": "same_upper"},
    {"kernel": (3, 2), "strides": (1, 2), "auto_pad": "same_lower"},
    {"kernel": (2, 2), "strides": (3, 3), "ceil_mode": True},
]


def onnx_names(window):
    names = {"kernel": "kernel_shape", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", True: 1}
    return {names.get(key, key): names.get(value, value) for key, value in window.items()}


@PLAIN
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pool_is_onnxruntimes(way, window):
    x = normal(2, 3, 7, 8, dtype=np.float32)
    np.testing.assert_array_equal(way("max_pool", x, **window), by_onnxruntime("MaxPool", x, **onnx_names(window))[0])


@COMPOSED
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_indices_are_onnxruntimes(way, window, order):
    x = normal(2, 3, 7, 8, dtype=np.float32)
    expected = by_onnxruntime("MaxPool", x, 2, storage_order=order, **onnx_names(window))
    found = way("max_pool_indices", x, column_major=bool(order), **window)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@PLAIN
def test_nan_wins_and_padding_never_does(way):
    x = np.array([[[-5.0, np.nan, -7.0, -9.0]]])
    found = way("max_pool", x, kernel=(2,), strides=(2,), pads=(1, 1))
    np.testing.assert_array_equal(found, [[[-5, np.nan, -9]]])


@PLAIN
def test_max_pool_of_unsigned_bytes(way):
    x = np.array([[[0, 3, 255, 7]]], np.uint8)
    np.testing.assert_array_equal(way("max_pool", x, kernel=(2,), pads=(1, 0)), [[[0, 3, 255, 255]]])


@COMPOSED
def test_the_first_of_equal_elements_is_named_and_a_real_one_before_padding(way):
    values, indices = way("max_pool_indices", np.full((1, 1, 3), -np.inf), kernel=(2,), pads=(1, 0))
    np.testing.assert_array_equal(values, np.full((1, 1, 3), -np.inf))
    np.testing.assert_array_equal(indices, [[[0, 0, 1]]])


@COMPOSED
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("window", [window for window in WINDOWS if "dilations" not in window])
def test_avg_pool_is_onnxruntimes(way, window, include):
    x = normal(2, 3, 7, 8, dtype=np.float32)
    expected = by_onnxruntime("AveragePool", x, count_include_pad=int(include), **onnx_names(window))[0]
    np.testing.assert_allclose(way("avg_pool", x, count_include_pad=include, **window), expected, rtol=2e-6, atol=1e-6)


@COMPOSED
def test_half_average_is_rounded_once(way):
    x = np.full((1, 1, 64, 64), 20.0, np.float16)
    assert way("avg_pool", x, kernel=(64, 64))[0, 0, 0, 0] == 20


@PLAIN
def test_sum_pool_counts_padding_as_zero(way):
    x = np.array([[[1.0, 2.0, 3.0]]])
    np.testing.assert_array_equal(way("sum_pool", x, kernel=(2,), pads=(1, 1)), [[[1, 3, 5, 3]]])


@COMPOSED
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool_is_torchs(way, p):
    x = np.abs(normal(2, 3, 6, 6))
    expected = functional.lp_pool2d(torch.tensor(x), p, (2, 3), 2).numpy()
    np.testing.assert_allclose(way("lp_pool", x, p=p, kernel=(2, 3), strides=(2, 2)), expected, rtol=1e-12)


@COMPOSED
def test_max_unpool_is_torchs_within_one_channel(way):
    x = torch.tensor(normal(1, 1, 6, 6))
    values, indices = functional.max_pool2d(x, 2, return_indices=True)
    expected = functional.max_unpool2d(values, indices, 2).numpy()
    found = way("max_unpool", values.numpy(), indices.numpy(), kernel=(2, 2), strides=(2, 2))
    np.testing.assert_array_equal(found, expected)


@COMPOSED
def test_max_unpool_into_a_larger_result_and_out_of_range(way):
    x, indices = np.array([[[[1.0, 2.0], [3.0, 4.0]]]]), np.array([[[[5, 7], [13, 15]]]])
    found = way("max_unpool", x, indices, np.array([1, 1, 5, 5]), kernel=(2, 2), strides=(2, 2))
    expected = np.zeros((1, 1, 5, 5))
    expected[0, 0, [1, 1, 3, 3], [1, 3, 1, 3]] = [1, 2, 3, 4]
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(EvaluationError, match="indices from 5 to 99"):
        run("max_unpool", x, np.array([[[[5, 7], [13, 99]]]]), kernel=(2, 2), strides=(2, 2))


def test_windows_that_do_not_fit_are_named():
    with pytest.raises(TypeMismatch, match="window of extent 5 over spatial dim 0 of size 3"):
        run("max_pool", normal(1, 1, 3), kernel=(5,))
    with pytest.raises(InvalidAttribute, match="'pads' has 3 entries; expected 2"):
        run("max_pool", normal(1, 1, 3), kernel=(2,), pads=(0, 0, 0))
    with pytest.raises(TypeMismatch, match="expected rank 4"):
        run("max_pool", normal(1, 1, 3), kernel=(2, 2))


def test_symbolic_sizes():
    attributes = MaxPool.instance().complete({"kernel": (3, 2), "pads": (1, 0, 1, 0), "strides": (1, 2)})
    found = MaxPool.instance().infer(Call([tensor(F32, ("N", 2, "H", "W"))], attributes))
    assert found == (tensor(F32, ("N", 2, "H", "?")),)
