"""Tests of the complement of the error function, beside C's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler.ops.harness_test import run, run_decomposed

POINTS = [0.0, -0.0, 0.3, -0.9, 0.999, 1.0, 2.5, -3.0, 7.9, 8.1, 20.0, 50.0, -50.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("way", [run, run_decomposed])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_it_keeps_its_digits_where_the_function_is_near_one(way, dtype):
    x = np.array(POINTS, dtype)
    found = way("erfc", x)
    expected = np.array([math.erfc(value) for value in x.tolist()], dtype)
    tiny = np.finfo(dtype).smallest_normal
    np.testing.assert_allclose(found, expected, rtol=64 * np.finfo(dtype).eps, atol=tiny)
