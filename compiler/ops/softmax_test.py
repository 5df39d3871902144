import numpy as np
import pytest
import torch

from compiler.ops.harness_test import run, run_decomposed

WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
RNG = np.random.default_rng(11)


@WAYS
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("name", "function"), [("softmax", torch.softmax), ("log_softmax", torch.log_softmax)])
def test_softmax_family(way, axis, name, function):
    x = RNG.standard_normal((3, 4, 5)) * 100
    expected = function(torch.tensor(x), axis).numpy()
    np.testing.assert_allclose(way(name, x, axis=axis), expected, rtol=1e-12, atol=1e-300)


@WAYS
def test_softmax_of_infinities(way):
    x = np.array([[-np.inf, -np.inf], [-np.inf, 0.0], [np.nan, 0.0], [np.inf, 0.0]])
    np.testing.assert_array_equal(way("softmax", x), [[np.nan] * 2, [0, 1], [np.nan] * 2, [np.nan] * 2])


@WAYS
def test_softmax_of_nothing(way):
    assert way("softmax", np.zeros((2, 0), np.float32)).shape == (2, 0)


@WAYS
def test_half_softmax_over_many_is_rounded_once(way):
    x = np.zeros((1, 3000), np.float16)
    np.testing.assert_array_equal(way("softmax", x), np.full((1, 3000), np.float16(1 / 3000)))


@WAYS
def test_hardmax_takes_the_first(way):
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]])
    np.testing.assert_array_equal(way("hardmax", x), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(way("hardmax", x, axis=0), [[0, 1, 1], [1, 0, 0]])
