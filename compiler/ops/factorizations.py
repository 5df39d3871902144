"""Factorizations of matrices and what is solved by them, on the host: pivots and iterations depend on data.

All work on the matrices in the last two dims, in float64 by LAPACK, and round once. What has no result (a matrix that
is singular, or not positive definite) gives NaN, as IEEE arithmetic would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import C64, C128, F32, F64, I32, Call, Dim, TensorType, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import FLAG, Attribute, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array

_T: Final = Variable("T", frozenset({F32, F64}))
_A: Final = Operand("a", _T)


def _matrices(name: str, call: Call, index: int = 0, *, square: bool = False) -> tuple[TensorType, list[Dim]]:
    """An operand's type and its batch dims. Raises TypeMismatch where it holds no matrices, or none that are square."""
    found = call.tensor(index)
    dims = found.known_dims
    sizes = {dim for dim in dims[-2:] if isinstance(dim, int)}
    if len(dims) < 2 or (square and len(sizes) > 1):
        msg = f"{name}: operand {index} is {found}; expected {'square ' if square else ''}matrices in the last two dims"
        raise TypeMismatch(msg)
    return found, list(dims[:-2])


def _smaller(a: Dim, b: Dim) -> Dim:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else a


def _each(function: Callable[..., Sequence[Array]], *operands: Any) -> list[Array]:  # noqa: ANN401
    """A function of matrices for every one of a batch, the batches broadcast; its results stacked."""
    arrays = [np.asarray(value).astype(np.float64) for value in operands]
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    arrays = [np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in arrays]
    if 0 in batch:
        shapes = function(*(np.ones(array.shape[-2:]) for array in arrays))
        return [np.zeros((*batch, *np.shape(value)), np.asarray(value).dtype) for value in shapes]
    found = [function(*(array[place] for array in arrays)) for place in np.ndindex(*batch)]
    return [np.stack(parts).reshape((*batch, *np.shape(parts[0]))) for parts in zip(*found, strict=True)]


def _rounded(call: Call, *results: Array) -> tuple[Any, ...]:
    dtype = call.tensor(0).element.dtype
    return tuple(result.astype(dtype) if result.dtype.kind == "f" else result for result in results)


@register
class LuFactor(Evaluated):
    """a [*, M, N] -> L below and U on and above the diagonal of one matrix, and the row that each was exchanged with.

    Rows are counted from 1, as LAPACK's getrf does: int32 [*, min(M, N)].
    """

    name: ClassVar[str] = "lu_factor"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call)
        return (a, tensor(I32, [*batch, _smaller(*a.known_dims[-2:])]))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        return _rounded(call, *_each(_lu_factor, operands[0]))


def _lu_factor(a: Array) -> Sequence[Array]:
    if 0 in a.shape:
        return a, np.zeros(0, np.int32)
    from scipy.linalg import lapack

    factors, pivots, _ = lapack.dgetrf(a)
    return factors, (pivots + 1).astype(np.int32)


@register
class Cholesky(Evaluated):
    """a [*, M, M], positive definite -> the lower triangular L with L L^T = a, and 0, or k > 0 for a minor that is not.

    Only the lower triangle of a is read.
    """

    name: ClassVar[str] = "cholesky"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call, square=True)
        return (a, tensor(I32, batch))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        return _rounded(call, *_each(_cholesky, operands[0]))


def _cholesky(a: Array) -> Sequence[Array]:
    if 0 in a.shape:
        return a, np.zeros((), np.int32)
    from scipy.linalg import lapack

    factor, info = lapack.dpotrf(a, lower=1, clean=1)
    return factor if info == 0 else np.full_like(a, np.nan), np.array(info, np.int32)


@register
class Qr(Evaluated):
    """a [*, M, N] -> Q [*, M, K] with orthonormal columns and R [*, K, N] above the diagonal, a = Q R.

    K is min(M, N), or M where ``complete``.
    """

    name: ClassVar[str] = "qr"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("complete", FLAG, False, "All of Q's columns."),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call)
        rows, columns = a.known_dims[-2:]
        kept = rows if call.attributes["complete"] else _smaller(rows, columns)
        return (tensor(a.element, [*batch, rows, kept]), tensor(a.element, [*batch, kept, columns]))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        a = np.asarray(operands[0]).astype(np.float64)
        return _rounded(call, *(np.linalg.qr(a, "complete") if call.attributes["complete"] else np.linalg.qr(a)))


@register
class HouseholderFactor(Evaluated):
    """a [*, M, N] -> R on and above the diagonal and below it the reflectors of Q, and their factors [*, min(M, N)].

    The form of LAPACK's geqrf.
    """

    name: ClassVar[str] = "householder_factor"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call)
        return (a, tensor(a.element, [*batch, _smaller(*a.known_dims[-2:])]))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        return _rounded(call, *_each(_reflectors, operands[0]))


def _reflectors(a: Array) -> Sequence[Array]:
    if 0 in a.shape:
        return a, np.zeros(0)
    from scipy.linalg import lapack

    return tuple(lapack.dgeqrf(a)[:2])


@register
class HouseholderProduct(Evaluated):
    """Reflectors a [*, M, N] below the diagonal with factors tau [*, K] -> the first N columns of their product Q."""

    name: ClassVar[str] = "householder_product"
    operands: ClassVar[tuple[Operand, ...]] = (_A, Operand("tau", _T))

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (_matrices(self.name, call)[0],)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        return _rounded(call, *_each(_reflected, operands[0], np.asarray(operands[1])[..., None]))


def _reflected(a: Array, tau: Array) -> Sequence[Array]:
    """Q = H_1 H_2 ... with H_k = 1 - tau_k v_k v_k^T, v_k = (0, ..., 1, a[k+1:, k])."""
    rows, columns = a.shape
    q = np.eye(rows, columns)
    for k in reversed(range(len(tau))):
        v = np.zeros(rows)
        v[k], v[k + 1 :] = 1, a[k + 1 :, k]
        q -= tau[k, 0] * np.outer(v, v @ q)
    return (q,)


@register
class Svd(Evaluated):
    """a [*, M, N] -> U, the singular values [*, K] in descending order, V^T; K = min(M, N), or U and V are square."""

    name: ClassVar[str] = "svd"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("full", FLAG, False, "Square U and V."),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call)
        rows, columns = a.known_dims[-2:]
        kept, full = _smaller(rows, columns), call.attributes["full"]
        return (
            tensor(a.element, [*batch, rows, rows if full else kept]),
            tensor(a.element, [*batch, kept]),
            tensor(a.element, [*batch, columns if full else kept, columns]),
        )

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        full = bool(call.attributes["full"])
        return _rounded(call, *np.linalg.svd(np.asarray(operands[0]).astype(np.float64), full_matrices=full))


@register
class SymmetricEigen(Evaluated):
    """a [*, M, M], symmetric -> eigenvalues [*, M], ascending, and eigenvectors in columns. Reads one triangle."""

    name: ClassVar[str] = "symmetric_eigen"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("upper", FLAG, False, "Reads the upper triangle."),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call, square=True)
        return (tensor(a.element, [*batch, a.known_dims[-1]]), a)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        a = np.asarray(operands[0]).astype(np.float64)
        return _rounded(call, *(np.linalg.eigh(a, "U") if call.attributes["upper"] else np.linalg.eigh(a)))


@register
class Eigen(Evaluated):
    """a [*, M, M] -> complex eigenvalues [*, M] and eigenvectors of length 1 in columns."""

    name: ClassVar[str] = "eigen"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call, square=True)
        element = C64 if a.element is F32 else C128
        return (tensor(element, [*batch, a.known_dims[-1]]), tensor(element, a.dims))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        dtype = np.complex64 if call.tensor(0).element is F32 else np.complex128
        return tuple(part.astype(dtype) for part in np.linalg.eig(np.asarray(operands[0]).astype(np.float64)))


@register
class LinearSolve(Evaluated):
    """a [*, M, M], b [*, M, K] -> x [*, M, K] with a x = b, the batches broadcast.

    Of a triangular a only that triangle is read; with ``unit`` its diagonal counts as 1.
    """

    name: ClassVar[str] = "linear_solve"
    operands: ClassVar[tuple[Operand, ...]] = (_A, Operand("b", _T))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("lower", FLAG, False, "Reads the lower triangle of a."),
        Attribute("upper", FLAG, False, "Reads the upper triangle of a."),
        Attribute("unit", FLAG, False, "The diagonal of a triangle counts as 1."),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, batch = _matrices(self.name, call, square=True)
        b, other = _matrices(self.name, call, 1)
        longer = max(batch, other, key=len)
        both: list[Dim] = [
            left if right == 1 else right
            for left, right in zip(
                [1] * (len(longer) - len(batch)) + batch, [1] * (len(longer) - len(other)) + other, strict=True
            )
        ]
        return (tensor(a.element, [*both, *b.known_dims[-2:]]),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        a = np.asarray(operands[0]).astype(np.float64)
        if call.attributes["lower"]:
            a = np.tril(a)
        if call.attributes["upper"]:
            a = np.triu(a)
        if call.attributes["unit"]:
            a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
        return _rounded(call, *_each(_solved, a, operands[1]))


def _solved(a: Array, b: Array) -> Sequence[Array]:
    try:
        return (np.linalg.solve(a, b),)
    except np.linalg.LinAlgError:
        return (np.full_like(b, np.nan),)


@register
class MatrixExponential(Evaluated):
    """a [*, M, M] -> the sum of a^k / k!, by scaling and squaring (scipy.linalg.expm)."""

    name: ClassVar[str] = "matrix_exponential"
    operands: ClassVar[tuple[Operand, ...]] = (_A,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (_matrices(self.name, call, square=True)[0],)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        return _rounded(call, *_each(_exponential, operands[0]))


def _exponential(a: Array) -> Sequence[Array]:
    if 0 in a.shape:
        return (a,)
    from scipy.linalg import expm

    return (np.asarray(expm(a)),)
