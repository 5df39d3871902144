import numpy as np
import pytest

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import F32, Builder, Call, Graph, tensor
from compiler.ops.einsum import Einsum
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(31)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])

CASES = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ba,ac", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("i...j,j...->...i", [(2, 3, 4), (4, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("iij,jk->ik", [(3, 3, 2), (2, 4)]),
    ("iii->i", [(3, 3, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,kl->ik", [(2, 3), (4, 5)]),
    ("ij,ij->i", [(2, 1), (2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ab,bc,ca->", [(2, 3), (3, 4), (4, 2)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    (",i->i", [(), (3,)]),
    ("Aa,ab->Ab", [(2, 3), (3, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
]


@WAYS
@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_follows_numpy(way, equation, shapes):
    arrays = [RNG.standard_normal(shape) for shape in shapes]
    np.testing.assert_allclose(way("einsum", *arrays, equation=equation), np.einsum(equation, *arrays), rtol=1e-12)


@WAYS
def test_integers_are_exact(way):
    a, b = np.array([[2**40, 1]], np.int64), np.array([[3], [5]], np.int64)
    np.testing.assert_array_equal(way("einsum", a, b, equation="ij,jk"), [[3 * 2**40 + 5]])


@WAYS
def test_half_is_rounded_once_over_several_contractions(way):
    a, b = np.full((1, 2000), 0.3, np.float16), np.full((2000, 1), 0.7, np.float16)
    c = np.full((1, 1), 3.3, np.float16)
    exact = a.astype(float) @ b.astype(float) @ c.astype(float)
    np.testing.assert_array_equal(way("einsum", a, b, c, equation="ij,jk,kl->il"), exact.astype(np.float16))


def test_one_contraction_of_half_needs_no_casts():
    half = [tensor(type_.element, type_.dims) for type_ in (tensor(F32, (2, 3)), tensor(F32, (3, 4)))]
    graph = Graph("g", half)
    op = Builder(graph).op(Einsum, graph.inputs, equation="ij,jk->ik")
    Einsum.instance().decompose(op, Builder(graph))
    assert [built.name for built in graph.ops] == ["einsum", "dot_general"]


@pytest.mark.parametrize(
    ("equation", "error", "message"),
    [
        ("ij->ij", TypeMismatch, "has 1 terms; expected 2"),
        ("ij,jk->il", InvalidAttribute, "expected different labels of the inputs"),
        ("ij,jk->ii", InvalidAttribute, "expected different labels of the inputs"),
        ("i,jk->ik", TypeMismatch, "term 'i' .* rank 2"),
        ("i1,jk->ik", InvalidAttribute, "term 'i1'"),
        ("ij,ik->jk", TypeMismatch, "label 'i' has size 3 in operand 1; expected 2"),
    ],
)
def test_what_does_not_fit_is_named(equation, error, message):
    with pytest.raises(error, match=message):
        run("einsum", np.zeros((2, 3)), np.zeros((3, 4)), equation=equation)


def test_symbolic_dims():
    call = Call([tensor(F32, ("B", "S", 8)), tensor(F32, (8, 4))], {"equation": "bsd,de->bse"})
    assert Einsum.instance().infer(call) == (tensor(F32, ("B", "S", 4)),)
