"""A graph without data costs what the graph with its data costs, on any target and as often as it is asked."""

import pickle

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler import api
from compiler.errors import InvalidTarget
from compiler.skeleton import Skeleton
from compiler.targets import load_target

TEXT = """
<ir_version: 9, opset_import: ["": 20]>
net (float[batch, 96] x) => (float[batch, 2, 40] y) {
    a = MatMul (x, w)
    b = Softmax (a)
    c = Add (b, bias)
    y = Reshape (c, shape)
}
"""


@pytest.fixture(scope="module")
def compiled():
    model = onnx.parser.parse_model(TEXT)
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((96, 80), np.float32), "bias": random.standard_normal(80).astype("f")}
    for name, data in {**weights, "shape": np.array([-1, 2, 40])}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    return api.compile(model)


@pytest.mark.parametrize("name", ["reference-npu", "systolic-16x8-ws", "datacenter-npu"])
def test_the_skeleton_costs_what_the_model_costs(compiled, name):
    target = load_target(name)
    skeleton = pickle.loads(pickle.dumps(Skeleton.of(compiled.optimized({"batch": 8}, target=target))))
    whole = api.CompiledModel(compiled.graph, target, api.Options(), {}).estimate({"batch": 8})
    for _ in range(2):
        report = skeleton.time(target)
        assert (report.cycles, report.traffic_bytes) == (whole.cycles, whole.traffic_bytes)
        assert report.energy_pj == whole.energy_pj


def test_it_has_no_data_and_the_graph_keeps_its_own(compiled):
    graph = compiled.optimized({"batch": 8})
    skeleton = Skeleton.of(graph)
    assert "#ir.abstract" in skeleton.text
    assert len(pickle.dumps(skeleton)) < 96 * 80
    assert not any(constant.is_abstract for constant in graph.constants())


def test_its_digest_changes_with_the_sizes_and_with_nothing_else(compiled):
    digests = {Skeleton.of(compiled.optimized({"batch": batch})).digest for batch in (4, 4, 8)}
    assert len(digests) == 2


def test_a_narrower_type_moves_fewer_bytes(compiled):
    target = load_target("reference-npu")
    traffic = {
        dtype: Skeleton.of(compiled.optimized({"batch": 64}, dtype=dtype)).time(target).traffic_bytes
        for dtype in ("float32", "float16", "bfloat16")
    }
    assert traffic["float16"] == traffic["bfloat16"] < traffic["float32"]
    with pytest.raises(InvalidTarget, match="dtype 'int8' is unknown; expected one of float32, float16, bfloat16"):
        compiled.optimized({"batch": 4}, dtype="int8")
