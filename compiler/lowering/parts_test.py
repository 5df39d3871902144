"""The parts of lowering by themselves: which nests join, what tiles cost, who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir import BF16, F16, F32, F64, I8, I32, Builder, Graph, Value, tensor
from compiler.lowering.contraction import contraction_of
from compiler.lowering.fusion import fuse
from compiler.lowering.lower import lower
from compiler.lowering.machine import Machine
from compiler.lowering.memory import Hazards, Space, Span
from compiler.lowering.nests import Nest, nests_of
from compiler.lowering.placement import on_matrix, place, prepared
from compiler.lowering.search import Tiler
from compiler.lowering.tiling import box_of
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Add, Exp, Max, Mul
from compiler.ops.movement import Transpose
from compiler.ops.reduce import ReduceSum
from compiler.ops.registry import Operator
from compiler.ops.selection import TopK
from compiler.ops.work import Index
from compiler.program.executable import Run
from compiler.program.instructions import Engine, Matmul, Memory, Vector, Wait
from compiler.targets.loader import load_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import ElementType, Op

MACHINE = Machine(load_target("reference-npu"))


def _nests(shapes: list[tuple[int, ...]], body: Callable[..., Value], element: ElementType = F32) -> list[Nest]:
    graph = Graph("test", [tensor(element, shape) for shape in shapes])
    builder = Builder(graph)
    result = body(builder, *graph.inputs)
    builder.output(result)
    found: list[Nest] = []
    for op in graph.ops:
        if isinstance(op.definition, Operator):
            work = op.definition.work(op.call(), tuple(value.type for value in op.results))
            assert work is not None
            found += [prepared(nest, MACHINE) for nest in nests_of(op, work)]
    return fuse(found, [result], lambda nest: on_matrix(nest, MACHINE) is not None, MACHINE.target.limits.inputs)


def _names(nests: list[Nest]) -> list[str]:
    return ["+".join(op.name for op in nest.ops) for nest in nests]


def _times_its_exponential(b: Builder, x: Value) -> Value:
    e = b(Exp, x)
    return b(Mul, e, b(Exp, e))


ZERO = np.float32(0).reshape(())


@pytest.mark.parametrize(
    ("shapes", "body", "kernels"),
    [
        pytest.param([(4, 8)], lambda b, x: b(Exp, b(Exp, x)), ["exp+exp"], id="elementwise chain"),
        pytest.param(
            [(4, 8), (8, 6), (6,)],
            lambda b, x, w, c: b(Max, b(Add, b(MatMul, x, w), c), b.constant(ZERO)),
            ["matmul+add+max"],
            id="bias and activation finish a product",
        ),
        pytest.param(
            [(8, 4), (8, 6)],
            lambda b, x, w: b(MatMul, b(Transpose, x, permutation=(1, 0)), w),
            ["transpose+matmul"],
            id="movement goes into a product",
        ),
        pytest.param(
            [(4, 8), (8, 6)],
            lambda b, x, w: b(MatMul, b(Exp, x), w),
            ["exp", "matmul"],
            id="arithmetic before a product is not repeated for each column",
        ),
        pytest.param(
            [(4, 8)],
            lambda b, x: b(ReduceSum, b(Mul, x, x), axes=(1,), keep_dims=False),
            ["mul+reduce_sum"],
            id="arithmetic goes into a reduction",
        ),
        pytest.param(
            [(4, 8)],
            lambda b, x: b(Add, x, b(Exp, b(ReduceSum, x, axes=(1,), keep_dims=True))),
            ["reduce_sum+exp", "add"],
            id="a small result is not computed again for each reader",
        ),
        pytest.param(
            [(4, 8)],
            _times_its_exponential,
            ["exp+exp+mul"],
            id="a value read twice by one kernel is computed once there",
        ),
    ],
)
def test_nests_join_where_no_work_is_repeated(
    shapes: list[tuple[int, ...]], body: Callable[..., Value], kernels: list[str]
) -> None:
    assert _names(_nests(shapes, body)) == kernels


def test_value_that_is_kept_is_never_joined_away() -> None:
    graph = Graph("test", [tensor(F32, (4,))])
    builder = Builder(graph)
    inner = builder(Exp, graph.inputs[0])
    outer = builder(Exp, inner)
    builder.output(inner, outer)
    (step,) = lower(graph, MACHINE.target).block.steps
    assert isinstance(step, Run)
    assert [kernel.name for kernel in step.program.kernels] == ["exp", "exp"]


def test_roles_of_a_convolutions_loops_are_read_off_its_structure() -> None:
    (nest,) = _nests([(2, 8, 9, 9), (12, 4, 3, 3)], lambda b, x, w: b(Conv, x, w, pads=(1, 1, 1, 1), groups=2))
    roles = contraction_of(nest)
    assert roles is not None
    sizes = [[nest.extents[loop] for loop in loops] for loops in (roles.batch, roles.m, roles.n, roles.k)]
    assert sizes == [[2], [2, 9, 9], [6], [4, 3, 3]]


@pytest.mark.parametrize(
    ("element", "expected"), [(F32, Matmul), (F16, Matmul), (BF16, Matmul), (I8, Vector), (I32, Vector)]
)
def test_array_takes_the_products_whose_sums_it_can_hold(element: ElementType, expected: type) -> None:
    graph = Graph("test", [tensor(element, (64, 64)), tensor(element, (64, 64))])
    builder = Builder(graph)
    builder.output(builder(MatMul, *graph.inputs))
    (step,) = lower(graph, MACHINE.target).block.steps
    assert isinstance(step, Run)
    assert any(isinstance(instruction, expected) for instruction in step.program.body)


def test_reason_names_the_type_that_the_target_lacks() -> None:
    graph = Graph("test", [tensor(F64, (4,))])
    op = Builder(graph).op(Exp, graph.inputs)
    assert place(op, MACHINE).reason == "float64 is not a type of reference-npu"
    assert place(op, Machine(load_target("micro-npu"))).reason == "float64 is not a type of micro-npu"


def test_constant_of_a_type_that_no_tensor_has_goes_with_the_program() -> None:
    """As scales of quantized products do: float32 vectors on a target whose tensors are of float16 at most."""
    target = load_target("edge-npu")
    graph = Graph("test", [tensor(F16, (8,))])
    builder = Builder(graph)
    scale = builder.constant(np.arange(8, dtype=np.float32))
    builder.output(builder(Cast, builder(Mul, builder(Cast, graph.inputs[0], to=F32), scale), to=F16))
    steps = lower(graph, target).block.steps
    assert [type(step) for step in steps] == [Run]


def _top_k(graph: Graph) -> Op:
    builder = Builder(graph)
    return builder.op(TopK, [graph.inputs[0], builder.constant(np.array([2], np.int64))])


def test_reason_names_the_operator_without_loops() -> None:
    assert place(_top_k(Graph("test", [tensor(F32, (4,))])), MACHINE).reason == "'top_k' has no loop form"


@given(
    st.tuples(*[st.integers(1, 90)] * 3),
    st.sampled_from([1 << 12, 1 << 14, 1 << 18]),
)
def test_tiles_fit_their_budget_and_cover_the_nest(shape: tuple[int, int, int], budget: int) -> None:
    m, n, k = shape
    (nest,) = _nests([(m, k), (k, n)], lambda b, x, y: b(MatMul, x, y))
    choice = Tiler(nest, on_matrix(nest, MACHINE), MACHINE, budget).choose()
    assert choice is not None
    tiling = choice.tiling
    assert tiling.footprint <= budget
    assert all(1 <= size <= extent for size, extent in zip(tiling.sizes, nest.extents, strict=True))
    assert set(tiling.order) == {
        loop for loop, (size, extent) in enumerate(zip(tiling.sizes, nest.extents, strict=True)) if size < extent
    }


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(1, 7), st.integers(1, 5))
def test_box_of_a_window_holds_exactly_the_indices_read(
    stride: int, dilation: int, first: int, count: int, taps: int
) -> None:
    index = Index(((0, stride), (1, dilation)), -2)
    box = box_of((index,), (first, 0), (count, taps), (first + count + 1, max(taps, 2)))
    read = {-2 + stride * (first + i) + dilation * t for i in range(count) for t in range(taps)}
    held = {box.low[0] + step * box.step[0] for step in range(box.count[0])}
    assert read <= held
    assert (min(read), max(read)) == (min(held), max(held))


def _sram(low: int, high: int) -> Span:
    return Span(Memory.SRAM, low, high)


def test_waits_name_the_last_conflicting_instruction_of_each_other_engine() -> None:
    hazards = Hazards()
    assert hazards.order(0, Engine.DMA_IN, [], [_sram(0, 8)]) == ()
    assert hazards.order(1, Engine.DMA_IN, [], [_sram(8, 16)]) == ()
    assert hazards.order(2, Engine.MATRIX, [_sram(0, 8)], [_sram(32, 40)]) == (Wait(0),)
    assert hazards.order(3, Engine.VECTOR, [_sram(4, 12), _sram(32, 40)], [_sram(48, 56)]) == (Wait(1), Wait(2))
    assert hazards.order(4, Engine.DMA_IN, [], [_sram(0, 8)]) == (Wait(2), Wait(3))
    assert hazards.order(5, Engine.DMA_OUT, [_sram(64, 72)], []) == ()


def test_reads_of_the_same_bytes_do_not_wait_for_each_other() -> None:
    hazards = Hazards()
    hazards.order(0, Engine.MATRIX, [_sram(0, 8)], [])
    assert hazards.order(1, Engine.VECTOR, [_sram(0, 8)], []) == ()


@given(st.lists(st.one_of(st.integers(1, 500), st.none()), max_size=40))
def test_live_allocations_never_overlap(steps: list[int | None]) -> None:
    space, live = Space(4096), {}
    for step in steps:
        if step is None:
            if live:
                space.free(live.popitem()[0])
            continue
        start = space.allocate(step)
        if start is None:
            continue
        assert all(start + step <= other or other + size <= start for other, size in live.items())
        assert start + step <= 4096
        live[start] = step
