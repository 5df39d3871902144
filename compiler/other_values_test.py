"""Values that are no tensors through the public face: sequences, optionals and maps as inputs and outputs."""

import numpy as np
import onnx
import pytest

from compiler.api import compile

FLOATS = "seq(float[N])"


def parsed(text, domains='"" : 21, "ai.onnx.ml" : 4'):
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{domains}]> {text}")


def test_a_sequence_comes_in_and_goes_out():
    model = parsed(f"""g ({FLOATS} x, float[N] y) => ({FLOATS} z, int64 n) {{
        z = SequenceInsert (x, y) n = SequenceLength (z) }}""")
    result = compile(model).simulate([[np.array([1], np.float32)], np.array([2, 3], np.float32)])
    assert [item.tolist() for item in result.outputs[0]] == [[1.0], [2.0, 3.0]]
    assert result.outputs[1] == 2
    assert all(host.reason.endswith("lives on the host") for host in result.host_operators)


@pytest.mark.parametrize(("given", "expected"), [(None, False), (np.ones(2, np.float32), True)])
def test_an_optional_may_be_empty(given, expected):
    model = parsed("g (optional(float[N]) x) => (bool y) { y = OptionalHasElement (x) }")
    assert compile(model).run([given])[0] == expected


def test_a_map_comes_in_and_its_row_is_computed_with_on_the_accelerator():
    model = parsed(
        "g (map(int64, float) x) => (float[1, 3] z) {"
        'y = ai.onnx.ml.CastMap <map_form = "SPARSE", max_map = 3> (x) z = Relu (y) }'
    )
    result = compile(model).simulate([{2: 1.5, 0: -4.0}])
    assert (result.outputs[0].tolist(), result.placement) == ([[0.0, 0.0, 1.5]], "mixed")


def test_scores_become_maps():
    model = parsed(
        "g (float[2] x) => (seq(map(int64, float)) y) {y = ai.onnx.ml.ZipMap <classlabels_int64s = [7, 5]> (x) }"
    )
    assert compile(model).run([np.array([0.5, 2], np.float32)])[0] == [{7: 0.5, 5: 2.0}]
