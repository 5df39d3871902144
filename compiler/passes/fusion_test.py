"""Fusions on random matching graphs, held to their class; and the look-alikes that must stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir import F32, I8, I32, Builder, Graph, clone_graph, tensor, type_of, verify
from compiler.ops.contraction import Conv, DotGeneral, MatMul
from compiler.ops.elementwise import Add, Mul
from compiler.ops.interpreter import interpret
from compiler.ops.movement import Transpose
from compiler.ops.normalization import BatchNorm
from compiler.ops.padding import Pad
from compiler.ops.pooling import AvgPool, MaxPool
from compiler.passes.absorb_padding import AbsorbPadding
from compiler.passes.absorb_transposes import AbsorbTransposes
from compiler.passes.fuse_into_conv import FuseIntoConv
from compiler.passes.roundings import roundings
from compiler.rewrite import EXACT, RewriteCounter

DETERMINISTIC = settings(derandomize=True, deadline=None, max_examples=25)

FLOAT_DTYPES = (np.float32, np.float64)


def check(graph, which, inputs, numerics=None):
    before, steps = interpret(clone_graph(graph), inputs), roundings(graph)
    result = which.run(graph, RewriteCounter())
    verify(graph)
    for old, new in zip(before, interpret(graph, inputs), strict=True):
        assert (numerics or which.numerics).holds(old, new, roundings=steps), np.abs(old - new).max()
    return result.hits


def names(graph):
    return [op.name for op in graph.ops if op.name not in ("constant", "return")]


@DETERMINISTIC
@given(st.data())
def test_batch_norm_goes_into_the_weights(data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from(FLOAT_DTYPES))
    groups, channels, spatial = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    x = random.normal(size=(data.draw(st.integers(0, 2)), 2 * groups, *[4] * spatial)).astype(dtype)
    x[random.random(x.shape) < data.draw(st.sampled_from([0, 0.1]))] = random.choice([np.nan, np.inf, -np.inf, -0.0])
    graph = Graph()
    graph.add_input(type_of(x))
    build = Builder(graph)
    outputs = channels * groups
    w = build.constant(random.normal(size=(outputs, 2, *[3] * spatial)).astype(dtype))
    value = build(Conv, graph.inputs[0], w, groups=groups, pads=(1,) * (2 * spatial))
    with_bias = data.draw(st.booleans())
    if with_bias:
        bias = random.normal(size=(1, outputs, *[1] * spatial)).astype(dtype)
        value = build(Add, value, build.constant(bias))
    statistics = [random.normal(size=outputs).astype(dtype) for _ in range(3)]
    variance = np.abs(random.normal(size=outputs)).astype(dtype)
    value = build(BatchNorm, value, *map(build.constant, statistics), build.constant(variance), epsilon=1e-3)
    build.output(value)
    hits = check(graph, FuseIntoConv(), [x])
    assert hits == {"batch_norm_into_conv_with_bias" if with_bias else "batch_norm_into_conv": 1}
    assert names(graph) == ["conv", "add"]


def conv_graph(after, shared=False, w=None):
    graph = Graph("main", [tensor(F32, (1, 2, 5, 5))])
    build = Builder(graph)
    weights = build.constant(np.ones((3, 2, 3, 3), np.float32) if w is None else w)
    value = build(Conv, graph.inputs[0], weights)
    build.output(after(build, value), *([value] if shared else []))
    return graph


def channelwise(shape, value=2.0):
    return lambda build, conv: build(Mul, build.constant(np.full(shape, value, np.float32)), conv)


X = np.random.default_rng(0).normal(size=(1, 2, 5, 5)).astype(np.float32)


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 3, 1, 1), (), (1,), (1, 1, 1)])
def test_factors_a_channel_go_into_the_weights(shape):
    graph = conv_graph(channelwise(shape))
    assert check(graph, FuseIntoConv(), [X]) == {"factor_into_conv": 1}
    assert names(graph) == ["conv"]


@pytest.mark.parametrize(
    "graph",
    [
        conv_graph(channelwise((3, 3))),  # varies over positions
        conv_graph(channelwise((2, 1, 1, 1))),  # broadcasts the batch
        conv_graph(channelwise((3, 1, 1)), shared=True),
        conv_graph(channelwise((3, 1, 1), np.inf)),
        conv_graph(channelwise((3, 1, 1), 1e30), w=np.full((3, 2, 3, 3), 1e30, np.float32)),
    ],
)
def test_other_factors_stay(graph):
    assert not FuseIntoConv().run(graph, RewriteCounter()).modified


def pad_graph(definition, amounts, value=None, extra=(), element=F32, mode="constant", **attributes):
    graph = Graph("main", [tensor(element, (1, 2, 4, 5))])
    build = Builder(graph)
    fill = [] if value is None else [build.constant(np.array(value, element.dtype))]
    padded = build(Pad, graph.inputs[0], build.constant(np.array(amounts)), *fill, mode=mode)
    build.output(build(definition, padded, *[build.constant(array) for array in extra], **attributes))
    return graph


W = np.random.default_rng(1).normal(size=(2, 2, 3, 3)).astype(np.float32)
SPATIAL = (0, 0, 1, 2, 0, 0, 0, 1)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -2, 3], np.float32)


@DETERMINISTIC
@given(st.data())
def test_padding_goes_into_windows(data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pads = (
        0,
        0,
        *(data.draw(st.integers(0, 2)) for _ in range(2)),
        0,
        0,
        *(data.draw(st.integers(0, 2)) for _ in range(2)),
    )
    own = tuple(data.draw(st.integers(0, 1)) for _ in range(4))
    kind = data.draw(st.sampled_from(["conv", "max", "avg", "avg counted"]))
    graph = {
        "conv": lambda: pad_graph(Conv, pads, data.draw(st.sampled_from([None, 0.0])), [W], pads=own, strides=(1, 2)),
        "max": lambda: pad_graph(MaxPool, pads, -np.inf, kernel=(2, 3), pads=own),
        "avg": lambda: pad_graph(AvgPool, pads, 0.0, kernel=(2, 2), strides=(2, 1)),
        "avg counted": lambda: pad_graph(AvgPool, pads, kernel=(2, 2), pads=own, count_include_pad=True),
    }[kind]()
    finite = random.normal(size=(1, 2, 4, 5)).astype(np.float32)
    x = random.choice(SPECIAL, (1, 2, 4, 5)) if data.draw(st.booleans()) else finite
    hits = check(graph, AbsorbPadding(), [x])
    assert sum(hits.values()) == 1
    assert len(names(graph)) == 1


@pytest.mark.parametrize(
    "graph",
    [
        pad_graph(MaxPool, SPATIAL, 0.0, kernel=(2, 2)),
        pad_graph(MaxPool, SPATIAL, kernel=(2, 2)),
        pad_graph(MaxPool, SPATIAL, -3e38, kernel=(2, 2)),
        pad_graph(MaxPool, SPATIAL, -127, element=I8, kernel=(2, 2)),
        pad_graph(MaxPool, SPATIAL, -np.inf, kernel=(2, 2), ceil_mode=True),
        pad_graph(AvgPool, SPATIAL, kernel=(2, 2), pads=(1, 1, 1, 1)),
        pad_graph(AvgPool, SPATIAL, kernel=(2, 2), ceil_mode=True),
        pad_graph(AvgPool, SPATIAL, 1.0, kernel=(2, 2)),
        pad_graph(Conv, SPATIAL, 1.0, [W]),
        pad_graph(Conv, SPATIAL, None, [W], mode="edge"),
        pad_graph(Conv, (0, 0, -1, 0, 0, 0, 0, 1), None, [W]),
        pad_graph(Conv, (1, 0, 0, 0, 0, 0, 0, 0), None, [W]),
        pad_graph(Conv, SPATIAL, None, [W], auto_pad="same_upper"),
    ],
)
def test_padding_that_means_something_else_stays(graph):
    assert not AbsorbPadding().run(graph, RewriteCounter()).modified


@DETERMINISTIC
@given(st.data())
def test_transposes_go_into_products(data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    lead = tuple(data.draw(st.integers(0, 2)) for _ in range(data.draw(st.integers(0, 2))))
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    rank = len(lead) + 2
    graph = Graph()
    build = Builder(graph)
    inputs, operands = [], []
    which = data.draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    for shape, transposed in zip(((*lead, m, k), (*lead, k, n)), which, strict=True):
        order = tuple(data.draw(st.permutations(range(rank)))) if transposed else tuple(range(rank))
        # Only orders that keep the free dims of the result in their places can be absorbed: one free dim always does.
        source = [0] * rank
        for place, axis in enumerate(order):
            source[axis] = shape[place]
        inputs.append(random.normal(size=source).astype(np.float32))
        value = graph.add_input(tensor(F32, source))
        operands.append(build(Transpose, value, permutation=order) if transposed else value)
    build.output(build(MatMul, *operands))
    hits = check(graph, AbsorbTransposes(), inputs)
    assert sum(hits.values()) == 1
    assert names(graph) == ["dot_general"]


def test_integer_products_keep_their_result_type():
    graph = Graph("main", [tensor(I8, (3, 2)), tensor(I8, (3, 4))])
    build = Builder(graph)
    build.output(build(MatMul, build(Transpose, graph.inputs[0], permutation=(1, 0)), graph.inputs[1], to=I32))
    random = np.random.default_rng(0)
    inputs = [random.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 2), (3, 4))]
    check(graph, AbsorbTransposes(), inputs, EXACT)
    assert names(graph) == ["dot_general"]
    assert graph.outputs[0].type is tensor(I32, (2, 4))


def test_broadcast_products_and_reordered_free_dims_stay():
    graph = Graph("main", [tensor(F32, (2, 3, 4)), tensor(F32, (5, 4)), tensor(F32, (2, 3, 4))])
    build = Builder(graph)
    a, b, c = graph.inputs
    plain = build(MatMul, a, build(Transpose, b, permutation=(1, 0)))
    swapped = build(Transpose, c, permutation=(1, 0, 2))
    build.output(plain, build(DotGeneral, swapped, b, a_contract=(2,), b_contract=(1,)))
    assert not AbsorbTransposes().run(graph, RewriteCounter()).modified
