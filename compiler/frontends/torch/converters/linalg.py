"""Factorizations of matrices and equations solved by them, on the host."""

from __future__ import annotations

import numpy as np

from compiler.frontends.torch.converters.common import (
    cast,
    cut,
    dims_of,
    expand,
    number,
    operand,
    rank_of,
    squeeze,
    swap,
    unsqueeze,
    vector,
)
from compiler.frontends.torch.site import Site, converts
from compiler.ir import F64, I32, I64, Value
from compiler.ops.compare import Eq, Gt, Select
from compiler.ops.contraction import MatMul
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Abs, Add, Div, Log, Max, Mul, Sign, Sub
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
from compiler.ops.indexing import GatherElements
from compiler.ops.linear_algebra import Determinant
from compiler.ops.padding import Trilu
from compiler.ops.reduce import ReduceMax


def _own(site: Site, value: Value) -> Value:
    """A matrix of a type that factorizations take."""
    if not value.tensor.element.is_float or value.tensor.element.bits < 32:
        site.refuse(f"matrices of type {value.tensor.element}")
    return value


def _adjoint(site: Site, value: Value) -> Value:
    return swap(site, value, rank_of(value) - 2, rank_of(value) - 1)


def _no_failure(site: Site, value: Value) -> Value:
    """Zeros for every matrix: a singular one gives NaN here, not a code."""
    sizes = dims_of(value)[:-2]
    return site.op(Fill, vector(site, [site.size(value, axis) for axis in range(len(sizes))]), site.constant(0, I32))


@converts("linalg_cholesky_ex")
def cholesky_ex(site: Site) -> list[Value]:
    """The factor and where it failed."""
    factor, info = _cholesky(site, site.value("self"), bool(site["upper"]))
    return [factor, info]


@converts("cholesky", "linalg_cholesky")
def cholesky(site: Site) -> Value:
    """The factor."""
    return _cholesky(site, site.value("self"), bool(site["upper"]))[0]


def _cholesky(site: Site, a: Value, upper: bool) -> tuple[Value, Value]:
    factor, info = site.b.op(Cholesky, [_own(site, _adjoint(site, a) if upper else a)]).results
    return (_adjoint(site, factor) if upper else factor), info


@converts("cholesky_solve")
def cholesky_solve(site: Site) -> Value:
    """x with L L^T x = b, or U^T U x = b."""
    return _by_cholesky(site, site.value("input2"), site.value("self"), bool(site["upper"]))


@converts("cholesky_inverse")
def cholesky_inverse(site: Site) -> Value:
    """The inverse of L L^T, or of U^T U."""
    factor = site.value("self")
    return _by_cholesky(site, factor, _identity(site, factor), bool(site["upper"]))


def _by_cholesky(site: Site, factor: Value, b: Value, upper: bool) -> Value:
    lower = _adjoint(site, factor) if upper else factor
    half = site.op(LinearSolve, _own(site, lower), b, lower=True)
    return site.op(LinearSolve, _adjoint(site, lower), half, upper=True)


def _identity(site: Site, like: Value) -> Value:
    size = site.size(like, rank_of(like) - 1)
    eye = site.constant(np.eye(size), like.tensor.element)
    return expand(site, eye, vector(site, list(site.sizes(like))))


@converts("linalg_inv_ex")
def inverse_ex(site: Site) -> list[Value]:
    """The inverse, and a code that says that there is one."""
    a = _own(site, site.value("A"))
    return [site.op(LinearSolve, a, _identity(site, a)), _no_failure(site, a)]


@converts("inverse", "linalg_inv")
def inverse(site: Site) -> Value:
    """The inverse."""
    a = _own(site, site.value("A" if "A" in site.arguments else "self"))
    return site.op(LinearSolve, a, _identity(site, a))


@converts("_linalg_solve_ex")
def solve_ex(site: Site) -> list[Value]:
    """x with a x = b (x a = b from the right), and the factors of a."""
    a, b = _own(site, site.value("A")), site.value("B")
    vectors = rank_of(b) == 1 or (rank_of(b) == rank_of(a) - 1 and dims_of(b) == dims_of(a)[:-1])
    columns = unsqueeze(site, b, (rank_of(b),)) if vectors else b
    if site["left"]:
        x = site.op(LinearSolve, a, columns)
    else:
        x = _adjoint(site, site.op(LinearSolve, _adjoint(site, a), _adjoint(site, columns)))
    factors, pivots = site.b.op(LuFactor, [a]).results
    return [squeeze(site, x, (rank_of(x) - 1,)) if vectors else x, factors, pivots, _no_failure(site, a)]


@converts("linalg_solve_triangular")
def solve_triangular(site: Site) -> Value:
    """x with a x = b, or x a = b, of a triangular a."""
    a, b = _own(site, site.value("self")), site.value("B")
    return _triangular(site, a, b, bool(site["upper"]), bool(site["unitriangular"]), left=bool(site["left"]))


def _triangular(site: Site, a: Value, b: Value, upper: bool, unit: bool, *, left: bool = True) -> Value:
    if left:
        return site.op(LinearSolve, a, b, upper=upper, lower=not upper, unit=unit)
    turned = site.op(LinearSolve, _adjoint(site, a), _adjoint(site, b), upper=not upper, lower=upper, unit=unit)
    return _adjoint(site, turned)


@converts("triangular_solve")
def triangular_solve(site: Site) -> list[Value]:
    """x with a x = b, or a^T x = b, and a."""
    a, upper = _own(site, site.value("A")), bool(site["upper"])
    used = _adjoint(site, a) if site["transpose"] else a
    b = site.value("self")
    x = _triangular(site, used, b, upper != bool(site["transpose"]), bool(site["unitriangular"]))
    batch = vector(site, [*site.sizes(x)[:-2], *site.sizes(a)[-2:]])
    return [x, expand(site, a, batch)]


@converts("linalg_lu_factor_ex")
def lu_factor_ex(site: Site) -> list[Value]:
    """Factors in one matrix, pivots, and no failure."""
    a = _pivoted(site)
    return [*site.b.op(LuFactor, [a]).results, _no_failure(site, a)]


def _pivoted(site: Site) -> Value:
    if not site["pivot"]:
        site.refuse("factors without exchanges of rows", "pivot")
    return _own(site, site.value("A"))


@converts("linalg_lu")
def lu(site: Site) -> list[Value]:
    """P, L and U."""
    a = _pivoted(site)
    factors, pivots = site.b.op(LuFactor, [a]).results
    return _unpacked(site, factors, pivots)


@converts("lu_unpack")
def lu_unpack(site: Site) -> list[Value]:
    """P, L and U of factors in one matrix; what was not asked for is empty."""
    factors = _own(site, site.value("LU_data"))
    found = _unpacked(site, factors, site.value("LU_pivots"))
    empty = site.constant(np.zeros(0), factors.tensor.element)
    wanted = (site["unpack_pivots"], site["unpack_data"], site["unpack_data"])
    return [value if asked else empty for value, asked in zip(found, wanted, strict=True)]


def _unpacked(site: Site, factors: Value, pivots: Value) -> list[Value]:
    rows, columns = site.sizes(factors)[-2:]
    kept = min(rows, columns)
    element = factors.tensor.element
    below = site.op(Trilu, factors, site.constant(-1, I64), upper=False)
    lower = site.op(Add, _sized(site, below, rows, kept), site.constant(np.eye(rows, kept), element))
    upper = _sized(site, site.op(Trilu, factors, site.constant(0, I64), upper=True), kept, columns)
    order = _exchanged(site, pivots, rows)
    # Column j of P has its 1 where row j of the product came from.
    one_hot = site.op(Eq, unsqueeze(site, order, (rank_of(order) - 1,)), site.constant(np.arange(rows)[:, None], I64))
    return [cast(site, one_hot, element), lower, upper]


def _sized(site: Site, value: Value, rows: int, columns: int) -> Value:
    return cut(site, cut(site, value, rank_of(value) - 2, 0, rows), rank_of(value) - 1, 0, columns)


def _exchanged(site: Site, pivots: Value, rows: int) -> Value:
    """Where each row of the factored matrix stood: 0..rows-1 after exchange after exchange, unrolled."""
    axis = rank_of(pivots) - 1
    targets = site.op(Sub, cast(site, pivots, I64), site.constant(1, I64))
    steps = site.size(pivots, axis)
    shape = vector(site, [*site.sizes(pivots)[:-1], rows])
    order = expand(site, site.constant(np.arange(rows), I64), shape)
    numbers = site.constant(np.arange(rows), I64)
    for step in range(steps):
        target = cut(site, targets, axis, step, step + 1)
        here = site.op(Eq, numbers, site.constant(step, I64))
        there = site.op(Eq, numbers, target)
        other = site.op(GatherElements, order, target, axis=axis)
        own = cut(site, order, axis, step, step + 1)
        order = site.op(Select, here, other, site.op(Select, there, own, order))
    return order


@converts("linalg_lu_solve", "lu_solve", "_lu_solve_helper")
def lu_solve(site: Site) -> Value:
    """x with P L U x = b, or what a transposed, or a factor from the right, makes of it."""
    own = site.operator.startswith("aten.lu_solve")
    factors = _own(site, site.value("LU_data" if own else "LU"))
    pivots = site.value("LU_pivots" if own else "pivots")
    b = site.value("self" if own else "B")
    p, lower, upper = _unpacked(site, factors, pivots)
    a = site.op(MatMul, p, site.op(MatMul, lower, upper))
    left, adjoint = site.get("left", True), site.get("adjoint", False)
    a = _adjoint(site, a) if adjoint == left else a
    if left:
        return site.op(LinearSolve, a, b)
    return _adjoint(site, site.op(LinearSolve, a, _adjoint(site, b)))


@converts("linalg_qr")
def qr(site: Site) -> list[Value]:
    """Q and R; mode r leaves Q empty."""
    a = _own(site, site.value("A"))
    q, r = site.b.op(Qr, [a], complete=site["mode"] == "complete").results
    return [site.constant(np.zeros(0), a.tensor.element) if site["mode"] == "r" else q, r]


@converts("geqrf")
def geqrf(site: Site) -> list[Value]:
    """Reflectors and their factors."""
    return list(site.b.op(HouseholderFactor, [_own(site, site.value("self"))]).results)


@converts("linalg_householder_product", "orgqr")
def householder_product(site: Site) -> Value:
    """The first columns of the product of reflectors."""
    return site.op(
        HouseholderProduct,
        _own(site, site.value("input" if "input" in site.arguments else "self")),
        site.value("tau" if "tau" in site.arguments else "input2"),
    )


@converts("_linalg_svd")
def svd(site: Site) -> list[Value]:
    """U, S and V^T; without vectors these are empty."""
    a = _own(site, site.value("A"))
    found = list(site.b.op(Svd, [a], full=bool(site["full_matrices"]) and site["compute_uv"] is not False).results)
    if not site["compute_uv"]:
        found[0] = found[2] = site.constant(np.zeros(0), a.tensor.element)
    return found


@converts("_linalg_eigh")
def eigh(site: Site) -> list[Value]:
    """Eigenvalues and eigenvectors of symmetric matrices; without vectors these are empty."""
    a = _own(site, site.value("A"))
    values, vectors = site.b.op(SymmetricEigen, [a], upper=site["UPLO"].upper() == "U").results
    return [values, vectors if site["compute_v"] else site.constant(np.zeros(0), a.tensor.element)]


@converts("linalg_eig")
def eig(site: Site) -> list[Value]:
    """Eigenvalues and eigenvectors, complex."""
    return list(site.b.op(Eigen, [_own(site, site.value("self"))]).results)


@converts("linalg_eigvals")
def eigenvalues(site: Site) -> Value:
    """Eigenvalues, complex."""
    return eig(site)[0]


@converts("_linalg_det")
def determinant(site: Site) -> list[Value]:
    """The determinant and the factors that it comes from."""
    a = _own(site, site.value("A"))
    return [site.op(Determinant, a), *site.b.op(LuFactor, [a]).results]


@converts("_linalg_slogdet")
def sign_and_logarithm(site: Site) -> list[Value]:
    """Sign and logarithm of the determinant's absolute value, and the factors."""
    a = _own(site, site.value("A"))
    found = site.op(Determinant, cast(site, a, F64))
    logarithm = site.op(Log, site.op(Abs, found))
    return [
        *(cast(site, value, a.tensor.element) for value in (site.op(Sign, found), logarithm)),
        *site.b.op(LuFactor, [a]).results,
    ]


@converts("linalg_matrix_exp", "matrix_exp")
def exponential(site: Site) -> Value:
    """The matrix exponential; in float32 for narrower floats."""
    from compiler.frontends.torch.converters.unary import wide

    a = site.value("self")
    return cast(site, site.op(MatrixExponential, cast(site, a, wide(a.tensor.element))), a.tensor.element)


@converts("linalg_pinv.atol_rtol_tensor")
def pseudo_inverse(site: Site) -> Value:
    """V S^+ U^T: singular values up to max(atol, rtol max(S)) count as 0."""
    a = _own(site, site.value("self"))
    element = a.tensor.element
    u, s, v = site.b.op(Svd, [a], full=False).results
    if site["hermitian"]:
        lower = site.op(Trilu, a, site.constant(0, I64), upper=False)
        strict = site.op(Trilu, a, site.constant(-1, I64), upper=False)
        u, s, v = site.b.op(Svd, [site.op(Add, lower, _adjoint(site, strict))], full=False).results
    if 0 in site.sizes(a):
        return _adjoint(site, a)
    largest = site.op(ReduceMax, s, axes=(rank_of(s) - 1,), keep_dims=True)
    atol, rtol = _tolerances(site, a)
    limit = site.op(Max, atol, site.op(Mul, rtol, largest))
    kept = site.op(Gt, s, limit)
    inverted = site.op(Select, kept, site.op(Div, number(site, 1, element), s), number(site, 0, element))
    scaled = site.op(Mul, _adjoint(site, v), unsqueeze(site, inverted, (rank_of(inverted) - 1,)))
    return site.op(MatMul, scaled, _adjoint(site, u))


def _tolerances(site: Site, a: Value) -> tuple[Value, Value]:
    """Absolute and relative; by default 0 and the type's epsilon times the longer side where no absolute one is."""
    element = a.tensor.element
    atol, rtol = site.get("atol"), site.get("rtol")
    default = np.finfo(element.dtype).eps * max(site.sizes(a)[-2:])
    if rtol is None:
        fallback = number(site, default, element)
        if atol is not None:
            positive = site.op(Gt, cast(site, atol, element), number(site, 0, element))
            fallback = site.op(Select, positive, number(site, 0, element), fallback)
        rtol = fallback
    found = [number(site, 0, element) if value is None else operand(site, value, element) for value in (atol, rtol)]
    return tuple(unsqueeze(site, value, (rank_of(value),)) if rank_of(value) else value for value in found)  # type: ignore[return-value] # of two
