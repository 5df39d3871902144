import numpy as np
import pytest

from compiler.errors import EvaluationError, InvalidGraph, TypeMismatch
from compiler.ir import BOOL, F32, I64, Builder, Graph, optional_of, sequence_of, tensor
from compiler.ops.control import If, Loop, join
from compiler.ops.elementwise import Add, Mul
from compiler.ops.interpreter import interpret

X = tensor(F32, ("N", 2))


def branch(value):
    graph = Graph("branch")
    Builder(graph).output(value(Builder(graph)))
    return graph


def two_way():
    """The graph of: x + x if condition else x * x, with x captured."""
    graph = Graph("main", [tensor(BOOL), X], ["condition", "x"])
    x = graph.inputs[1]
    builder = Builder(graph)
    regions = [branch(lambda inner: inner(Add, x, x)), branch(lambda inner: inner(Mul, x, x))]
    builder.output(builder.op(If, [graph.inputs[0]], regions).result)
    return graph


@pytest.mark.parametrize(("condition", "expected"), [(True, [[6, 8]]), (False, [[9, 16]])])
def test_if_takes_one_branch_and_sees_outer_values(condition, expected):
    x = np.array([[3, 4]], np.float32)
    np.testing.assert_array_equal(interpret(two_way(), [np.asarray(condition), x])[0], expected)


def test_if_results_cover_both_branches():
    graph = Graph("main", [tensor(BOOL)])
    regions = [
        branch(lambda b: b.constant(np.zeros((2, 3), np.float32))),
        branch(lambda b: b.constant(np.zeros((2, 5), np.float32))),
    ]
    assert Builder(graph).op(If, [graph.inputs[0]], regions).result.type is tensor(F32, (2, "?"))


def test_if_with_different_numbers_of_outputs_is_refused():
    graph = Graph("main", [tensor(BOOL)])
    empty = Graph("empty")
    Builder(empty).output()
    with pytest.raises(InvalidGraph, match="equal numbers"):
        Builder(graph).op(If, [graph.inputs[0]], [empty, branch(lambda b: b.constant(np.zeros(2, np.float32)))])


def test_types_that_cover_both_or_have_nothing_in_common():
    with pytest.raises(TypeMismatch, match="nothing in common"):
        join("if", tensor(F32, (2,)), sequence_of(tensor(F32)))
    held = optional_of(tensor(F32, (2,)))
    assert join("if", held, tensor(F32, (3,))) is optional_of(tensor(F32, ("?",)))
    assert join("if", tensor(F32, (2,)), held) is held
    with pytest.raises(TypeMismatch, match="nothing in common"):
        join("if", held, sequence_of(tensor(F32)))
    lists = [sequence_of(tensor(F32, (size,))) for size in (2, 3, "?")]
    assert join("if", lists[0], lists[1]) is lists[2]
    assert join("if", tensor(F32, (2,)), tensor(F32, (2, 2))) is tensor(F32, None)


def doubling(trips, condition, stop_below=None):
    """A loop that doubles its carried value and scans it; it goes on while the value is below ``stop_below``."""
    graph = Graph("main", [tensor(F32, (1,))], ["x"])
    body = Graph("body", [tensor(I64), tensor(BOOL), tensor(F32, (1,))], ["i", "going", "value"])
    inner = Builder(body)
    doubled = inner(Add, body.inputs[2], body.inputs[2])
    going = body.inputs[1]
    if stop_below is not None:
        from compiler.ops.registry import lookup

        flat = inner(lookup("lt"), doubled, inner.constant(np.array([stop_below], np.float32)))
        going = flat
    inner.output(going, doubled, doubled)
    builder = Builder(graph)
    operands = [
        None if trips is None else builder.constant(np.asarray(trips, np.int64)),
        None if condition is None else builder.constant(np.asarray(condition)),
        graph.inputs[0],
    ]
    op = builder.op(Loop, operands, [body])
    builder.output(*op.results)
    return graph, op


def test_loop_carries_and_scans():
    graph, op = doubling(3, None)
    final, scanned = interpret(graph, [np.array([1.0], np.float32)])
    np.testing.assert_array_equal(final, [8])
    np.testing.assert_array_equal(scanned, [[2], [4], [8]])
    assert [result.type for result in op.results] == [tensor(F32, (1,)), tensor(F32, (3, 1))]


@pytest.mark.parametrize(("trips", "condition"), [(0, None), (5, False), (0, True), (-1, None)])
def test_loop_without_iterations_gives_the_initial_values_and_nothing_scanned(trips, condition):
    graph, _ = doubling(trips, condition)
    final, scanned = interpret(graph, [np.array([1.0], np.float32)])
    np.testing.assert_array_equal(final, [1])
    assert scanned.shape == (0, 1)


def test_loop_ends_by_its_condition():
    graph, op = doubling(None, True, stop_below=10.0)
    final, scanned = interpret(graph, [np.array([1.0], np.float32)])
    np.testing.assert_array_equal(final, [16])
    assert scanned.shape == (4, 1)
    assert op.results[1].type is tensor(F32, ("?", 1))


def test_a_condition_of_several_elements_is_refused_with_its_place():
    graph = Graph("main", [tensor(BOOL, (2,))])
    builder = Builder(graph)
    regions = [branch(lambda b: b.constant(np.zeros(1, np.float32))) for _ in range(2)]
    builder.output(builder.op(If, [graph.inputs[0]], regions).result)
    with pytest.raises(EvaluationError, match="condition has 2 elements"):
        interpret(graph, [np.array([True, False])])
