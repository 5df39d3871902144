"""Lookups and scatters against onnxruntime and numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, check_composite, make_call, onnxruntime

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def integers(values):
    return np.array(values, np.int64)


def refuses(name, operands, message, **attributes):
    definition, call = make_call(name, operands, attributes)
    with pytest.raises(EvaluationError, match=message):
        definition.evaluate(call, operands, None)


@pytest.mark.parametrize(
    ("indices", "axis"),
    [([0, -1, 1], 1), ([[0, 1], [-1, -2]], 0), (2, -1), ([], 1), ([[[3]]], 2)],
    ids=str,
)
def test_gather_agrees_with_onnxruntime(indices, axis):
    (expected,) = onnxruntime("Gather", [X, integers(indices)], axis=axis)
    check("gather", [X, integers(indices)], expected, axis=axis)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_, np.complex64, object])
def test_gather_of_any_type(dtype):
    x = np.array(["a", "b"], object) if dtype is object else np.array([0, 1]).astype(dtype)
    check("gather", [x, np.array([1, 0, 1], np.int32)], x[[1, 0, 1]], axis=0)
    check("gather", [x, np.array(1, np.int8)], np.array(x[1], x.dtype), axis=0)


def test_indices_outside_are_refused():
    refuses("gather", [X, integers([3])], r"index 3 is outside \[-3, 2\]", axis=1)
    refuses("gather", [X, integers([-4])], r"index -4 is outside", axis=1)
    refuses("gather_elements", [X, integers([[[5]]])], "index 5 is outside", axis=2)
    refuses("gather_nd", [X, integers([[0, 3]])], "index 3 is outside")
    refuses("scatter_nd", [X, integers([[2]]), X[:1]], "index 2 is outside")
    refuses("scatter_elements", [X, integers([[[-9]]]), X[:1, :1, :1]], "index -9 is outside", axis=1)
    refuses("gather", [X[:0], integers([0])], "index 0 is outside", axis=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements_agrees_with_onnxruntime(axis):
    indices = (
        integers([[[0, 1, -1], [1, 0, 0]]]) if axis else integers([[[0, 1, -1], [1, 0, 0]], [[1, 1, 1], [0, 0, -2]]])
    )
    (expected,) = onnxruntime("GatherElements", [X, indices], axis=axis)
    check("gather_elements", [X, indices], expected, axis=axis)


def test_gather_elements_with_longer_indices_along_the_axis():
    indices = integers([[0, 2, 1, 0, 2]])
    check("gather_elements", [X[0, :1, :3], indices], np.take_along_axis(X[0, :1, :3], indices, 1), axis=1)
    with pytest.raises(TypeMismatch, match="size 5 in dim 1"):
        lookup("gather_elements").infer(Call([tensor(F32, (3, 4)), tensor(I64, (1, 5))], {"axis": 0}))
    with pytest.raises(TypeMismatch, match="rank"):
        lookup("gather_elements").infer(Call([tensor(F32, (3, 4)), tensor(I64, (1,))], {"axis": 0}))


@pytest.mark.parametrize(
    ("indices", "batch_dims"),
    [
        ([[0, 1], [1, -1]], 0),
        ([[0, 1, 2], [-1, -1, -1]], 0),
        ([[[1]], [[0]]], 0),
        ([[0], [2]], 1),
        ([[[0], [-1]], [[1], [1]]], 1),
        ([[[0], [1], [2]], [[-1], [-2], [-3]]], 2),
    ],
    ids=str,
)
def test_gather_nd_agrees_with_onnxruntime(indices, batch_dims):
    (expected,) = onnxruntime("GatherND", [X, integers(indices)], batch_dims=batch_dims)
    check("gather_nd", [X, integers(indices)], expected, batch_dims=batch_dims)


def test_gather_nd_of_one_element_is_a_tensor_of_rank_0():
    check("gather_nd", [X, integers([1, 2, 3])], X[1, 2, 3])


def test_gather_nd_without_coordinates_repeats():
    check("gather_nd", [X, np.zeros((2, 0), np.int64)], np.stack([X, X]))


def test_too_many_coordinates_are_refused():
    with pytest.raises(TypeMismatch, match="4 coordinates"):
        lookup("gather_nd").infer(Call([tensor(F32, (2, 3, 4)), tensor(I64, (1, 4))], {"batch_dims": 0}))
    unknown = Call([tensor(F32, (2, 3)), tensor(I64, (1, "K"))], {"batch_dims": 0})
    assert lookup("gather_nd").infer(unknown) == (tensor(F32, None),)


REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements_agrees_with_onnxruntime(reduction, axis):
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    indices = integers([[0, -1, 1], [2, 0, 1]])
    updates = np.array([[10, 20, -30], [2, 0.5, 3]], np.float32)
    (expected,) = onnxruntime("ScatterElements", [x, indices, updates], axis=axis, reduction=reduction)
    check("scatter_elements", [x, indices, updates], expected, axis=axis, reduction=reduction)


DUPLICATES = {"none": [0, 7, 3], "add": [0, 13, 3], "mul": [0, 35, 3], "max": [0, 7, 3], "min": [0, 1, 3]}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.int32, np.float16, ml_dtypes.bfloat16, np.float64, np.uint8])
def test_duplicates_join_in_turn_and_the_last_stays(reduction, dtype):
    x, updates = np.array([0, 1, 3]).astype(dtype), np.array([5, 7]).astype(dtype)
    expected = np.array(DUPLICATES[reduction]).astype(dtype)
    check("scatter_elements", [x, integers([1, 1]), updates], expected, axis=0, reduction=reduction)
    check("scatter_nd", [x, integers([[1], [-2]]), updates], expected, reduction=reduction)


def test_scattered_updates_round_and_wrap_one_by_one():
    x = np.array([2048.0], np.float16)
    check("scatter_elements", [x, integers([0, 0]), np.array([1, 1], np.float16)], x, axis=0, reduction="add")
    check(
        "scatter_elements",
        [np.array([100], np.int8), integers([0]), np.array([100], np.int8)],
        np.array([-56], np.int8),
        axis=0,
        reduction="add",
    )


def test_scatter_keeps_nan_in_extremes():
    x, updates = np.array([1.0, np.nan], np.float32), np.array([np.nan, 5.0], np.float32)
    for reduction in ("max", "min"):
        expected = np.array([np.nan, np.nan], np.float32)
        check("scatter_elements", [x, integers([0, 1]), updates], expected, axis=0, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("indices", "shape"),
    [
        ([[0, 1], [1, -1]], (2, 4)),
        ([[1], [0]], (2, 3, 4)),
        ([[[0, 0, 0], [1, 2, 3]]], (1, 2)),
        ([[1, 2], [1, 2]], (2, 4)),
    ],
    ids=str,
)
def test_scatter_nd_agrees_with_onnxruntime(reduction, indices, shape):
    updates = np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    (expected,) = onnxruntime("ScatterND", [X, integers(indices), updates], reduction=reduction)
    check("scatter_nd", [X, integers(indices), updates], expected, reduction=reduction)


def test_scatter_of_nothing_and_of_other_types():
    check("scatter_elements", [X, np.zeros((0, 3, 4), np.int64), X[:0]], X, axis=0)
    strings = np.array(["a", "b"], object)
    check("scatter_elements", [strings, integers([1]), np.array(["z"], object)], np.array(["a", "z"], object), axis=0)
    bools = np.array([True, True])
    check("scatter_nd", [bools, integers([[0]]), np.array([False])], np.array([False, True]))


def test_updates_that_do_not_fit_are_refused():
    infer = lookup("scatter_nd").infer
    with pytest.raises(TypeMismatch, match="slices and updates"):
        infer(Call([tensor(F32, (2, 3)), tensor(I64, (1, 1)), tensor(F32, (1, 4))], {"reduction": "none"}))


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_one_hot_agrees_with_onnxruntime(axis, dtype):
    indices = integers([[0, 2, -1], [5, -6, -3]])
    depth, values = np.array(3, np.int64), np.array([-1, 9], np.float32)
    (expected,) = onnxruntime("OneHot", [indices, depth, values], axis=axis)
    check("one_hot", [indices.astype(dtype), depth, values], expected, axis=axis)


def test_one_hot_of_unsigned_indices_counts_only_from_the_front():
    indices, depth = np.array([0, 255, 253], np.uint8), np.array([3], np.int64)
    expected = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 0]], np.int32)
    check("one_hot", [indices, depth, np.array([0, 1], np.int32)], expected)


def test_one_hot_of_strings_and_of_an_unknown_depth():
    check(
        "one_hot",
        [integers([1]), integers(2), np.array(["o", "x"], object)],
        np.array([["o", "x"]], object),
        loops=False,
    )
    call = Call([tensor(I64, ("N",)), tensor(I64), tensor(F32, (2,))], {"axis": 0})
    assert lookup("one_hot").infer(call) == (tensor(F32, ("?", "N")),)


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_reverse_sequence_agrees_with_onnxruntime(batch, time):
    lengths = integers([1, 3] if batch == 0 else [2, 0, 1])
    x = X if batch == 0 else X[:2]
    operands = [x, lengths]
    if batch == 1:
        lengths[1] = 1  # onnxruntime takes lengths of at least 1
    (expected,) = onnxruntime("ReverseSequence", operands, batch_axis=batch, time_axis=time)
    check_composite("reverse_sequence", operands, expected, batch_axis=batch, time_axis=time)


def test_reverse_sequence_of_length_0_keeps_the_order():
    x = np.array([[1, 2, 3]], np.float32)
    check_composite("reverse_sequence", [x, integers([0])], x, batch_axis=0, time_axis=1)
    refuses("reverse_sequence", [x, integers([4])], "length 4", batch_axis=0, time_axis=1)
