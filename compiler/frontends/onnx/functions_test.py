import numpy as np
import onnx
import pytest
from onnx import helper

from compiler.errors import InvalidModel
from compiler.frontends.onnx import converted_operators, import_model
from compiler.frontends.onnx.functions import schema_function
from compiler.frontends.onnx.harness_test import info, model_of, run, run_node
from compiler.ir import F32, tensor

X = np.array([1.0, -2.0], np.float32)
DOMAIN = "com.example"
OPSETS = [helper.make_opsetid("", 18)]


def function(nodes, inputs=("a",), outputs=("b",), name="F", attributes=(), defaults=(), opsets=OPSETS):
    return helper.make_function(DOMAIN, name, inputs, outputs, nodes, opsets, attributes, list(defaults))


def caller(functions, inputs=("x",), name="F", **attributes):
    call = helper.make_node(name, list(inputs), ["y"], name="call", domain=DOMAIN, **attributes)
    return model_of([call], [info("x", (2,))], [info("y", (2,))], functions=functions, domains=[DOMAIN])


def reference(op_type, attribute, parameter):
    node = helper.make_node(op_type, ["a"], ["b"])
    node.attribute.append(onnx.AttributeProto(name=attribute, ref_attr_name=parameter, type=onnx.AttributeProto.FLOAT))
    return node


def test_function_is_inlined_with_the_place_of_its_call():
    nodes = [helper.make_node("Neg", ["a"], ["t"], name="inner"), helper.make_node("Abs", ["t"], ["b"])]
    graph = import_model(caller([function(nodes)]))
    assert [op.name for op in graph.ops] == ["neg", "abs", "return"]
    assert str(graph.first.location) == "call/F: inner (Neg)"


def test_names_inside_a_function_are_its_own():
    nodes = [helper.make_node("Neg", ["a"], ["x"]), helper.make_node("Neg", ["x"], ["b"])]
    np.testing.assert_array_equal(run(caller([function(nodes)]), X)[0], X)


def test_attribute_of_the_call_reaches_the_body():
    model = caller([function([reference("LeakyRelu", "alpha", "slope")], attributes=["slope"])], slope=0.5)
    assert run(model, X)[0].tolist() == [1, -1]


def test_default_of_a_functions_attribute():
    body = function([reference("LeakyRelu", "alpha", "slope")], defaults=[helper.make_attribute("slope", 0.25)])
    assert run(caller([body]), X)[0].tolist() == [1, -0.5]


def test_attribute_that_the_call_leaves_out_takes_the_operators_default():
    model = caller([function([reference("LeakyRelu", "alpha", "slope")], attributes=["slope"])])
    np.testing.assert_allclose(run(model, X)[0], [1, -0.02])


def _calling(name, called, times):
    names = ["a", *(f"t{index}" for index in range(times - 1)), "b"]
    steps = [helper.make_node(called, [names[i]], [names[i + 1]], domain=DOMAIN) for i in range(times)]
    return function(steps, name=name, opsets=[*OPSETS, helper.make_opsetid(DOMAIN, 1)])


@pytest.mark.parametrize(("depth", "times"), [(500, 1), (25, 2)], ids=["deep", "doubling"])
def test_functions_that_would_grow_without_bounds_are_refused(monkeypatch, depth, times):
    monkeypatch.setattr("compiler.frontends.onnx.importer._MOST_INLINED", 1000)
    functions = [function([helper.make_node("Neg", ["a"], ["b"])], name="F0")]
    functions += [_calling(f"F{level}", f"F{level - 1}", times) for level in range(1, depth)]
    with pytest.raises(
        InvalidModel, match=r"functions deep, after .* nodes of functions; expected at most 100 and 1000"
    ):
        import_model(caller(functions, name=f"F{depth - 1}"))


def test_attribute_that_the_function_does_not_declare_is_refused():
    with pytest.raises(InvalidModel, match="attribute 'slope', which the function does not declare"):
        import_model(caller([function([helper.make_node("Neg", ["a"], ["b"])])], slope=1.0))


def test_input_that_the_call_leaves_out_is_an_omitted_one():
    body = function([helper.make_node("Clip", ["a", "low", "high"], ["b"])], inputs=("a", "low", "high"))
    np.testing.assert_array_equal(run(caller([body]), X)[0], X)


def test_too_many_inputs_are_refused():
    with pytest.raises(InvalidModel, match="given 2 inputs; expected at most 1"):
        import_model(caller([function([helper.make_node("Neg", ["a"], ["b"])])], inputs=("x", "x")))


def test_functions_call_functions():
    inner = function([helper.make_node("Neg", ["a"], ["b"])], name="G")
    opsets = [*OPSETS, helper.make_opsetid(DOMAIN, 1)]
    outer = function([helper.make_node("G", ["a"], ["b"], domain=DOMAIN)], opsets=opsets)
    np.testing.assert_array_equal(run(caller([inner, outer]), X)[0], -X)


def test_recursion_is_refused():
    body = function(
        [helper.make_node("F", ["a"], ["b"], domain=DOMAIN)], opsets=[*OPSETS, helper.make_opsetid(DOMAIN, 1)]
    )
    with pytest.raises(InvalidModel, match="calls itself"):
        import_model(caller([body]))


def test_two_functions_of_one_name_are_refused():
    body = function([helper.make_node("Neg", ["a"], ["b"])])
    with pytest.raises(InvalidModel, match="two functions"):
        import_model(caller([body, body]))


def test_function_has_its_own_operator_set():
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    body = function([helper.make_node("Softmax", ["a"], ["b"])], opsets=[helper.make_opsetid("", 11)])
    call = helper.make_node("F", ["x"], ["y"], domain=DOMAIN)
    model = model_of([call], [info("x", x.shape)], [info("y", x.shape)], functions=[body], domains=[DOMAIN])
    e = np.exp(x - x.max((1, 2), keepdims=True))
    np.testing.assert_allclose(run(model, x)[0], e / e.sum((1, 2), keepdims=True), rtol=1e-6)


def test_operator_without_a_converter_is_its_schemas_function():
    assert ("", "HannWindow") not in converted_operators()
    (window,) = run_node("HannWindow", [np.array(8)], 17, known=[0], periodic=0)
    np.testing.assert_allclose(window, np.hanning(8), atol=1e-6)
    (window,) = run_node("HannWindow", [np.array(8)], 17, known=[0])
    np.testing.assert_allclose(window, np.hanning(9)[:8], atol=1e-6)


@pytest.mark.parametrize(("opset", "body"), [(13, 13), (15, 13), (18, 18), (20, 18)])
def test_newest_body_that_is_not_newer_than_the_model_is_taken(opset, body):
    node = helper.make_node("LogSoftmax", ["x"], ["y"])
    schema = onnx.defs.get_schema("LogSoftmax", opset)
    found = schema_function(schema, opset, node, {}, [tensor(F32, (2,))])
    assert [entry.version for entry in found.opset_import] == [body]


def test_operator_that_is_no_function_has_no_body():
    assert schema_function(onnx.defs.get_schema("Det"), 22, helper.make_node("Det", ["x"], ["y"]), {}, [None]) is None
