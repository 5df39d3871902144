"""Comparisons, classifications and the choice, against closed forms and onnxruntime."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from compiler.errors import TypeMismatch
from compiler.ir import F32, I32, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, onnxruntime

INF, NAN = math.inf, math.nan
A, B = [1.0, 2.0, NAN, -0.0, INF], [2.0, 2.0, NAN, 0.0, -INF]
COMPARED = {
    "eq": [False, True, False, True, False],
    "ne": [True, False, True, False, True],
    "lt": [True, False, False, False, False],
    "le": [True, True, False, True, False],
    "gt": [False, False, False, False, True],
    "ge": [False, True, False, True, True],
}


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_floats_compare_as_ieee_754_says(name, dtype):
    check(name, [np.array(A).astype(dtype), np.array(B).astype(dtype)], np.array(COMPARED[name]))


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, ml_dtypes.int4, np.bool_])
def test_integers_and_bools_compare_by_value(name, dtype):
    a, b = np.array([0, 1, 1]).astype(dtype), np.array([1, 1, 0]).astype(dtype)
    operation = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[name]
    expected = [eval(f"{x} {operation} {y}") for x, y in ((0, 1), (1, 1), (1, 0))]
    check(name, [a, b], np.array(expected))


def test_unsigned_64_bit_numbers_compare_beyond_the_signed_range():
    check("lt", [np.array([1], np.uint64), np.array([2**63 + 1], np.uint64)], np.array([True]))


def test_strings_compare_by_content():
    a, b = np.array(["a", "bc"], object), np.array([["a"], ["bc"]], object)
    check("eq", [a, b], np.array([[True, False], [False, True]]), loops=False)
    check("ne", [a, b], np.array([[False, True], [True, False]]), loops=False)


X = np.array([1.0, NAN, INF, -INF, -0.0], np.float32)


def test_classification():
    check("isnan", [X], np.array([False, True, False, False, False]))
    check("isfinite", [X], np.array([True, False, False, False, True]))
    check("isnan", [X.astype(ml_dtypes.bfloat16)], np.array([False, True, False, False, False]))


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_isinf_looks_for_the_signs_asked_for(negative, positive):
    (expected,) = onnxruntime("IsInf", [X], detect_negative=int(negative), detect_positive=int(positive))
    check("isinf", [X], expected, detect_negative=negative, detect_positive=positive)


def test_select_broadcasts_all_three():
    condition, then, otherwise = np.array([[True], [False]]), np.array([1, 2, 3], np.int32), np.array(9, np.int32)
    check("select", [condition, then, otherwise], np.array([[1, 2, 3], [9, 9, 9]], np.int32))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.complex64, np.bool_, np.uint64])
def test_select_moves_any_element_type(dtype):
    then, otherwise = np.array([1, 0, 1]).astype(dtype), np.array([0, 0, 0]).astype(dtype)
    check("select", [np.array([True, True, False]), then, otherwise], np.array([1, 0, 0]).astype(dtype))


def test_select_of_nan_touches_nothing_else():
    operands = [np.array([True, False]), np.float32(NAN), np.float32(-0.0)]
    check("select", operands, np.array([NAN, -0.0], np.float32), signed_zeros=True)


def test_select_of_strings():
    then, otherwise = np.array(["yes", "a"], object), np.array("no", object)
    check("select", [np.array([True, False]), then, otherwise], np.array(["yes", "no"], object), loops=False)


def test_the_condition_must_be_bools():
    with pytest.raises(TypeMismatch, match="'condition'"):
        lookup("select").check(Call([tensor(I32), tensor(F32), tensor(F32)], {}))
