import math

import numpy as np
import pytest

from compiler.errors import TypeMismatch
from compiler.ir import F64, Builder, Graph, tensor
from compiler.ops.interpreter import interpret
from compiler.ops.special_functions import SpecialFunction


def run(function, *arrays):
    graph = Graph("net", [tensor(F64, np.shape(a)) for a in arrays])
    graph.output_names = ("result",)
    builder = Builder(graph)
    builder.output(builder(SpecialFunction, *graph.inputs, function=function))
    return interpret(graph, [np.asarray(a, np.float64) for a in arrays])[0]


X = np.array([-0.9, -0.3, 0.0, 0.4, 1.0])
ANGLES = np.arccos(X)

CLOSED = [
    ("lgamma", [5.0], [math.log(24)]),
    ("digamma", [1.0], [-0.5772156649015329]),
    ("erfinv", [math.erf(0.5)], [0.5]),
    ("ndtri", [0.5], [0.0]),
    ("erfc", [1.0], [math.erfc(1)]),
    ("spherical_bessel_j0", [0.0, 1.0], [1.0, math.sin(1)]),
    ("i0", [0.0], [1.0]),
    ("airy_ai", [0.0], [3 ** (-2 / 3) / math.gamma(2 / 3)]),
]


@pytest.mark.parametrize(("function", "x", "expected"), CLOSED, ids=[row[0] for row in CLOSED])
def test_values_that_are_known_in_closed_form(function, x, expected):
    np.testing.assert_allclose(run(function, x), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_chebyshev_polynomials_are_cosines_of_multiples(degree):
    degrees = np.full(X.shape, degree)
    np.testing.assert_allclose(run("chebyshev_t", X, degrees), np.cos(degree * ANGLES), atol=1e-12)
    with np.errstate(all="ignore"):
        third = np.where(X == -1, np.nan, np.cos((degree + 0.5) * ANGLES) / np.cos(ANGLES / 2))
    np.testing.assert_allclose(run("chebyshev_v", X, degrees), third, atol=1e-12)
    np.testing.assert_allclose(run("shifted_chebyshev_t", (X + 1) / 2, degrees), np.cos(degree * ANGLES), atol=1e-12)


def test_other_polynomials_of_degree_three():
    three = np.array(3.0)
    np.testing.assert_allclose(run("hermite_h", X, three), 8 * X**3 - 12 * X, atol=1e-12)
    np.testing.assert_allclose(run("hermite_he", X, three), X**3 - 3 * X, atol=1e-12)
    np.testing.assert_allclose(run("laguerre_l", X, three), (-(X**3) + 9 * X**2 - 18 * X + 6) / 6, atol=1e-12)
    np.testing.assert_allclose(run("legendre_p", X, three), (5 * X**3 - 3 * X) / 2, atol=1e-12)


def test_a_degree_below_zero_gives_zero():
    assert run("legendre_p", X, np.array(-1.0)).tolist() == [0.0] * 5


def test_incomplete_gamma_functions_add_up_to_one():
    a, x = np.array([0.5, 2.0, 3.0]), np.array([0.1, 1.0, 5.0])
    np.testing.assert_allclose(run("igamma", a, x) + run("igammac", a, x), 1, rtol=1e-14)
    np.testing.assert_allclose(run("igammac", np.ones(3), x), np.exp(-x), rtol=1e-14)


def test_the_number_of_operands_is_that_of_the_function():
    with pytest.raises(TypeMismatch, match="lgamma has 2 operands; expected 1"):
        run("lgamma", X, X)
