"""Casts against onnxruntime, ONNX's tables and ml_dtypes; bit casts against numpy's views."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, InvalidAttribute
from compiler.ir import (
    BF16,
    BOOL,
    C64,
    F4E2M1FN,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U4,
    U8,
    U16,
    U32,
    U64,
    Call,
    tensor,
)  # fmt: skip
from compiler.ops import lookup
from compiler.ops.convert import convert
from compiler.ops.operator_check_test import assert_same, check, onnxruntime
from compiler.ops.registry import FLOAT

INF, NAN = math.inf, math.nan
WILD = [0.0, -0.0, 1.5, -1.5, 300.0, -300.0, 3e9, 1e10, -1e10, 1e19, 1.2e19, -1e19, NAN, INF, -INF, 1e-7, 123456789.0]


@pytest.mark.parametrize("to", [I8, U8, I16, U16, I32, U32, I64, U64, BOOL], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_floats_become_integers_as_in_onnxruntime(to, dtype):
    from onnx.helper import np_dtype_to_tensor_dtype

    with np.errstate(over="ignore"):
        x = np.array(WILD).astype(dtype)
    if dtype is np.float16 and to is U32:
        x = x[np.isfinite(x)]  # onnxruntime takes another way for this pair; ONNX leaves it undefined
    (expected,) = onnxruntime("Cast", [x], to=np_dtype_to_tensor_dtype(to.dtype))
    check("cast", [x], expected, to=to)


@pytest.mark.parametrize("to", [I8, U8, I16, U16, I32, U32, I64, U64, F32, F16, F64, BOOL], ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_])
def test_integers_convert_as_in_onnxruntime(to, dtype):
    from onnx.helper import np_dtype_to_tensor_dtype

    ends = [0, 1] if dtype is np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 100]
    x = np.array(ends, dtype)
    (expected,) = onnxruntime("Cast", [x], to=np_dtype_to_tensor_dtype(to.dtype))
    check("cast", [x], expected, to=to)


def test_integers_wrap_into_fewer_bits():
    x = np.array([-9, 8, 23, 200], np.int64)
    check("cast", [x], np.array([7, -8, 7, -8]).astype(ml_dtypes.int4), to=I4)
    check("cast", [x], np.array([7, 8, 7, 8]).astype(ml_dtypes.uint4), to=U4)
    check("cast", [x], np.array([-1, 0, -1, 0]).astype(ml_dtypes.int2), to=I2)
    check("cast", [np.array([-9.7, 8.2, 23.0], np.float32)], np.array([7, -8, 7]).astype(ml_dtypes.int4), to=I4)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (I8, [0, -2, 127, -128, 127, -128, 0]),
        (U8, [0, 0, 255, 0, 255, 0, 0]),
        (I4, [0, -2, 7, -8, 7, -8, 0]),
        (I32, [0, -2, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0]),
        (I64, [0, -2, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 0]),
        (U64, [0, 0, 2**64 - 1, 0, 2**64 - 1, 0, 0]),
    ],
    ids=str,
)
def test_saturation_clips_floats_to_integers(to, expected):
    x = np.array([0.9, -2.9, 1e30, -1e30, INF, -INF, NAN], np.float32)
    wide = np.uint64 if to is U64 else np.int64
    check("cast", [x], np.array(expected, wide).astype(to.dtype), to=to, saturate=True)


@pytest.mark.parametrize(
    ("dtype", "to", "x", "expected"),
    [
        (np.int32, I8, [200, -200, 5], [127, -128, 5]),
        (np.int32, U8, [300, -1, 5], [255, 0, 5]),
        (np.uint64, I64, [2**64 - 1, 1], [2**63 - 1, 1]),
        (np.int64, U64, [-1, 1], [0, 1]),
        (np.int8, I32, [-128, 127], [-128, 127]),
        (np.int16, I4, [100, -100], [7, -8]),
    ],
)
def test_saturation_clips_integers(dtype, to, x, expected):
    wide = np.uint64 if max(expected) > 2**63 - 1 else np.int64
    check("cast", [np.array(x, dtype)], np.array(expected, wide).astype(to.dtype), to=to, saturate=True)


@pytest.mark.parametrize("to", [F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ], ids=str)
@pytest.mark.parametrize("saturate", [True, False])
def test_float8_follows_the_table_of_onnx_cast(to, saturate):
    x = np.array([0.0, -0.0, NAN, INF, -INF, 1e6, -1e6, 0.3, -3.2, 1e-9], np.float32)
    has_infinity = to is F8E5M2
    over = float(ml_dtypes.finfo(to.dtype).max) if saturate else (INF if has_infinity else NAN)
    expected = [0.0, -0.0 if to in (F8E4M3FN, F8E5M2) else 0.0, NAN, over, -over, over, -over, 0.3125, -3.25, 0.0]
    if to in (F8E5M2, F8E5M2FNUZ):
        expected[-2] = -3.0
    check("cast", [x], np.array(expected, np.float32).astype(to.dtype), to=to, saturate=saturate, signed_zeros=True)


def test_bfloat16_rounds_to_even():
    # 1 + 2^-8 lies half way between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
    x = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38], np.float32)
    expected = np.array([1.0, 1 + 2**-6, 1 + 2**-7, INF], np.float32).astype(ml_dtypes.bfloat16)
    check("cast", [x], expected, to=BF16)


def test_narrow_floats_widen_exactly():
    every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    check("cast", [every], np.array([float(value) for value in every], np.float32), to=F32, signed_zeros=True)


def test_float4_has_no_infinity_and_no_nan():
    x = np.array([0.3, 5.1, 1e6, -1e6], np.float32)
    check("cast", [x], np.array([0.5, 6, 6, -6], np.float32).astype(ml_dtypes.float4_e2m1fn), to=F4E2M1FN)


@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_powers_of_two_agree_with_onnx(round_mode):
    x = np.array([1.0, 1.25, 1.5, 1.75, 3.0, 2.0**-100, 1e30, NAN], np.float32)
    expected = onnx.numpy_helper.to_float8e8m0(x, True, round_mode)
    check("cast", [x], expected, to=F8E8M0FNU, saturate=True, round_mode=round_mode, loops=False)


@pytest.mark.parametrize(
    ("saturate", "round_mode", "expected"),
    [(True, "up", [0, 255, 254, 254, 0]), (False, "nearest", [255, 255, 255, 255, 255])],
)
def test_powers_of_two_follow_the_table_of_onnx_cast(saturate, round_mode, expected):
    # zero, NaN, infinity, beyond the greatest, below the least
    x = np.array([0.0, NAN, INF, 1e300, 1e-300])
    wanted = np.array(expected, np.uint8).view(ml_dtypes.float8_e8m0fnu)
    check("cast", [x], wanted, to=F8E8M0FNU, saturate=saturate, round_mode=round_mode, loops=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_floats_become_strings_as_in_onnxruntime(dtype):
    with np.errstate(over="ignore"):
        x = np.array([*WILD, 0.1, 314.15926], np.float64).astype(dtype)
    (expected,) = onnxruntime("Cast", [x], to=onnx.TensorProto.STRING)
    check("cast", [x], expected, to=STRING, loops=False)


def test_integers_become_strings():
    check("cast", [np.array([-5, 2**40])], np.array(["-5", "1099511627776"], object), to=STRING, loops=False)


def test_strings_become_numbers():
    x = np.array(["3.14", "1e-5", "+INF", "-inf", "nan", " 7 "], object)
    check("cast", [x], np.array([3.14, 1e-5, INF, -INF, NAN, 7], np.float32), to=F32, loops=False)
    check("cast", [np.array(["9007199254740993", "-1"], object)], np.array([9007199254740993, -1]), to=I64, loops=False)


def test_a_string_that_is_no_number_is_refused():
    with pytest.raises(EvaluationError, match="Hello"):
        convert(np.array(["Hello"], object), F32)


def test_complex_and_real():
    check("cast", [np.array([1.5], np.float32)], np.array([1.5 + 0j], np.complex64), to=C64)
    assert_same(convert(np.array([1.5 + 2j], np.complex64), F32), np.array([1.5], np.float32), 0)


def test_a_cast_to_the_same_type_keeps_every_bit():
    x = np.array([NAN, -0.0, 1e-45], np.float32)
    check("cast", [x], x, to=F32, signed_zeros=True)


def test_saturation_clips_infinities_of_the_same_type():
    x = np.array([INF, -INF, NAN, 1.5], np.float32).astype(ml_dtypes.float8_e5m2)
    expected = np.array([57344, -57344, NAN, 1.5], np.float32).astype(x.dtype)
    check("cast", [x], expected, to=F8E5M2, saturate=True)
    check("cast", [x], x, to=F8E5M2)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int16, ml_dtypes.int4])
def test_saturation_clips_integers_to_narrow_floats(dtype):
    most = int(ml_dtypes.iinfo(dtype).max)
    expected = np.array([min(most, 448), 1], np.float32).astype(ml_dtypes.float8_e4m3fn)
    x = np.array([min(most, 2**62), 1]).astype(dtype)
    check("cast", [x], expected, to=F8E4M3FN, saturate=True)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16])
def test_nan_of_a_narrow_float_becomes_the_least_integer(dtype):
    check("cast", [np.array([NAN, 3.5]).astype(dtype)], np.array([-(2**31), 3], np.int32), to=I32)


@given(st.floats(allow_nan=False))
def test_saturation_never_leaves_the_range(value):
    found = int(convert(np.array(value), I16, saturate=True))
    assert found == min(max(math.trunc(value) if math.isfinite(value) else math.copysign(2**20, value), -32768), 32767)


@pytest.mark.parametrize(
    ("dtype", "to"),
    [(np.float32, I32), (np.int32, F32), (np.uint16, BF16), (np.float64, U64), (np.int8, U8), (np.uint8, F8E4M3FN)],
)
def test_bit_casts_are_views(dtype, to):
    x = np.random.default_rng(3).integers(0, 100, 4 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    check("bitcast", [x], x.view(to.dtype), to=to)


def test_bit_casts_of_four_bits_keep_their_bits():
    x = np.array([-1, -8, 7, 0]).astype(ml_dtypes.int4)
    (found,) = lookup("bitcast").evaluate(Call([tensor(I4, (4,))], {"to": U4}), [x], None)
    assert found.astype(np.int64).tolist() == [15, 8, 7, 0]
    (back,) = lookup("bitcast").evaluate(Call([tensor(U4, (4,))], {"to": I4}), [found], None)
    assert back.astype(np.int64).tolist() == [-1, -8, 7, 0]


def test_a_bit_cast_to_another_width_is_refused():
    with pytest.raises(InvalidAttribute, match="expected a type of 32 bits"):
        lookup("bitcast").infer(Call([tensor(F32, (4,))], {"to": I64}))


def test_an_attribute_outside_its_domain_is_refused():
    with pytest.raises(InvalidAttribute, match="'round_mode' is 'sideways'"):
        lookup("cast").check(Call([tensor(F32)], {"to": I8, "saturate": False, "round_mode": "sideways"}))
    with pytest.raises(InvalidAttribute, match="'to' is missing"):
        lookup("cast").check(Call([tensor(F16)], {"saturate": False, "round_mode": "up"}))


@pytest.mark.parametrize("to", sorted(FLOAT, key=str), ids=str)
@pytest.mark.parametrize("element", sorted(FLOAT, key=str), ids=str)
def test_every_float_converts_to_every_float(element, to):
    values = np.array([0.5, 1.0, 2.0, 4.0]).astype(element.dtype)
    np.testing.assert_array_equal(convert(values, to).astype(np.float64), [0.5, 1.0, 2.0, 4.0])
