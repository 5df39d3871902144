import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compiler.errors import EvaluationError, InvalidModel, OpatlasError
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, info_of, model_of, run, run_onnxruntime
from compiler.ir import F32, SequenceType, sequence_of, tensor

A, B = np.arange(6, dtype=np.float32).reshape(2, 3), -np.ones((1, 3), np.float32)


def node(op_type, inputs, outputs, **attributes):
    return helper.make_node(op_type, inputs, outputs, **attributes)


def chain(*nodes, arrays=(A, B), opset=18):
    """A model of nodes on inputs a, b, ...; its outputs are those of the last node."""
    inputs = [info_of("abcd"[i], array) for i, array in enumerate(arrays)]
    outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    return model_of(nodes, inputs, outputs, opset)


def same(got, expected):
    if isinstance(expected, list):
        assert isinstance(got, list)
        assert len(got) == len(expected)
        for mine, theirs in zip(got, expected, strict=True):
            same(mine, theirs)
    else:
        np.testing.assert_array_equal(got, expected)


def constant(value):
    return node("Constant", [], ["p"], value_int=value)


BUILD = node("SequenceConstruct", ["a", "b"], ["s"])


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([BUILD], [A, B]),
        ([BUILD, node("SequenceLength", ["s"], ["y"])], np.array(2)),
        ([BUILD, constant(-1), node("SequenceAt", ["s", "p"], ["y"])], B),
        ([BUILD, node("SequenceInsert", ["s", "b"], ["y"])], [A, B, B]),
        ([BUILD, constant(0), node("SequenceInsert", ["s", "b", "p"], ["y"])], [B, A, B]),
        ([BUILD, constant(-1), node("SequenceInsert", ["s", "b", "p"], ["y"])], [A, B, B]),
        ([BUILD, node("SequenceErase", ["s"], ["y"])], [A]),
        ([BUILD, constant(0), node("SequenceErase", ["s", "p"], ["y"])], [B]),
        ([BUILD, node("ConcatFromSequence", ["s"], ["y"], axis=0)], np.concatenate([A, B])),
        ([node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "a"], ["y"])], [A]),
        ([node("SplitToSequence", ["a"], ["y"], axis=1, keepdims=0)], list(A.T)),
        ([node("SplitToSequence", ["a"], ["y"], axis=-2)], [A[:1], A[1:]]),
    ],
    ids=lambda value: value[-1].op_type if isinstance(value, list) and hasattr(value[-1], "op_type") else "",
)
def test_sequences(nodes, expected):
    model = chain(*nodes)
    (got,) = run(model, A, B)
    same(got, expected)
    same(run_onnxruntime(model, A, B)[0], expected)


def test_stack_of_a_sequence():
    model = chain(
        node("SequenceConstruct", ["a", "a"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1)
    )
    np.testing.assert_array_equal(run(model, A, B)[0], np.stack([A, A], -1))


@pytest.mark.parametrize("sizes", [np.array(2), np.array([1, 2])])
def test_parts_of_given_sizes(sizes):
    model = chain(node("SplitToSequence", ["a", "b"], ["y"], axis=1), arrays=(A, sizes))
    same(run(model, A, sizes)[0], run_onnxruntime(model, A, sizes)[0])


@pytest.mark.parametrize("sizes", [np.array(0), np.array([1, 1]), np.array([2, 2]), np.array([4, -1])])
def test_sizes_that_do_not_add_up_are_an_error(sizes):
    model = chain(node("SplitToSequence", ["a", "b"], ["y"], axis=1), arrays=(A, sizes))
    with pytest.raises(EvaluationError, match="expected sizes that add up"):
        run(model, A, sizes)


def test_type_of_a_sequence_covers_its_elements():
    assert import_model(chain(BUILD)).outputs[0].type is sequence_of(tensor(F32, ("?", 3)))
    assert isinstance(import_model(chain(node("SequenceEmpty", [], ["e"]))).outputs[0].type, SequenceType)


@pytest.mark.parametrize("position", [2, -3])
def test_position_outside_is_an_error(position):
    with pytest.raises(EvaluationError, match=f"position {position}; expected -2 to 1"):
        run(chain(BUILD, constant(position), node("SequenceAt", ["s", "p"], ["y"])), A, B)


def test_elements_that_do_not_go_together_are_an_error():
    with pytest.raises(EvaluationError, match="do not go together"):
        run(chain(BUILD, node("ConcatFromSequence", ["s"], ["y"], axis=1)), A, B)


def test_elements_of_different_types_are_refused():
    with pytest.raises(OpatlasError):
        import_model(chain(BUILD, arrays=(A, B.astype(np.int64))))


def test_map_over_a_sequence_is_its_schemas_function():
    body = helper.make_graph(
        [node("Neg", ["x"], ["z"])],
        "body",
        [helper.make_tensor_value_info("x", 1, [None, 3])],
        [helper.make_tensor_value_info("z", 1, [None, 3])],
    )
    same(run(chain(BUILD, node("SequenceMap", ["s"], ["y"], body=body)), A, B)[0], [-A, -B])


FULL = node("Optional", ["a"], ["o"])
EMPTY = node("Optional", [], ["o"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([FULL, node("OptionalHasElement", ["o"], ["y"])], True),
        ([EMPTY, node("OptionalHasElement", ["o"], ["y"])], False),
        ([node("OptionalHasElement", ["a"], ["y"])], True),
        ([node("OptionalHasElement", [], ["y"])], False),
        ([FULL, node("OptionalGetElement", ["o"], ["y"])], A),
        ([node("OptionalGetElement", ["a"], ["y"])], A),
    ],
)
def test_optionals(nodes, expected):
    same(run(chain(*nodes), A, B)[0], expected)


def test_element_of_an_empty_optional_is_an_error():
    with pytest.raises(EvaluationError, match="empty"):
        run(chain(EMPTY, node("OptionalGetElement", ["o"], ["y"])), A, B)


def test_optional_of_nothing_is_refused():
    with pytest.raises(InvalidModel, match="neither an input nor attribute 'type'"):
        import_model(chain(node("Optional", [], ["o"])))


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("opset", [10, 11])
def test_boxes_without_much_overlap(opset, center):
    boxes = np.array(
        [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]], np.float32
    )
    boxes = boxes + (1 if center else 0)
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5]]], np.float32)
    limits = [np.array([3]), np.array([0.5], np.float32), np.array([0.15], np.float32)]
    agrees_with_onnxruntime("NonMaxSuppression", [boxes, scores, *limits], opset, center_point_box=center)
    agrees_with_onnxruntime("NonMaxSuppression", [boxes, scores], opset, center_point_box=center)
