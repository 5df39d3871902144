"""Common subexpressions, dead code, decomposition and inlining of branches."""

import numpy as np
import pytest

from compiler.ir import BOOL, F16, F32, I64, Builder, Graph, at, clone_graph, tensor, verify
from compiler.ops.activation import Gelu, Relu
from compiler.ops.control import If, Loop
from compiler.ops.elementwise import Add, Exp, Max, Mul, Neg, Sub
from compiler.ops.interpreter import interpret
from compiler.ops.normalization import LayerNorm
from compiler.ops.registry import Composite
from compiler.ops.sampling import RandomUniform
from compiler.ops.softmax import Softmax
from compiler.passes.common_subexpressions import CommonSubexpressions
from compiler.passes.dead_code import DeadCode
from compiler.passes.decompose import Decompose
from compiler.passes.inline_branches import InlineBranches
from compiler.passes.roundings import roundings
from compiler.rewrite import RewriteCounter, ulp

PAIR = tensor(F32, (2,))
X = np.array([1.5, -2], np.float32)
Y = np.array([3, 0.25], np.float32)


@pytest.fixture
def start():
    graph = Graph("main", [PAIR, PAIR], ["x", "y"])
    return graph, Builder(graph), *graph.inputs


def run(graph, which, inputs=(X, Y)):
    """Run a pass and hold the outputs to what they were."""
    before, steps = interpret(clone_graph(graph), list(inputs)), roundings(graph)
    result = which.run(graph, RewriteCounter())
    verify(graph)
    for old, new in zip(before, interpret(graph, list(inputs)), strict=True):
        assert which.numerics.holds(old, new, roundings=steps)
    return result.hits


def names(graph):
    return [op.name for op in graph.ops]


def test_order_of_zeros_keeps_two_extremes_apart(start):
    graph, build, x, y = start
    build.output(build(Max, x, y), build(Max, y, x), build(Add, x, y), build(Add, y, x))
    zeros = np.array([0.0, -0.0], np.float32)
    assert run(graph, CommonSubexpressions(), (zeros, -zeros)) == {"add": 1}


def test_equal_operations_and_constants_are_done_once(start):
    graph, build, x, y = start
    build.location = at("first")
    a = build(Mul, build(Add, x, y), build.constant(X))
    build.location = at("second")
    b = build(Mul, build(Add, y, x), build.constant(X.copy()))
    build.output(a, b, build(Sub, x, y), build(Sub, y, x))
    assert run(graph, CommonSubexpressions()) == {"add": 1, "constant": 1, "mul": 1}
    assert graph.outputs[0] is graph.outputs[1]
    assert str(a.op.location) == "first + second"


@pytest.mark.parametrize("other", [np.array([0.0, 1], np.float32), np.array([0, 1], np.int32).view(np.float32)])
def test_constants_that_differ_in_bits_stay_apart(start, other):
    graph, build, x, _ = start
    build.output(build(Add, x, build.constant(np.array([-0.0, 1], np.float32))), build(Add, x, build.constant(other)))
    assert not run(graph, CommonSubexpressions())


def test_equal_constants_meet_whatever_else_starts_like_them(start):
    graph, build, x, _ = start
    values = ([1, 2], [1, 3], [1, 3])
    build.output(*(build(Add, x, build.constant(np.array(value, np.float32))) for value in values))
    assert run(graph, CommonSubexpressions()) == {"constant": 1, "add": 1}


def branch(build, name, function):
    region = Graph(name)
    inner = Builder(region)
    inner.output(*function(inner))
    return region


def test_regions_use_what_is_computed_around_them_and_equal_branches_merge(start):
    graph, build, x, y = start
    total = build(Add, x, y)
    flag = graph.add_input(tensor(BOOL))
    ops = [
        build.op(
            If,
            [flag],
            [
                branch(build, "then", lambda b: [b(Neg, b(Add, x, y))]),
                branch(build, "else", lambda b: [b(Exp, x)]),
            ],
        )
        for _ in range(2)
    ]
    build.output(total, *(op.result for op in ops))
    hits = run(graph, CommonSubexpressions(), (X, Y, np.array(True)))
    assert hits == {"add": 2, "if": 1}


def test_random_operations_are_neither_merged_nor_erased(start):
    graph, build, x, _ = start
    for _ in range(2):
        build.op(RandomUniform, [build.constant(np.array([2]))], low=0.0, high=1.0, to=F32)
    build.output(x)
    assert CommonSubexpressions().run(graph, RewriteCounter()).hits == {"constant": 1}
    assert not DeadCode().run(graph, RewriteCounter()).modified


def test_dead_chains_go_in_one_sweep(start):
    graph, build, x, y = start
    build(Neg, build(Exp, build(Add, x, y)))
    build.output(x)
    assert run(graph, DeadCode()) == {"neg": 1, "exp": 1, "add": 1}
    assert names(graph) == ["return"]
    assert len(graph.inputs) == 2


def test_unused_branch_results_go_with_what_only_they_needed(start):
    graph, build, x, y = start
    flag = graph.add_input(tensor(BOOL))
    outside = build(Exp, y)
    op = build.op(
        If,
        [flag],
        [
            branch(build, "then", lambda b: [b(Neg, x), b(Neg, outside)]),
            branch(build, "else", lambda b: [b(Exp, x), b(Exp, outside)]),
        ],
    )
    build.output(op.results[0])
    hits = run(graph, DeadCode(), (X, Y, np.array(False)))
    assert hits == {"drop branch result": 1, "neg": 1, "exp": 2}
    assert names(graph) == ["if", "return"]


def loop(graph, build, carried, make):
    body = Graph("body", [tensor(I64), tensor(BOOL), *[PAIR] * len(carried)])
    inner = Builder(body)
    inner.output(body.inputs[1], *make(inner, *body.inputs[2:]))
    return build.op(Loop, [build.constant(np.array(3)), None, *carried], [body])


def test_loop_values_go_unless_something_needed_depends_on_them(start):
    graph, build, x, y = start
    # a feeds b, c feeds only itself, the last is collected and unused.
    op = loop(graph, build, [x, y, y], lambda b, i, j, k: [b(Neg, i), b(Add, i, j), b(Exp, k), b(Mul, i, j)])
    build.output(op.results[1])
    assert run(graph, DeadCode()) == {"drop loop value": 2}
    left = next(op for op in graph.ops if isinstance(op.definition, Loop))
    assert names(left.regions[0]) == ["neg", "add", "return"]
    assert len(left.operands) == 4
    assert len(left.results) == 2


def test_loop_values_swapped_in_turns_stay(start):
    graph, build, x, y = start
    op = loop(graph, build, [x, y], lambda b, i, j: [j, b(Neg, i)])
    build.output(op.results[0])
    assert not run(graph, DeadCode())


@pytest.mark.parametrize("condition", [True, False])
def test_a_decided_branch_is_inlined(start, condition):
    graph, build, x, y = start
    inner = lambda b: [  # noqa: E731
        b.op(
            If,
            [b.constant(np.array(not condition))],
            [branch(b, "then", lambda c: [c(Neg, x)]), branch(b, "else", lambda c: [c(Exp, y)])],
        ).result
    ]
    op = build.op(
        If, [build.constant(np.array([condition]))], [branch(build, "then", inner), branch(build, "else", inner)]
    )
    build.output(op.result)
    assert run(graph, InlineBranches()) == {"if": 2}
    assert run(graph, DeadCode()) == {"constant": 2}
    assert names(graph) == ["exp" if condition else "neg", "return"]


def test_composites_decompose_unless_the_target_keeps_them(start):
    graph, build, x, y = start
    build.output(build(Softmax, build(Gelu, x)), build(Relu, y))
    hits = run(graph, Decompose(lambda op: isinstance(op.definition, Relu)))
    assert set(hits) >= {"softmax", "gelu"}
    assert [op.name for op in graph.ops if isinstance(op.definition, Composite)] == ["relu"]


def test_the_limit_stops_decomposing(start):
    graph, build, x, y = start
    build.output(build(Relu, x), build(Relu, y), build(Relu, x))
    counter = RewriteCounter(2)
    assert Decompose().run(graph, counter).hits == {"relu": 2}
    verify(graph)
    assert (counter.count, names(graph).count("relu")) == (2, 1)


def test_decomposition_widens_half_precision_once(start):
    graph = Graph("main", [tensor(F16, (2, 4))])
    build = Builder(graph, location=at("norm"))
    scale = build.constant(np.ones(4, np.float16))
    build.output(build.op(LayerNorm, [graph.inputs[0], scale]).results[0])
    x = np.linspace(-3, 900, 8).reshape(2, 4).astype(np.float16)
    run(graph, Decompose(), [x])
    assert all(str(op.location) == "norm" for op in graph.ops if op.name not in ("constant", "return"))
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    assert ulp(1).holds(wanted.astype(np.float16), interpret(graph, [x])[0])


def test_a_composite_that_needs_sizes_stays_whole():
    graph = Graph("main", [tensor(F32, None)])
    build = Builder(graph)
    build.output(build(Softmax, graph.inputs[0]))
    assert not Decompose().run(graph, RewriteCounter()).modified
    verify(graph)
    assert names(graph) == ["softmax", "return"]
