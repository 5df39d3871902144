"""Reshapes against numpy; the exchange of space and channels against onnxruntime."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops import lookup
from compiler.ops.operator_check_test import check, make_call, onnxruntime
from compiler.ops.reshape import common_factors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def integers(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    "sizes", [(6, 4), (2, -1), (-1,), (2, 3, 2, 2), (1, 24, 1), (2, 3, 4), (1, 2, 3, 1, 4)], ids=str
)
def test_reshape_with_loops_that_split_and_join(sizes):
    check("reshape", [X, integers(*sizes)], X.reshape(sizes))


def test_a_dim_that_straddles_others_has_no_loops():
    check("reshape", [X, integers(4, 6)], X.reshape(4, 6), loops=False)
    assert lookup("reshape").alias


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_, object])
def test_reshape_of_any_type(dtype):
    x = np.array([0, 1, 1, 0]).astype(dtype)
    check("reshape", [x, integers(2, 2)], x.reshape(2, 2))


def test_reshape_without_elements_and_of_scalars():
    check("reshape", [X[:0], integers(0, 5)], np.zeros((0, 5), np.float32))
    check("reshape", [np.float32(2), integers(1, 1)], np.array([[2]], np.float32))
    check("reshape", [np.array([[2]], np.float32), integers()], np.float32(2))


@pytest.mark.parametrize("sizes", [(5, 5), (5, -1), (-1, -1), (-2, 12), (0, -1)], ids=str)
def test_sizes_that_do_not_fit_are_refused(sizes):
    definition, call = make_call("reshape", [X, integers(*sizes)], {})
    with pytest.raises(TypeMismatch, match="reshape"):
        definition.infer(call)


@pytest.mark.parametrize(
    ("dims", "sizes", "expected"),
    [
        (("N", 3, 4), (-1, 12), ("N", 12)),
        (("N", 3, 4), (-1, 6), ("?", 6)),
        (("N", "M"), (-1, 2), ("?", 2)),
        (None, (2, -1), (2, "?")),
    ],
)
def test_a_symbol_survives_where_the_rest_accounts_for_it(dims, sizes, expected):
    call = Call([tensor(F32, dims), tensor(I64, (2,))], {}, [None, integers(*sizes)])
    assert lookup("reshape").infer(call) == (tensor(F32, expected),)


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_merged_dims_have_common_factors(shape, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(shape)))))
    merged = [math.prod(shape[a:b]) for a, b in zip([0, *cuts], [*cuts, len(shape)], strict=True)]
    factors = common_factors(shape, merged)
    assert math.prod(factors) == math.prod(shape)
    x = np.arange(math.prod(shape), dtype=np.int32)
    check("reshape", [x.reshape(shape), integers(*merged)], x.reshape(merged))
    check("reshape", [x.reshape(merged), integers(*shape)], x.reshape(shape))


def test_squeeze():
    x = X.reshape(1, 2, 1, 12)
    check("squeeze", [x, integers(0)], x[0])
    check("squeeze", [x, integers(-2, 0)], x[0, :, 0])
    check("squeeze", [x, None], x[0, :, 0])
    definition, call = make_call("squeeze", [x, integers(1)], {})
    with pytest.raises(TypeMismatch, match="expected 1"):
        definition.infer(call)


def test_squeeze_of_symbols():
    vector = tensor(I64, (1,))
    call = Call([tensor(F32, ("N", 1, "M")), vector], {}, [None, integers(1)])
    assert lookup("squeeze").infer(call) == (tensor(F32, ("N", "M")),)
    assert lookup("squeeze").infer(Call([tensor(F32, ("N", 1))], {})) == (tensor(F32, None),)


def test_unsqueeze():
    check("unsqueeze", [X, integers(0)], X[None])
    check("unsqueeze", [X, integers(-1, 1)], X[:, None, :, :, None])
    check("unsqueeze", [np.float32(1), integers(0)], np.array([1], np.float32))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("block", [1, 2])
def test_depth_to_space_agrees_with_onnxruntime(mode, block):
    x = np.arange(96, dtype=np.float32).reshape(2, 8, 2, 3)
    (expected,) = onnxruntime("DepthToSpace", [x], blocksize=block, mode=mode)
    check("depth_to_space", [x], expected, block_size=block, mode=mode)


def test_space_to_depth_agrees_with_onnxruntime():
    x = np.arange(144, dtype=np.float32).reshape(2, 3, 4, 6)
    (expected,) = onnxruntime("SpaceToDepth", [x], blocksize=2)
    check("space_to_depth", [x], expected, block_size=2)


@pytest.mark.parametrize("shape", [(1, 6, 2, 2), (1, 8, 2)])
def test_images_of_wrong_sizes_are_refused(shape):
    with pytest.raises(TypeMismatch, match="depth_to_space"):
        lookup("depth_to_space").infer(Call([tensor(F32, shape)], {"block_size": 2, "mode": "DCR"}))
