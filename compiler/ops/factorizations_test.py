import numpy as np
import pytest

from compiler.errors import TypeMismatch
from compiler.ir import F32, F64, Builder, Graph, tensor
from compiler.ops.factorizations import (
    Cholesky,
    Eigen,
    HouseholderFactor,
    HouseholderProduct,
    LinearSolve,
    LuFactor,
    MatrixExponential,
    Qr,
    Svd,
    SymmetricEigen,
)
from compiler.ops.interpreter import interpret

RANDOM = np.random.default_rng(7)
TALL = RANDOM.normal(size=(2, 5, 3))
SQUARE = RANDOM.normal(size=(2, 4, 4))


def run(definition, *arrays, **attributes):
    elements = {np.dtype(np.float64): F64, np.dtype(np.float32): F32}
    graph = Graph("net", [tensor(elements[a.dtype], a.shape) for a in arrays])
    builder = Builder(graph)
    op = builder.op(definition, list(graph.inputs), **attributes)
    builder.output(*op.results)
    graph.output_names = tuple(str(index) for index in range(len(op.results)))
    results = interpret(graph, list(arrays))
    for value, found in zip(op.results, results, strict=True):
        assert value.tensor.dims == found.shape
    return results


def test_lu_factors_make_the_matrix_with_its_rows_exchanged():
    factors, pivots = run(LuFactor, SQUARE)
    for a, lu, exchanges in zip(SQUARE, factors, pivots, strict=True):
        rows = a.copy()
        for row, other in enumerate(exchanges - 1):
            rows[[row, other]] = rows[[other, row]]
        np.testing.assert_allclose((np.tril(lu, -1) + np.eye(4)) @ np.triu(lu), rows, atol=1e-12)


def test_cholesky_reads_the_lower_triangle_and_names_the_minor_that_fails():
    positive = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(4)
    factor, code = run(Cholesky, positive)
    np.testing.assert_allclose(factor @ factor.swapaxes(1, 2), positive, atol=1e-12)
    assert code.tolist() == [0, 0]
    broken, code = run(Cholesky, np.diag([1.0, -1.0, 1.0]))
    assert int(code) == 2
    assert np.isnan(broken).all()


@pytest.mark.parametrize("complete", [False, True])
def test_q_is_orthonormal_and_r_triangular(complete):
    q, r = run(Qr, TALL, complete=complete)
    np.testing.assert_allclose(q @ r, TALL, atol=1e-12)
    eye = np.broadcast_to(np.eye(q.shape[2]), (2, q.shape[2], q.shape[2]))
    np.testing.assert_allclose(q.swapaxes(1, 2) @ q, eye, atol=1e-12)
    assert (np.tril(r, -1) == 0).all()


def test_reflectors_multiply_to_q():
    factors, tau = run(HouseholderFactor, TALL)
    (q,) = run(HouseholderProduct, factors, tau)
    np.testing.assert_allclose(q @ np.triu(factors[:, :3]), TALL, atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_singular_values_descend_and_give_the_matrix(full):
    u, s, v = run(Svd, TALL, full=full)
    np.testing.assert_allclose((u[..., :3] * s[:, None]) @ v, TALL, atol=1e-12)
    assert (np.diff(s) <= 0).all()


def test_eigenvalues():
    symmetric = SQUARE + SQUARE.swapaxes(1, 2)
    values, vectors = run(SymmetricEigen, np.tril(symmetric))
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[:, None], atol=1e-12)
    values, vectors = run(Eigen, SQUARE)
    np.testing.assert_allclose(SQUARE @ vectors, vectors * values[:, None], atol=1e-12)


@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_of_a_triangular_matrix_one_triangle_counts(triangle):
    cut = {"lower": np.tril, "upper": np.triu}[triangle]
    b = RANDOM.normal(size=(4, 2))
    (x,) = run(LinearSolve, SQUARE, b, **{triangle: True})
    np.testing.assert_allclose(cut(SQUARE) @ x, np.broadcast_to(b, (2, 4, 2)), atol=1e-9)
    (x,) = run(LinearSolve, SQUARE, b, unit=True, **{triangle: True})
    diagonal = cut(SQUARE) * (1 - np.eye(4)) + np.eye(4)
    np.testing.assert_allclose(diagonal @ x, np.broadcast_to(b, (2, 4, 2)), atol=1e-9)


def test_a_singular_system_has_no_solution():
    (x,) = run(LinearSolve, np.zeros((2, 2), np.float32), np.ones((2, 1), np.float32))
    assert np.isnan(x).all()


def test_the_exponential_of_a_rotation():
    (found,) = run(MatrixExponential, np.array([[0.0, -1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(found, [[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]], atol=1e-15)


def test_matrices_that_are_not_square_are_refused():
    with pytest.raises(TypeMismatch, match="expected square matrices"):
        run(Cholesky, TALL)
