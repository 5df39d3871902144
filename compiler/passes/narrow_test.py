import numpy as np
import onnx.parser
import pytest

from compiler.errors import InvalidTarget
from compiler.frontends.onnx import import_model
from compiler.ir import F16, F32, F64, I32, I64, Builder, Graph, TensorType, tensor
from compiler.ir.verifier import verify
from compiler.ops.convert import BitCast, Cast
from compiler.ops.elementwise import Add, Exp
from compiler.ops.interpreter import interpret
from compiler.passes.narrow import narrow, narrow_for
from compiler.targets import load_target

WIDE = frozenset({F64, F32})
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def imported(body, inputs="float[3, 4] x", outputs="float[3, 4] y"):
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {body}'
    return import_model(onnx.parser.parse_model(text))


def elements(graph):
    """Element types that operations make, casts and constants apart."""
    return {
        result.type.element
        for op in graph.walk()
        for result in op.results
        if isinstance(result.type, TensorType)
        and not op.definition.holds_constant
        and not isinstance(op.definition, Cast)
    }


def test_the_inside_is_narrow_and_the_border_keeps_its_types():
    graph = narrow(imported("{ e = Exp(x)  y = Mul(e, e) }"), WIDE, F16)
    verify(graph)
    assert elements(graph) == {F16}
    assert [value.type.element for value in (*graph.inputs, *graph.outputs)] == [F32, F32]
    half = np.exp(X.astype(np.float16))
    [found] = interpret(graph, [X])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (half * half).astype(np.float32))


def test_a_constant_is_rounded_once_and_an_attribute_that_names_the_type_follows():
    graph = narrow(
        imported("<float c = {0.1}> { d = Cast<to = 11>(x)  f = Cast<to = 1>(d)  y = Add(f, c) }"), WIDE, F16
    )
    verify(graph)
    assert F64 not in elements(graph)
    expected = X.astype(np.float16) + np.float16(0.1)
    np.testing.assert_array_equal(interpret(graph, [X])[0], expected.astype(np.float32))


def test_integers_stay():
    graph = narrow(imported("{ i = Cast<to = 7>(x)  y = Add(i, i) }", outputs="int64[3, 4] y"), WIDE, F16)
    assert elements(graph) == {I64}


def test_bits_are_read_of_the_type_that_the_model_means():
    graph = Graph("g", [tensor(F32, [2])])
    builder = Builder(graph)
    builder.output(builder(BitCast, builder(Exp, graph.inputs[0]), to=I32))
    narrowed = narrow(graph, WIDE, F16)
    verify(narrowed)
    x = np.array([0.5, 1.0], np.float32)
    expected = np.exp(x.astype(np.float16)).astype(np.float32).view(np.int32)
    np.testing.assert_array_equal(interpret(narrowed, [x])[0], expected)


def test_a_loop_carries_the_narrow_type():
    step = "step (int64 i, bool k, float[3, 4] a) => (bool kk, float[3, 4] b) { kk = Identity(k)  b = Add(a, a) }"
    body = f"""{{
        n = Constant<value_int = 3>()
        c = Constant<value = bool {{1}}>()
        y = Loop<body = {step}>(n, c, x)
    }}"""
    graph = narrow(imported(body), WIDE, F16)
    verify(graph)
    assert F32 not in elements(graph)
    np.testing.assert_array_equal(interpret(graph, [X])[0], (X.astype(np.float16) * np.float16(8)).astype(np.float32))


def test_an_input_that_is_an_output_passes_as_it_came():
    graph = Graph("g", [tensor(F32, [2])])
    Builder(graph).output(graph.inputs[0])
    x = np.array([1e-9, 1.0], np.float32)
    np.testing.assert_array_equal(interpret(narrow(graph, WIDE, F16), [x])[0], x)


def test_a_target_that_takes_the_type_is_left_alone():
    graph = imported("{ y = Exp(x) }")
    assert elements(narrow_for(graph, load_target("reference-npu"), "float16")) == {F32}
    assert elements(narrow_for(graph, load_target("edge-npu"), "float16")) == {F16}


@pytest.mark.parametrize(
    ("target", "precision", "part"),
    [
        ("edge-npu", "int8", "'int8' is unknown; expected one of float16, bfloat16"),
        ("edge-npu", "bfloat16", "'edge-npu' has no bfloat16; expected one of float16"),
        ("micro-npu", "float16", "'micro-npu' has no float16; expected one of none"),
    ],
)
def test_a_precision_that_cannot_be_is_refused_with_those_that_can(target, precision, part):
    graph = Graph("g", [tensor(F32, [2])])
    builder = Builder(graph)
    builder.output(builder(Add, graph.inputs[0], graph.inputs[0]))
    with pytest.raises(InvalidTarget, match=part):
        narrow_for(graph, load_target(target), precision)
