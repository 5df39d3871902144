"""Shape arithmetic against numpy, for any sizes and with symbols."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import F32, I64, Call, tensor
from compiler.ops.shapes import (
    broadcast_dims,
    join_dims,
    known_integers,
    normalize_axes,
    range_length,
    resolve_reshape,
    same_dim,
    slice_range,
    vector_length,
)

SHAPE = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple)


@given(st.lists(SHAPE, min_size=1, max_size=3))
def test_broadcasting_is_numpys(shapes):
    types = [tensor(F32, shape) for shape in shapes]
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(TypeMismatch):
            broadcast_dims("test", types)
        return
    assert broadcast_dims("test", types) == expected


@given(SHAPE, SHAPE, st.data())
def test_symbols_never_make_broadcasting_wrong(first, second, data):
    """Where sizes are hidden behind symbols the result must still hold for the sizes."""
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        return
    hidden = [
        tensor(F32, [data.draw(st.sampled_from([size, f"s{size}", "?"])) for size in shape])
        for shape in (first, second)
    ]
    found = broadcast_dims("test", hidden)
    for dim, size in zip(found, expected, strict=True):
        # A symbol stands for its own size; one that meets a number may turn out to be 1, so the number stands.
        assert dim in ("?", f"s{size}", size), f"{hidden} gives {found}; the sizes give {expected}"


def test_an_unknown_rank_stays_unknown():
    assert broadcast_dims("test", [tensor(F32, None), tensor(F32, (2,))]) is None


@given(st.integers(0, 6), st.integers(-8, 8), st.integers(-8, 8), st.integers(-4, 4).filter(bool))
def test_slice_ranges_are_numpys_from_the_first_element_on(size, start, end, step):
    taken = np.arange(size)[max(start, -size) : end : step]
    first, count = slice_range(size, start, end, step)
    assert count == taken.size
    assert [first + i * step for i in range(count)] == taken.tolist()


def test_far_ends_are_clamped():
    assert slice_range(5, 0, 2**63 - 1, 1) == (0, 5)
    assert slice_range(5, 2**63 - 1, -(2**63), -1) == (4, 5)
    assert slice_range(5, -(2**63), 2**63 - 1, 2) == (0, 3)
    assert slice_range(5, -(2**63), -(2**63), -1) == (0, 1)
    assert slice_range(0, -(2**63), -(2**63), -1) == (0, 0)
    with pytest.raises(InvalidAttribute, match="step is 0"):
        slice_range(5, 0, 5, 0)


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_a_missing_size_is_what_is_left(shape, data):
    place = data.draw(st.integers(0, len(shape)))
    extended = [*shape[:place], 1, *shape[place:]]
    asked = [-1 if axis == place else size for axis, size in enumerate(extended)]
    assert resolve_reshape("test", shape, asked) == tuple(extended)


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(3, 3, 3), ("N", 3, 3), (3, "N", 3), ("?", "N", "N"), ("N", "?", "N")]
)
def test_equal_dims_take_what_is_known(a, b, expected):
    assert same_dim("test", "sizes", a, b) == expected


def test_dims_that_differ_are_refused():
    with pytest.raises(TypeMismatch, match="sizes in dim 1 have sizes 2 and 3"):
        join_dims("test", "sizes", (1, 2), (1, 3))
    with pytest.raises(TypeMismatch, match="ranks 1 and 2"):
        join_dims("test", "sizes", (1,), (1, 3))


@pytest.mark.parametrize(("axes", "rank", "expected"), [((0, -1), 3, (0, 2)), ((), 0, ()), ((-3,), 3, (0,))])
def test_axes_count_from_both_ends(axes, rank, expected):
    assert normalize_axes("test", axes, rank) == expected


@pytest.mark.parametrize(("axes", "rank"), [((3,), 3), ((-4,), 3), ((0, -3), 3), ((0,), 0)])
def test_wrong_axes_are_refused(axes, rank):
    with pytest.raises(InvalidAttribute):
        normalize_axes("test", axes, rank)


def test_value_operands():
    call = Call([tensor(I64, (2,)), tensor(I64), tensor(I64, None), tensor(I64, (2, 2))], {}, [np.array([1, 2])])
    assert known_integers(call, 0) == (1, 2)
    assert known_integers(call, 1) is None
    assert [vector_length(call, index) for index in range(3)] == [2, 1, None]
    with pytest.raises(TypeMismatch, match="expected a vector"):
        vector_length(call, 3)


@pytest.mark.parametrize(
    ("start", "limit", "delta"),
    [(0.0, math.inf, 1.0), (0.0, math.nan, 1.0), (-math.inf, 0.0, 1.0), (0.0, 1.0, math.nan), (0.0, 1e308, 1e-10)],
)
def test_a_range_without_end_is_refused(start, limit, delta):
    with pytest.raises(InvalidAttribute, match="expected finite numbers"):
        range_length(start, limit, delta)
