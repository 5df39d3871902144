"""Binding sizes and values: shape arithmetic becomes constants, through branches and loops, and data stays data."""

import numpy as np
import pytest

from compiler.errors import InvalidInput, TypeMismatch
from compiler.ir import BOOL, F32, I64, Builder, Graph, known_value, print_graph, tensor, verify
from compiler.ops.compare import Lt
from compiler.ops.control import If, Loop
from compiler.ops.elementwise import Add, Mul
from compiler.ops.indexing import Gather
from compiler.ops.interpreter import interpret
from compiler.ops.movement import BroadcastTo, Concat, Slice
from compiler.ops.reshape import Reshape
from compiler.ops.selection import NonZero
from compiler.ops.shape import ShapeOf
from compiler.passes.specialize import specialize, value_inputs


def flatten_by_shape_arithmetic():
    """reshape(x, [shape(x)[0] * 2, -1]) for x of (N, 4)."""
    graph = Graph("main", [tensor(F32, ("N", 4))], ["x"])
    build = Builder(graph)
    x = graph.inputs[0]
    first = build(Gather, build(ShapeOf, x), build.constant(np.array([0])), axis=0)
    rows = build(Mul, first, build.constant(np.array([2])))
    build.output(build(Reshape, x, build(Concat, rows, build.constant(np.array([-1])), axis=0)))
    return graph


def test_sizes_flow_through_shape_arithmetic():
    graph = flatten_by_shape_arithmetic()
    before = print_graph(graph)
    bound = specialize(graph, [tensor(F32, (3, 4))])
    verify(bound)
    assert bound.outputs[0].type is tensor(F32, (6, 2))
    assert known_value(bound.outputs[0].op.operand(1)).tolist() == [6, -1]
    assert print_graph(graph) == before
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert interpret(bound, [x])[0].tolist() == x.reshape(6, 2).tolist()


def test_input_values_are_bound_where_they_are_given():
    graph = Graph("main", [tensor(F32, (1,)), tensor(I64, (2,)), tensor(I64, ("M",))], ["x", "shape", "data"])
    build = Builder(graph)
    x, shape, data = graph.inputs
    build.output(build(BroadcastTo, x, shape), build(Add, data, data))
    assert value_inputs(graph) == [1]
    types = [value.type for value in graph.inputs]
    bound = specialize(graph, types, {shape: np.array([2, 3])})
    assert bound.outputs[0].type is tensor(F32, (2, 3))
    assert specialize(graph, types).outputs[0].type is tensor(F32, ("?", "?"))
    assert len(bound.inputs) == 3


def test_value_inputs_stop_at_sizes_and_large_tensors():
    graph = Graph("main", [tensor(F32, ("N", 4)), tensor(I64, (5000,)), tensor(I64, ())], ["x", "bulk", "axis"])
    build = Builder(graph)
    x, bulk, scalar = graph.inputs
    sizes = build(Add, build(ShapeOf, x), scalar)
    build.output(build(BroadcastTo, x, sizes), build(BroadcastTo, x, build(Slice, bulk, scalar, scalar)))
    assert value_inputs(graph) == [2]


def test_bulk_data_stays_dynamic():
    graph = Graph("main", [tensor(F32, ("N",))], ["x"])
    build = Builder(graph)
    build.output(build(NonZero, graph.inputs[0]))
    bound = specialize(graph, [tensor(F32, (5,))])
    assert bound.outputs[0].type.dims[1] == "?"


def test_loop_trip_count_and_carried_types_are_bound():
    graph = Graph("main", [tensor(F32, ("N",))], ["x"])
    build = Builder(graph)
    x = graph.inputs[0]
    body = Graph("body", [tensor(I64), tensor(BOOL), tensor(F32, ("N",))], ["i", "go", "v"])
    inner = Builder(body)
    inner.output(body.inputs[1], inner(Add, body.inputs[2], x), body.inputs[2])
    trips = build(Gather, build(ShapeOf, x), build.constant(np.array(0)), axis=0)
    build.output(*build.op(Loop, [trips, None, x], [body]).results)
    bound = specialize(graph, [tensor(F32, (3,))])
    verify(bound)
    assert [value.type for value in bound.outputs] == [tensor(F32, (3,)), tensor(F32, (3, 3))]
    assert bound.terminator.previous.regions[0].inputs[2].type is tensor(F32, (3,))


def test_growing_loop_carried_value_stays_dynamic():
    graph = Graph("main", [tensor(F32, ("N",))], ["x"])
    build = Builder(graph)
    x = graph.inputs[0]
    body = Graph("body", [tensor(I64), tensor(BOOL), tensor(F32, ("?",))], ["i", "go", "v"])
    inner = Builder(body)
    inner.output(body.inputs[1], inner(Concat, body.inputs[2], x, axis=0))
    build.output(*build.op(Loop, [build.constant(np.array(2)), None, x], [body]).results)
    bound = specialize(graph, [tensor(F32, (3,))])
    verify(bound)
    assert bound.outputs[0].type is tensor(F32, ("?",))
    assert interpret(bound, [np.arange(3, dtype=np.float32)])[0].shape == (9,)


def test_branches_see_bound_values_around_them():
    graph = Graph("main", [tensor(F32, ("N", 2))], ["x"])
    build = Builder(graph)
    x = graph.inputs[0]
    sizes = build(ShapeOf, x)
    regions = []
    for name in ("then", "else"):
        region = Graph(name)
        inner = Builder(region)
        inner.output(inner(BroadcastTo, inner.constant(np.array(1.0, np.float32)), sizes))
        regions.append(region)
    flag = build(Lt, build.constant(np.array(0)), build(Gather, sizes, build.constant(np.array(0)), axis=0))
    build.output(build.op(If, [flag], regions).result)
    bound = specialize(graph, [tensor(F32, (5, 2))])
    verify(bound)
    assert bound.outputs[0].type is tensor(F32, (5, 2))


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([tensor(F32, (2, 4)), tensor(F32, (3,))], "size 3 for symbol 'N'; expected 2"),
        ([tensor(F32, (2, 5)), tensor(F32, (2,))], "input 'x' has type tensor<2x5xf32>; expected"),
        ([tensor(I64, (2, 4)), tensor(F32, (2,))], "input 'x' has type tensor<2x4xi64>"),
        ([tensor(F32, (2, 4))], "1 input types given"),
    ],
)
def test_wrong_input_types_are_refused(types, message):
    graph = Graph("main", [tensor(F32, ("N", 4)), tensor(F32, ("N",))], ["x", "y"])
    Builder(graph).output(*graph.inputs)
    with pytest.raises(InvalidInput, match=message):
        specialize(graph, types)


def test_sizes_that_an_operator_refuses_name_it():
    graph = Graph("main", [tensor(F32, ("N",)), tensor(F32, ("M",))], ["x", "y"])
    build = Builder(graph)
    build.output(build(Add, *graph.inputs))
    with pytest.raises(TypeMismatch, match=r"at 'add'.*for the sizes given"):
        specialize(graph, [tensor(F32, (2,)), tensor(F32, (3,))])


def test_long_chains_of_shape_arithmetic_do_not_overflow():
    graph = Graph("main", [tensor(F32, ("N",))], ["x"])
    build = Builder(graph)
    value = build(ShapeOf, graph.inputs[0])
    one = build.constant(np.array([1]))
    for _ in range(3000):
        value = build(Add, value, one)
    build.output(build(BroadcastTo, build.constant(np.array(0, np.float32)), value))
    assert specialize(graph, [tensor(F32, (2,))]).outputs[0].type is tensor(F32, (3002,))
