import contextlib
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.errors import InvalidModel, OpatlasError, TypeMismatch, UnsupportedOperator, UnsupportedType, ValueNeeded
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import info, info_of, model_of, run, run_onnxruntime
from compiler.ir import F32, I64, SequenceType, tensor
from compiler.ops.interpreter import interpret

X = np.array([1.0, -2.0], np.float32)


def node(op_type, inputs, outputs, **attributes):
    return helper.make_node(op_type, inputs, outputs, **attributes)


def weight(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def vector(name="x", size=2):
    return info(name, (size,))


def test_graph_has_the_models_names_types_and_symbols():
    model = model_of([node("Neg", ["x"], ["y"])], [info("x", ("N", None, 3))], [info("y", ("N", None, 3))], name="net")
    graph = import_model(model)
    assert (graph.name, graph.output_names) == ("net", ("y",))
    assert graph.inputs[0].name == "x"
    assert graph.inputs[0].type is tensor(F32, ("N", "?", 3))
    assert graph.outputs[0].type is tensor(F32, ("N", "?", 3))


def test_location_names_node_operator_and_file(tmp_path):
    path = tmp_path / "net.onnx"
    nodes = [node("Neg", ["x"], ["t"], name="minus"), node("Abs", ["t"], ["y"])]
    onnx.save(model_of(nodes, [vector()], [vector("y")]), path)
    locations = [str(op.location) for op in import_model(path).ops if not op.definition.terminator]
    assert locations == ["net.onnx: minus (Neg)", "net.onnx: y (Abs)"]


def test_unknown_rank_is_kept():
    model = model_of([node("Neg", ["x"], ["y"])], [info("x", None)], [info("y", None)])
    assert import_model(model).outputs[0].type is tensor(F32, None)


def test_odd_names_are_allowed():
    names = ["", "a b", "x/y:0", "Ünï", "%0", '"', "\n"]
    nodes = [node("Neg", [a or "in put"], [b]) for a, b in pairwise(names)]
    (got,) = run(model_of(nodes, [vector("in put")], [vector("\n")]), X)
    np.testing.assert_array_equal(got, X)


def test_weight_shadowing_an_input_is_its_value_and_no_input():
    nodes = [node("Add", ["x", "w"], ["y"])]
    model = model_of(nodes, [vector(), vector("w")], [vector("y")], initializers=[weight("w", [10, 20])])
    graph = import_model(model)
    assert [value.name for value in graph.inputs] == ["x"]
    assert interpret(graph, [X])[0].tolist() == [11, 18]


def test_weight_contradicting_its_input_is_refused():
    model = model_of([node("Neg", ["w"], ["y"])], [vector("w", 3)], [vector("y")], initializers=[weight("w", [1, 2])])
    with pytest.raises(TypeMismatch, match=r"weight 'w' is declared as tensor<3xf32>, but has type tensor<2xf32>"):
        import_model(model)


def test_sparse_weight_becomes_dense():
    model = model_of([node("Add", ["x", "s"], ["y"])], [vector("x", 3)], [vector("y", 3)])
    values, indices = weight("s", [5]), numpy_helper.from_array(np.array([1], np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    assert run(model, np.ones(3, np.float32))[0].tolist() == [1, 6, 1]


def test_empty_names_are_omitted_optional_inputs_and_outputs():
    nodes = [node("Clip", ["x", "", "high"], ["c"]), node("TopK", ["c", "k"], ["", "y"])]
    weights = [weight("high", 0.5), weight("k", [1], np.int64)]
    model = model_of(nodes, [vector()], [info("y", (1,), TensorProto.INT64)], initializers=weights)
    assert run(model, X)[0].tolist() == [0]


def test_input_passed_through_as_output():
    model = model_of([node("Identity", ["x"], ["y"])], [vector()], [vector("y"), vector("x")])
    first, second = run(model, X)
    np.testing.assert_array_equal(first, second)


def test_cycle_is_refused_with_its_nodes():
    nodes = [node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second")]
    with pytest.raises(InvalidModel, match=r"the graph has a cycle: .*'second' -> 'first'"):
        import_model(model_of(nodes, [vector()], [vector("b")]))


def test_node_that_uses_itself_is_a_cycle():
    with pytest.raises(InvalidModel, match="cycle"):
        import_model(model_of([node("Neg", ["y"], ["y"])], [], [vector("y")]))


def test_wrong_order_of_nodes_is_refused():
    nodes = [node("Neg", ["a"], ["y"], name="late"), node("Abs", ["x"], ["a"], name="early")]
    with pytest.raises(InvalidModel, match=r"node 'late' \(Neg\) uses value 'a' before node 'early' defines it"):
        import_model(model_of(nodes, [vector()], [vector("y")]))


def test_undefined_input_is_refused():
    with pytest.raises(InvalidModel, match=r"node 'y' \(Neg\) uses value 'ghost', which nothing defines"):
        import_model(model_of([node("Neg", ["ghost"], ["y"])], [vector()], [vector("y")]))


def test_undefined_output_is_refused():
    with pytest.raises(InvalidModel, match="output 'z', which nothing defines"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [vector()], [vector("z")]))


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])], []),
        ([node("Neg", ["x"], ["x"]), node("Neg", ["x"], ["y"])], []),
        ([node("Neg", ["x"], ["w"]), node("Neg", ["w"], ["y"])], [weight("w", [1, 2])]),
        ([node("Neg", ["x"], ["y"])], [weight("w", [1]), weight("w", [2])]),
        ([node("TopK", ["x", "k"], ["y", "y"])], [weight("k", [2], np.int64)]),
    ],
    ids=["two results", "input", "weight", "two weights", "one node"],
)
def test_duplicate_names_are_refused(nodes, weights):
    with pytest.raises(InvalidModel, match="which is defined before"):
        import_model(model_of(nodes, [vector()], [vector("y")], initializers=weights))


def test_two_inputs_of_one_name_are_refused():
    with pytest.raises(InvalidModel, match="'x', which is defined before"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [vector(), vector()], [vector("y")]))


def test_input_without_a_name_or_a_type_is_refused():
    with pytest.raises(InvalidModel, match="without a name"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [vector(""), vector()], [vector("y")]))
    with pytest.raises(InvalidModel, match="input 'x' has no type"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [onnx.ValueInfoProto(name="x")], [vector("y")]))


def test_negative_size_is_refused():
    with pytest.raises(InvalidModel, match="size -2 in dim 0"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [vector("x", -2)], [vector("y")]))


def test_sparse_input_is_refused():
    model = model_of([node("Neg", ["x"], ["y"])], [vector()], [vector("y")])
    model.graph.input[0].type.sparse_tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(UnsupportedType, match="input 'x' is a sparse tensor"):
        import_model(model)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (node("Add", ["x"], ["y"]), "has 1 inputs; Add-14 takes 2"),
        (node("Neg", ["x", "x"], ["y"]), "has 2 inputs; Neg-13 takes 1"),
        (node("Neg", ["x"], ["y", "z"]), "has 2 outputs; Neg-13 takes 1"),
        (node("Add", ["x", ""], ["y"]), r"omits input 1 \('B'\)"),
        (node("Neg", ["x"], ["y"], alpha=1.0), "has attribute 'alpha'; Neg-13 knows none"),
        (node("Softmax", ["x"], ["y"], axis=1.0), "attribute 'axis' of .* is FLOAT; expected INT"),
        (node("Concat", ["x"], ["y"]), "lacks attribute 'axis', which Concat-13 requires"),
        (node("Softmax", ["x"], ["y"], axis=1), "axis 1; expected -1 to 0"),
        (node("Transpose", ["x"], ["y"], perm=[1, 0]), "expected an order of 1 dims"),
    ],
)
def test_node_that_breaks_its_schema_is_refused(bad, message):
    with pytest.raises(InvalidModel, match=message):
        import_model(model_of([bad], [vector()], [vector("y")]))


def test_attribute_given_twice_is_refused():
    twice = node("Softmax", ["x"], ["y"], axis=0)
    twice.attribute.append(helper.make_attribute("axis", 0))
    with pytest.raises(InvalidModel, match="attribute 'axis' twice"):
        import_model(model_of([twice], [vector()], [vector("y")]))


def test_attribute_of_a_later_version_is_refused():
    saturating = node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16, saturate=1)
    with pytest.raises(InvalidModel, match="has attribute 'saturate'; Cast-13 knows to"):
        import_model(model_of([saturating], [vector()], [vector("y")], opset=18))


def test_default_is_that_of_the_version_in_force():
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for opset, axes in ((11, (1, 2)), (13, (2,))):
        model = model_of([node("Softmax", ["x"], ["y"])], [info_of("x", x)], [info_of("y", x)], opset=opset)
        e = np.exp(x)
        np.testing.assert_allclose(run(model, x)[0], e / e.sum(axes, keepdims=True), rtol=1e-6)


def test_wrong_element_type_is_refused_with_the_allowed_ones():
    model = model_of([node("Sin", ["x"], ["y"])], [info("x", (2,), TensorProto.INT64)], [vector("y")])
    with pytest.raises(
        TypeMismatch, match=r"input 0 \('input'\) of .* has type tensor<2xi64>; Sin-7 takes .*tensor\(float\)"
    ):
        import_model(model)


def test_operands_of_different_element_types_are_refused():
    model = model_of([node("Add", ["x", "z"], ["y"])], [vector(), info("z", (2,), TensorProto.INT64)], [vector("y")])
    with pytest.raises(TypeMismatch, match="like the inputs before"):
        import_model(model)


def test_shapes_that_do_not_fit_are_refused_with_the_node():
    model = model_of([node("Add", ["x", "z"], ["y"], name="sum")], [vector(), vector("z", 3)], [vector("y")])
    with pytest.raises(TypeMismatch, match=r"sum \(Add\)"):
        import_model(model)


def test_wrong_rank_is_refused():
    model = model_of(
        [node("Conv", ["x", "w"], ["y"])], [info("x", (1, 1, 4)), info("w", (1, 1, 2, 2))], [info("y", None)]
    )
    with pytest.raises(TypeMismatch, match="rank"):
        import_model(model)


def test_declared_output_type_that_contradicts_is_refused_with_both_types():
    with pytest.raises(TypeMismatch, match="declared as tensor<3xf32>, but has type tensor<2xf32>"):
        import_model(model_of([node("Neg", ["x"], ["y"])], [vector()], [vector("y", 3)]))


def test_declared_intermediate_type_that_contradicts_is_refused():
    model = model_of([node("Neg", ["x"], ["t"]), node("Neg", ["t"], ["y"])], [vector()], [vector("y")])
    model.graph.value_info.append(info("t", (2,), TensorProto.INT64))
    with pytest.raises(TypeMismatch, match="'t'"):
        import_model(model)


def test_declared_symbols_refine_what_is_not_known():
    x = info("x", ("N",), TensorProto.FLOAT)
    model = model_of([node("NonZero", ["x"], ["y"])], [x], [info("y", (1, "found"), TensorProto.INT64)])
    assert import_model(model).outputs[0].type is tensor(I64, (1, "found"))


@pytest.mark.parametrize(
    ("op_type", "domain", "opset", "message"),
    [
        ("NoSuchThing", "", 18, "no such operator"),
        ("Gelu", "", 18, "it exists since operator set 20"),
        ("Upsample", "", 10, "was taken out in operator set 10"),
        ("Anything", "com.example", 18, "the domain is unknown"),
    ],
)
def test_unknown_operator_is_refused(op_type, domain, opset, message):
    model = model_of(
        [node(op_type, ["x"], ["y"], domain=domain)], [vector()], [vector("y")], opset, domains=["com.example"]
    )
    with pytest.raises(UnsupportedOperator, match=message) as caught:
        import_model(model)
    assert (caught.value.name, caught.value.node) == (op_type, "y")


def test_domain_that_the_model_does_not_import_is_refused():
    model = model_of([node("Thing", ["x"], ["y"], domain="com.example")], [vector()], [vector("y")])
    with pytest.raises(InvalidModel, match="imports no operator set of it"):
        import_model(model)


def test_value_that_decides_the_form_can_be_given():
    inputs = [info("x", (2, 3)), info("axes", (1,), TensorProto.INT64)]
    model = model_of([node("ReduceSum", ["x", "axes"], ["y"])], inputs, [onnx.ValueInfoProto(name="y")])
    with pytest.raises(ValueNeeded, match="the value of 'axes' decides") as caught:
        import_model(model)
    assert caught.value.value == "axes"
    x, axes = np.ones((2, 3), np.float32), np.array([1])
    graph = import_model(model, known={"axes": axes})
    assert interpret(graph, [x, axes])[0].tolist() == [[3], [3]]


def test_shape_arithmetic_is_decided_while_reading():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["width"]),
        node("Mul", ["width", "two"], ["double"]),
        node("Unsqueeze", ["double", "zero"], ["v"]),
        node("Reshape", ["x", "v"], ["y"]),
    ]
    weights = [weight("one", 1, np.int64), weight("two", 2, np.int64), weight("zero", [0], np.int64)]
    model = model_of(nodes, [info("x", (2, 3))], [onnx.ValueInfoProto(name="y")], initializers=weights)
    assert import_model(model).outputs[0].type is tensor(F32, (6,))


def loop_model(body_nodes, body_inputs, body_outputs, outer_nodes=(), outputs=("y",)):
    body = helper.make_graph(body_nodes, "body", body_inputs, body_outputs)
    nodes = [*outer_nodes, node("Loop", ["n", "", "x"], list(outputs), body=body)]
    inputs = [info("n", (), TensorProto.INT64), vector()]
    return model_of(nodes, inputs, [onnx.ValueInfoProto(name=name) for name in outputs])


def counters(condition="go"):
    return [info("i", (), TensorProto.INT64), info(condition, (), TensorProto.BOOL)]


def test_loop_with_a_captured_value():
    nodes = [node("Identity", ["go"], ["on"]), node("Add", ["v", "step"], ["w"])]
    model = loop_model(
        nodes,
        [*counters(), vector("v")],
        [info("on", (), TensorProto.BOOL), vector("w")],
        [node("Abs", ["x"], ["step"])],
    )
    np.testing.assert_array_equal(run(model, np.array(3), X)[0], X + 3 * np.abs(X))
    np.testing.assert_array_equal(run(model, np.array(0), X)[0], X)


def test_loop_that_grows_its_value_has_an_unknown_size():
    nodes = [node("Identity", ["go"], ["on"]), node("Concat", ["v", "v"], ["w"], axis=0)]
    model = loop_model(nodes, [*counters(), info("v", None)], [info("on", (), TensorProto.BOOL), info("w", None)])
    assert import_model(model).outputs[0].type is tensor(F32, ("?",))
    assert run(model, np.array(2), X)[0].shape == (8,)


def test_subgraph_input_may_hide_an_outer_name():
    nodes = [node("Identity", ["go"], ["on"]), node("Neg", ["t"], ["w"])]
    model = loop_model(
        nodes, [*counters(), vector("t")], [info("on", (), TensorProto.BOOL), vector("w")], [node("Abs", ["x"], ["t"])]
    )
    np.testing.assert_array_equal(run(model, np.array(1), X)[0], -X)
    np.testing.assert_array_equal(run_onnxruntime(model, np.array(1), X)[0], -X)


def test_subgraph_result_may_not_hide_an_outer_name():
    nodes = [node("Identity", ["go"], ["on"]), node("Neg", ["v"], ["t"])]
    model = loop_model(
        nodes, [*counters(), vector("v")], [info("on", (), TensorProto.BOOL), vector("t")], [node("Abs", ["x"], ["t"])]
    )
    with pytest.raises(InvalidModel, match="'t', which is defined before"):
        import_model(model)


def test_names_of_a_subgraph_are_not_visible_outside():
    nodes = [node("Identity", ["go"], ["on"]), node("Neg", ["v"], ["inner"])]
    model = loop_model(nodes, [*counters(), vector("v")], [info("on", (), TensorProto.BOOL), vector("inner")])
    model.graph.node.append(node("Neg", ["inner"], ["z"]))
    with pytest.raises(InvalidModel, match="'inner', which nothing defines"):
        import_model(model)


def test_loop_body_with_a_wrong_number_of_inputs_is_refused():
    nodes = [node("Identity", ["go"], ["on"])]
    with pytest.raises(InvalidModel, match="2 inputs; expected 3"):
        import_model(loop_model(nodes, counters(), [info("on", (), TensorProto.BOOL), vector("x")]))


def branch_model(condition_known):
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "then", [], [vector("a")])
    other = helper.make_graph([node("Concat", ["x", "x"], ["b"], axis=0)], "else", [], [vector("b", 4)])
    weights = [weight("c", True, np.bool_)] if condition_known else []
    inputs = [vector()] if condition_known else [info("c", (), TensorProto.BOOL), vector()]
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return model_of(nodes, inputs, [onnx.ValueInfoProto(name="y")], initializers=weights)


def test_branches_of_different_sizes():
    model = branch_model(condition_known=False)
    assert import_model(model).outputs[0].type is tensor(F32, ("?",))
    assert run(model, np.array(True), X)[0].tolist() == [-1, 2]
    assert run(model, np.array(False), X)[0].tolist() == [1, -2, 1, -2]


def test_branch_that_a_constant_decides_is_taken_in_place():
    graph = import_model(branch_model(condition_known=True))
    assert graph.outputs[0].type is tensor(F32, (2,))
    assert not any(op.regions for op in graph.ops)


def test_sequence_type_of_an_input():
    model = model_of([node("Neg", ["x"], ["y"])], [vector()], [vector("y")])
    model.graph.input.append(
        helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, ["N"])))
    )
    assert isinstance(import_model(model).inputs[1].type, SequenceType)


def test_text_that_is_not_utf8_is_refused():
    gelu = node("Gelu", ["x"], ["y"])
    gelu.attribute.add(name="approximate", type=onnx.AttributeProto.STRING, s=b"\xff")
    with pytest.raises(InvalidModel, match="not UTF-8"):
        import_model(model_of([gelu], [vector()], [vector("y")], opset=20))


def test_any_broken_byte_is_read_or_refused(tmp_path):
    path = tmp_path / "m.onnx"
    data = model_of([node("Neg", ["x"], ["y"])], [vector()], [vector("y")]).SerializeToString()
    for position in range(len(data)):
        path.write_bytes(data[:position] + b"\xff" + data[position + 1 :])
        with contextlib.suppress(OpatlasError):
            import_model(path)
