"""Matrix products and Einstein sums."""

from __future__ import annotations

from compiler.frontends.assembly import cast, swap
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ir import Kind, Value
from compiler.ops.contraction import MatMul
from compiler.ops.einsum import Einsum


def _turned(site: Site, value: Value, *, turned: bool, conjugate: bool = False) -> Value:
    rank = site.rank(value)
    if conjugate and turned and value.tensor.element.kind is Kind.COMPLEX:
        site.refuse("the conjugate transpose of complex matrices has no conversion")
    return swap(site, value, rank - 2, rank - 1) if turned else value


@converts("MatMul", "SparseMatMul")
def matmul(site: Site) -> Value:
    """Matrices [M, K] x [K, N], either transposed."""
    a = _turned(site, site.value(0), turned=bool(site.attr("transpose_a")))
    b = _turned(site, site.value(1), turned=bool(site.attr("transpose_b")))
    if a.tensor.element is b.tensor.element is site.element():
        return site.op(MatMul, a, b)
    # SparseMatMul takes bfloat16 and gives float32.
    return site.op(MatMul, *(cast(site, value, site.element()) for value in (a, b)))


@converts("BatchMatMul", "BatchMatMulV2")
def batch_matmul(site: Site) -> Value:
    """Matrices in the last two dims; the others broadcast."""
    a = _turned(site, site.value(0), turned=bool(site.attr("adj_x")), conjugate=True)
    b = _turned(site, site.value(1), turned=bool(site.attr("adj_y")), conjugate=True)
    return site.op(MatMul, a, b)


@converts("BatchMatMulV3")
def batch_matmul_to(site: Site) -> Value:
    """As above, of any two types, to a type of its own."""
    a = _turned(site, site.value(0), turned=bool(site.attr("adj_x")), conjugate=True)
    b = _turned(site, site.value(1), turned=bool(site.attr("adj_y")), conjugate=True)
    if a.tensor.element is b.tensor.element is site.element():
        return site.op(MatMul, a, b)
    return site.op(MatMul, a, b, to=site.element())


@converts("Einsum")
def einsum(site: Site) -> Value:
    """An Einstein sum of one or two tensors; an ellipsis stands for dims that broadcast."""
    return site.op(Einsum, *site.values, equation=site.attr("equation"))
