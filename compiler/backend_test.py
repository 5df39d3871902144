import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import Backend
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

import compiler.backend
from compiler import errors
from compiler.backend import OpatlasBackend
from compiler.errors import InvalidInput, InvalidModel, InvalidTarget, OpatlasError, UnsupportedOperator

X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


def model(op_type="Relu", **attributes):
    node = helper.make_node(op_type, ["x"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_it_is_onnx_backend_as_class_and_as_module():
    assert issubclass(OpatlasBackend, Backend)
    for name in ("prepare", "run_model", "run_node", "supports_device", "is_compatible"):
        assert callable(getattr(compiler.backend, name))


def test_prepared_model_runs_and_reports():
    prepared = OpatlasBackend.prepare(model(), "CPU", target="reference-npu")
    assert prepared.report is None
    np.testing.assert_array_equal(prepared.run([X])[0], np.maximum(X, 0))
    assert prepared.report.placement == "accelerator"
    assert prepared.report.cycles > 0


def test_inputs_by_name():
    np.testing.assert_array_equal(OpatlasBackend.prepare(model()).run({"x": X})[0], np.maximum(X, 0))


def test_run_model():
    np.testing.assert_array_equal(OpatlasBackend.run_model(model("Neg"), [X])[0], -X)


def test_run_node_by_position_and_by_name():
    node = helper.make_node("Sub", ["a", "b"], ["c"])
    np.testing.assert_array_equal(OpatlasBackend.run_node(node, [X, X + 1])[0], -np.ones_like(X))
    np.testing.assert_array_equal(OpatlasBackend.run_node(node, {"b": X + 1, "a": X})[0], -np.ones_like(X))


def test_run_node_at_an_older_operator_set():
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2) / 8
    (got,) = OpatlasBackend.run_node(helper.make_node("Softmax", ["x"], ["y"]), [x], opset_version=11)
    np.testing.assert_allclose(got.sum((1, 2)), [1, 1], rtol=1e-6)


def test_run_node_with_an_omitted_input():
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    np.testing.assert_array_equal(OpatlasBackend.run_node(node, [X, np.float32(1)])[0], np.minimum(X, 1))


def test_value_that_decides_the_form_is_taken_from_the_inputs():
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    np.testing.assert_array_equal(OpatlasBackend.run_node(node, [X, np.array([1])])[0], X.sum(1))


def test_devices():
    assert OpatlasBackend.supports_device("CPU")
    assert not OpatlasBackend.supports_device("CUDA")
    with pytest.raises(InvalidTarget, match="device 'CUDA' is unknown"):
        OpatlasBackend.prepare(model(), "CUDA")


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (model("NoSuchThing"), UnsupportedOperator),
        (model("Relu", alpha=1.0), InvalidModel),
        (onnx.ModelProto(), InvalidModel),
    ],
)
def test_refusals_are_named_and_say_the_stage(broken, kind):
    with pytest.raises(kind) as caught:
        OpatlasBackend.prepare(broken)
    assert caught.value.stage == "import"


def test_unknown_target_is_refused():
    with pytest.raises(InvalidTarget):
        OpatlasBackend.prepare(model(), target="no-such-npu")


@pytest.mark.parametrize("inputs", [[], [X, X], {"z": X}, [X.astype(np.float64)], [X[0]]])
def test_wrong_inputs_are_refused(inputs):
    with pytest.raises(OpatlasError):
        OpatlasBackend.prepare(model()).run(inputs)


def test_wrong_number_of_inputs_of_a_node_is_refused():
    with pytest.raises(InvalidInput, match="1 inputs given; the node has 2"):
        OpatlasBackend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [X])


def test_no_refusal_counts_as_a_pass_for_onnx():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 10
    assert not any(issubclass(kind, BackendIsNotSupposedToImplementIt) for kind in kinds)
