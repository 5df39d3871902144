"""Rules, matching, the driver's order, cycles, explanations and numeric classes, on toy operators."""

from collections import Counter

import numpy as np
import pytest

from compiler.errors import InvalidGraph, RewriteCycle
from compiler.ir import F32, Builder, Graph, at, graphs_equal, tensor, verify
from compiler.ops.registry import NUMERIC, Operand, Operator, Variable
from compiler.rewrite import (
    EXACT,
    QUANTIZE,
    REASSOCIATE,
    RewriteCounter,
    RuleSet,
    anything,
    constant,
    explain,
    operation,
    rewrite,
    rule,
    same_bits,
    ulp,
)

T = Variable("T", NUMERIC)
PAIR = tensor(F32, (2,))


class Binary(Operator):
    operands = (Operand("a", T), Operand("b", T))

    def infer(self, call):
        return (max(call.types, key=lambda type_: type_.rank),)

    def evaluate(self, call, operands, run_region):
        raise NotImplementedError


class Plus(Binary):
    name = "toy.plus"
    commutative = True


class Minus(Binary):
    name = "toy.minus"


class Flip(Binary):
    name = "toy.flip"
    operands = (Operand("a", T),)
    involution = True


class Noise(Flip):
    name = "toy.noise"
    involution = False
    pure = False


def involutive(definition):
    """an involution"""
    return definition.involution


@rule(operation(Plus, anything("x"), constant("c")), EXACT)
def plus_nothing(match):
    """x + (-0.0) => x"""
    match.require(same_bits(match.array("c"), -0.0), "the constant is not -0.0 to the bit")
    match.require(match["x"].type is match.root.result.type, "the result has another shape")
    return match["x"]


@rule(operation(involutive, operation(involutive, anything("x"))), EXACT)
def twice(match):
    """f(f(x)) => x"""
    match.require(match.root.definition is match.root.operand(0).op.definition, "two different operators")
    return match["x"]


@rule(operation(Minus, anything("x"), anything("y")), EXACT)
def minus_to_plus(match):
    return match.build(Plus, match["x"], match.build(Flip, match["y"]))


@rule(operation(Plus, anything("x"), operation(Flip, anything("y"))), EXACT)
def plus_to_minus(match):
    return match.build(Minus, match["x"], match["y"])


@rule(operation(Minus, anything("x"), anything("x")), EXACT)
def minus_itself(match):
    return match.constant(np.zeros((2,), np.float32))


@pytest.fixture
def start():
    graph = Graph("main", [PAIR, PAIR], ["x", "y"])
    return graph, Builder(graph, location=at("n")), *graph.inputs


@pytest.mark.parametrize("swapped", [False, True])
def test_commutativity_comes_from_the_operator(start, swapped):
    graph, builder, x, _ = start
    zero = builder.constant(np.array(-0.0, np.float32))
    left = builder(Flip, x)
    builder.output(builder(Plus, *((zero, left) if swapped else (left, zero))))
    result = rewrite(graph, RuleSet([plus_nothing]))
    assert result.hits == {"plus_nothing": 1}
    assert graph.outputs == (left,)
    assert [op.name for op in graph.ops] == ["toy.flip", "return"]  # the constant went with its last user
    verify(graph)


@pytest.mark.parametrize("value", [0.0, 1e-45, -1e-10])
def test_constants_match_to_the_bit_only(start, value):
    graph, builder, x, _ = start
    builder.output(builder(Plus, x, builder.constant(np.array(value, np.float32))))
    assert not rewrite(graph, RuleSet([plus_nothing])).modified


def test_rules_find_their_root_by_a_fact_and_revisit_users(start):
    graph, builder, x, _ = start
    value = x
    for _ in range(6):
        value = builder(Flip, value)
    builder.output(value)
    assert rewrite(graph, RuleSet([twice])).hits == {"twice": 3}
    assert graph.outputs == (x,)
    assert graph.first is graph.last


def test_impure_operations_stay(start):
    graph, builder, x, _ = start
    noise = builder(Noise, x)
    builder.output(builder(Minus, noise, noise))
    assert rewrite(graph, RuleSet([minus_itself])).modified
    assert [op.name for op in graph.ops] == ["toy.noise", "constant", "return"]


def test_the_same_name_means_the_same_value(start):
    graph, builder, x, y = start
    builder.output(builder(Minus, x, y))
    assert not rewrite(graph, RuleSet([minus_itself])).modified


def test_locations_fuse(start):
    graph, builder, x, y = start
    builder.location = at("flip")
    flipped = builder(Flip, y)
    builder.location = at("plus")
    builder.output(builder(Plus, x, flipped))
    rewrite(graph, RuleSet([plus_to_minus]))
    assert str(graph.first.location) == "plus + flip"


def test_a_cycle_is_reported_with_the_rules_that_alternate(start):
    graph, builder, x, y = start
    builder.output(builder(Minus, x, y))
    with pytest.raises(
        RewriteCycle, match=r"'toy\.\w+' \(n\): '\w+_to_\w+' and '\w+_to_\w+' undo each other"
    ) as caught:
        rewrite(graph, RuleSet([minus_to_plus, plus_to_minus]))
    assert "'minus_to_plus'" in str(caught.value)
    assert "'plus_to_minus'" in str(caught.value)


def test_the_counter_stops_before_the_next_rewrite(start):
    graph, builder, x, _ = start
    value = x
    for _ in range(6):
        value = builder(Flip, value)
    builder.output(value)
    counter = RewriteCounter(limit=2)
    assert rewrite(graph, RuleSet([twice]), counter).hits == Counter(twice=2)
    assert counter.last == "twice at 'toy.flip' (n)"
    assert len(list(graph.ops)) == 3
    verify(graph)


def test_explain_tells_the_reason_and_changes_nothing(start):
    graph, builder, x, y = start
    one = builder(Plus, x, builder.constant(np.array(1, np.float32)))
    two = builder(Plus, one, y)
    builder.output(builder(Flip, two))
    before = list(graph.ops)
    assert explain(graph, plus_nothing, one.op).endswith("the constant is not -0.0 to the bit")
    assert explain(graph, plus_nothing, two.op).endswith("operand 'c' is no constant with data")
    assert "its root takes other operators" in explain(graph, plus_nothing, graph.last)
    assert "an operand is the result of 'toy.plus'; the rule takes the result of an involution" in explain(
        graph, twice, graph.last.previous
    )
    builder.before = graph.last
    minus = builder(Minus, x, y).op
    assert explain(graph, minus_to_plus, minus) == "rule 'minus_to_plus' fires at 'toy.minus' (n)"
    assert list(graph.ops)[:4] == before[:4]
    minus.erase()
    assert list(graph.ops) == before
    verify(graph)


def test_a_replacement_of_another_type_is_refused(start):
    graph, builder, x, _ = start

    @rule(operation(Flip, anything("x")), EXACT)
    def wrong(match):
        return match.constant(np.zeros((3,), np.float32))

    builder.output(builder(Flip, x))
    with pytest.raises(InvalidGraph, match="'wrong' replaces a value of type tensor<2xf32>"):
        rewrite(graph, RuleSet([wrong]))


def test_rewriting_twice_gives_the_same_graph(start):
    def build():
        graph = Graph("main", [PAIR, PAIR])
        builder = Builder(graph)
        values = list(graph.inputs)
        for i in range(30):
            values.append(builder((Plus, Minus)[i % 2], values[i // 2], values[-1]))
            values.append(builder(Flip, values[-1]))
        builder.output(*values[-3:])
        rewrite(graph, RuleSet([plus_to_minus, twice, minus_itself]))
        return graph

    assert graphs_equal(build(), build())


@pytest.mark.parametrize(
    ("numerics", "before", "after", "holds"),
    [
        (EXACT, [0.0], [-0.0], False),
        (EXACT, [np.nan], [-np.nan], True),
        (EXACT, [1.0], [np.nextafter(np.float32(1), np.float32(2))], False),
        (ulp(1), [1.0], [np.nextafter(np.float32(1), np.float32(2))], True),
        (ulp(1), [1.0], [1 + 2.5e-7], False),
        (ulp(1), [np.inf], [3e38], False),
        (ulp(1), [np.inf, np.nan], [np.inf, np.nan], True),
        (REASSOCIATE, [1e6, 0.01], [1e6, 0.02], True),  # two tenths of a unit of the greatest element
        (REASSOCIATE, [1e6, 0.01], [1.1e6, 0.01], False),
        (REASSOCIATE, [np.nan], [1.0], False),
    ],
)
def test_numeric_classes(numerics, before, after, holds):
    assert numerics.holds(np.array(before, np.float32), np.array(after, np.float32)) is holds


@pytest.mark.parametrize("terms", [1, 3, 40])
def test_another_order_moves_a_result_by_a_unit_of_the_greatest_element_a_rounding(terms):
    before = np.array([1, 0.001], np.float32)
    for units, holds in ((terms, True), (terms + 1, False)):
        after = before + np.array([0, units * 2.0**-23], np.float32)
        assert REASSOCIATE.holds(before, after, roundings=terms) is holds


def test_numeric_classes_of_integers_and_shapes():
    assert QUANTIZE.holds(np.array([3], np.int8), np.array([4], np.int8))
    assert not QUANTIZE.holds(np.array([3], np.int8), np.array([5], np.int8))
    assert not ulp(5).holds(np.array([3]), np.array([4]))
    assert not EXACT.holds(np.zeros((0, 2)), np.zeros((2, 0)))
    assert not EXACT.holds(np.zeros(1, np.float32), np.zeros(1))
