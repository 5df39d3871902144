"""Lowered graphs give numpy's numbers, whatever the size of SRAM and whether nests are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from compiler.errors import EvaluationError, LoweringError
from compiler.ir import Builder, Graph, Value, type_of
from compiler.lowering.lower import LoweringOptions, lower
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.elementwise import Add, Div, Exp, Max, Mul, Sub, Tanh
from compiler.ops.indexing import Gather, ScatterNd
from compiler.ops.movement import Concat, Slice, Tile, Transpose
from compiler.ops.padding import Pad
from compiler.ops.pooling import MaxPool
from compiler.ops.reduce import ArgMax, CumSum, ReduceMax, ReduceSum
from compiler.ops.reshape import Reshape
from compiler.program.executable import Host, Run
from compiler.program.verifier import verify_program
from compiler.simulator import Machine
from compiler.targets.loader import load_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.targets.schema import Target

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def _target(sram: int) -> Target:
    target = load_target("reference-npu")
    return target.model_copy(update={"sram": target.sram.model_copy(update={"bytes": sram, "banks": 1})})


TARGETS = {"roomy": _target(1 << 21), "tight": _target(1 << 13)}


def _build(inputs: list[Array], body: Callable[..., Value | tuple[Value, ...]]) -> Graph:
    graph = Graph("test", [type_of(array) for array in inputs], [f"x{index}" for index in range(len(inputs))])
    builder = Builder(graph)
    found = body(builder, *graph.inputs)
    builder.output(*(found if isinstance(found, tuple) else (found,)))
    return graph


def _floats(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def _ints(low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def _c(builder: Builder, *values: int) -> Value:
    return builder.constant(np.array(values, np.int64))


def _softmax(b: Builder, x: Value) -> Value:
    shifted = b(Exp, b(Sub, x, b(ReduceMax, x, axes=(1,), keep_dims=True)))
    return b(Div, shifted, b(ReduceSum, shifted, axes=(1,), keep_dims=True))


def _numpy_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _numpy_conv(x: Array, w: Array, stride: int, pad: int, groups: int = 1) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    parts = [
        np.einsum("ncijhw,ochw->noij", part, kernel)
        for part, kernel in zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


def _scattered(x: Array, i: Array, u: Array) -> Array:
    result = x.copy()
    for row, update in zip(i[:, 0], u, strict=True):
        result[row] = update
    return result


def _softmax_last(b: Builder, x: Value) -> Value:
    shifted = b(Exp, b(Sub, x, b(ReduceMax, x, axes=(2,), keep_dims=True)))
    return b(Div, shifted, b(ReduceSum, shifted, axes=(2,), keep_dims=True))


def _numpy_attention(q: Array, k: Array, v: Array) -> Array:
    e = np.exp(q @ k.transpose(0, 2, 1))
    return (e / e.sum(-1, keepdims=True)) @ v


def _used_twice(b: Builder, x: Value) -> tuple[Value, ...]:
    e = b(Exp, x)
    return e, b(ReduceSum, e, axes=(0,), keep_dims=False), b(Mul, e, e)


def _empty_beside_others(b: Builder, x: Value) -> tuple[Value, ...]:
    exponential = b(Exp, x)
    empty = b(Tile, x, _c(b, 0, 1))
    return exponential, empty, b(MatMul, empty, b(Transpose, x, permutation=(1, 0)))


CASES: dict[str, tuple[list[Array], Callable[..., Any], Callable[..., Any]]] = {
    "add_broadcast": ([_floats(3, 1, 5), _floats(4, 1)], lambda b, x, y: b(Add, x, y), lambda x, y: x + y),
    "scalar": ([_floats(), _floats()], lambda b, x, y: b(Mul, x, y), lambda x, y: x * y),
    "empty": ([_floats(0, 3)], lambda b, x: b(Tanh, x), np.tanh),
    "matmul": ([_floats(70, 33), _floats(33, 65)], lambda b, x, y: b(MatMul, x, y), np.matmul),
    "matmul_batch": ([_floats(2, 1, 9, 40), _floats(3, 40, 17)], lambda b, x, y: b(MatMul, x, y), np.matmul),
    "matmul_deep": ([_floats(4, 3000), _floats(3000, 4)], lambda b, x, y: b(MatMul, x, y), np.matmul),
    "matmul_empty_k": ([_floats(3, 0), _floats(0, 2)], lambda b, x, y: b(MatMul, x, y), np.matmul),
    "matmul_int64": ([_ints(-9, 9, 5, 7), _ints(-9, 9, 7, 6)], lambda b, x, y: b(MatMul, x, y), np.matmul),
    "matmul_bias_relu": (
        [_floats(40, 20), _floats(20, 50), _floats(50)],
        lambda b, x, y, z: b(Max, b(Add, b(MatMul, x, y), z), b.constant(np.float32(0).reshape(()))),
        lambda x, y, z: np.maximum(x @ y + z, 0),
    ),
    "transposed_matmul": (
        [_floats(20, 30), _floats(20, 40)],
        lambda b, x, y: b(MatMul, b(Transpose, x, permutation=(1, 0)), y),
        lambda x, y: x.T @ y,
    ),
    "conv": (
        [_floats(2, 3, 19, 17), _floats(8, 3, 3, 3)],
        lambda b, x, w: b(Conv, x, w, strides=(2, 2), pads=(1, 1, 1, 1)),
        lambda x, w: _numpy_conv(x, w, 2, 1),
    ),
    "conv_grouped_bias": (
        [_floats(1, 6, 9, 9), _floats(12, 2, 3, 3), _floats(12, 1, 1)],
        lambda b, x, w, c: b(Add, b(Conv, x, w, pads=(1, 1, 1, 1), groups=3), c),
        lambda x, w, c: _numpy_conv(x, w, 1, 1, 3) + c,
    ),
    "conv_depthwise": (
        [_floats(1, 16, 12, 12), _floats(16, 1, 3, 3)],
        lambda b, x, w: b(Conv, x, w, pads=(1, 1, 1, 1), groups=16),
        lambda x, w: _numpy_conv(x, w, 1, 1, 16),
    ),
    "softmax": ([_floats(33, 70)], _softmax, _numpy_softmax),
    "argmax": (
        [_ints(0, 5, 6, 50, dtype=np.float32)],
        lambda b, x: b(ArgMax, x, axis=1),
        lambda x: x.argmax(1)[:, None],
    ),
    "cumsum": ([_ints(-5, 5, 4, 60)], lambda b, x: b(CumSum, x, axis=1), lambda x: x.cumsum(1)),
    "reduce_max_empty": (
        [_floats(3, 0)],
        lambda b, x: b(ReduceMax, x, axes=(1,), keep_dims=False),
        lambda x: np.full(3, -np.inf, np.float32),
    ),
    "transpose": (
        [_floats(40, 50, 3)],
        lambda b, x: b(Transpose, x, permutation=(2, 0, 1)),
        lambda x: x.transpose(2, 0, 1),
    ),
    "transpose_float64": (
        [_floats(40, 50, dtype=np.float64)],
        lambda b, x: b(Transpose, x, permutation=(1, 0)),
        lambda x: x.T,
    ),
    "concat": (
        [_floats(3, 40), _floats(3, 50)],
        lambda b, x, y: b(Tanh, b(Concat, x, b(Exp, y), axis=1)),
        lambda x, y: np.tanh(np.concatenate([x, np.exp(y)], 1)),
    ),
    "slice_backwards": (
        [_floats(50, 7)],
        lambda b, x: b(Slice, x, _c(b, 45), _c(b, 3), _c(b, 0), _c(b, -3)),
        lambda x: x[45:3:-3],
    ),
    "pad": (
        [_floats(9, 11), np.float32(2.5).reshape(())],
        lambda b, x, v: b(Pad, x, _c(b, 1, 2, 3, 4), v),
        lambda x, v: np.pad(x, ((1, 3), (2, 4)), constant_values=v),
    ),
    "tile": ([_floats(3, 5)], lambda b, x: b(Tile, x, _c(b, 4, 3)), lambda x: np.tile(x, (4, 3))),
    "max_pool": (
        [_floats(1, 4, 14, 14)],
        lambda b, x: b(MaxPool, x, kernel=(2, 2), strides=(2, 2)),
        lambda x: x.reshape(1, 4, 7, 2, 7, 2).max((3, 5)),
    ),
    "gather": (
        [_floats(100, 30), _ints(-100, 100, 17)],
        lambda b, x, i: b(Gather, x, i, axis=0),
        lambda x, i: x[i],
    ),
    "gather_then_add": (
        [_floats(30, 50), _ints(0, 50, 6), _floats(30, 6)],
        lambda b, x, i, y: b(Add, b(Gather, x, i, axis=1), y),
        lambda x, i, y: x[:, i] + y,
    ),
    "scatter_nd": (
        [_floats(20, 5), _ints(0, 20, 9, 1), _floats(9, 5)],
        lambda b, x, i, u: b(ScatterNd, x, i, u),
        _scattered,
    ),
    "scatter_nd_onto_few_places": (
        [_floats(16), _ints(0, 16, 3, 1000, 1), _floats(3, 1000)],
        lambda b, x, i, u: b(ScatterNd, x, i, u),
        lambda x, i, u: _scattered(x, i.reshape(-1, 1), u.reshape(-1)),
    ),
    "gather_float64_twice": (
        [_floats(30, 5, dtype=np.float64), _ints(0, 30, 6), _ints(0, 30, 4)],
        lambda b, x, i, j: (b(Gather, x, i, axis=0), b(Gather, x, j, axis=0)),
        lambda x, i, j: (x[i], x[j]),
    ),
    "reshape_between": (
        [_floats(6, 20)],
        lambda b, x: b(Tanh, b(Reshape, b(Exp, x), _c(b, 4, 30))),
        lambda x: np.tanh(np.exp(x).reshape(4, 30)),
    ),
    "output_is_input": (
        [_floats(40, 70)],
        lambda b, x: (x, b(Reshape, x, _c(b, 70, 40))),
        lambda x: (x, x.reshape(70, 40)),
    ),
    "empty_then_padded": (
        [_floats(3, 5)],
        lambda b, x: b(Pad, b(Tile, x, _c(b, 0, 2)), _c(b, 1, 0, 1, 0)),
        lambda x: np.zeros((2, 2 * x.shape[1]), x.dtype),
    ),
    "empty_twice_to_the_end": (
        [_floats(3, 5)],
        lambda b, x: b(MatMul, b(Tile, x, _c(b, 0, 1)), b(Transpose, x, permutation=(1, 0))),
        lambda x: np.zeros((0, 3), x.dtype),
    ),
    "empty_beside_other_outputs": (
        [_floats(3, 5)],
        _empty_beside_others,
        lambda x: (np.exp(x), np.zeros((0, 5), x.dtype), np.zeros((0, 3), x.dtype)),
    ),
    "value_used_twice": (
        [_floats(30, 40)],
        _used_twice,
        lambda x: (np.exp(x), np.exp(x).sum(0), np.exp(x) ** 2),
    ),
    "attention": (
        [_floats(2, 24, 16), _floats(2, 40, 16), _floats(2, 40, 16)],
        lambda b, q, k, v: b(MatMul, _softmax_last(b, b(MatMul, q, b(Transpose, k, permutation=(0, 2, 1)))), v),
        _numpy_attention,
    ),
}


@pytest.mark.parametrize("joined", [True, False], ids=["joined", "apart"])
@pytest.mark.parametrize("size", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_lowered_graph_gives_numpys_result(case: str, size: str, joined: bool) -> None:
    inputs, body, expected = CASES[case]
    graph = _build(inputs, body)
    target = TARGETS[size]
    executable = lower(graph, target, LoweringOptions(fuse=joined))
    for step in executable.block.steps:
        assert not isinstance(step, Host), step.reason
        if isinstance(step, Run):
            assert step.program.sram_bytes <= target.sram.bytes
            verify_program(step.program, target)
    wanted = expected(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = Machine(executable, target).execute(inputs)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_what_the_dram_has_no_room_for_is_refused() -> None:
    graph = _build([_floats(64, 8)], lambda b, x: b(Tile, x, _c(b, 1, 2)))
    dram = TARGETS["roomy"].dram.model_copy(update={"bytes": 4096})
    with pytest.raises(LoweringError, match=r"the DRAM of 4096 bytes has no room for .* \(4096 bytes\) beside 2048"):
        lower(graph, TARGETS["roomy"].model_copy(update={"dram": dram}))


def test_scatter_of_a_type_that_the_vector_unit_lacks_stays_on_the_host() -> None:
    inputs = [_floats(6, 2, dtype=np.float64), _ints(0, 6, 3, 1), _floats(3, 2, dtype=np.float64)]
    graph = _build(inputs, lambda b, x, i, u: b(ScatterNd, x, i, u))
    executable = lower(graph, TARGETS["roomy"])
    (step,) = executable.block.steps
    assert isinstance(step, Host)
    assert step.reason == "float64 is not a type of reference-npu"
    np.testing.assert_array_equal(Machine(executable).execute(inputs)[0], _scattered(*inputs))


def _narrow_instructions() -> Target:
    target = TARGETS["roomy"]
    return target.model_copy(update={"limits": target.limits.model_copy(update={"loops": 4, "inputs": 2})})


def test_kernels_hold_what_an_instruction_of_the_target_takes() -> None:
    target = _narrow_instructions()
    inputs = [_floats(8, 8) for _ in range(5)]
    graph = _build(inputs, lambda b, x, *rest: b(Add, b(Mul, b(Add, b(MatMul, x, rest[0]), rest[1]), rest[2]), rest[3]))
    executable = lower(graph, target)
    (step,) = executable.block.steps
    assert isinstance(step, Run)
    verify_program(step.program, target)
    x, *rest = inputs
    found = Machine(executable, target).execute(inputs)[0]
    np.testing.assert_allclose(found, (x @ rest[0] + rest[1]) * rest[2] + rest[3], rtol=2e-5, atol=2e-5)


def test_more_loops_than_an_instruction_has_go_to_the_host() -> None:
    graph = _build([_floats(*[2] * 6)], lambda b, x: b(Transpose, x, permutation=(1, 0, 3, 2, 5, 4)))
    (step,) = lower(graph, _narrow_instructions()).block.steps
    assert isinstance(step, Host)
    assert step.reason == "it takes 6 loops; an instruction of reference-npu has 4"


def test_a_look_up_among_no_elements_is_left_to_the_host_which_refuses_it() -> None:
    inputs = [_floats(0, 3), np.array([0, 1])]
    executable = lower(_build(inputs, lambda b, x, i: b(Gather, x, i)), TARGETS["roomy"])
    (step,) = executable.block.steps
    assert isinstance(step, Host)
    assert step.reason == "it looks up a dim without elements"
    with pytest.raises(EvaluationError, match="index 0 is outside"):
        Machine(executable).execute(inputs)
