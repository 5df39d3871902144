"""Data movement against numpy, element by element and for every kind of element type."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import F32, I64, STRING, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, make_call, onnxruntime
from compiler.ops.work_test import run_work

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LARGEST = 2**63 - 1
DTYPES = [
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4,
    np.bool_,
    np.complex64,
    np.uint64,
    object,
]


def integers(*values):
    return np.array(values, np.int64)


def of(dtype, shape=(2, 3)):
    """Distinct-looking elements of a type."""
    count = math.prod(shape)
    values = (
        [f"s{i}" for i in range(count)]
        if dtype is object
        else [i % 2 if dtype is np.bool_ else i % 8 for i in range(count)]
    )
    return np.array(values).astype(dtype).reshape(shape)


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (1, 0, 2)], ids=str)
def test_transpose(permutation):
    check("transpose", [X], np.transpose(X, permutation), permutation=permutation)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_moves(dtype):
    x = of(dtype)
    check("transpose", [x], x.T.copy(), permutation=(1, 0))
    check("concat", [x, x[:1]], np.concatenate([x, x[:1]]), axis=0)
    check("slice", [x, integers(1), integers(3), integers(1)], x[:, 1:3])
    check("tile", [x, integers(1, 2)], np.tile(x, (1, 2)))
    check("broadcast_to", [x[:, :1], integers(2, 2)], np.broadcast_to(x[:, :1], (2, 2)))
    check("reverse", [x], x[::-1].copy(), axes=(0,))
    check("split", [x], x[:, :2], x[:, 2:], axis=1, outputs=2)


def test_rank_0_moves():
    check("transpose", [np.float32(3)], np.float32(3), permutation=())
    check("reverse", [np.float32(3)], np.float32(3), axes=())
    check("tile", [np.float32(3), integers()], np.float32(3))
    check("broadcast_to", [np.float32(3), integers(2)], np.array([3, 3], np.float32))
    check("broadcast_to", [np.float32(3), integers()], np.float32(3))


def test_a_wrong_permutation_is_refused():
    for permutation in ((0, 0, 1), (0, 1)):
        with pytest.raises(InvalidAttribute, match="permutation"):
            lookup("transpose").infer(Call([tensor(F32, (2, 3, 4))], {"permutation": permutation}))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (5, 2, 3, 4), (1, 1, 4), (4,), (), (0, 1, 3, 4)], ids=str)
def test_broadcast_to_is_two_way(sizes):
    x = X[:, :, :1] if sizes[-1:] == (4,) and len(sizes) > 1 else X
    x = X[:1] if sizes == (0, 1, 3, 4) else x
    expected = np.broadcast_to(x, np.broadcast_shapes(x.shape, sizes))
    check("broadcast_to", [x, integers(*sizes)], expected)


def test_shapes_that_do_not_broadcast_are_refused():
    definition, call = make_call("broadcast_to", [X, integers(5)], {})
    with pytest.raises(TypeMismatch, match="do not broadcast"):
        definition.infer(call)
    with pytest.raises(EvaluationError, match="does not broadcast"):
        definition.evaluate(call, [X, integers(5)], None)


SLICES = [
    # starts, ends, axes, steps
    ([0], [LARGEST], None, None),
    ([1, 0], [2, 3], None, None),
    ([-3], [-1], [-1], None),
    ([0, 0], [1000, -1], [1, 2], [1, 2]),
    ([-1], [-LARGEST], [2], [-1]),
    ([20], [0], [1], [-1]),
    ([3], [-1000], [2], [-2]),
    ([-1], [-4], [1], [-1]),
    ([2], [1], [0], None),
    ([5], [9], [2], None),
    ([1], [LARGEST], [2], [LARGEST]),
    ([-1], [-2**63], [2], [-2**63]),
    ([-9], [-9], [2], [-1]),
    ([-(2**63)], [-LARGEST], [1], [-1]),
]  # fmt: skip


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES, ids=str)
def test_slices_agree_with_onnxruntime(starts, ends, axes, steps):
    values = [None if value is None else integers(*value) for value in (starts, ends, axes, steps)]
    (expected,) = onnxruntime("Slice", [X, *values])
    check("slice", [X, *values], expected)


def test_a_slice_whose_values_are_unknown_keeps_the_other_dims():
    vector = tensor(I64, (1,))
    call = Call([tensor(F32, ("N", 3)), vector, vector, vector], {}, [None, None, None, integers(1)])
    assert lookup("slice").infer(call) == (tensor(F32, ("N", "?")),)
    assert lookup("slice").work(Call([tensor(F32, (2, 3)), vector, vector], {}), (tensor(F32, (1, 3)),)) is None


def test_a_whole_slice_keeps_a_symbol():
    values = [None, integers(0), integers(LARGEST), integers(0), None]
    call = Call([tensor(F32, ("N", 3)), *[tensor(I64, (1,))] * 3, None], {}, values)
    assert lookup("slice").infer(call) == (tensor(F32, ("N", 3)),)


def test_wrong_slices_are_refused():
    definition, call = make_call("slice", [X, integers(0), integers(1), integers(0), integers(0)], {})
    with pytest.raises(InvalidAttribute, match="step is 0"):
        definition.infer(call)
    definition, call = make_call("slice", [X, integers(0, 1), integers(1), integers(0)], {})
    with pytest.raises(TypeMismatch, match="entries"):
        definition.infer(call)


@given(st.data())
def test_slices_agree_with_numpy(data):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    bound = st.integers(-6, 6)
    cuts = [(data.draw(bound), data.draw(bound), data.draw(bound.filter(bool))) for _ in shape]
    x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    axes = range(len(shape))
    starts, ends, steps = (integers(*column) for column in zip(*cuts, strict=True))
    # numpy reads a negative end as "from the end"; ONNX clamps, which is the same but for -size - 1 and below.
    expected = x[tuple(slice(start, end, step) for start, end, step in cuts)]
    check("slice", [x, starts, ends, integers(*axes), steps], expected)


@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2), (), (0, 1, 2)], ids=str)
def test_reverse(axes):
    check("reverse", [X], np.flip(X, axes).copy(), axes=axes)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_concat(axis):
    parts = [X, np.take(X, [], axis), np.flip(X, axis).copy(), np.take(X, [1], axis)]
    check("concat", parts, np.concatenate(parts, axis), axis=axis)


def test_concat_leaves_out_operands_without_elements():
    definition, call = make_call("concat", [X, X[:, :0]], {"axis": 1})
    assert len(definition.work(call, definition.infer(call))) == 1
    check("concat", [X[:0], X[:0]], X[:0], axis=0)
    check("concat", [X], X, axis=1)


def test_concat_of_symbols():
    infer = lookup("concat").infer
    a, b = tensor(F32, ("N", 3)), tensor(F32, ("N", 4))
    assert infer(Call([a, b], {"axis": 1})) == (tensor(F32, ("N", 7)),)
    assert infer(Call([a, a], {"axis": 0})) == (tensor(F32, ("?", 3)),)
    assert infer(Call([a, tensor(F32, (2, 4))], {"axis": 1})) == (tensor(F32, (2, 7)),)
    with pytest.raises(TypeMismatch, match="dim 1"):
        infer(Call([a, b], {"axis": 0}))
    with pytest.raises(TypeMismatch, match="ranks"):
        infer(Call([a, tensor(F32, (3,))], {"axis": 0}))


@pytest.mark.parametrize(
    ("size", "outputs", "sizes", "expected"),
    [
        (6, 3, None, [2, 2, 2]),
        (7, 3, None, [3, 3, 1]),
        (4, 3, None, [2, 2, 0]),
        (6, 2, [5, 1], [5, 1]),
        (6, 3, [0, 6, 0], [0, 6, 0]),
        (0, 2, None, [0, 0]),
        (3, 1, None, [3]),
    ],
)
@pytest.mark.parametrize("axis", [0, -1])
def test_split(size, outputs, sizes, expected, axis):
    x = np.arange(size * 2, dtype=np.int16).reshape((size, 2) if axis == 0 else (2, size))
    parts = np.split(x, np.cumsum(expected)[:-1], axis)
    operands = [x, None if sizes is None else integers(*sizes)]
    check("split", operands, *parts, axis=axis, outputs=outputs)


def test_sizes_that_do_not_add_up_are_refused():
    definition, call = make_call("split", [X, integers(1, 1)], {"axis": 1, "outputs": 2})
    with pytest.raises(TypeMismatch, match="add up to 3"):
        definition.infer(call)


@pytest.mark.parametrize("repeats", [(1, 1, 1), (2, 1, 3), (1, 0, 2), (3, 2, 1)], ids=str)
def test_tile(repeats):
    check("tile", [X, integers(*repeats)], np.tile(X, repeats))
    check("tile", [X[:, :1], integers(*repeats)], np.tile(X[:, :1], repeats))


def test_a_wrong_number_of_repeats_is_refused():
    definition, call = make_call("tile", [X, integers(2, 2)], {})
    with pytest.raises(TypeMismatch, match="3 counts"):
        definition.infer(call)


def test_strings_keep_their_loops_free_of_numbers():
    x = np.array(["a", "b"], object)
    definition, call = make_call("concat", [x, x], {"axis": 0})
    types = definition.infer(call)
    assert types == (tensor(STRING, (4,)),)
    assert run_work(definition.work(call, types), [x, x], types)[0].tolist() == ["a", "b", "a", "b"]
