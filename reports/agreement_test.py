import math

import ml_dtypes
import numpy as np
import pytest

from reports.agreement import compare_output, is_plausible, spacing

RANDOM = np.random.default_rng(0)
EXACT = RANDOM.standard_normal(1000)
ORT = (EXACT + 1e-6 * RANDOM.standard_normal(1000)).astype(np.float32)


def test_a_result_as_noisy_as_the_reference_agrees():
    found = (EXACT + 1e-6 * RANDOM.standard_normal(1000)).astype(np.float32)
    assert compare_output("y", found, ORT, EXACT).agrees


def test_one_element_far_out_is_seen_by_the_maximum():
    found = ORT.copy()
    found[7] += 1e-4
    verdict = compare_output("y", found, ORT, EXACT)
    assert not verdict.agrees
    assert verdict.max_abs == pytest.approx(1e-4, rel=0.05)


def test_a_small_shift_of_everything_is_seen_by_the_root_mean_square():
    noisy = ORT.copy()
    noisy[0] += 1e-3
    verdict = compare_output("y", (EXACT + 3e-4).astype(np.float32), noisy, EXACT)
    assert verdict.max_abs <= verdict.max_abs_allowed
    assert not verdict.agrees


@pytest.mark.parametrize(
    ("found", "reference", "agrees"),
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([np.inf, 1.0], [np.inf, 1.0], True),
        ([-np.inf, 1.0], [np.inf, 1.0], False),
        ([np.inf, 1.0], [3e38, 1.0], False),
        ([], [], True),
    ],
)
def test_special_values_stand_where_the_reference_has_them(found, reference, agrees):
    arrays = [np.array(values, np.float32) for values in (found, reference)]
    assert compare_output("y", *arrays).agrees == agrees


def test_integers_are_equal_or_not():
    verdict = compare_output("y", np.array([1, 2, 3]), np.array([1, 2, 4]))
    assert (verdict.agrees, verdict.note) == (False, "1 of 3 elements differ")
    assert compare_output("y", np.array([1]), np.array([1])).agrees


@pytest.mark.parametrize("found", [np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float64)])
def test_another_type_or_shape_differs(found):
    verdict = compare_output("y", found, np.zeros((3, 2), np.float32))
    assert (verdict.agrees, verdict.note) == (False, "expected float32[3, 2]")


def test_complex_numbers_compare_part_by_part():
    one = np.array([1 + 2j], np.complex64)
    assert compare_output("y", one, one.copy()).agrees
    assert not compare_output("y", one, one + np.complex64(1e-3j)).agrees


def test_sequences_compare_member_by_member():
    one = [np.array([1.0], np.float32), np.array([2])]
    assert compare_output("y", one, [part.copy() for part in one]).agrees
    assert not compare_output("y", one, one[:1]).agrees


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, 1023.0, -3.0])
def test_spacing_is_numpys(dtype, value):
    assert spacing(value, np.dtype(dtype)) == abs(float(np.spacing(np.asarray(value, dtype))))


def test_spacing_of_bfloat16_and_of_zero():
    assert spacing(1.0, np.dtype(ml_dtypes.bfloat16)) == 2.0**-7
    assert spacing(0.0, np.dtype(np.float32)) == math.ldexp(1, -126 - 23)


def test_an_exact_value_with_few_digits_of_the_reference_is_none():
    assert is_plausible(EXACT, ORT)
    assert not is_plausible(EXACT + 0.01, ORT)
    assert is_plausible(EXACT + 0.01, ORT.astype(np.float16))
    assert is_plausible(np.zeros(3), np.zeros(3, np.float32))
    assert not is_plausible(np.full(3, 1e-9), np.zeros(3, np.float32))
    assert is_plausible([1, 2], np.array([1, 3]))
