"""Searching and sorting against onnxruntime and closed forms."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, make_call, onnxruntime
from compiler.ops.selection import sorting_order

X = np.array([[3, 0, 2], [0, 5, 0]], np.float32)
NAN = float("nan")


@pytest.mark.parametrize(
    ("axis", "condition"),
    [
        (0, [False, True]),
        (1, [True, False, True]),
        (-1, [True]),
        (None, [True, False, False, False, True]),
        (1, [False] * 3),
    ],
    ids=str,
)
def test_compress_agrees_with_onnxruntime(axis, condition):
    attributes = {} if axis is None else {"axis": axis}
    (expected,) = onnxruntime("Compress", [X, np.array(condition)], **attributes)
    check("compress", [X, np.array(condition)], expected, loops=False, **attributes)


def test_compress_beyond_the_end_is_refused():
    operands = [X, np.array([False, False, True])]
    definition, call = make_call("compress", operands, {"axis": 0})
    with pytest.raises(EvaluationError, match="beyond the 2"):
        definition.evaluate(call, operands, None)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_nonzero(dtype):
    check("nonzero", [X.astype(dtype)], np.array([[0, 0, 1], [0, 2, 1]]), loops=False)


def test_nonzero_of_scalars_nan_and_nothing():
    check("nonzero", [np.float32(3)], np.array([[0]]), loops=False)
    check("nonzero", [np.float32(0)], np.zeros((1, 0), np.int64), loops=False)
    check("nonzero", [np.array([NAN, -0.0], np.float32)], np.array([[0]]), loops=False)
    check("nonzero", [np.zeros((0, 2), np.float32)], np.zeros((2, 0), np.int64), loops=False)
    check("nonzero", [np.array(["", "a"], object)], np.array([[1]]), loops=False)


@pytest.mark.parametrize("sorted_", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_agrees_with_onnxruntime(sorted_, axis):
    x = np.array([[2, 1, 2, 1], [0, 4, 0, 4], [2, 1, 2, 1]], np.float32)
    attributes = {} if axis is None else {"axis": axis}
    expected = onnxruntime("Unique", [x], outputs=4, sorted=int(sorted_), **attributes)
    check("unique", [x], *expected, loops=False, sorted=sorted_, **attributes)


def test_unique_of_other_types():
    strings = np.array(["b", "a", "b"], object)
    vectors = [np.array([1, 0]), np.array([1, 0, 1]), np.array([1, 2])]
    check("unique", [strings], np.array(["a", "b"], object), *vectors, loops=False)
    x = np.array([3, 1, 3]).astype(ml_dtypes.bfloat16)
    check("unique", [x], np.array([1, 3]).astype(x.dtype), *vectors, loops=False)
    pairs = np.array([2, 1 + 1j, 2, 1 - 1j], np.complex64)
    vectors = [np.array([3, 1, 0]), np.array([2, 1, 2, 0]), np.array([1, 1, 2])]
    check("unique", [pairs], np.array([1 - 1j, 1 + 1j, 2], np.complex64), *vectors, loops=False)
    empty = np.zeros(0, np.int64)
    check("unique", [np.zeros(0, np.float32)], np.zeros(0, np.float32), empty, empty, empty, loops=False)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_top_k_agrees_with_onnxruntime(largest, axis, k):
    x = np.array([[3, 1, 3, 0], [-1, 3, 3, 5], [3, 3, 3, 3]], np.float32)
    operands = [x, np.array([k], np.int64)]
    expected = onnxruntime("TopK", operands, outputs=2, largest=int(largest), axis=axis)
    check("top_k", operands, *expected, loops=False, largest=largest, axis=axis)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_top_k_of_any_type(dtype):
    x = np.array([2, 7, 0, 7]).astype(dtype)
    check("top_k", [x, np.array(3)], np.array([7, 7, 2]).astype(dtype), np.array([1, 3, 0]), loops=False)


def test_nan_is_the_greatest():
    x = np.array([1.0, NAN, 5.0], np.float32)
    two = np.array([2])
    check("top_k", [x, two], np.array([NAN, 5], np.float32), np.array([1, 2]), loops=False)
    check("top_k", [x, two], np.array([1, 5], np.float32), np.array([0, 2]), loops=False, largest=False)


def test_more_than_there_are_is_refused():
    definition, call = make_call("top_k", [X, np.array([4])], {})
    with pytest.raises(TypeMismatch, match=r"expected 0\.\.3"):
        definition.infer(call)
    with pytest.raises(EvaluationError, match=r"expected 0\.\.3"):
        definition.evaluate(call, [X, np.array([4])], None)
    unknown = Call([tensor(F32, ("N", "M")), tensor(I64, (1,))], {"axis": 0})
    assert lookup("top_k").infer(unknown) == (tensor(F32, ("?", "M")), tensor(I64, ("?", "M")))


@given(st.lists(st.integers(-3, 3), max_size=12), st.booleans())
def test_sorting_is_stable_both_ways(values, descending):
    x = np.array(values, np.int32)
    expected = sorted(range(len(values)), key=lambda i: (-values[i] if descending else values[i], i))
    assert sorting_order(x, 0, descending=descending).tolist() == expected
