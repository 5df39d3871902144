"""Random graphs of integers, exact to the bit, through SRAM of every size: no operand lost, no address wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir import I32, Builder, Graph, Value, tensor
from compiler.lowering.lower import LoweringOptions, lower
from compiler.ops.contraction import MatMul
from compiler.ops.elementwise import Add, Max, Mul
from compiler.ops.indexing import Gather, ScatterNd
from compiler.ops.interpreter import interpret
from compiler.ops.movement import Concat, Slice, Transpose
from compiler.ops.reduce import CumSum, ReduceMax, ReduceSum
from compiler.ops.reshape import Reshape
from compiler.program.executable import Host, Run
from compiler.program.verifier import verify_program
from compiler.simulator import Machine
from compiler.targets.loader import load_target

if TYPE_CHECKING:
    from compiler.targets.schema import Target

Draw = Any
Step = "Callable[[Draw, Builder, list[Value]], Value]"


def _pick(draw: Draw, values: list[Value]) -> Value:
    return draw(st.sampled_from(values))


def _same_shape(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    y = _pick(draw, [v for v in values if v.tensor.shape == x.tensor.shape])
    return b(draw(st.sampled_from([Add, Mul, Max])), x, y)


def _matmul(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    y = _pick(
        draw, [v for v in values if v.tensor.shape[0] == x.tensor.shape[1]] or [b(Transpose, x, permutation=(1, 0))]
    )
    return b(MatMul, x, y)


def _transpose(draw: Draw, b: Builder, values: list[Value]) -> Value:
    return b(Transpose, _pick(draw, values), permutation=(1, 0))


def _reduce(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    reduced = b(draw(st.sampled_from([ReduceSum, ReduceMax])), x, axes=(draw(st.integers(0, 1)),), keep_dims=True)
    return b(Add, x, reduced)


def _concat(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    y = _pick(draw, [v for v in values if v.tensor.shape[1] == x.tensor.shape[1]])
    return b(Concat, x, y, axis=0)


def _slice(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    step = draw(st.sampled_from([1, 2, -1]))
    bounds = (0, 2**31) if step > 0 else (2**31, -(2**31))
    start, end, axis, by = (b.constant(np.array([v], np.int64)) for v in (*bounds, 0, step))
    return b(Slice, x, start, end, axis, by)


def _cumsum(draw: Draw, b: Builder, values: list[Value]) -> Value:
    return b(CumSum, _pick(draw, values), axis=draw(st.integers(0, 1)))


def _reshape(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    rows, columns = x.tensor.shape
    return b(Reshape, x, b.constant(np.array([columns, rows], np.int64)))


def _gather(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    rows = x.tensor.shape[0]
    indices = draw(st.lists(st.integers(-rows, rows - 1), min_size=1, max_size=9))
    return b(Gather, x, b.constant(np.array(indices, np.int64)), axis=0)


def _scatter(draw: Draw, b: Builder, values: list[Value]) -> Value:
    x = _pick(draw, values)
    rows = x.tensor.shape[0]
    indices = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=5))
    updates = b(Gather, x, b.constant(np.array(indices, np.int64)), axis=0)
    return b(ScatterNd, x, b.constant(np.array(indices[::-1], np.int64).reshape(-1, 1)), updates)


STEPS = [_same_shape, _same_shape, _matmul, _transpose, _reduce, _concat, _slice, _cumsum, _reshape, _gather, _scatter]
_LARGEST = 4000


@st.composite
def graphs(draw: Draw) -> Graph:
    """A graph over int32 matrices with several outputs."""
    size = st.sampled_from([1, 3, 8, 17, 40])
    graph = Graph("random", [tensor(I32, (draw(size), draw(size))) for _ in range(draw(st.integers(1, 3)))])
    builder = Builder(graph)
    values = list(graph.inputs)
    for _ in range(draw(st.integers(1, 12))):
        made = draw(st.sampled_from(STEPS))(draw, builder, values)
        if made.tensor.size <= _LARGEST:
            values.append(made)
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    builder.output(*outputs, values[-1])
    return graph


def _with_sram(size: int) -> Target:
    target = load_target("reference-npu")
    return target.model_copy(update={"sram": target.sram.model_copy(update={"bytes": size, "banks": 1})})


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from([1 << 11, 1 << 13, 1 << 16, 1 << 21]), st.booleans(), st.integers(0, 2**32 - 1))
def test_random_graph_gives_its_reference_result_in_any_sram(graph: Graph, sram: int, joined: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-50, 50, value.tensor.shape).astype(np.int32) for value in graph.inputs]
    target = _with_sram(sram)
    executable = lower(graph, target, LoweringOptions(fuse=joined))
    for step in executable.block.steps:
        if isinstance(step, Host):
            assert "SRAM" in step.reason
        if isinstance(step, Run):
            assert step.program.sram_bytes <= sram
            verify_program(step.program, target)
    for got, want in zip(Machine(executable, target).execute(inputs), interpret(graph, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
