"""Folding: what becomes a constant, what must not, and why."""

import numpy as np
import pytest

from compiler.errors import EvaluationError
from compiler.ir import F16, F32, F64, I64, Builder, Graph, known_value, tensor, verify
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Add, Mul
from compiler.ops.indexing import Gather
from compiler.ops.interpreter import interpret
from compiler.ops.movement import BroadcastTo, Concat, Transpose
from compiler.ops.reshape import Reshape
from compiler.ops.shape import ShapeOf
from compiler.passes.fold import Fold
from compiler.rewrite import RewriteCounter


@pytest.fixture
def start():
    graph = Graph("main", [tensor(F32, (2, 3))], ["x"])
    return graph, Builder(graph), graph.inputs[0]


def fold(graph, limit=None):
    result = Fold().run(graph, RewriteCounter(limit))
    verify(graph)
    return result


def names(graph):
    return [op.name for op in graph.ops]


def test_chains_of_constants_fold_in_one_sweep(start):
    graph, build, _ = start
    a, b = build.constant(np.array([1.0, 2.0])), build.constant(np.array([10.0, np.nan]))
    build.output(build(Mul, build(Add, a, b), b))
    assert fold(graph).hits == {"add": 1, "mul": 1}
    assert names(graph) == ["constant", "return"]
    assert np.array_equal(known_value(graph.outputs[0]), [110, np.nan], equal_nan=True)


def test_zero_times_a_variable_is_not_folded(start):
    graph, build, x = start
    build.output(build(Mul, x, build.constant(np.float32(0))))
    assert not fold(graph).modified


def test_shape_arithmetic_of_static_types_folds(start):
    graph, build, x = start
    first = build(Gather, build(ShapeOf, x), build.constant(np.array([1])), axis=0)
    shape = build(Concat, first, build.constant(np.array([-1])), axis=0)
    build.output(build(Reshape, x, shape))
    fold(graph)
    assert names(graph) == ["constant", "reshape", "return"]
    assert known_value(graph.last.previous.operand(1)).tolist() == [3, -1]


def test_a_large_weight_folds_only_where_it_does_not_grow(start):
    graph, build, _ = start
    weight = build.constant(np.ones((100, 100), np.float16))
    build.output(build(Cast, build(Transpose, weight, permutation=(1, 0)), to=F32))
    assert fold(graph).hits == {"transpose": 1}
    assert graph.first.result.type is tensor(F16, (100, 100))


@pytest.mark.parametrize(("count", "folds"), [(16, True), (17, False)])
def test_what_grows_does_so_by_128_bytes_at_most(start, count, folds):
    graph, build, _ = start
    row = build.constant(np.arange(count, dtype=np.float32))
    build.output(build(Cast, row, to=F64), row)
    assert fold(graph).modified is folds


def test_a_shared_weight_is_not_duplicated(start):
    graph, build, _ = start
    weight = build.constant(np.ones((100, 100), np.float16))
    build.output(build(Transpose, weight, permutation=(1, 0)), weight)
    assert not fold(graph).modified


def test_generative_operators_fold_only_for_value_operands(start):
    graph, build, x = start
    one, two = build.constant(np.array([1])), build.constant(np.array([2]))
    build.output(
        build(BroadcastTo, one, two), build(Reshape, x, build(BroadcastTo, build.constant(np.array([6])), one))
    )
    assert fold(graph).hits == {"broadcast_to": 1}
    assert graph.outputs[0].op.name == "broadcast_to"


def test_an_operation_without_meaning_stays_for_the_run_to_refuse(start):
    graph, build, _ = start
    build.output(build(Gather, build.constant(np.array([1])), build.constant(np.array([5])), axis=0))
    assert not fold(graph).modified
    with pytest.raises(EvaluationError):
        interpret(graph, [np.zeros((2, 3), np.float32)])


def test_the_limit_stops_folding(start):
    graph, build, _ = start
    a = build.constant(np.array([1, 2]))
    build.output(build(Add, a, a), build(Mul, a, a))
    assert fold(graph, limit=1).hits == {"add": 1}
    assert graph.outputs[0].type is tensor(I64, (2,))
