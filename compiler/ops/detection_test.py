import numpy as np
import pytest

from compiler.errors import TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.harness_test import run
from compiler.ops.operator_check_test import onnxruntime

RNG = np.random.default_rng(53)


def scalar(value, dtype):
    return np.array([value], dtype)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("least", [None, 0.3])
@pytest.mark.parametrize("overlap", [None, 0.0, 0.4, 0.8])
@pytest.mark.parametrize("most", [1, 4, 100])
def test_is_onnxruntimes(center, least, overlap, most):
    boxes = RNG.random((2, 20, 4)).astype(np.float32)
    scores = RNG.random((2, 3, 20)).astype(np.float32)
    inputs = [boxes, scores, scalar(most, np.int64)]
    inputs += [None if value is None else scalar(value, np.float32) for value in (overlap, least)]
    (expected,) = onnxruntime("NonMaxSuppression", inputs, opset=11, center_point_box=int(center))
    np.testing.assert_array_equal(run("non_max_suppression", *inputs, center=center), expected)


def test_equal_scores_take_the_earlier_box_and_corners_may_be_exchanged():
    boxes = np.array([[[0, 0, 1, 1], [1, 1, 0, 0], [0, 2, 1, 3]]], np.float32)
    scores = np.full((1, 1, 3), 0.5, np.float32)
    found = run("non_max_suppression", boxes, scores, scalar(3, np.int64), scalar(0.5, np.float32))
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 2]])


def test_none_are_selected_without_a_number_or_boxes():
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.ones((1, 1, 2), np.float32)
    assert run("non_max_suppression", boxes, scores).shape == (0, 3)
    empty = run("non_max_suppression", boxes[:, :0], scores[:, :, :0], scalar(3, np.int64))
    assert empty.shape == (0, 3)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(TypeMismatch, match=r"expected \[B, N, 4\] and \[B, C, N\]"):
        run("non_max_suppression", np.zeros((1, 2, 4), np.float32), np.ones((1, 1, 3), np.float32))


@pytest.mark.parametrize("shapes", [(None, (1, 1, 3)), ((1, 3, 4), None), ((1, "N", "M"), ("B", 1, "N"))])
def test_shapes_that_are_not_known_yet_are_let_by(shapes):
    boxes, scores = (tensor(F32, shape) for shape in shapes)
    assert lookup("non_max_suppression").infer(Call([boxes, scores], {})) == (tensor(I64, ("?", 3)),)
