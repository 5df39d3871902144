import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from conformance.errors import Unavailable
from conformance.widening import (
    FLOAT32,
    FLOAT64,
    absolute,
    ones,
    output_types,
    widen_inputs,
    widen_model,
)


def text_model(body, opset=21):
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {body}')


def test_inputs_outputs_constants_and_cast_targets_are_widened():
    body = "g (float16[2] x) => (float16[2] y) { a = Mul (x, c) b = Cast <to = 1> (a) y = Cast <to = 10> (b) }"
    model = text_model(body)
    constant = numpy_helper.from_array(np.array([2.5], np.float16))
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=constant))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float16), "unused"))
    wide = widen_model(model, FLOAT64)
    assert [v.type.tensor_type.elem_type for v in (*wide.graph.input, *wide.graph.output)] == [TensorProto.DOUBLE] * 2
    assert {t.data_type for t in wide.graph.initializer} == {TensorProto.DOUBLE}
    assert [a.i for n in wide.graph.node for a in n.attribute if a.name == "to"] == [TensorProto.DOUBLE] * 2
    found = ReferenceEvaluator(wide).run(None, {"x": np.array([1.0, 1.0 + 2.0**-40])})[0]
    assert found.dtype == np.float64
    assert found.tolist() == [2.5, 2.5 * (1 + 2.0**-40)]


def test_the_original_model_is_left_alone():
    model = text_model("g (float16[2] x) => (float16[2] y) { y = Neg (x) }")
    before = model.SerializeToString()
    widen_model(model, FLOAT32)
    assert model.SerializeToString() == before


def test_branches_and_functions_are_widened():
    model = text_model("""g (bool c, float x) => (float y) { y = If (c) <
        then_branch = t () => (float a) { a = Constant <value_float = 0.1> () },
        else_branch = e () => (float b) { b = Identity (x) }> }""")
    wide = widen_model(model, FLOAT64)
    found = ReferenceEvaluator(wide).run(None, {"c": np.array(True), "x": np.array(2.0)})[0]
    assert found.dtype == np.float64
    assert found == np.float64(np.float32(0.1))


def test_integers_text_and_their_constants_stay():
    model = text_model(
        "g (int32[2] x, string[1] s) => (int64[2] y, string[1] t) { y = Cast <to = 7> (x) t = Identity (s) }"
    )
    assert widen_model(model, FLOAT64).graph == model.graph
    integers, words = np.ones(2, np.int32), np.array(["a"], object)
    assert widen_inputs([integers, words, None], FLOAT64) == [integers, words, None]


def test_constants_take_part_in_the_runs_on_absolute_values_and_on_ones():
    model = text_model("g (float[1,2] x) => (float[1,1] y) <float[2,1] w = {-3, 4}> "
                       "{ y = Gemm <alpha = -2.0> (x, w) }")  # fmt: skip
    x = [np.array([[1.0, -1.0]], np.float32)]

    def run(transform):
        wide = widen_model(model, FLOAT64, transform)
        return ReferenceEvaluator(wide).run(None, {"x": widen_inputs(x, FLOAT64, transform)[0]})[0].item()

    assert run(absolute) == 2 * (3 + 4)
    assert run(ones) == 2


def test_inputs_are_widened_through_sequences():
    widened = widen_inputs([[np.ones(1, ml_dtypes.bfloat16)]], FLOAT32)
    assert widened[0][0].dtype == np.float32


@pytest.mark.parametrize("target", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1])
def test_conversions_to_narrow_floats_are_refused_since_they_round_by_definition(target):
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("y", target, [1]),
    ]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=target)], "g", values[:1], values[1:])
    with pytest.raises(Unavailable, match="rounds"):
        widen_model(helper.make_model(graph), FLOAT64)


def test_bitcast_is_refused():
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT32)
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), helper.make_tensor_value_info("y", 6, [1])]
    with pytest.raises(Unavailable, match="bits"):
        widen_model(helper.make_model(helper.make_graph([node], "g", values[:1], values[1:])), FLOAT64)


def test_declared_output_types_go_through_sequences():
    value = helper.make_tensor_sequence_value_info("s", TensorProto.BFLOAT16, None)
    graph = helper.make_graph([], "g", [], [value, helper.make_tensor_value_info("t", TensorProto.INT4, [1])])
    assert output_types(onnx.helper.make_model(graph)) == [np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)]
