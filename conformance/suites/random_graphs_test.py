import onnx
import pytest

from conformance.onnxruntime_runner import run_model
from conformance.suites.random_graphs import random_model


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_graphs_are_valid_and_run_in_onnxruntime(dtype):
    for seed in range(12):
        model, inputs = random_model(seed, dtype, rounds=not seed % 3)
        onnx.checker.check_model(model)
        declared = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.output]
        assert [list(output.shape) for output in run_model(model, inputs)] == declared


def test_a_seed_is_one_graph():
    assert random_model(7, "float16")[0] == random_model(7, "float16")[0]
    assert random_model(7, "float16")[0] != random_model(8, "float16")[0]


def test_graphs_have_dozens_of_operators_and_nested_graphs():
    found = {node.op_type for seed in range(150) for node in random_model(seed, "float32")[0].graph.node}
    assert len(found) >= 45
    assert {"If", "Loop"} <= found
