import numpy as np
import pytest

from compiler.errors import EvaluationError, InvalidGraph, InvalidInput
from compiler.ir import BOOL, F32, I64, Builder, Graph, Op, at, map_of, optional_of, sequence_of, tensor
from compiler.ops.control import If
from compiler.ops.elementwise import Add, Mul
from compiler.ops.interpreter import interpret, last_uses
from compiler.ops.pooling import MaxUnpool


def chain():
    graph = Graph("main", [tensor(F32, ("N", 2)), tensor(F32, ("N", 2))], ["a", "b"])
    builder = Builder(graph)
    total = builder(Add, *graph.inputs)
    builder.output(builder(Mul, total, total), total)
    return graph


def test_outputs_in_order():
    a, b = np.array([[1, 2]], np.float32), np.array([[3, 4]], np.float32)
    product, total = interpret(chain(), [a, b])
    np.testing.assert_array_equal(total, [[4, 6]])
    np.testing.assert_array_equal(product, [[16, 36]])


GOOD = np.zeros((3, 2), np.float32)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([GOOD], "1 inputs given; expected 2"),
        ([GOOD, GOOD.astype(np.float64)], "b has element type f64; expected f32"),
        ([GOOD, GOOD[0]], r"b has shape \[2\]; expected rank 2"),
        ([GOOD, np.zeros((3, 5), np.float32)], r"b has shape \[3, 5\]; expected 2 = 2"),
        ([GOOD, np.zeros((4, 2), np.float32)], r"b has shape \[4, 2\]; expected N = 3"),
        ([GOOD, [1.0]], "b is list; expected a numpy array"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs, message):
    with pytest.raises(InvalidInput, match=message):
        interpret(chain(), inputs)


def test_sequences_and_empty_optionals_pass_through():
    graph = Graph("main", [sequence_of(tensor(F32, ("?",))), optional_of(tensor(F32))], ["s", "o"])
    Builder(graph).output(*graph.inputs)
    parts = [np.zeros(2, np.float32), np.zeros(3, np.float32)]
    assert interpret(graph, [parts, None]) == [parts, None]
    with pytest.raises(InvalidInput, match="s is tuple"):
        interpret(graph, [tuple(parts), None])


@pytest.mark.parametrize("given", [{"a": 1.0}, {1: 1.0, "b": 2.0}, [1.0], None])
def test_keys_of_maps_have_their_type(given):
    graph = Graph("main", [map_of(I64, tensor(F32, ()))], ["m"])
    Builder(graph).output(graph.inputs[0])
    assert interpret(graph, [{1: 1.0}]) == [{1: 1.0}]
    with pytest.raises(InvalidInput, match=r"m is .*; expected a dict with keys of type int"):
        interpret(graph, [given])


def test_an_evaluation_error_names_the_location():
    graph = Graph("main", [tensor(F32, (1, 1, 1)), tensor(I64, (1, 1, 1))], ["x", "i"])
    builder = Builder(graph, location=at("unpool_7", "MaxUnpool"))
    builder.output(builder(MaxUnpool, *graph.inputs, kernel=(2,)))
    with pytest.raises(EvaluationError, match=r"evaluating 'max_unpool' at unpool_7 \(MaxUnpool\)"):
        interpret(graph, [np.zeros((1, 1, 1), np.float32), np.full((1, 1, 1), 9)])


def test_a_result_that_contradicts_its_type_is_caught():
    graph = Graph("main", [tensor(F32, (2,))], ["x"])
    wrong = graph.append(Op(Add.instance(), graph.inputs * 2, [tensor(F32, (3,))]))
    Builder(graph).output(wrong.result)
    with pytest.raises(InvalidGraph, match=r"gave \[2\] of float32; expected tensor<3xf32>"):
        interpret(graph, [np.zeros(2, np.float32)])


def test_values_die_after_their_last_use_captured_ones_included():
    graph = Graph("main", [tensor(BOOL), tensor(F32, (1,))])
    builder = Builder(graph)
    captured = builder(Add, graph.inputs[1], graph.inputs[1])
    regions = []
    for _ in range(2):
        region = Graph("branch")
        inner = Builder(region)
        inner.output(inner(Mul, captured, captured))
        regions.append(region)
    chosen = builder.op(If, [graph.inputs[0]], regions)
    builder.output(chosen.result)
    dying = last_uses(graph)
    assert captured in dying[chosen]
    assert graph.inputs[1] in dying[captured.op]
    assert chosen.result not in [value for values in dying.values() for value in values]
    assert captured not in last_uses(regions[0]).get(regions[0].first, [])
    np.testing.assert_array_equal(interpret(graph, [np.asarray(True), np.array([3], np.float32)])[0], [36])


def test_rank_0_results_are_arrays():
    graph = Graph("main", [tensor(F32)], ["x"])
    builder = Builder(graph)
    builder.output(builder(Add, *graph.inputs * 2))
    found = interpret(graph, [np.asarray(2, np.float32)])[0]
    assert isinstance(found, np.ndarray)
    assert found.shape == ()


def test_sizes_that_turn_out_not_to_fit_are_a_diagnosis():
    graph = Graph("main", [tensor(F32, ("N",)), tensor(F32, ("M",))], ["a", "b"])
    builder = Builder(graph, location=at("sum"))
    builder.output(builder(Add, *graph.inputs))
    with pytest.raises(EvaluationError, match=r"'add' of operands \[\[2\], \[3\]\].*sum"):
        interpret(graph, [np.zeros(2, np.float32), np.zeros(3, np.float32)])
