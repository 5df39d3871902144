import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from conformance.errors import Unavailable
from conformance.onnxruntime_runner import run_model
from conformance.oracles import (
    EXPECTED,
    ONNXRUNTIME,
    ONNXRUNTIME_WIDENED,
    REFERENCE,
    TWIN,
    Question,
    ask,
    gather_evidence,
)
from conformance.tolerance_names import parse_tolerance


def one_node(operator, element, shape, output=None, opset=21, **attributes):
    values = [
        helper.make_tensor_value_info("x", element, shape),
        helper.make_tensor_value_info("y", output or element, None),
    ]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def answers_to(model, inputs, **fields):
    return {answer.oracle: answer for answer in ask(Question(model, inputs, **fields))}


def test_float32_has_two_references_of_which_one_is_exact():
    found = answers_to(one_node("Exp", TensorProto.FLOAT, [2]), [np.array([0.5, 1], np.float32)])
    assert found[ONNXRUNTIME].outputs[0].dtype == np.float32
    assert found[REFERENCE].exact
    np.testing.assert_array_equal(found[REFERENCE].outputs[0], np.exp([0.5, 1.0]))
    assert not found[ONNXRUNTIME_WIDENED].available
    assert "narrower" in found[ONNXRUNTIME_WIDENED].why


def test_bfloat16_is_computed_in_float32_and_rounded():
    x = np.array([0.5, 1]).astype(ml_dtypes.bfloat16)
    found = answers_to(one_node("Exp", TensorProto.BFLOAT16, [2]), [x])
    assert found[ONNXRUNTIME_WIDENED].outputs[0].dtype == ml_dtypes.bfloat16
    assert found[ONNXRUNTIME_WIDENED].outputs[0].tolist() == np.exp([0.5, 1]).astype(ml_dtypes.bfloat16).tolist()
    assert not found[ONNXRUNTIME].available


def test_float64_has_no_exact_reference():
    found = answers_to(one_node("Exp", TensorProto.DOUBLE, [1]), [np.array([0.5])])
    assert found[REFERENCE].available
    assert not found[REFERENCE].exact


def test_an_unavailable_oracle_says_why():
    found = answers_to(one_node("Abs", TensorProto.FLOAT, [1]), [np.ones(1, np.float32), np.ones(1, np.float32)])
    assert found[ONNXRUNTIME].why == "the model has 1 inputs, the case 2"


def test_a_reference_that_loses_imaginary_parts_has_no_answer():
    text = """<ir_version: 10, opset_import: ["" : 21]> g (complex64[2] x, float[1] s) => (complex64[4] y)
    { y = Resize<mode = "nearest">(x, , s) }"""
    inputs = [np.array([1 + 2j, 3], np.complex64), np.array([2], np.float32)]
    found = answers_to(parser.parse_model(text), inputs)[REFERENCE]
    assert not found.available
    assert "discards the imaginary part" in found.why


def test_a_reference_with_numbers_among_strings_has_no_answer():
    model = one_node("Trilu", TensorProto.STRING, [2, 2])
    found = answers_to(model, [np.array([["a", "b"], ["c", "d"]], object)])[REFERENCE]
    assert found.why == "a tensor of strings with the int 0 in it"


def test_an_oracle_that_took_the_process_down_is_not_asked_again():
    heard = []
    question = Question(one_node("Abs", 1, [1]), [np.ones(1, np.float32)], crashed=frozenset({REFERENCE}))
    found = {answer.oracle: answer for answer in ask(question, announce=heard.append)}
    assert REFERENCE not in heard
    assert found[REFERENCE].why == "it took the process down"


def test_a_twin_answers_for_an_old_model():
    old = one_node("Softmax", TensorProto.FLOAT, [2, 2, 2], opset=11)
    body = "g (float[2,2,2] x) => (float[2,2,2] y) <int64[2] s = {2, 4}, int64[3] t = {2, 2, 2}> "
    body += "{ f = Reshape (x, s) p = Softmax <axis = 1> (f) y = Reshape (p, t) }"
    twin = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {body}')
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    found = answers_to(old, [x], twin=(twin, [x]))
    np.testing.assert_allclose(found[TWIN].outputs[0], found[ONNXRUNTIME].outputs[0], rtol=1e-6)
    assert np.abs(found[TWIN].outputs[0] - found[REFERENCE].outputs[0]).max() > 0.1
    assert found[TWIN].exact


def test_expected_values_answer_as_they_are():
    found = answers_to(one_node("Abs", 1, [1]), [np.ones(1, np.float32)], expected=[np.ones(1, np.float32)])
    assert found[EXPECTED].available
    assert not found[EXPECTED].exact


def test_evidence_counts_terms_and_sums_absolute_values():
    body = "g (float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul (a, b) }"
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {body}')
    a, b = np.array([[1, -2, 3], [0, 1, -1]], np.float32), np.array([[1, 2], [-3, 4], [5, -6]], np.float32)
    question = Question(model, [a, b])
    evidence = gather_evidence(question, parse_tolerance("dot_product"), ask(question))
    np.testing.assert_array_equal(evidence.absolute[0], np.abs(a) @ np.abs(b))
    assert (np.asarray(evidence.ones[0]) == 3).all()


@pytest.mark.parametrize("element", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "int4", "uint4"])
def test_onnxruntime_takes_and_gives_types_that_numpy_lacks(element):
    dtype = np.dtype(getattr(ml_dtypes, element))
    number = helper.np_dtype_to_tensor_dtype(dtype)
    x = np.array([1, 2, 3, 2, 1]).astype(dtype)
    to_float = run_model(one_node("Cast", number, [5], TensorProto.FLOAT, to=TensorProto.FLOAT), [x])[0]
    assert to_float.tolist() == [1, 2, 3, 2, 1]
    back = run_model(one_node("Cast", TensorProto.FLOAT, [5], number, to=number), [to_float])[0]
    assert back.dtype == dtype
    assert back.astype(np.float32).tolist() == [1, 2, 3, 2, 1]


def test_onnxruntime_gives_its_reason():
    with pytest.raises(Unavailable, match="No Op registered for Nonsense"):
        run_model(one_node("Nonsense", 1, [1]), [np.ones(1, np.float32)])
