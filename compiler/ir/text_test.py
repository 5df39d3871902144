"""The text form: random graphs print and parse back to the bit; broken text is refused with line and column."""

import contextlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compiler.errors import InvalidGraph, InvalidText
from compiler.ir import (
    CONSTANT,
    ELEMENT_TYPES,
    F32,
    I8,
    I64,
    RETURN,
    STRING,
    Builder,
    Constant,
    Definition,
    Graph,
    Location,
    Node,
    Op,
    Quantization,
    graphs_equal,
    optional_of,
    parse_graph,
    print_graph,
    resources,
    sequence_of,
    tensor,
)

DETERMINISTIC = settings(derandomize=True, deadline=None, max_examples=60)


class Anything(Definition):
    name = "any.op"

    def check(self, call):
        pass

    def infer(self, call):
        return ()

    def evaluate(self, call, operands, run_region):
        raise NotImplementedError


ANYTHING = Anything.instance()


def lookup(name):
    found = {definition.name: definition for definition in (RETURN, CONSTANT, ANYTHING)}.get(name)
    if found is None:
        raise InvalidGraph(f"operator '{name}' is unknown")
    return found


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
elements = st.sampled_from(ELEMENT_TYPES)
dims = st.none() | st.lists(st.integers(0, 5) | st.sampled_from(["N", "?", 'odd "\\ name\n']), max_size=3)
quantizations = st.none() | st.builds(
    Quantization,
    st.tuples(st.floats(min_value=2**-30, allow_infinity=False)) | st.just((1e-05, 0.5)),
    st.tuples(st.integers(-128, 127)),
    st.none() | st.integers(0, 2),
    st.integers(0, 64),
    st.sampled_from([F32, I8]),
)
types = st.recursive(
    st.builds(tensor, elements, dims, quantizations),
    lambda inner: st.builds(sequence_of, inner) | st.builds(optional_of, inner),
    max_leaves=3,
)


@st.composite
def constants(draw):
    element = draw(elements)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    if draw(st.integers(0, 9)) == 0:
        return Constant.abstract(tensor(element, shape), draw(st.integers(0, 99)))
    if element is STRING:
        return Constant.of(draw(hnp.arrays(object, shape, elements=texts, fill=st.nothing())))
    if element.is_integer and element.bits < 8:
        low = -(2 ** (element.bits - 1)) if element.name.startswith("i") else 0
        values = draw(hnp.arrays(np.int8, shape, elements=st.integers(low, low + 2**element.bits - 1)))
        return Constant.of(values.astype(element.dtype))
    if element.is_float and element.bits < 8:
        values = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 2**element.bits - 1)))
        return Constant.of(values.view(element.dtype))
    if element.dtype == np.bool_:
        return Constant.of(draw(hnp.arrays(np.bool_, shape)))
    width = element.dtype.itemsize
    raw = draw(hnp.arrays(np.uint8, (*shape, width)))  # every bit pattern: NaN payloads, denormals, -0.0
    return Constant.of(np.frombuffer(raw.tobytes(), element.dtype).reshape(shape))


attributes = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | texts | elements | types | constants(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
locations = st.builds(Location, st.lists(st.builds(Node, texts, texts, texts), max_size=2, unique=True).map(tuple))


@st.composite
def graphs(draw, depth=2, outer=()):
    graph = Graph(draw(texts), draw(st.lists(types, max_size=2)))
    visible = [*outer, *graph.inputs]
    for value in graph.inputs:
        value.name = draw(st.sampled_from(["", "x", "0", "a b", "bb0", "$_1"]))
    for _ in range(draw(st.integers(0, 4))):
        operands = draw(st.lists(st.sampled_from([None, *visible]), max_size=3)) if visible else []
        regions = [draw(graphs(depth - 1, visible)) for _ in range(draw(st.integers(0, 2)))] if depth else []
        named = draw(st.dictionaries(texts, attributes, max_size=2))
        op = Op(ANYTHING, operands, draw(st.lists(types, max_size=2)), named, regions, draw(locations))
        for result in op.results:
            result.name = draw(st.sampled_from(["", "x", "y$_1", "é:0"]))
        graph.append(op)
        visible.extend(op.results)
    graph.append(Op(RETURN, [value for value in visible if draw(st.booleans())], ()))
    graph.output_names = tuple(draw(st.lists(texts, max_size=2)))
    return graph


def names(graph):
    yield graph.name
    yield graph.output_names
    yield from (value.name for value in graph.inputs)
    for op in graph.ops:
        yield from (value.name for value in op.results)
        for region in op.regions:
            yield from names(region)


@DETERMINISTIC
@given(graphs())
def test_random_graphs_print_and_parse_back_exactly(graph):
    text = print_graph(graph)
    again = parse_graph(text, lookup, resources(graph))
    assert print_graph(again) == text
    assert graphs_equal(graph, again, locations=True)
    assert list(names(graph)) == list(names(again))


def line(attribute, type_="tensor<f32>"):
    constant = f'%0 = "constant"() {{value = {attribute} : {type_}}} : () -> {type_}'
    return f'"graph"() ({{\n^g:\n  {constant}\n  "return"() : () -> ()\n}}) : () -> ()'


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (np.array(-0.0, np.float32), "dense<-0.0>"),
        (np.array(np.inf, np.float32), "dense<0x7F800000>"),
        (np.array(0x7FC00123, np.uint32).view(np.float32), "dense<0x7FC00123>"),
        (np.array(0x7FF0000000000001, np.uint64).view(np.float64), "dense<0x7FF0000000000001>"),
        (np.array(1e-45, np.float32), "dense<1.401298464324817e-45>"),
        (np.array([1, 2], ml_dtypes.bfloat16), "dense<[1.0, 2.0]>"),
        (np.array([[True], [False]]), "dense<[[true], [false]]>"),
        (np.array(1 - 2j, np.complex64), "dense<(1.0, -2.0)>"),
        (np.array(["a", 'b"'], object), 'dense<["a", "b\\""]>'),
        (np.zeros((0, 3), np.int64), "dense<>"),
        (np.array(-(2**63)), "dense<-9223372036854775808>"),
    ],
)
def test_small_constants_print_in_full(array, shown):
    graph = Graph()
    builder = Builder(graph)
    builder.output(builder.constant(array))
    text = print_graph(graph)
    assert shown in text
    parsed = parse_graph(text, lookup).first.attributes["value"]
    assert parsed.type is graph.first.attributes["value"].type
    assert parsed.array.tobytes() == array.tobytes() or array.dtype == object


def test_large_constant_is_neither_printed_nor_copied():
    data = np.arange(1000, dtype=np.float32)
    graph = Graph()
    builder = Builder(graph)
    builder.output(builder.constant(data))
    text = print_graph(graph)
    assert len(text) < 400
    parsed = parse_graph(text, lookup, resources(graph)).first.attributes["value"]
    assert np.shares_memory(parsed.array, data)
    with pytest.raises(InvalidText, match="expected one of the 0 resources given"):
        parse_graph(text, lookup)


def test_splat_fills_the_shape():
    parsed = parse_graph(line("dense<1.5>", "tensor<2x2xf32>"), lookup).first.attributes["value"]
    assert parsed.array.tolist() == [[1.5, 1.5], [1.5, 1.5]]


GOOD = """\
"graph"() ({ // a comment
^main(%x: tensor<2xf32>):
  %y = "any.op"(%x) {axis = 1} : (tensor<2xf32>) -> tensor<2xf32>
  "return"(%y) : (tensor<2xf32>) -> ()
}) : () -> ()
"""


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ("%y = ", "%x = ", "3:3", "found %x, defined before"),
        ("(%x) {", "(%z) {", "3:17", "found %z; expected a value defined before"),
        ("axis = 1", "axis 1", "3:27", "expected '=' after the attribute's name"),
        ("axis = 1", "axis = ", "3:29", "found '}'; expected an attribute value"),
        ("{axis = 1}", "{axis = 1, axis = 2}", "3:32", "attribute 'axis' again"),
        ("any.op", "nope", "3:8", "operator 'nope' is unknown"),
        (") -> tensor<2xf32>", ") -> tensor<2xf33>", "3:62", "element type"),
        (") -> tensor<2xf32>", ") -> ()", "3:3", "found 1 results; expected 0 results"),
        ("(tensor<2xf32>) -> t", "(tensor<3xf32>) -> t", "3:3", "tensor<2xf32>; expected an operand of type"),
        ('  "return"(%y) : (tensor<2xf32>) -> ()\n}', '  "return"(%y : }', "4:15", "expected ')' after the operands"),
        ("}) : () -> ()", "}) : () -> () x", "5:15", "found 'x'; expected the end of the text"),
        ("}) : () -> ()", "})", "6:1", "found the end of the text; expected ':'"),
    ],
)  # fmt: skip
def test_broken_text_is_refused_with_its_place(old, new, where, message):
    assert old in GOOD
    with pytest.raises(InvalidText) as caught:
        parse_graph(GOOD.replace(old, new), lookup)
    assert message in str(caught.value)
    assert str(caught.value).startswith(where + ":")


@DETERMINISTIC
@given(st.integers(0, len(GOOD)), st.sampled_from(['"', "%", "(", ")", "{", "}", "<", ">", ",", ":", "x", "9", ""]))
def test_any_damage_is_a_diagnosis_and_never_a_crash(position, inserted):
    damaged = GOOD[:position] + inserted + GOOD[position + 1 :]
    with contextlib.suppress(InvalidText):
        parse_graph(damaged, lookup)


def test_deep_nesting_is_refused():
    with pytest.raises(InvalidText, match="levels of nesting"):
        parse_graph(GOOD.replace("axis = 1", "axis = " + "[" * 5000), lookup)


def test_omitted_operands_survive():
    graph = Graph("main", [tensor(I64)], ["x"])
    graph.append(Op(ANYTHING, [None, graph.inputs[0], None], ()))
    graph.append(Op(RETURN, (), ()))
    text = print_graph(graph)
    assert "operandSegmentSizes = array<i32: 0, 1, 0>" in text
    again = parse_graph(text, lookup)
    assert again.first.operands == (None, again.inputs[0], None)
