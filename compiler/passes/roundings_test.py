import numpy as np
import pytest

from compiler.ir import BOOL, F32, I64, Builder, Graph, tensor
from compiler.ops.activation import Gelu
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.control import Loop
from compiler.ops.elementwise import Add, Mul, Neg
from compiler.ops.movement import Transpose
from compiler.ops.reduce import ReduceMax, ReduceMean, ReduceSum
from compiler.passes.roundings import roundings


def count(shapes, body):
    graph = Graph("main", [tensor(F32, shape) for shape in shapes])
    builder = Builder(graph)
    builder.output(body(builder, *graph.inputs))
    before = [op.name for op in graph.ops]
    found = roundings(graph)
    assert [op.name for op in graph.ops] == before
    return found


@pytest.mark.parametrize(
    ("shapes", "body", "steps"),
    [
        pytest.param([(4, 7), (7, 3)], lambda b, x, w: b(MatMul, x, w), 7, id="a term each"),
        pytest.param([(1, 2, 8, 8), (4, 2, 3, 3)], lambda b, x, w: b(Conv, x, w), 2 * 3 * 3, id="a convolution's taps"),
        pytest.param([(4, 7)], lambda b, x: b(ReduceSum, x, axes=(0, 1)), 28, id="a sum over all"),
        pytest.param([(4, 7)], lambda b, x: b(ReduceMax, x, axes=(0, 1)), 0, id="nothing is rounded by a maximum"),
        pytest.param([(4, 7)], lambda b, x: b(Transpose, x, permutation=(1, 0)), 0, id="nor by movement"),
        pytest.param([(4, 7)], lambda b, x: b(Mul, b(Add, x, x), b(Neg, x)), 2, id="the longest way counts"),
        pytest.param([(4, 7), (7, 3)], lambda b, x, w: b(Add, b(MatMul, x, w), b(MatMul, x, w)), 8, id="then one more"),
        pytest.param([("N", 7)], lambda b, x: b(ReduceSum, x, axes=(0,)), 7, id="known dims where some are symbols"),
    ],
)
def test_roundings_along_the_longest_way(shapes, body, steps):
    assert count(shapes, body) == steps


def test_a_composite_counts_as_what_it_is_made_of():
    assert count([(4, 7)], lambda b, x: b(ReduceMean, x, axes=(1,))) == 8  # a sum of 7 and a quotient
    assert count([(4,)], lambda b, x: b(Gelu, x)) >= 4  # x / 2 * (1 + erf(x / sqrt 2))


def test_a_body_counts_as_often_as_it_runs():
    def body(b, x):
        region = Graph("body", [tensor(I64), tensor(BOOL), x.type])
        inner = Builder(region)
        inner.output(region.inputs[1], inner(Add, region.inputs[2], region.inputs[2]))
        return b.op(Loop, [b.constant(np.array(5)), None, x], [region]).results[0]

    assert count([(4,)], body) == 5
