import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx.harness_test import info, info_of, model_of, run, run_onnxruntime

X = np.arange(12, dtype=np.float32).reshape(3, 4)
LOOP_VERSIONS = [1, 11, 13, 16, 19, 21, 23]
SCAN_VERSIONS = [9, 11, 16, 19, 21, 23]


def node(op_type, inputs, outputs, **attributes):
    return helper.make_node(op_type, inputs, outputs, **attributes)


def open_outputs(count):
    return [onnx.ValueInfoProto(name=f"y{i}") for i in range(count)]


def version(opset):
    return {"opset": opset, "ir_version": 10 if opset <= 21 else 14}


def scan_model(arrays, states, opset, outputs, scan_type=None, **attributes):
    """total += row; every step gives total and the row doubled."""
    size = (arrays[-1].shape[1],) if scan_type is None else scan_type
    body = helper.make_graph(
        [
            node("Add", ["total", "row"], ["next"]),
            node("Add", ["row", "row"], ["twice"]),
            node("Identity", ["next"], ["copy"]),
        ],
        "body",
        [info("total", size), info("row", size)],
        [info("next", size), info("copy", size), info("twice", size)],
    )
    names = [f"x{i}" for i in range(len(arrays))]
    used = ["", *names] if opset < 9 else names
    inputs = [info_of(name, array) for name, array in zip(names, arrays, strict=True)]
    scan = node(
        "Scan", used, [f"y{i}" for i in range(outputs)], body=body, num_scan_inputs=len(arrays) - states, **attributes
    )
    return model_of([scan], inputs, open_outputs(outputs), **version(opset))


@pytest.mark.parametrize("opset", SCAN_VERSIONS)
def test_scan(opset):
    start = np.full(4, 0.5, np.float32)
    last, running, twice = run(scan_model([start, X], 1, opset, 3), start, X)
    np.testing.assert_array_equal(last, X.sum(0) + 0.5)
    np.testing.assert_array_equal(running, X.cumsum(0) + 0.5)
    np.testing.assert_array_equal(twice, 2 * X)


@pytest.mark.parametrize("attributes", [
    {"scan_input_directions": [1]},
    {"scan_output_directions": [1, 0]},
    {"scan_output_axes": [1, 0]},
    {"scan_output_axes": [-1, 1], "scan_output_directions": [1, 1], "scan_input_directions": [1]},
])  # fmt: skip
def test_directions_and_axes_of_scan(attributes):
    start = np.zeros(4, np.float32)
    model = scan_model([start, X], 1, 16, 3, **attributes)
    for got, expected in zip(run(model, start, X), run_onnxruntime(model, start, X), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_scan_along_another_axis():
    start = np.zeros(3, np.float32)
    model = scan_model([start, X], 1, 16, 3, scan_type=(3,), scan_input_axes=[-1])
    for got, expected in zip(run(model, start, X), run_onnxruntime(model, start, X), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_first_scan_is_over_a_batch():
    x = np.stack([X, X + 100, -X])
    start = np.arange(12, dtype=np.float32).reshape(3, 4)
    last, running, twice = run(scan_model([start, x], 1, 8, 3, scan_type=(4,)), start, x)
    np.testing.assert_array_equal(last, start + x.sum(1))
    np.testing.assert_array_equal(running, start[:, None] + x.cumsum(1))
    np.testing.assert_array_equal(twice, 2 * x)


def test_scan_may_give_its_last_state_alone():
    body = helper.make_graph(
        [node("Add", ["total", "row"], ["next"])],
        "body",
        [info("total", (4,)), info("row", (4,))],
        [info("next", (4,))],
    )
    start = np.zeros(4, np.float32)
    scan = node("Scan", ["x0", "x1"], ["y0"], body=body, num_scan_inputs=1)
    model = model_of([scan], [info_of("x0", start), info_of("x1", X)], open_outputs(1), **version(16))
    np.testing.assert_array_equal(run(model, start, X)[0], X.sum(0))


def test_scan_over_nothing_gives_its_start():
    start, nothing = np.ones(4, np.float32), np.zeros((0, 4), np.float32)
    last, running, _ = run(scan_model([start, nothing], 1, 16, 3), start, nothing)
    np.testing.assert_array_equal(last, start)
    assert running.shape == (0, 4)


@pytest.mark.parametrize("attributes", [{"scan_input_axes": [0, 1]}, {"scan_output_axes": [0]}])
def test_wrong_number_of_entries_is_refused(attributes):
    start = np.zeros(4, np.float32)
    with pytest.raises(InvalidModel, match="entries; expected"):
        run(scan_model([start, X], 1, 16, 3, **attributes), start, X)


def loop_model(opset, trips, condition, limit=None):
    """v doubles until it exceeds ``limit``; every trip gives v."""
    keep = node("Less", ["v", "limit"], ["on"]) if limit is not None else node("Identity", ["go"], ["on"])
    body = helper.make_graph(
        [keep, node("Add", ["v", "v"], ["w"]), node("Identity", ["v"], ["each"])],
        "body",
        [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("v")],
        [info("on", (), TensorProto.BOOL), info("w"), info("each")],
    )
    names = ["n" if trips else "", "c" if condition else "", "x"]
    loop = node("Loop", names, ["y0", "y1"], body=body)
    inputs = [info("x"), info("limit")]
    inputs += [info("n", (), TensorProto.INT64)] * trips + [info("c", (), TensorProto.BOOL)] * condition
    return model_of([loop], inputs, open_outputs(2), **version(opset))


@pytest.mark.parametrize("opset", LOOP_VERSIONS)
def test_loop_by_trip_count(opset):
    arrays = [np.array(1, np.float32), np.array(0, np.float32), np.array(3)]
    last, each = run(loop_model(opset, trips=True, condition=False), *arrays)
    assert (last.tolist(), each.tolist()) == (8, [1, 2, 4])


@pytest.mark.parametrize("opset", LOOP_VERSIONS)
def test_loop_by_condition(opset):
    arrays = [np.array(1, np.float32), np.array(3, np.float32), np.array(True)]
    last, each = run(loop_model(opset, trips=False, condition=True, limit=3), *arrays)
    assert (last.tolist(), each.tolist()) == (8, [1, 2, 4])


def test_loop_that_does_not_start():
    arrays = [np.array(1, np.float32), np.array(0, np.float32), np.array(3), np.array(False)]
    last, each = run(loop_model(16, trips=True, condition=True), *arrays)
    assert (last.tolist(), each.shape) == (1, (0,))


@pytest.mark.parametrize("opset", [1, 11, 13, 16, 19, 21, 23, 24, 25])
def test_branch(opset):
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "then", [], [info("a", (3, 4))])
    other = helper.make_graph([node("Abs", ["x"], ["b"])], "other", [], [info("b", (3, 4))])
    branch = node("If", ["c"], ["y0"], then_branch=then, else_branch=other)
    model = model_of([branch], [info("c", (), TensorProto.BOOL), info_of("x", X)], open_outputs(1), **version(opset))
    np.testing.assert_array_equal(run(model, np.array(True), X)[0], -X)
    np.testing.assert_array_equal(run(model, np.array(False), X)[0], X)


def test_branches_with_different_numbers_of_outputs_are_refused():
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "then", [], [info("a", (3, 4))])
    other = helper.make_graph([node("Abs", ["x"], ["b"])], "other", [], [info("b", (3, 4)), info("b", (3, 4))])
    branch = node("If", ["c"], ["y0"], then_branch=then, else_branch=other)
    model = model_of([branch], [info("c", (), TensorProto.BOOL), info_of("x", X)], open_outputs(1))
    with pytest.raises(InvalidModel, match="1 and 2 outputs"):
        run(model, np.array(True), X)


def test_lengths_within_a_batch_are_refused():
    start, x = np.zeros((2, 4), np.float32), np.stack([X, X])
    model = scan_model([start, x], 1, 8, 3, scan_type=(4,))
    model.graph.node[0].input[0] = "lengths"
    model.graph.input.append(info("lengths", (2,), TensorProto.INT64))
    with pytest.raises(UnsupportedOperator, match="lengths that differ"):
        run(model, start, x, np.array([1, 3]))


@pytest.mark.parametrize("start", [None, [np.array([7.0], np.float32)]])
def test_a_loop_may_start_from_an_optional_and_go_on_with_what_it_holds(start):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, bool go, optional(seq(float[K])) start) => (seq(float[K]) grown) {
            grown = Loop (n, go, start) <body = b (int64 i, bool c, optional(seq(float[K])) old)
                    => (bool d, seq(float[K]) new) {
                d = Identity (c)
                has = OptionalHasElement (old)
                list = If (has) <
                    then_branch = t () => (seq(float[K]) kept) { kept = OptionalGetElement (old) },
                    else_branch = e () => (seq(float[K]) fresh) { fresh = SequenceEmpty () }
                >
                one = Constant <value_floats = [1.0]> ()
                new = SequenceInsert (list, one)
            }>
        }""")
    found = run(model, np.array(2), np.array(True), start)[0]
    assert [item.tolist() for item in found] == [item.tolist() for item in start or []] + [[1.0], [1.0]]
