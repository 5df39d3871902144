import ml_dtypes
import numpy as np
import pytest

from generators import draws

FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
NARROW = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn]
INTEGERS = [np.int8, np.uint8, np.int32, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2]
SHAPE = (8, 16)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", [*FLOATS, *NARROW, *INTEGERS, np.bool_, np.complex64, object])
@pytest.mark.parametrize("shape", [SHAPE, (), (2, 0), (1,)])
def test_random_has_the_shape_and_type_asked_for(rng, dtype, shape):
    values = draws.random(rng, shape, dtype)
    assert isinstance(values, np.ndarray)
    assert values.shape == shape
    assert values.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int64])
def test_random_is_signed(rng, dtype):
    values = draws.random(rng, SHAPE, dtype)
    assert (values < 0).any()
    assert (values > 0).any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_has_every_kind(rng, dtype):
    values = draws.special(rng, SHAPE, dtype).astype(np.float64)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    assert np.isnan(values).any()
    assert {np.inf, -np.inf} <= set(values[np.isinf(values)])
    assert np.signbit(values[values == 0]).any()
    assert not np.signbit(values[values == 0]).all()
    assert ((np.abs(values) > 0) & (np.abs(values) < tiny)).any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float16])
def test_boundary_has_the_limits_of_the_type(rng, dtype):
    values = draws.boundary(rng, (40, 40), dtype)
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    assert values.max() == info.max
    assert values.min() == info.min


def test_large_spans_most_binades_and_integers_the_whole_range(rng):
    exponents = np.log2(np.abs(draws.large(rng, (40, 40), np.float32)))
    assert exponents.max() > 100
    assert exponents.min() < -100
    assert draws.large(rng, (40, 40), np.int64).max() > 2**62
    assert draws.large(rng, (40, 40), np.uint64).max() > 2**63


def test_zeros_are_about_half(rng):
    assert 0.3 < (draws.zeros(rng, (40, 40), np.float32) == 0).mean() < 0.7


def test_ties_are_few_values_with_both_zeros(rng):
    values = draws.ties(rng, SHAPE, np.float32)
    assert set(values.ravel()) == {-1.0, 0.0, 1.0}
    assert np.signbit(values[values == 0]).any()


def test_mixed_puts_small_beside_large(rng):
    sizes = np.abs(draws.mixed(rng, (40, 40), np.float32))
    assert np.quantile(sizes, 0.9) > 100 * np.quantile(sizes, 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8])
def test_uniform_stays_in_range(rng, dtype):
    values = draws.uniform(rng, (30, 30), dtype, -3, 5).astype(np.float64)
    assert values.min() >= -3
    assert values.max() <= 5


def test_integers_leave_out_the_upper_bound_and_fit_the_type(rng):
    assert set(draws.integers(rng, (200,), np.int64, -2, 2)) == {-2, -1, 0, 1}
    assert draws.integers(rng, (200,), np.uint8, -5, 3).min() == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_distinct_has_no_duplicate_along_the_axis(rng, axis):
    values = draws.distinct(rng, (4, 5), np.int64, -1, 6, axis)
    assert values.shape == (4, 5)
    for lane in np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis]):
        assert len(set(lane)) == len(lane)
    assert values.min() >= -1
    assert values.max() < 6


def test_within_keeps_what_is_not_finite():
    values = draws.within(np.array([np.nan, np.inf, -7.0, 0.5], np.float32), 0, 1)
    np.testing.assert_array_equal(values, np.array([np.nan, np.inf, 0.0, 0.5], np.float32))


def test_nonzero_has_no_zero():
    np.testing.assert_array_equal(draws.nonzero(np.array([0, 3, -1], np.int8)), np.array([1, 3, -1], np.int8))


def test_repeat_starts_again():
    np.testing.assert_array_equal(draws.repeat((2, 2), np.float32, [1, 2, 3]), [[1, 2], [3, 1]])


def test_casting_clips_integers_and_keeps_infinities():
    assert draws.cast(np.array([300.0, -300.0, 2.5]), np.int8).tolist() == [127, -128, 2]
    assert draws.cast(np.array([np.inf, 1e9]), np.float16).tolist() == [np.inf, 65504.0]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_within_keeps_the_type(rng, dtype, shape):
    values = draws.within(draws.zeros(rng, shape, dtype), 0, 1)
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.dtype(dtype)


def test_a_bitmap_says_its_own_size():
    values = draws.bitmap(np.random.default_rng(1), 4, 5)
    assert values.dtype == np.uint8
    assert values[:2].tobytes() == b"BM"
    assert int.from_bytes(values[2:6].tobytes(), "little") == len(values) == 118
    assert [int.from_bytes(values[at : at + 4].tobytes(), "little") for at in (18, 22)] == [5, 4]


def test_ordered_has_no_nan_and_keeps_infinities():
    found = draws.ordered(np.array([np.nan, -np.inf, np.inf, 2.5], np.float32))
    np.testing.assert_array_equal(found, np.array([1, -np.inf, np.inf, 2.5], np.float32))
    assert found.dtype == np.float32
