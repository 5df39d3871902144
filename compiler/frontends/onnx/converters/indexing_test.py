import numpy as np
import pytest

from compiler.errors import InvalidModel, TypeMismatch
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize(("indices", "axis"), [([0, 1, 1], 0), ([[2, 0]], 1), (1, 2)])
def test_gather(opset, indices, axis):
    np.testing.assert_array_equal(run_node("Gather", [X, ints(indices)], opset, axis=axis)[0], X.take(indices, axis))


def test_gather_counts_from_the_end_since_version_11():
    agrees_with_onnxruntime("Gather", [X, ints([-1, 0])], 11, axis=-1)


@pytest.mark.parametrize("opset", [11, 13])
def test_gather_elements(opset):
    agrees_with_onnxruntime("GatherElements", [X, ints([[[0, -1, 2, 1]] * 3] * 2)], opset, axis=1)


@pytest.mark.parametrize(("opset", "attributes"), [(11, {}), (12, {"batch_dims": 1}), (13, {})])
def test_gather_nd(opset, attributes):
    agrees_with_onnxruntime("GatherND", [X, ints([[0, 1], [1, -1]])], opset, **attributes)


INDICES = ints([[[1, 0, 2, 1]]])
UPDATES = np.array([[[10, 20, 30, 40]]], np.float32)


@pytest.mark.parametrize(("op_type", "opset"), [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 13)])
def test_scatter_elements(op_type, opset):
    agrees_with_onnxruntime(op_type, [X, INDICES, UPDATES], opset, axis=1)


@pytest.mark.parametrize(("opset", "reduction"), [(16, "add"), (16, "mul"), (18, "max"), (18, "min"), (18, "none")])
def test_scatter_elements_joins(opset, reduction):
    agrees_with_onnxruntime("ScatterElements", [X, INDICES, UPDATES], opset, axis=1, reduction=reduction)


@pytest.mark.parametrize(
    ("opset", "attributes"), [(11, {}), (13, {}), (16, {"reduction": "add"}), (18, {"reduction": "max"})]
)
def test_scatter_nd(opset, attributes):
    agrees_with_onnxruntime("ScatterND", [X, ints([[0, 1], [1, 2]]), np.ones((2, 4), np.float32)], opset, **attributes)


@pytest.mark.parametrize("opset", [9, 11, 28])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(opset, axis):
    arrays = [ints([0, -1, 7]), np.array(3, np.int64), np.array([2, 5], np.float32)]
    (got,) = run_node("OneHot", arrays, opset, axis=axis)
    expected = np.array([[5, 2, 2], [2, 2, 5], [2, 2, 2]], np.float32)
    np.testing.assert_array_equal(got, expected.T if axis == 0 else expected)


@pytest.mark.parametrize(("time_axis", "batch_axis"), [(0, 1), (1, 0)])
def test_reverse_sequence(time_axis, batch_axis):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    attributes = {"time_axis": time_axis, "batch_axis": batch_axis}
    agrees_with_onnxruntime("ReverseSequence", [x, ints([1, 2, 3, 4])], 10, **attributes)


@pytest.mark.parametrize("opset", [9, 11])
def test_compress(opset):
    agrees_with_onnxruntime("Compress", [X, np.array([False, True, True])], opset, axis=1)
    agrees_with_onnxruntime("Compress", [X, np.array([False, True, True])], opset)


@pytest.mark.parametrize("opset", [9, 13])
def test_non_zero(opset):
    agrees_with_onnxruntime("NonZero", [X % 3], opset)


@pytest.mark.parametrize("attributes", [{}, {"sorted": 0}, {"axis": 0}])
def test_unique(attributes):
    x = np.array([[2, 1], [2, 1], [0, 3]], np.float32)
    agrees_with_onnxruntime("Unique", [x], 11, 4, **attributes)


def test_top_k_by_attribute():
    for opset, attributes in ((1, {}), (1, {"axis": 1})):
        values, indices = run_node("TopK", [X], opset, 2, k=2, **attributes)
        axis = attributes.get("axis", -1)
        np.testing.assert_array_equal(values, np.flip(np.sort(X, axis), axis).take([0, 1], axis))
        np.testing.assert_array_equal(np.take_along_axis(X, indices, axis), values)


@pytest.mark.parametrize(
    ("opset", "attributes"), [(10, {}), (10, {"axis": 0}), (11, {"largest": 0}), (11, {"axis": 1})]
)
def test_top_k_by_input(opset, attributes):
    agrees_with_onnxruntime("TopK", [X % 5, ints([2])], opset, 2, **attributes)


def test_wrong_axis_and_wrong_index_type_are_refused():
    with pytest.raises(InvalidModel, match="axis 3"):
        run_node("Gather", [X, ints([0])], 13, axis=3)
    with pytest.raises(TypeMismatch, match=r"takes tensor\(int32\), tensor\(int64\)"):
        run_node("Gather", [X, X], 13)
