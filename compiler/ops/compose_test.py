"""Composites decompose with a symbolic batch, and mean the same for every size of it."""

import numpy as np
import pytest

from compiler.errors import UnsupportedType
from compiler.ir import F32, Builder, Graph, tensor, type_of
from compiler.ops.compose import Emit, known_sizes
from compiler.ops.harness_test import decompose_all
from compiler.ops.interpreter import interpret
from compiler.ops.registry import lookup

RNG = np.random.default_rng(47)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


IMAGE = (3, 4, 6, 5)
SIZES = np.array([9, 8], np.int64)
CASES = {
    "softmax": ((3, 7), [], {}),
    "hardmax": ((3, 7), [], {}),
    "layer_norm": ((3, 7), [normal(7), normal(7)], {"statistics": True}),
    "rms_norm": ((3, 7), [normal(7)], {}),
    "group_norm": (IMAGE, [normal(4), normal(4)], {"num_groups": 2}),
    "instance_norm": (IMAGE, [normal(4), normal(4)], {}),
    "batch_norm": (IMAGE, [normal(4), normal(4), normal(4), abs(normal(4))], {}),
    "lrn": (IMAGE, [], {"size": 3}),
    "avg_pool": (IMAGE, [], {"kernel": (3, 2), "pads": (1, 0, 1, 1)}),
    "lp_pool": (IMAGE, [], {"kernel": (3, 2)}),
    "conv_transpose": (IMAGE, [normal(4, 2, 3, 3)], {"strides": (2, 2)}),
    "resize": (IMAGE, [None, None, SIZES], {"mode": "linear", "axes": (2, 3)}),
    "gelu": ((3, 7), [], {}),
    "quantize": ((3, 8), [abs(normal(3, 2)) + 1], {"axis": 1, "block": 4}),
    "affine_grid": ((3, 2, 3), [np.array([3, 1, 4, 5], np.int64)], {}),
    "dynamic_quantize": ((3, 7), [], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_symbolic_batch_decomposes(name):
    shape, others, attributes = CASES[name]
    graph = Graph("main", [tensor(F32, ("N", *shape[1:]))])
    builder = Builder(graph)
    if name == "quantize":
        others = [graph.add_input(tensor(F32, ("N", 2)))]
    rest = [item if item is None or not isinstance(item, np.ndarray) else builder.constant(item) for item in others]
    op = builder.op(lookup(name), [graph.inputs[0], *rest], **attributes)
    builder.output(*op.results)
    inputs = [normal(*shape)] if name != "quantize" else [normal(*shape), CASES[name][1][0]]
    expected = interpret(graph, inputs)
    decompose_all(graph)
    assert not any(step.name == name for step in graph.ops)
    for one, other in zip(interpret(graph, inputs), expected, strict=True):
        assert type_of(one) is type_of(other)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_sizes_that_a_formula_needs_are_asked_for_by_name():
    type_ = tensor(F32, ("N", 3, "H"))
    assert known_sizes(type_, (1,)) == (3,)
    with pytest.raises(UnsupportedType, match="symbolic"):
        known_sizes(type_, (1, 2))
    graph = Graph("main", [type_])
    with pytest.raises(UnsupportedType, match="more than one size is symbolic"):
        Emit(Builder(graph)).reshape(graph.inputs[0], ["N", "H", 3])
