"""Truth tables, and bits against Python's integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir import element_of
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, onnxruntime
from compiler.ops.scalars import apply_scalar

FALSE_TRUE = [False, False, True, True], [False, True, False, True]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("and", [False, False, False, True]), ("or", [False, True, True, True]), ("xor", [False, True, True, False])],
)
def test_truth_tables(name, expected):
    check(name, [np.array(side) for side in FALSE_TRUE], np.array(expected))


def test_not():
    check("not", [np.array([[True], [False]])], np.array([[False], [True]]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ml_dtypes.int4, ml_dtypes.uint4])
def test_bits(dtype):
    a, b = np.array([0b0110, 0, 0b0011]).astype(dtype), np.array([0b0101, 0b0111, 0b0010]).astype(dtype)
    check("bitand", [a, b], np.array([0b0100, 0, 0b0010]).astype(dtype))
    check("bitor", [a, b], np.array([0b0111, 0b0111, 0b0011]).astype(dtype))
    check("bitxor", [a, b], np.array([0b0011, 0b0111, 0b0001]).astype(dtype))
    check("bitnot", [apply_scalar("bitnot", a)], a)


def test_inverted_bits_of_each_width():
    check("bitnot", [np.array([0, 5], np.uint8)], np.array([255, 250], np.uint8))
    check("bitnot", [np.array([0, 5], np.int16)], np.array([-1, -6], np.int16))
    check("bitnot", [np.array([0, 5], np.int32).astype(ml_dtypes.uint4)], np.array([15, 10]).astype(ml_dtypes.uint4))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_inside_the_width_agree_with_onnxruntime(dtype, direction):
    a, b = np.array([1, 200, 255, 3], dtype), np.array([1, 3, 7, 0], dtype)
    if dtype is np.uint16:  # no kernel in onnxruntime
        expected = {"LEFT": np.left_shift, "RIGHT": np.right_shift}[direction](a, b)
    else:
        (expected,) = onnxruntime("BitShift", [a, b], direction=direction)
    check(f"shift_{direction.lower()}", [a, b], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_shifts_of_the_width_and_more_move_every_bit_out(dtype):
    bits = np.dtype(dtype).itemsize * 8
    a, b = np.array([1, 77, 77]).astype(dtype), np.array([bits, bits, 100]).astype(dtype)
    check("shift_left", [a, b], np.zeros(3, dtype))
    check("shift_right", [a, b], np.zeros(3, dtype))


def test_signed_shifts_keep_the_sign():
    a, b = np.array([-8, -1, -128, 64], np.int8), np.array([1, 7, 100, -1], np.int8)
    check("shift_right", [a, b], np.array([-4, -1, -1, 0], np.int8))
    check("shift_left", [a, b], np.array([-16, -128, 0, 0], np.int8))


def test_shifts_of_four_bits():
    a, b = (np.array(values).astype(ml_dtypes.uint4) for values in ([15, 8, 9, 3], [1, 3, 4, 0]))
    check("shift_left", [a, b], np.array([14, 0, 0, 3]).astype(ml_dtypes.uint4))
    check("shift_right", [a, b], np.array([7, 1, 0, 3]).astype(ml_dtypes.uint4))


@pytest.mark.parametrize("name", ["bitand", "bitor", "bitxor", "shift_left", "shift_right"])
@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
@given(value=st.integers(0, 2**16 - 1))
def test_identity_elements_change_no_bit(name, dtype, value):
    x = np.array(value, np.uint16).view(dtype)
    e = np.array(lookup(name).identity_element(element_of(np.dtype(dtype))), dtype)
    assert apply_scalar(name, x, e) == x


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_identity_of_bools(name):
    x = np.array([True, False])
    np.testing.assert_array_equal(apply_scalar(name, x, np.array(lookup(name).identity_element(None))), x)
