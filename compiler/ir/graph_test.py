"""Uses, order, replacement, cloning and verification of graphs; types, constants and locations."""

import numpy as np
import pytest

from compiler.errors import AbstractConstant, InvalidGraph, TypeMismatch, UnsupportedType
from compiler.ir import (
    F16,
    F32,
    I4,
    I64,
    RETURN,
    Builder,
    Constant,
    Definition,
    Graph,
    Op,
    at,
    captured,
    clone_graph,
    compatible,
    graphs_equal,
    tensor,
    verify,
)

PAIR = tensor(F32, (2,))


class Same(Definition):
    """All operands have one type, which is the result's; at least one operand."""

    name = "same"

    def check(self, call):
        if len({type_ for type_ in call.types if type_ is not None}) > 1:
            raise TypeMismatch(f"same: operand types {call.types} differ")

    def infer(self, call):
        return (call.types[0],)

    def evaluate(self, call, operands, run_region):
        return (operands[0],)


class Body(Same):
    name = "body"


@pytest.fixture
def chain():
    """x -> a = same(x, x) -> b = same(a, x) -> return b."""
    graph = Graph("main", [PAIR], ["x"])
    builder = Builder(graph, location=at("node", "Same", "file"))
    x = graph.inputs[0]
    a = builder(Same, x, x)
    b = builder(Same, a, x)
    builder.output(b)
    return graph, x, a, b


def test_uses_count_operand_slots(chain):
    _, x, a, b = chain
    assert x.users == {a.op: 2, b.op: 1}
    b.op.set_operand(1, a)
    assert x.users == {a.op: 2}
    assert a.users == {b.op: 2}


def test_replacing_a_value_moves_every_use(chain):
    graph, x, a, b = chain
    a.replace_with(x)
    assert b.op.operands == (x, x)
    assert a.users == {}
    assert x.users == {a.op: 2, b.op: 2}
    a.op.erase()
    assert x.users == {b.op: 2}
    verify(graph)


def test_erasing_a_used_operation_is_refused(chain):
    _, _, a, _ = chain
    with pytest.raises(InvalidGraph, match=r"'same' \(at file: node \(Same\)\) is still used by \['same'\]"):
        a.op.erase()


def test_insertion_before_an_operation_keeps_the_order(chain):
    graph, x, a, b = chain
    first = Builder(graph, before=a.op)(Same, x)
    middle = Builder(graph, before=b.op)(Same, a)
    assert list(graph.ops)[:4] == [first.op, a.op, middle.op, b.op]
    graph.unlink(middle.op)
    graph.insert(middle.op, graph.last)
    assert list(graph.ops)[2:4] == [b.op, middle.op]
    verify(graph)


def test_erasing_while_iterating_is_safe(chain):
    graph, x, _, _ = chain
    graph.terminator.set_operands([x])
    for op in list(reversed(list(graph.ops)))[1:]:
        op.erase()
    assert graph.outputs == (x,)
    assert graph.first is graph.last


def test_clone_is_equal_and_independent(chain):
    graph, _, a, _ = chain
    copy = clone_graph(graph)
    assert graphs_equal(graph, copy, locations=True)
    verify(copy)
    copy.first.attributes["axis"] = 1
    assert not graphs_equal(graph, copy)
    assert a.op.attributes == {}


def test_regions_capture_values_from_outside():
    graph = Graph("main", [PAIR, PAIR], ["x", "y"])
    x, y = graph.inputs
    region = Graph("body", [PAIR], ["i"])
    inner = Builder(region)
    inner.output(inner(Same, region.inputs[0], y))
    builder = Builder(graph)
    op = builder.op(Body, [x], [region])
    builder.output(op.result)
    verify(graph)
    assert captured(op) == (y,)
    copy = clone_graph(graph)
    assert captured(copy.first) == (copy.inputs[1],)
    verify(copy)


def damage_order(graph, a, b):
    graph.unlink(b.op)
    graph.insert(b.op, a.op)


def damage_uses(graph, a, b):
    b.users.clear()


def damage_stale_use(graph, a, b):
    b.users[a.op] = 1


def damage_type(graph, a, b):
    a.type = tensor(F32, (3,))


def damage_result_type(graph, a, b):
    b.type = tensor(F16, (2,))


def damage_terminator(graph, a, b):
    graph.last.erase()


def damage_middle(graph, a, b):
    graph.insert(Op(RETURN, (), ()), b.op)


def damage_link(graph, a, b):
    b.op.previous = None


def damage_parent(graph, a, b):
    graph.parent = a.op


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_order, r"operation 'same' at file: node \(Same\): operand 0 \(''\) is not defined before it"),
        (damage_uses, r"operation 'return' .* operand 0 \(''\) records 0 uses; it has 1"),
        (damage_stale_use, r"records a use by 'same' at file: node \(Same\), which is gone or does not use it"),
        (damage_type, r"node \(Same\): result 0 is recorded as tensor<3xf32>; inferred tensor<2xf32>"),
        (damage_result_type, r"result 0 is recorded as tensor<2xf16>; inferred tensor<2xf32>"),
        (damage_terminator, "graph 'main' has no terminator"),
        (damage_middle, "operation 'return' at .*: ends graph 'main', but 'same' follows"),
        (damage_link, "is not linked to its graph and its predecessor"),
        (damage_parent, "as its parent"),
    ],
)  # fmt: skip
def test_verifier_names_what_is_wrong(chain, damage, message):
    graph, _, a, b = chain
    verify(graph)
    damage(graph, a, b)
    with pytest.raises(InvalidGraph, match=message):
        verify(graph)


def test_value_of_an_ended_region_is_not_visible():
    graph = Graph("main", [PAIR])
    region = Graph("body")
    inner = Builder(region)
    hidden = inner(Same, graph.inputs[0])
    inner.output(hidden)
    builder = Builder(graph)
    builder.op(Body, [graph.inputs[0]], [region])
    builder.output(hidden)
    with pytest.raises(InvalidGraph, match="not defined before it"):
        verify(graph)


def test_builder_names_the_location_of_a_refusal(chain):
    graph, x, _, _ = chain
    other = graph.add_input(tensor(F16, ()))
    with pytest.raises(TypeMismatch, match=r"differ \(building 'same' at here\)"):
        Builder(graph, location=at("here"))(Same, x, other)


def test_types_are_interned_and_know_their_size():
    assert tensor(F32, [2, "N"]) is tensor(F32, (2, "N"))
    assert tensor(I4, (3, 3)).nbytes == 6  # two bytes a row of three half-bytes
    assert tensor(I4, (2, 0)).nbytes == 0
    with pytest.raises(UnsupportedType, match="-1"):
        tensor(F32, (-1,))
    with pytest.raises(UnsupportedType, match="symbolic"):
        _ = tensor(F32, ("N",)).shape


@pytest.mark.parametrize(
    ("recorded", "inferred", "expected"),
    [
        (tensor(F32, (2, 3)), tensor(F32, (2, "?")), True),
        (tensor(F32, (2, 3)), tensor(F32, None), True),
        (tensor(F32, (2, "N")), tensor(F32, (2, 3)), True),
        (tensor(F32, (2, 3)), tensor(F32, (2, 4)), False),
        (tensor(F32, (2, 3)), tensor(F32, (2,)), False),
        (tensor(F32, (2,)), tensor(F16, (2,)), False),
    ],
)
def test_types_are_compatible_unless_both_know_better(recorded, inferred, expected):
    assert compatible(recorded, inferred) is expected


def test_constants_are_views_and_read_only():
    data = np.arange(3.0)
    constant = Constant.of(data)
    assert np.shares_memory(constant.array, data)
    with pytest.raises(ValueError, match="read-only"):
        constant.array[0] = 1
    assert data.flags.writeable


def test_constants_are_equal_by_type_and_bits():
    assert Constant.of(np.array([np.nan])) == Constant.of(np.array([np.nan]))
    assert Constant.of(np.array([0.0])) != Constant.of(np.array([-0.0]))
    assert Constant.of(np.array([0, 0], np.int32)) != Constant.of(np.array([0], np.int64))
    assert Constant.of(np.arange(6).reshape(2, 3).T) == Constant.of(np.array([[0, 3], [1, 4], [2, 5]]))
    assert Constant.of(np.array(["a"])) == Constant.of(np.array(["a"], object))


def test_abstract_constant_has_a_type_and_no_data():
    constant = Constant.abstract(tensor(I64, (4,)), seed=7)
    assert constant == Constant.abstract(tensor(I64, (4,)), seed=7)
    assert constant != Constant.abstract(tensor(I64, (4,)), seed=8)
    with pytest.raises(AbstractConstant, match="tensor<4xi64>"):
        _ = constant.array


def test_locations_fuse_without_repeats():
    a, b = at("a", "Conv"), at("b", "Relu")
    assert str(a.fused(b, a)) == "a (Conv) + b (Relu)"
    assert a.fused(a) is a
