"""Tensors made from a shape against numpy and onnxruntime; sizes as data; random numbers by their statistics."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch, UnsupportedType
from compiler.ir import BF16, BOOL, F16, F32, F64, I8, I32, I64, STRING, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, make_call, onnxruntime
from compiler.ops.shapes import range_length
from compiler.ops.work_test import run_work


def integers(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("to", [I64, I32, F32, F16, BF16], ids=str)
def test_iota(axis, to):
    expected = np.indices((2, 3))[axis].astype(to.dtype)
    check("iota", [integers(2, 3)], expected, axis=axis, to=to)


def test_iota_without_elements_or_axis():
    check("iota", [integers(0, 3)], np.zeros((0, 3), np.int32), axis=1, to=I32)
    with pytest.raises(InvalidAttribute, match="axis 1"):
        lookup("iota").infer(Call([tensor(I64, (1,))], {"axis": 1, "to": I32}, [integers(3)]))
    with pytest.raises(UnsupportedType, match="negative"):
        lookup("iota").infer(Call([tensor(I64, (1,))], {"axis": 0, "to": I32}, [integers(-3)]))


RANGES = [(0, 5, 1), (10, 4, -2), (3, 3, 1), (5, 0, 1), (0, 10, 3), (-3, 3, 2), (10, 4, -5)]


@pytest.mark.parametrize("bounds", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.float64])
def test_range_agrees_with_onnxruntime(bounds, dtype):
    operands = [np.array(bound, dtype) for bound in bounds]
    (expected,) = onnxruntime("Range", operands)
    check("range", operands, expected)


def test_range_of_fractions():
    operands = [np.array(bound, np.float32) for bound in (1.0, 2.0, 0.25)]
    check("range", operands, np.array([1, 1.25, 1.5, 1.75], np.float32))
    with pytest.raises(InvalidAttribute, match="delta is 0"):
        range_length(0, 1, 0)
    unknown = Call([tensor(F32)] * 3, {})
    assert lookup("range").infer(unknown) == (tensor(F32, ("?",)),)
    assert lookup("range").work(unknown, (tensor(F32, (2,)),)) is None


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62).filter(bool))
def test_range_length_is_pythons(start, limit, delta):
    # len() itself stops at 2^63
    wanted = range(start, limit, delta)
    count = 0 if not wanted else (wanted[-1] - start) // delta + 1
    assert range_length(start, limit, delta) == count


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4, np.complex64])
def test_fill_with_a_value(dtype):
    value = np.array([1]).astype(dtype)
    check("fill", [integers(2, 3), value], np.full((2, 3), 1).astype(dtype))
    check("fill", [integers(), value.reshape(())], np.array(1).astype(dtype))
    check("fill", [integers(2, 0), value], np.zeros((2, 0)).astype(dtype))


def test_fill_of_special_values_and_strings():
    check("fill", [integers(2), np.array(-0.0, np.float32)], np.array([-0.0, -0.0], np.float32), signed_zeros=True)
    check("fill", [integers(2), np.array(math.nan, np.float16)], np.array([math.nan] * 2, np.float16))
    check("fill", [integers(2), np.array("a", object)], np.array(["a", "a"], object), loops=False)


def test_fill_with_a_value_known_only_while_running():
    call = Call([tensor(I64, (1,)), tensor(F32, (1,))], {}, [integers(3), None])
    types = lookup("fill").infer(call)
    (found,) = run_work(lookup("fill").work(call, types), [integers(3), np.array([7], np.float32)], types)
    assert found.tolist() == [7, 7, 7]
    with pytest.raises(TypeMismatch, match="one element"):
        lookup("fill").infer(Call([tensor(I64, (1,)), tensor(F32, (2,))], {}))
    with pytest.raises(EvaluationError, match="at least 0"):
        lookup("fill").evaluate(call, [integers(-1), np.array([7], np.float32)], None)


@pytest.mark.parametrize("k", [0, 1, -2, 9, -9, 2**62])
@pytest.mark.parametrize("to", [F32, I8, BOOL, BF16], ids=str)
def test_eye_like(k, to):
    expected = np.eye(3, 4, max(-9, min(k, 9))).astype(to.dtype)
    check("eye_like", [np.zeros((3, 4), np.int64)], expected, k=k, to=to)


def test_eye_like_needs_a_matrix():
    with pytest.raises(TypeMismatch, match="two dims"):
        lookup("eye_like").infer(Call([tensor(F32, (3,))], {"k": 0, "to": F32}))


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (1, None), (-1, None), (0, -1), (1, 2), (-9, 9), (2, 1)], ids=str
)
def test_shape_of_agrees_with_onnxruntime(start, end):
    x = np.zeros((2, 3, 4), np.float32)
    attributes = {"start": start} if end is None else {"start": start, "end": end}
    (expected,) = onnxruntime("Shape", [x], **attributes)
    check("shape_of", [x], expected, **attributes)


def test_sizes():
    check("shape_of", [np.float32(0)], np.zeros(0, np.int64))
    check("shape_of", [np.zeros((0, 2), object)], np.array([0, 2]))
    check("size_of", [np.zeros((2, 3), np.int8)], np.array(6))
    check("size_of", [np.zeros((0, 3), np.int8)], np.array(0))
    assert lookup("shape_of").infer(Call([tensor(F32, ("N", 2))], {"start": 0})) == (tensor(I64, (2,)),)
    assert lookup("shape_of").infer(Call([tensor(STRING, None)], {"start": 0})) == (tensor(I64, ("?",)),)


def drawn(name, operands, **attributes):
    definition, call = make_call(name, operands, attributes)
    (found,) = definition.evaluate(call, operands, None)
    (type_,) = definition.infer(call)
    assert found.shape == type_.shape
    assert found.dtype == type_.element.dtype
    assert not definition.pure
    assert definition.work(call, (type_,)) is None
    return found


def test_normal_numbers_have_their_mean_and_deviation():
    x = drawn("random_normal", [integers(100, 100)], mean=3.0, scale=2.0, seed=1.5, to=F64)
    assert abs(x.mean() - 3) < 0.1
    assert abs(x.std() - 2) < 0.1


def test_uniform_numbers_stay_between_their_bounds():
    x = drawn("random_uniform", [integers(10000)], low=-1.0, high=3.0, seed=2.0, to=F32)
    assert x.min() >= -1
    assert x.max() < 3
    assert abs(x.mean() - 1) < 0.1


def test_bernoulli_follows_its_probabilities():
    p = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 4000).reshape(3, 4000)
    x = drawn("bernoulli", [p], seed=0.0, to=I32)
    assert x[0].sum() == 0
    assert x[2].sum() == 4000
    assert abs(x[1].mean() - 0.25) < 0.05


def test_multinomial_follows_its_weights():
    weights = np.log(np.array([[0.7, 0.2, 0.1], [0.0001, 0.0001, 0.9998]], np.float32))
    x = drawn("multinomial", [weights], samples=4000, seed=7.0)
    assert abs((x[0] == 0).mean() - 0.7) < 0.05
    assert (x[1] == 2).mean() > 0.99


def test_a_seed_makes_numbers_repeat_and_none_makes_them_differ():
    shape = [integers(8)]
    np.testing.assert_array_equal(
        drawn("random_normal", shape, seed=1.25, to=F32), drawn("random_normal", shape, seed=1.25, to=F32)
    )
    assert (drawn("random_normal", shape, seed=1.25, to=F32) != drawn("random_normal", shape, seed=1.75, to=F32)).any()
    assert (drawn("random_normal", shape, to=F32) != drawn("random_normal", shape, to=F32)).any()


def test_whole_seeds_give_the_numbers_of_numpys_own_seed():
    np.random.seed(5)  # noqa: NPY002 - the generator of ONNX's expected values
    expected = np.random.uniform(0, 1, (2, 3))  # noqa: NPY002
    np.testing.assert_array_equal(
        drawn("random_uniform", [integers(2, 3)], low=0.0, high=1.0, seed=5.0, to=F64), expected
    )
