from collections import Counter

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.errors import UnsupportedByOpset
from conformance.suites.roundtrip import RoundTrip, create

GELU = """<ir_version: 10, opset_import: ["": 20]> g (float[2, 3] x) => (float[2, 3] y) { y = Gelu(x) }"""
BITS = """<ir_version: 10, opset_import: ["": 18]> g (uint8[2] x) => (uint8[2] y) { y = BitwiseAnd(x, x) }"""


def test_a_graph_runs_at_an_operator_set_older_than_its_operators():
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    outputs = [RoundTrip(onnx.parser.parse_model(GELU), opset).run([x])[0] for opset in (13, 20)]
    np.testing.assert_allclose(*outputs, rtol=1e-5, atol=1e-6)


def test_a_graph_that_an_operator_set_cannot_say_is_refused_by_name():
    with pytest.raises(UnsupportedByOpset, match="operator set 18 is the first that can"):
        RoundTrip(onnx.parser.parse_model(BITS), 13).run([np.array([1, 2], np.uint8)])


def test_many_graphs_of_all_frameworks_are_taken_at_four_operator_sets():
    cases = list(create().cases())
    graphs = {info.id.rpartition("@")[0]: info for info in cases}
    assert len(cases) == len({info.id for info in cases}) == 4 * len(graphs)
    assert len(graphs) >= 500
    frameworks = Counter(info.framework for info in graphs.values())
    assert min(frameworks[name] for name in ("onnx", "torch", "caffe")) >= 40
