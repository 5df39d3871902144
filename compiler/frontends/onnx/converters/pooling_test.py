import numpy as np
import pytest

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(1, 2, 7, 6)).astype(np.float32)
WINDOWS = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 3], "auto_pad": "VALID"},
]


@pytest.mark.parametrize("attributes", WINDOWS)
@pytest.mark.parametrize(
    ("op_type", "opset"),
    [("MaxPool", v) for v in (1, 8, 10, 11, 12, 22)] + [("AveragePool", v) for v in (7, 10, 11, 19, 22)],
)
def test_pools_in_every_version(op_type, opset, attributes):
    agrees_with_onnxruntime(op_type, [X], opset, **attributes)


@pytest.mark.parametrize("attributes", WINDOWS)
def test_first_average_pool_is_the_second_without_counted_padding(attributes):
    (second,) = run_node("AveragePool", [X], 7, **attributes)
    np.testing.assert_array_equal(run_node("AveragePool", [X], 1, **attributes)[0], second)


@pytest.mark.parametrize("opset", [1, 2, 11, 18])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(opset, p):
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    (got,) = run_node("LpPool", [X], opset, p=float(p) if opset == 1 else p, **attributes)
    padded = np.pad(np.abs(X.astype(float)) ** p, [(0, 0), (0, 0), (1, 1), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
    np.testing.assert_allclose(got, windows.sum((-1, -2)) ** (1 / p), rtol=1e-5)


def test_fractional_power_is_refused():
    with pytest.raises(UnsupportedOperator, match=r"a power of 1\.5"):
        run_node("LpPool", [X], 1, kernel_shape=[2, 2], p=1.5)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_ceil_mode_and_dilations(op_type):
    agrees_with_onnxruntime(op_type, [X], 10, kernel_shape=[2, 2], strides=[2, 4], ceil_mode=1)
    agrees_with_onnxruntime(op_type, [X], 19, kernel_shape=[2, 2], dilations=[2, 3])


def test_average_may_count_padding():
    for opset in (7, 10, 11, 19):
        agrees_with_onnxruntime("AveragePool", [X], opset, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("opset", [8, 10, 11, 12])
def test_positions_of_maxima(opset, storage_order):
    attributes = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}
    agrees_with_onnxruntime("MaxPool", [X], opset, 2, storage_order=storage_order, **attributes)


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op_type):
    agrees_with_onnxruntime(op_type, [X], 1)


@pytest.mark.parametrize(("opset", "p"), [(1, 2.0), (1, 3.0), (2, 1), (2, 2), (2, 3)])
def test_global_lp_pool(opset, p):
    expected = (np.abs(X.astype(float)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    np.testing.assert_allclose(run_node("GlobalLpPool", [X], opset, p=p)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("opset", [9, 11])
def test_max_unpool(opset):
    small = X[:, :, :6]
    values, places = run_node("MaxPool", [small], 12, 2, kernel_shape=[2, 2], strides=[2, 2])
    (back,) = run_node("MaxUnpool", [values, places], opset, kernel_shape=[2, 2], strides=[2, 2])
    assert back.shape == small.shape
    np.testing.assert_array_equal(back.reshape(-1)[places.reshape(-1)], values.reshape(-1))
    assert np.count_nonzero(back) == values.size


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [1]},
        {"kernel_shape": [2, 2], "pads": [1, 1]},
        {"kernel_shape": [2, 2], "auto_pad": "FULL"},
    ],
)
def test_wrong_windows_are_refused(attributes):
    with pytest.raises(InvalidModel):
        run_node("MaxPool", [X], 11, **attributes)
