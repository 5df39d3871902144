"""Arithmetic against onnxruntime, closed forms and IEEE 754's special values, for every kind of element type."""

from __future__ import annotations

import math
import zlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import TypeMismatch
from compiler.ir import BF16, BOOL, F8E4M3FN, F8E8M0FNU, F32, I4, I8, I32, U8, Call, element_of, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import assert_same, check, make_call, onnxruntime, plain
from compiler.ops.registry import REAL
from compiler.ops.scalars import apply_scalar, limits

INF, NAN = math.inf, math.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INF, -INF, NAN, 1e-40, 3e38, -7.25], np.float32)

# operator of the IR: operator of ONNX, ulps that separate two good implementations in float32
FROM_ONNXRUNTIME = {
    "neg": ("Neg", 0), "abs": ("Abs", 0), "sign": ("Sign", 0), "floor": ("Floor", 0), "ceil": ("Ceil", 0),
    "round": ("Round", 0), "sqrt": ("Sqrt", 0), "reciprocal": ("Reciprocal", 0), "exp": ("Exp", 4),
    "log": ("Log", 4), "sin": ("Sin", 4), "cos": ("Cos", 4), "tan": ("Tan", 4), "asin": ("Asin", 4),
    "acos": ("Acos", 4), "atan": ("Atan", 4), "sinh": ("Sinh", 4), "cosh": ("Cosh", 4), "asinh": ("Asinh", 4),
    "acosh": ("Acosh", 4), "atanh": ("Atanh", 4),
}  # fmt: skip


@pytest.mark.parametrize("name", FROM_ONNXRUNTIME)
def test_unary_float_operators_agree_with_onnxruntime(name):
    operator, ulps = FROM_ONNXRUNTIME[name]
    x = np.concatenate([SPECIAL, np.linspace(-3, 3, 13, dtype=np.float32)]).reshape(4, 7)
    # onnxruntime's vectorized trigonometry loses itself at 3e38; the libraries of C do not.
    x[(x > 1e30) & (name in {"sin", "cos", "tan"})] = 100.0
    (expected,) = onnxruntime(operator, [x])
    check(name, [x], expected, ulps=ulps)


CLOSED_FORMS = {
    "trunc": ([-1.5, -0.5, 2.9, -INF], [-1.0, -0.0, 2.0, -INF]),
    "round": ([0.5, 1.5, 2.5, -0.5, -1.5], [0.0, 2.0, 2.0, -0.0, -2.0]),
    "rsqrt": ([4.0, 0.25, 0.0, INF, -1.0], [0.5, 2.0, INF, 0.0, NAN]),
    "expm1": ([0.0, 1e-10, -INF, INF], [0.0, math.expm1(1e-10), -1.0, INF]),
    "log1p": ([0.0, 1e-10, -1.0, -2.0], [0.0, math.log1p(1e-10), -INF, NAN]),
    "tanh": ([0.0, INF, -INF, 1.0], [0.0, 1.0, -1.0, math.tanh(1)]),
    "erf": ([0.0, INF, -INF, 1.0, NAN], [0.0, 1.0, -1.0, math.erf(1), NAN]),
    "logistic": ([0.0, INF, -INF, 2.0, -100.0], [0.5, 1.0, 0.0, 1 / (1 + math.exp(-2)), math.exp(-100)]),
    "sign": ([NAN, -0.0, -INF], [NAN, 0.0, -1.0]),
    "neg": ([0.0, -0.0, INF], [-0.0, 0.0, -INF]),
    "ceil": ([-0.5, 0.5], [-0.0, 1.0]),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_closed_forms(name, dtype):
    x, expected = (np.array(values, dtype) for values in CLOSED_FORMS[name])
    check(name, [x], expected, ulps=1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "reciprocal", "erf", "neg", "floor"])
def test_narrow_floats_are_computed_wide_and_rounded_once(name, dtype):
    forms = {"reciprocal": lambda v: math.inf if v == 0 else 1 / v, "erf": math.erf, "neg": lambda v: -v}
    function = forms.get(name) or getattr(math, name)
    x = np.array([0.0, 0.25, 1.0, 1.75, 3.0], dtype)
    with np.errstate(all="ignore"):
        expected = np.array([function(float(value)) for value in x], np.float32).astype(dtype)
    check(name, [x], expected)


BINARY_FLOAT = {
    "add": ([1.0, INF, -0.0, NAN], [2.0, -INF, -0.0, 1.0], [3.0, NAN, -0.0, NAN]),
    "sub": ([1.0, INF, -0.0, 0.0], [2.0, INF, 0.0, 0.0], [-1.0, NAN, -0.0, 0.0]),
    "mul": ([2.0, INF, -0.0, -3.0], [4.0, 0.0, 5.0, INF], [8.0, NAN, -0.0, -INF]),
    "div": ([1.0, 0.0, -1.0, INF], [4.0, 0.0, 0.0, INF], [0.25, NAN, -INF, NAN]),
    "mod": ([5.5, -5.5, 5.5, 1.0], [2.0, 2.0, -2.0, 0.0], [1.5, 0.5, -0.5, NAN]),
    "rem": ([5.5, -5.5, 5.5, 1.0, 3.0], [2.0, 2.0, -2.0, 0.0, INF], [1.5, -1.5, 1.5, NAN, 3.0]),
    "pow": ([2.0, NAN, -8.0, 0.0, -2.0], [-1.0, 0.0, 0.5, -1.0, 3.0], [0.5, 1.0, NAN, INF, -8.0]),
    "max": ([1.0, NAN, -INF, 2.0], [2.0, 1.0, 3.0, NAN], [2.0, NAN, 3.0, NAN]),
    "min": ([1.0, NAN, -INF, 2.0], [2.0, 1.0, 3.0, NAN], [1.0, NAN, -INF, NAN]),
    "atan2": ([0.0, -0.0, 1.0, 0.0], [-1.0, -1.0, 0.0, 0.0], [math.pi, -math.pi, math.pi / 2, 0.0]),
}


@pytest.mark.parametrize("name", BINARY_FLOAT)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_binary_float_operators_keep_ieee_754(name, dtype):
    a, b, expected = (np.array(values, np.float64).astype(dtype) for values in BINARY_FLOAT[name])
    check(name, [a, b], expected, signed_zeros=name not in {"max", "min"})


def test_one_exponent_for_all_is_no_square_root():
    # C99: pow(-0, 0.5) is +0 and pow(-infinity, 0.5) +infinity, unlike sqrt.
    x = np.array([-0.0, -INF, 4.0], np.float32)
    check("pow", [x, np.float32(0.5)], np.array([0.0, INF, 2.0], np.float32), signed_zeros=True)
    (expected,) = onnxruntime("Pow", [x, np.array(0.5, np.float32)])
    check("pow", [x, np.float32(0.5)], expected)


LEAST = -(2**31)
BINARY_INTEGER = {
    "add": ([2**31 - 1, 5], [1, -7], [LEAST, -2]),
    "sub": ([LEAST, 5], [1, 7], [2**31 - 1, -2]),
    "mul": ([2**30, -3], [4, 5], [0, -15]),
    "div": ([7, -7, 7, -7, 5, LEAST, LEAST], [2, 2, -2, -2, 0, -1, 3], [3, -3, -3, 3, 0, LEAST, -715827882]),
    "mod": ([7, -7, 7, -7, 5, LEAST], [3, 3, -3, -3, 0, -1], [1, 2, -2, -1, 0, 0]),
    "rem": ([7, -7, 7, -7, 5, LEAST], [3, 3, -3, -3, 0, -1], [1, -1, 1, -1, 0, 0]),
    "pow": ([2, 2, 1, -1, -1, 0, 0, 3], [10, -1, -5, -3, -2, -1, 0, 40], [1024, 0, 1, -1, 1, 0, 1, 689956897]),
    "max": ([1, -5], [2, -6], [2, -5]),
    "min": ([1, -5], [2, -6], [1, -6]),
}


@pytest.mark.parametrize("name", BINARY_INTEGER)
def test_integers_wrap_and_truncate_as_in_c(name):
    a, b, expected = (np.array(values, np.int32) for values in BINARY_INTEGER[name])
    check(name, [a, b], expected)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min"])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2, np.uint8, np.int8])
def test_narrow_integers_wrap(name, dtype):
    info = ml_dtypes.iinfo(dtype)
    everything = np.arange(int(info.min), int(info.max) + 1, max((int(info.max) - int(info.min)) // 8, 1))
    pairs = [(a, b) for a in everything.tolist() for b in everything.tolist()]
    exact = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": max, "min": min,
        "div": lambda a, b: int(a / b) if b else 0,
    }[name]  # fmt: skip
    low, count = int(info.min), int(info.max) - int(info.min) + 1
    expected = [(exact(a, b) - low) % count + low for a, b in pairs]
    a, b = (np.array([pair[side] for pair in pairs], np.int64).astype(dtype) for side in (0, 1))
    check(name, [a, b], np.array(expected, np.int64).astype(dtype))


def test_unary_integers():
    x = np.array([LEAST, -3, 0, 4], np.int32)
    check("neg", [x], np.array([LEAST, 3, 0, -4], np.int32))
    check("abs", [x], np.array([LEAST, 3, 0, 4], np.int32))
    check("sign", [x], np.array([-1, -1, 0, 1], np.int32))
    check("sign", [np.array([0, 200], np.uint8)], np.array([0, 1], np.uint8))


def test_complex_arithmetic():
    a, b = np.array([1 + 2j, 3j], np.complex64), np.array([2 - 1j, 1 + 1j], np.complex64)
    check("add", [a, b], np.array([3 + 1j, 1 + 4j], np.complex64))
    check("mul", [a, b], np.array([4 + 3j, -3 + 3j], np.complex64))


SHAPES = [((), ()), ((3,), ()), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((2, 0), (2, 1)), ((1,), (0,))]


@pytest.mark.parametrize(("first", "second"), SHAPES, ids=str)
def test_shapes_broadcast_as_numpys(first, second):
    a = np.arange(math.prod(first), dtype=np.float32).reshape(first)
    b = np.arange(math.prod(second), dtype=np.float32).reshape(second) + 10
    check("sub", [a, b], np.asarray(a - b))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1.0, 2.0, [-1.0, 0.5, 2.0, NAN]),
        (None, 2.0, [-3.0, 0.5, 2.0, NAN]),
        (-1.0, None, [-1.0, 0.5, 7.0, NAN]),
        (None, None, [-3.0, 0.5, 7.0, NAN]),
        (5.0, 1.0, [1.0, 1.0, 1.0, NAN]),
    ],
)
def test_clamp_with_every_choice_of_bounds(low, high, expected):
    x = np.array([-3.0, 0.5, 7.0, NAN], np.float32)
    bounds = [None if bound is None else np.float32(bound) for bound in (low, high)]
    check("clamp", [x, *bounds], np.array(expected, np.float32))


def test_clamp_agrees_with_onnxruntime_where_the_bounds_cross():
    x = np.array([-3.0, 3.0, 7.0], np.float32)
    low, high = np.float32(5), np.float32(1)
    (expected,) = onnxruntime("Clip", [x, np.asarray(low), np.asarray(high)])
    check("clamp", [x, low, high], expected)


WITH_IDENTITY = ["add", "sub", "mul", "div", "pow", "max", "min"]


@pytest.mark.parametrize("name", WITH_IDENTITY)
@pytest.mark.parametrize("element", sorted(REAL, key=lambda element: element.name), ids=str)
def test_identity_elements_change_no_bit(name, element):
    identity = lookup(name).identity_element(element)
    if identity is None:
        assert element is F8E8M0FNU
        return
    bits = np.arange(2 ** min(element.bits, 8), dtype=np.uint8)
    generator = np.random.default_rng(zlib.crc32(element.name.encode()))
    drawn = generator.integers(0, 256, 64 * element.dtype.itemsize, np.uint8)
    x = (bits if element.bits <= 8 else drawn).view(element.dtype)
    if element.is_integer and element.bits < 8:
        x = np.arange(int(limits(element)[0]), int(limits(element)[1]) + 1).astype(element.dtype)
    e = np.asarray(identity).astype(element.dtype)
    assert_same(apply_scalar(name, x, e), x, 0, signed_zeros=True)


@pytest.mark.parametrize("name", ["neg", "abs", "floor", "ceil", "round", "trunc", "sign"])
def test_facts_about_one_operand_hold(name):
    definition = lookup(name)
    once = apply_scalar(name, SPECIAL)
    twice = apply_scalar(name, once)
    assert definition.involution or definition.idempotent
    np.testing.assert_array_equal(twice, SPECIAL if definition.involution else once)


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
@given(a=st.floats(width=32), b=st.floats(width=32))
def test_commutative_operators_commute(name, a, b):
    first, second = np.float32(a), np.float32(b)
    assert lookup(name).commutative
    assert_same(apply_scalar(name, first, second), apply_scalar(name, second, first), 0)


@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1))
def test_division_and_remainder_belong_together(a, b):
    x, y = np.array(a, np.int32), np.array(b, np.int32)
    quotient, remainder = int(apply_scalar("div", x, y)), int(apply_scalar("rem", x, y))
    if b and not (a == LEAST and b == -1):
        assert quotient * b + remainder == a
        assert abs(remainder) < abs(b)
        assert remainder == 0 or (remainder < 0) == (a < 0)


def test_limits_are_the_ends_of_each_type():
    assert limits(I8) == (-128, 127)
    assert limits(U8) == (0, 255)
    assert limits(I4) == (-8, 7)
    assert limits(BOOL) == (0, 1)
    assert limits(F32) == (-INF, INF)
    assert limits(BF16) == (-INF, INF)
    assert limits(F8E4M3FN) == (-448.0, 448.0)


def test_shapes_that_do_not_broadcast_are_refused():
    definition, call = make_call("add", [np.zeros((2, 3)), np.zeros((4,))], {})
    with pytest.raises(TypeMismatch, match="do not broadcast"):
        definition.infer(call)


def test_element_types_that_differ_are_refused():
    with pytest.raises(TypeMismatch, match="expected f32 as before"):
        lookup("add").check(Call([tensor(F32, (2,)), tensor(I32, (2,))], {}))


def test_integers_have_no_square_root():
    with pytest.raises(TypeMismatch, match="'x'"):
        lookup("sqrt").check(Call([tensor(I32, (2,))], {}))


def test_evaluation_leaves_no_warning_and_keeps_the_type():
    with np.errstate(all="raise"):
        found = apply_scalar("log", np.array(-1.0, np.float32))
    assert element_of(found.dtype) is F32
    assert np.isnan(plain(found))
