"""Reductions, positions and running sums against numpy in wide types, closed forms and onnxruntime."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, InvalidAttribute
from compiler.ir import F16, F32, I32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, check_composite, decomposed, make_call, onnxruntime

INF, NAN = math.inf, math.nan
X = np.array([[[1, -2, 3], [4, 5, -6]], [[7, 8, 9], [-1, 0, 2]]], np.int32)
AXES = [(0,), (1,), (-1,), (0, 2), (2, 0), (0, 1, 2)]
SUMS = {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_reductions_over_any_axes(name, axes, keep_dims, dtype):
    x = X.astype(dtype)
    expected = np.asarray(SUMS[name](x.astype(np.float64), axis=axes, keepdims=keep_dims)).astype(dtype)
    check(name, [x], expected, axes=axes, keep_dims=keep_dims)


def test_no_axes_reduce_nothing():
    check("reduce_sum", [np.array([-0.0, 1.0])], np.array([-0.0, 1.0]), axes=(), signed_zeros=True)
    check("reduce_max", [np.float32(3)], np.float32(3), axes=())


EMPTY = {
    "reduce_sum": (0, 0), "reduce_prod": (1, 1), "reduce_max": (-INF, -128), "reduce_min": (INF, 127),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_reductions_over_nothing_give_the_starting_value(name):
    of_floats, of_integers = EMPTY[name]
    check(name, [np.zeros((2, 0), np.float32)], np.full((2, 1), of_floats, np.float32), axes=(1,))
    check(name, [np.zeros((0, 3), np.int8)], np.full(3, of_integers, np.int8), axes=(0,), keep_dims=False)
    check(name, [np.zeros((2, 0), np.float32)], np.zeros((1, 0), np.float32), axes=(0,))


def test_the_least_value_of_a_type_without_infinity():
    x = np.zeros((0,), ml_dtypes.float8_e4m3fn)
    check("reduce_max", [x], np.array(-448.0).astype(x.dtype), axes=(0,), keep_dims=False)


def test_extremes_keep_nan_and_bools_are_any_and_all():
    check("reduce_max", [np.array([1.0, NAN, INF], np.float32)], np.array([NAN], np.float32), axes=(0,))
    check("reduce_min", [np.array([1.0, NAN, -INF], np.float32)], np.array([NAN], np.float32), axes=(0,))
    bools = np.array([[True, False], [False, False], [True, True]])
    any_, all_ = np.array([True, False, True]), np.array([False, False, True])
    for name, expected in (("reduce_max", any_), ("reduce_or", any_), ("reduce_min", all_), ("reduce_and", all_)):
        check(name, [bools], expected, axes=(1,), keep_dims=False)
    check("reduce_and", [np.zeros((2, 0), bool)], np.array([True, True]), axes=(1,), keep_dims=False)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sums_accumulate_wide_and_round_once(dtype):
    # In the narrow type itself 4096 + 1 stays 4096, however often it is added.
    x = np.array([4096.0] + [1.0] * 32, np.float32).astype(dtype)
    check("reduce_sum", [x], np.array([4128.0], np.float32).astype(dtype), axes=(0,))
    y = np.array([256.0, 256.0, 0.0078125], np.float32).astype(dtype)
    check("reduce_prod", [y], np.array([512.0], np.float32).astype(dtype), axes=(0,))
    z = np.array([256.0, 300.0, 1 / 256], np.float32).astype(dtype)  # 76,800 is beyond float16
    check("reduce_prod", [z], np.array([float(z[0]) * float(z[1]) / 256]).astype(dtype), axes=(0,))


def test_integer_sums_wrap():
    check("reduce_sum", [np.array([100, 100], np.int8)], np.array([-56], np.int8), axes=(0,))
    nibbles = np.array([7, 7]).astype(ml_dtypes.int4)
    check("reduce_sum", [nibbles], np.array([-2]).astype(ml_dtypes.int4), axes=(0,))


def test_sums_of_complex_numbers():
    check("reduce_sum", [np.array([1 + 2j, 3 - 5j], np.complex64)], np.array([4 - 3j], np.complex64), axes=(0,))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("select_last", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_positions_and_ties_agree_with_onnxruntime(name, select_last, axis):
    x = np.array([[2, 7, 7, 1, 1], [2, 7, 0, 0, 1], [1, 1, 1, 1, 1]], np.float32)
    operator = {"argmax": "ArgMax", "argmin": "ArgMin"}[name]
    (expected,) = onnxruntime(operator, [x], axis=axis, keepdims=0, select_last_index=int(select_last))
    check(name, [x], expected, axis=axis, keep_dims=False, select_last=select_last)
    check(name, [x.astype(np.int8)], np.expand_dims(expected, axis), axis=axis, select_last=select_last)


def test_nan_is_the_extreme():
    x = np.array([1.0, NAN, INF, NAN, -INF], np.float32)
    for name in ("argmax", "argmin"):
        check(name, [x], np.array([1]), axis=0)
        check(name, [x], np.array([3]), axis=0, select_last=True)


def test_there_is_no_position_along_an_empty_axis():
    x = np.zeros((2, 0), np.float32)
    definition, call = make_call("argmax", [x], {"axis": 1})
    with pytest.raises(EvaluationError, match="empty"):
        definition.evaluate(call, [x], None)
    assert definition.work(call, definition.infer(call)) is None
    check("argmax", [x], np.zeros((1, 0), np.int64), axis=0)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums_agree_with_onnxruntime(exclusive, reverse, axis):
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    (expected,) = onnxruntime("CumSum", [x, np.array(axis, np.int64)], **flags)
    check("cumsum", [x], expected, axis=axis, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [(False, False, [2, 6, 24]), (True, False, [1, 2, 6]), (False, True, [24, 12, 4]), (True, True, [12, 4, 1])],
)
def test_running_products(exclusive, reverse, expected):
    x = np.array([2, 3, 4], np.int32)
    check("cumprod", [x], np.array(expected, np.int32), axis=0, exclusive=exclusive, reverse=reverse)


def test_running_sums_accumulate_wide_and_wrap():
    x = np.array([2048, 1, 1, 1], np.float16)
    check("cumsum", [x], np.array([2048, 2048, 2050, 2052], np.float16), axis=0)
    check("cumsum", [np.array([100, 100, 100], np.int8)], np.array([100, -56, 44], np.int8), axis=0)
    check("cumsum", [np.zeros((2, 0), np.int32)], np.zeros((2, 0), np.int32), axis=1, exclusive=True)


FORMULAS = {
    "reduce_mean": lambda x: x.mean(-1), "reduce_l1": lambda x: np.abs(x).sum(-1),
    "reduce_l2": lambda x: np.sqrt((x * x).sum(-1)), "reduce_sum_square": lambda x: (x * x).sum(-1),
    "reduce_log_sum": lambda x: np.log(x.sum(-1)), "reduce_log_sum_exp": lambda x: np.log(np.exp(x).sum(-1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_formulas_around_sums(name, dtype):
    x = np.array([[1.5, 2.25, 0.5, 3.0], [0.125, 4.0, -1.0, 2.0]]).astype(dtype)
    expected = FORMULAS[name](x.astype(np.float64)).astype(dtype)
    check_composite(name, [x], expected, ulps=2, axes=(1,), keep_dims=False)
    check_composite(name, [x], expected[:, None], ulps=2, axes=(-1,), keep_dims=True)


OF_INTEGERS = {
    "reduce_mean": "ReduceMean", "reduce_l1": "ReduceL1", "reduce_l2": "ReduceL2",
    "reduce_sum_square": "ReduceSumSquare", "reduce_log_sum": "ReduceLogSum", "reduce_log_sum_exp": "ReduceLogSumExp",
}  # fmt: skip


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_formulas_of_integers_agree_with_onnxruntime(name):
    x = np.array([[1, 2, 4], [-3, 7, 1]], np.int32)
    (expected,) = onnxruntime(OF_INTEGERS[name], [x, np.array([1], np.int64)], keepdims=0)
    check_composite(name, [x], expected, axes=(1,), keep_dims=False)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("reduce_sum_square", [2**31 + 1, 3], 2**62 + 2**32 + 10),
        ("reduce_l1", [2**54 + 1, -(2**54 + 1)], 2**55 + 2),
    ],
)
def test_formulas_of_integers_that_stay_integers_go_through_no_float(name, values, expected):
    check_composite(name, [np.array(values)], np.array(expected), axes=(0,), keep_dims=False)


def test_log_sum_exp_does_not_overflow():
    x = np.array([1000.0, 1000.0], np.float32)
    check_composite("reduce_log_sum_exp", [x], np.array([1000 + math.log(2)], np.float32), ulps=1, axes=(0,))
    infinite = np.array([[INF, 1.0], [-INF, -INF], [NAN, 1.0]], np.float32)
    check_composite("reduce_log_sum_exp", [infinite], np.array([[INF], [-INF], [NAN]], np.float32), axes=(1,))


def test_formulas_over_nothing():
    x = np.zeros((1, 0), np.float32)
    for name, value in (
        ("reduce_mean", NAN),
        ("reduce_l2", 0.0),
        ("reduce_log_sum", -INF),
        ("reduce_log_sum_exp", -INF),
    ):
        check_composite(name, [x], np.array([[value]], np.float32), axes=(1,))


def test_squares_beyond_float16_are_summed_wide():
    x = np.array([300.0, 400.0], np.float16)
    check_composite("reduce_l2", [x], np.array([500.0], np.float16), axes=(0,))


def test_the_mean_counts_symbolic_dims_while_running():
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    attributes = {"axes": (0, 1), "keep_dims": False}
    (found,) = decomposed("reduce_mean", [x], attributes, types=[tensor(F32, ("N", 3, 2))])
    np.testing.assert_array_equal(found, [5.0, 6.0])


def test_reduced_dims_stay_symbolic():
    call = Call([tensor(F16, ("N", 3, "M"))], {"axes": (-1,), "keep_dims": True})
    assert lookup("reduce_sum").infer(call) == (tensor(F16, ("N", 3, 1)),)
    assert lookup("argmax").infer(Call(call.types, {"axis": 0, "keep_dims": False, "select_last": False})) == (
        tensor(I64, (3, "M")),
    )


@pytest.mark.parametrize("axes", [(2,), (-3,), (0, 0), (0, -2)])
def test_wrong_axes_are_refused(axes):
    with pytest.raises(InvalidAttribute, match="ax"):
        lookup("reduce_sum").infer(Call([tensor(I32, (2, 3))], {"axes": axes, "keep_dims": True}))


@given(st.data())
def test_reductions_have_numpys_shape(data):
    shape = data.draw(st.lists(st.integers(0, 3), max_size=4))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else ()
    keep_dims = data.draw(st.booleans())
    expected = np.sum(np.zeros(shape), axis=axes, keepdims=keep_dims).shape
    call = Call([tensor(F32, shape)], {"axes": axes, "keep_dims": keep_dims})
    assert lookup("reduce_sum").infer(call)[0].shape == expected


def test_evaluated_sums_accumulate_in_float64():
    # In float32 each 0.1 is lost between 1e8 and -1e8.
    x = np.array(list(itertools.islice(itertools.cycle([0.1, 1e8, -1e8]), 300)), np.float32)
    definition, call = make_call("reduce_sum", [x], {"axes": (0,), "keep_dims": False})
    (found,) = definition.evaluate(call, [x], None)
    assert math.isclose(float(found), 10.0, rel_tol=1e-6)
