import numpy as np
import onnx.shape_inference
import pytest

from conformance.onnxruntime_runner import run_model
from conformance.suites import make_suite
from conformance.tolerance_names import parse_tolerance

CASES = {info.id: info for info in make_suite("graphs").cases()}


@pytest.mark.parametrize("identity", [name for name in CASES if name.endswith("-random")])
def test_every_graph_is_valid_and_runs(identity):
    suite = make_suite("graphs")
    case = suite.load(CASES[identity])
    onnx.shape_inference.infer_shapes(case.model, check_type=True, strict_mode=True)
    assert len(run_model(case.model, case.inputs)) == len(case.model.graph.output)
    parse_tolerance(case.tolerance)
    compile(suite.reproducer(CASES[identity]), "reproducer", "exec")


def test_inputs_depend_on_the_id_alone_and_special_ones_have_nan():
    suite = make_suite("graphs")
    identity = next(name for name in CASES if name.endswith("-special"))
    first, second = (suite.load(CASES[identity]).inputs for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    special = [suite.load(info).inputs[0] for name, info in CASES.items() if name.endswith("-special")]
    assert any(np.isnan(value.astype(float)).any() for value in special)
