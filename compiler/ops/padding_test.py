"""Padding against numpy and onnxruntime; triangles against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, make_call, onnxruntime
from compiler.ops.padding import MOST_PIECES, runs
from compiler.ops.work_test import run_work

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def integers(*values):
    return np.array(values, np.int64)


PADS = [(0, 0, 0, 0), (1, 2, 0, 1), (0, 3, 2, 0), (-1, 0, 0, -2), (-1, 1, 1, -1), (5, 6, 4, 7)]


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("value", [None, 7.5])
def test_constant_padding_agrees_with_onnxruntime(pads, value):
    given_value = None if value is None else np.array(value, np.float32)
    (expected,) = onnxruntime("Pad", [X, integers(*pads), given_value])
    check("pad", [X, integers(*pads), given_value], expected)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 2, 0, 1), (0, 3, 2, 0), (2, 3, 2, 3), (4, 0, 5, 8)], ids=str)
def test_repeating_padding_agrees_with_numpy(mode, pads):
    low, high = pads[:2], pads[2:]
    expected = np.pad(X, list(zip(low, high, strict=True)), mode)
    check("pad", [X, integers(*pads)], expected, mode=mode)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_repeating_padding_takes_away_before_it_repeats(mode):
    pads = integers(-1, 0, 1, 2)
    expected = np.pad(X[1:], [(0, 1), (0, 2)], mode)
    check("pad", [X, pads], expected, mode=mode)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_, np.complex64, np.int64])
def test_padding_of_any_type(dtype):
    x = np.array([[1, 0]]).astype(dtype)
    check("pad", [x, integers(1, 0, 0, 1)], np.array([[0, 0, 0], [1, 0, 0]]).astype(dtype))


def test_padding_of_strings_has_no_loops():
    x = np.array(["a"], object)
    check("pad", [x, integers(1, 1), np.array("z", object)], np.array(["z", "a", "z"], object), loops=False)


def test_padding_of_named_axes():
    expected = np.pad(X, [(0, 0), (1, 2)])
    check("pad", [X, integers(1, 2), None, integers(-1)], expected)


def test_padding_between_elements():
    expected = np.zeros((3, 8), np.float32)
    expected[:, 1::2] = X
    check("pad", [X, integers(0, 1, 0, 0)], expected, interior=(0, 1))
    cropped = np.zeros((3, 4), np.float32)
    cropped[:, 1::2] = X[:, 1:3]
    check("pad", [X, integers(0, -1, 0, -2)], cropped, interior=(0, 1))


def test_a_value_known_only_while_running_is_filled_first():
    value = np.array([9.0], np.float32).reshape(())
    definition = lookup("pad")
    call = Call(
        [tensor(F32, (3, 4)), tensor(I64, (4,)), tensor(F32)],
        definition.complete({}),
        [None, integers(1, 0, 0, 1), None],
    )
    types = definition.infer(call)
    work = definition.work(call, types)
    assert len(work) == 2
    (found,) = run_work(work, [X, integers(1, 0, 0, 1), value], types)
    np.testing.assert_array_equal(found, np.pad(X, [(1, 0), (0, 1)], constant_values=9))


def test_padding_of_nothing():
    check("pad", [X[:0], integers(1, 0, 1, 0), np.float32(2)], np.full((2, 4), 2, np.float32))
    check("pad", [X[:0], integers(0, 1, 0, 0)], np.zeros((0, 5), np.float32), mode="edge")
    check("pad", [np.float32(5), integers()], np.float32(5))
    definition, call = make_call("pad", [X[:0], integers(1, 0, 1, 0)], {"mode": "edge"})
    with pytest.raises(EvaluationError, match="at least one to repeat"):
        definition.evaluate(call, [X[:0], integers(1, 0, 1, 0)], None)


def test_wrong_pads_are_refused():
    for pads, message in ((integers(1, 1), "2 pads"), (integers(-2, 0, -2, 0), "at least 0")):
        definition, call = make_call("pad", [X, pads], {})
        with pytest.raises(TypeMismatch, match=message):
            definition.infer(call)
    with pytest.raises(InvalidAttribute, match="interior"):
        make_call("pad", [X, integers(0, 0, 0, 0)], {"interior": (1, 0), "mode": "edge"})


def test_pads_of_symbols():
    call = Call(
        [tensor(F32, ("N", "M")), tensor(I64, (4,))], {"mode": "constant", "interior": ()}, [None, integers(0, 1, 0, 1)]
    )
    assert lookup("pad").infer(call) == (tensor(F32, ("N", "?")),)


def test_too_many_pieces_have_no_loop_form():
    pads = integers(*[40] * 4)
    definition, call = make_call("pad", [X[:2, :2], pads], {"mode": "wrap"})
    types = definition.infer(call)
    assert definition.work(call, types) is None
    assert MOST_PIECES < 41 * 41
    np.testing.assert_array_equal(definition.evaluate(call, [X[:2, :2], pads], None)[0], np.pad(X[:2, :2], 40, "wrap"))


@given(st.lists(st.integers(0, 6), max_size=12))
def test_runs_say_the_same_as_the_list(sources):
    spelled = [run.first + i * run.step for run in runs(sources) for i in range(run.count)]
    assert spelled == sources
    assert [run.start for run in runs(sources)] == np.cumsum([0, *[run.count for run in runs(sources)]])[:-1].tolist()


@pytest.mark.parametrize("k", [None, 0, 1, -1, 5, -5, 2**62, -(2**62)])
@pytest.mark.parametrize("upper", [True, False])
def test_triangles(k, upper):
    x = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
    expected = (np.triu if upper else np.tril)(x, 0 if k is None else max(-9, min(k, 9)))
    check("trilu", [x, None if k is None else np.array(k, np.int64)], expected, upper=upper)


def test_triangles_of_other_types():
    x = np.array([[True, True], [True, True]])
    check("trilu", [x], np.array([[True, True], [False, True]]))
    nan = np.full((2, 2), np.nan, np.float16)
    check("trilu", [nan], np.array([[np.nan, np.nan], [0, np.nan]], np.float16))
    strings = np.array([["a", "b"], ["c", "d"]], object)
    check("trilu", [strings], np.array([["a", "b"], ["", "d"]], object), loops=False)
    with pytest.raises(TypeMismatch, match="two dims"):
        lookup("trilu").infer(Call([tensor(F32, (3,))], {"upper": True}))
