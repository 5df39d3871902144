"""Small rules of lowering, each by the definition that it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from compiler.ir import F32, I64, Builder, Graph, tensor
from compiler.lowering.contraction import contraction_of
from compiler.lowering.fusion import expression_size
from compiler.lowering.machine import Machine
from compiler.lowering.nests import Nest, nests_of, rewrite_expression
from compiler.lowering.placement import place
from compiler.lowering.search import Tiler, _loads
from compiler.lowering.tiling import NOTHING_RESIDENT, ResultShape
from compiler.ops.contraction import MatMul
from compiler.ops.movement import Transpose
from compiler.ops.registry import Operator
from compiler.ops.work import Apply, Arg, Combiner, Index, Literal, Position
from compiler.targets.loader import load_target

if TYPE_CHECKING:
    from compiler.ops.work import Expression

TARGET = load_target("reference-npu")
X = Arg(0, F32)


def _product(m: int = 4, k: int = 6, n: int = 5) -> Nest:
    graph = Graph("test", [tensor(F32, (m, k)), tensor(F32, (k, n))])
    op = Builder(graph).op(MatMul, graph.inputs)
    assert isinstance(op.definition, Operator)
    work = op.definition.work(op.call(), tuple(value.type for value in op.results))
    assert work is not None
    (nest,) = nests_of(op, work)
    return nest


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        (X, 1),
        (Apply("exp", (X,), F32), 2),
        (Apply("add", (Apply("exp", (X,), F32), Apply("mul", (X, Literal(2, F32)), F32)), F32), 6),
    ],
)
def test_size_of_a_body_is_its_number_of_nodes(expression: Expression, nodes: int) -> None:
    assert expression_size(expression) == nodes


@pytest.mark.parametrize(
    ("index", "rewritten"),
    [
        (Index((), 3), Literal(11, I64)),  # 2 * 3 + 5
        (Index(((4, 3),), 1), Position(4, I64, 6, 7)),  # 2 * (3 i + 1) + 5
        (Index(((4, 3), (1, 1)), 0), None),  # no position is two loops' at once
    ],
)
def test_a_position_follows_the_loop_that_its_index_is_made_of(index: Index, rewritten: Expression | None) -> None:
    assert rewrite_expression(Position(0, I64, 2, 5), {}, {0: index}) == rewritten


def test_only_a_sum_that_starts_at_zero_of_products_of_two_is_a_contraction() -> None:
    nest = _product()
    assert contraction_of(nest) is not None
    assert contraction_of(replace(nest, combiner=Combiner.MAX)) is None
    assert contraction_of(replace(nest, initial=1)) is None
    assert contraction_of(replace(nest, reads=(*nest.reads, nest.reads[0]))) is None


def test_an_operation_with_as_many_loops_as_an_instruction_has_fits() -> None:
    target = TARGET.model_copy(update={"limits": TARGET.limits.model_copy(update={"loops": 4})})
    for rank, fits in ((4, True), (5, False)):
        graph = Graph("test", [tensor(F32, (2,) * rank)])
        op = Builder(graph).op(Transpose, graph.inputs, permutation=(*range(1, rank), 0))
        assert (place(op, Machine(target)).reason is None) is fits


@pytest.mark.parametrize(
    ("depends", "times"),
    [((), 1), ((0,), 3), ((1,), 15), ((2,), 105), ((0, 2), 105)],  # 3, 3 * 5 and 3 * 5 * 7 tiles
)
def test_a_tile_is_loaded_again_for_each_step_of_the_loops_outside_the_last_it_depends_on(
    depends: tuple[int, ...], times: int
) -> None:
    assert _loads(frozenset(depends), (0, 1, 2), {0: 3, 1: 5, 2: 7}) == times


def test_only_a_result_that_is_cut_has_two_tiles() -> None:
    nest = _product()
    m, n, k = 0, 1, 2
    assert nest.folded == (k,)
    slots = [ResultShape.of(nest, NOTHING_RESIDENT).at(nest.extents, cut) for cut in ((), (k,), (m,), (n, k))]
    assert [found.copies for found in slots] == [1, 1, 2, 2]


def test_transfers_cost_a_latency_and_their_bytes_a_tile() -> None:
    """Tiles of 32 x 64 of a, 64 x 32 of b and 32 x 32 of the result of a product of 64 x 64 by 64 x 64."""
    machine = Machine(TARGET)
    nest = _product(64, 64, 64)
    tiler = Tiler(nest, contraction_of(nest), machine, 1 << 20)
    latency, a_cycle = TARGET.dram.latency_cycles, TARGET.dram.bytes_per_cycle
    counts = {0: 2, 1: 2}
    a, b, results = 2 * (32 * 64 * 4), 4 * (64 * 32 * 4), 4 * (32 * 32 * 4)
    expected = (2 + 4 + 4) * latency + (a + b + results) / a_cycle
    assert tiler._transfer_cycles((32, 32, 64), (0, 1), counts) == pytest.approx(expected)


def test_products_of_a_batch_come_one_after_the_other_on_the_array() -> None:
    """Folds of an output-stationary array, each by itself: ceil(40/32) ceil(50/32) (60 + 32 + 32 - 2) a product."""
    machine = Machine(load_target("systolic-32x32-os"))
    assert [machine.matrix_cycles((F32, F32), batch, 40, 50, 60) for batch in (1, 3)] == [2 * 2 * 122, 3 * 2 * 2 * 122]
