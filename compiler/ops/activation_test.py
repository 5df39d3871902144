import math

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.nn import functional

from compiler.errors import TypeMismatch
from compiler.ir import F64, I32
from compiler.ops.harness_test import run, run_decomposed

F = functional
X = np.array([-3.5e2, -88.0, -6.0, -3.0, -1.0, -0.5, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 3.0, 6.0, 88.0, 3.5e2])
SPECIAL = np.array([np.nan, np.inf, -np.inf])

CASES = {
    "relu": ({}, torch.relu),
    "leaky_relu": ({"alpha": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    "elu": ({"alpha": 1.5}, lambda x: F.elu(x, 1.5)),
    "selu": ({"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}, F.selu),
    "celu": ({"alpha": 2.0}, lambda x: F.celu(x, 2.0)),
    "hard_sigmoid": ({"alpha": 1 / 6, "beta": 0.5}, F.hardsigmoid),
    "hard_swish": ({}, F.hardswish),
    "softplus": ({}, lambda x: F.softplus(x, threshold=1e9)),
    "softsign": ({}, F.softsign),
    "mish": ({}, F.mish),
    "gelu": ({}, F.gelu),
    "silu": ({}, F.silu),
    "shrink": ({"bias": 0.75, "lambd": 0.75}, lambda x: F.softshrink(x, 0.75)),
    "thresholded_relu": ({"alpha": 1.0}, lambda x: F.threshold(x, 1.0, 0.0)),
}


@pytest.mark.parametrize("way", [run, run_decomposed])
@pytest.mark.parametrize("name", CASES)
def test_follows_torch_in_float64(way, name):
    attributes, expected = CASES[name]
    np.testing.assert_allclose(way(name, X, **attributes), expected(torch.tensor(X)).numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", CASES)
def test_decomposition_and_evaluation_agree_on_nan_and_infinity(name):
    attributes, _ = CASES[name]
    np.testing.assert_array_equal(run(name, SPECIAL, **attributes), run_decomposed(name, SPECIAL, **attributes))


@pytest.mark.parametrize("way", [run, run_decomposed])
@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "selu", "softplus", "mish", "gelu", "silu", "softsign"])
def test_nan_stays(way, name):
    assert math.isnan(way(name, SPECIAL[:1])[0])


@pytest.mark.parametrize("way", [run, run_decomposed])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"shrink", "thresholded_relu", "relu", "leaky_relu"}))
def test_narrow_types_are_rounded_once(way, name, dtype):
    attributes, expected = CASES[name]
    x = np.linspace(-4, 4, 101).astype(dtype)
    exact = expected(torch.tensor(x.astype(np.float64))).numpy()
    found = way(name, x, **attributes)
    assert found.dtype == dtype
    # One rounding of a float32 formula: within half a unit of the last place, and a little.
    magnitude = np.maximum(2.0 ** np.floor(np.log2(np.maximum(np.abs(exact), 1e-4))), 1e-4)
    unit = magnitude * float(ml_dtypes.finfo(dtype).eps)
    formula = 2e-7 * np.abs(x.astype(np.float64))
    assert np.all(np.abs(found.astype(np.float64) - exact) <= 0.51 * unit + formula)


@pytest.mark.parametrize("way", [run, run_decomposed])
def test_gelu_by_tanh(way):
    expected = F.gelu(torch.tensor(X), approximate="tanh").numpy()
    np.testing.assert_allclose(way("gelu", X, approximate="tanh"), expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("way", [run, run_decomposed])
def test_silu_scales_inside(way):
    expected = X * torch.sigmoid(torch.tensor(1.702 * X)).numpy()
    np.testing.assert_allclose(way("silu", X, alpha=1.702), expected, rtol=1e-12)


@pytest.mark.parametrize("way", [run, run_decomposed])
def test_prelu_broadcasts_the_slope(way):
    x, slope = np.array([[-2.0, 3.0], [-1.0, -4.0]]), np.array([0.5, 0.25])
    np.testing.assert_array_equal(way("prelu", x, slope), [[-1.0, 3.0], [-0.5, -1.0]])


@pytest.mark.parametrize("way", [run, run_decomposed])
def test_integers(way):
    x = np.array([-3, -1, 0, 1, 3], np.int32)
    np.testing.assert_array_equal(way("relu", x), [0, 0, 0, 1, 3])
    np.testing.assert_array_equal(way("shrink", x, lambd=1.5, bias=1.0), [-2, 0, 0, 0, 2])
    np.testing.assert_array_equal(way("shrink", x, lambd=0.5, bias=1.0), [-2, 0, 0, 0, 2])


@pytest.mark.parametrize("way", [run, run_decomposed])
def test_shapes_of_rank_0_and_of_size_0(way):
    assert way("gelu", np.float32(0.0).reshape(())).shape == ()
    assert way("mish", np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_compute_type_must_be_a_float():
    assert run("gelu", X[:2].astype(np.float32), compute_type=F64).dtype == np.float32
    with pytest.raises(TypeMismatch, match="compute_type is i32"):
        run("gelu", X, compute_type=I32)
