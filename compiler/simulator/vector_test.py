"""The vector unit on data: broadcasting, reductions, running combinations, lookups, narrow types."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compiler.errors import EvaluationError
from compiler.ir import BF16, BOOL, F16, F32, I4, I8, I32, I64, U8, tensor
from compiler.ops.work import Apply, Arg, Combiner, Literal, OutOfRange, Position
from compiler.program import verify_program
from compiler.program.handmade_test import SRAM, executable, vector_program
from compiler.program.instructions import Address, Lookup, Operand, Region
from compiler.simulator import execute
from compiler.simulator.combine import reduced
from compiler.targets import load_target


def run(inputs, extents, body, out_type, out, before=None, **parts):
    program = vector_program(inputs, extents, body, out_type, out, before=before, **parts)
    verify_program(program, load_target("reference-npu"))
    given = [array for array, _ in inputs] + ([] if before is None else [before])
    (found,) = execute(executable(program), given)
    return found


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def lookup(index_place, element, strides, stride, extent, rule=OutOfRange.WRAP):
    return Lookup(Region(SRAM, Address(index_place), element, strides), stride, extent, rule)


def test_operands_broadcast_by_strides_of_zero():
    a, b = draw(3, 4), draw(4)
    body = Apply("add", (Arg(0, F32), Arg(1, F32)), F32)
    found = run([(a, (16, 4)), (b, (0, 4))], (3, 4), body, tensor(F32, (3, 4)), (16, 4))
    assert np.array_equal(found, a + b)


def test_a_body_shared_between_operands_is_computed_once_and_right():
    x = draw(5)
    square = Apply("mul", (Arg(0, F32), Arg(0, F32)), F32)
    body = Apply("add", (square, Apply("mul", (square, Literal(2, F32)), F32)), F32)
    found = run([(x, (4,))], (5,), body, tensor(F32, (5,)), (4,))
    assert np.array_equal(found, x * x + x * x * np.float32(2))


@pytest.mark.parametrize("element", [F32, BF16, I8, BOOL], ids=str)
def test_moving_elements_transposes_any_type(element):
    x = (np.arange(12) % 2 if element is BOOL else np.arange(12)).astype(element.dtype).reshape(3, 4)
    size = x.itemsize
    found = run([(x, (size, 4 * size))], (4, 3), Arg(0, element), tensor(element, (4, 3)), (3 * size, size))
    assert np.array_equal(found, x.T)


def test_a_negative_stride_reverses():
    x = draw(6)
    reversed_ = lambda place: Operand(Region(SRAM, Address(place + 20), F32, (-4,)))  # noqa: E731
    assert np.array_equal(run([(x, reversed_)], (6,), Arg(0, F32), tensor(F32, (6,)), (4,)), x[::-1])


def test_a_fill_needs_no_input():
    found = run([], (2, 3), Literal(-0.0, F32), tensor(F32, (2, 3)), (12, 4))
    assert np.array_equal(np.signbit(found), np.ones((2, 3), bool))


def test_positions_count_from_the_origin():
    body = Position(1, I64, 3, 2)
    origin = (Address(0), Address(10))
    found = run([], (2, 4), body, tensor(I64, (2, 4)), (32, 8), origin=origin)
    assert found.tolist() == [[32, 35, 38, 41]] * 2


REDUCTIONS = [
    (Combiner.ADD, 0.0, np.add), (Combiner.MUL, 1.0, np.multiply), (Combiner.MAX, -np.inf, np.maximum),
    (Combiner.MIN, np.inf, np.minimum),
]  # fmt: skip


@pytest.mark.parametrize(("combiner", "initial", "meaning"), REDUCTIONS, ids=str)
def test_reductions_join_the_last_loops(combiner, initial, meaning):
    x = draw(3, 4, 5)
    found = run(
        [(x, (80, 20, 4))],
        (3, 4, 5),
        Arg(0, F32),
        tensor(F32, (3,)),
        (4,),
        reduced=2,
        combiner=combiner,
        initial=initial,
    )
    np.testing.assert_allclose(found, meaning.reduce(x.astype(np.float64), axis=(1, 2)), rtol=1e-5)


def test_a_reduction_without_initial_continues_from_what_is_there():
    x, before = draw(3, 4), draw(3)
    # The result starts where 'before' was loaded: the combiner reads it there.
    found = run(
        [(x, (16, 4))], (3, 4), Arg(0, F32), tensor(F32, (3,)), (4,), before=before, reduced=1, combiner=Combiner.ADD
    )
    np.testing.assert_allclose(found, before + x.sum(1), rtol=1e-5)


def test_float16_sums_in_float32_where_told():
    x = np.full((1, 4096), 1.0, np.float16)
    parts = {"reduced": 1, "combiner": Combiner.ADD, "initial": 0.0}
    exact = run([(x, (8192, 2))], (1, 4096), Arg(0, F16), tensor(F16, (1,)), (2,), accumulate=F32, **parts)
    assert exact.tolist() == [4096]


def test_max_keeps_nan_and_bool_and_reduces():
    x = np.array([[1, np.nan, 2], [3, 1, 2]], np.float32)
    found = run(
        [(x, (12, 4))], (2, 3), Arg(0, F32), tensor(F32, (2,)), (4,), reduced=1, combiner=Combiner.MAX, initial=-np.inf
    )
    assert np.isnan(found[0])
    assert found[1] == 3
    flags = np.array([[True, True], [True, False]])
    parts = {"reduced": 1, "combiner": Combiner.AND, "initial": True}
    assert run([(flags, (2, 1))], (2, 2), Arg(0, BOOL), tensor(BOOL, (2,)), (1,), **parts).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, BF16.dtype], ids=str)
def test_argmax_takes_the_first_or_last_of_ties_and_counts_from_the_origin(dtype):
    x = np.array([[1, 5, 5, 2], [7, 0, 7, 7]]).astype(dtype)
    element = {"float32": F32, "int8": I8, "bfloat16": BF16}[x.dtype.name]
    size = x.itemsize
    operand = [(x, (4 * size, size))]
    type_ = tensor(I64, (2,))
    for combiner, wanted in ((Combiner.ARGMAX, [1, 0]), (Combiner.ARGMAX_LAST, [2, 3]), (Combiner.ARGMIN, [0, 1])):
        found = run(operand, (2, 4), Arg(0, element), type_, (8,), reduced=1, combiner=combiner)
        assert found.tolist() == wanted
    origin = (Address(0), Address(100))
    found = run(operand, (2, 4), Arg(0, element), type_, (8,), reduced=1, combiner=Combiner.ARGMAX, origin=origin)
    assert found.tolist() == [101, 100]


def test_nan_is_greatest_for_argmax():
    x = np.array([[1, np.nan, 5]], np.float32)
    found = run([(x, (12, 4))], (1, 3), Arg(0, F32), tensor(I64, (1,)), (8,), reduced=1, combiner=Combiner.ARGMAX)
    assert found.tolist() == [1]


def test_a_scan_writes_every_prefix():
    x = draw(3, 6)
    parts = {"reduced": 1, "combiner": Combiner.ADD, "scan": True}
    found = run([(x, (24, 4))], (3, 6), Arg(0, F32), tensor(F32, (3, 6)), (24, 4), initial=0.0, **parts)
    np.testing.assert_allclose(found, np.cumsum(x, 1), rtol=1e-5)


def test_a_scan_without_initial_continues_from_the_element_before():
    x, before = np.arange(1, 6, dtype=np.int32), np.array([100, 0, 0, 0, 0, 0], np.int32)
    after_first = lambda place: Operand(Region(SRAM, Address(place + 4), I32, (4,)))  # noqa: E731
    parts = {"reduced": 1, "combiner": Combiner.ADD, "scan": True}
    found = run([(x, (4,))], (5,), Arg(0, I32), tensor(I32, (6,)), after_first, before=before, **parts)
    assert found.tolist() == [100, 101, 103, 106, 110, 115]


def test_a_lookup_gathers_rows_and_wraps_negative_indices():
    table, index = draw(7, 4), np.array([3, -1, 0], np.int64)
    place_of_index = (index, (8, 0))
    program_inputs = [(table, lambda place: Operand(
        Region(SRAM, Address(place), F32, (0, 4)), (lookup(place + 128, I64, (8, 0), 16, 7),)
    )), place_of_index]  # fmt: skip
    found = run(program_inputs, (3, 4), Arg(0, F32), tensor(F32, (3, 4)), (16, 4))
    assert np.array_equal(found, table[index])


@pytest.mark.parametrize("rule", [OutOfRange.CLAMP, OutOfRange.DROP, OutOfRange.WRAP], ids=lambda rule: rule.value)
def test_indices_out_of_range_follow_the_rule(rule):
    x, index = np.float32([1, 2, 3]), np.array([0, 5, -7, 2], np.int32)
    inputs = [(x, lambda place: Operand(
        Region(SRAM, Address(place), F32, (0,)), (lookup(place + 64, I32, (4,), 4, 3, rule),), fill=9.5
    )), (index, (4,))]  # fmt: skip
    if rule is OutOfRange.WRAP:
        with pytest.raises(
            EvaluationError, match=r"vector 2 of program 'by-hand': index 5 is out of range; expected -3\.\.2"
        ):
            run(inputs, (4,), Arg(0, F32), tensor(F32, (4,)), (4,))
        return
    found = run(inputs, (4,), Arg(0, F32), tensor(F32, (4,)), (4,))
    assert found.tolist() == ([1, 3, 1, 3] if rule is OutOfRange.CLAMP else [1, 9.5, 9.5, 3])


@pytest.mark.parametrize(
    ("combiner", "reduce"), [(None, None), (Combiner.ADD, "sum"), (Combiner.MUL, "prod"), (Combiner.MAX, "amax")]
)
def test_scatter_joins_duplicates_as_torch_does_and_the_last_wins_without_a_combiner(combiner, reduce):
    x, index, before = draw(6), np.array([0, 2, 2, 4, 0, 2], np.int64), draw(5, 1).ravel()
    scatter = lambda place: Operand(Region(SRAM, Address(place), F32, (0,)), (lookup(64, I64, (8,), 4, 5),))  # noqa: E731
    found = run(
        [(x, (4,)), (index, (8,))], (6,), Arg(0, F32), tensor(F32, (5,)), scatter, before=before, combiner=combiner
    )
    if combiner is None:
        expected = before.copy()
        for place, value in zip(index, x, strict=True):
            expected[place] = value
    else:
        start = torch.from_numpy(before.copy())
        expected = start.scatter_reduce(0, torch.from_numpy(index), torch.from_numpy(x), reduce).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_scatter_drops_points_out_of_range():
    x, index, before = draw(3), np.array([1, 9, -1], np.int64), draw(5, 1).ravel()
    place_ = (lookup(64, I64, (8,), 4, 5, OutOfRange.DROP),)
    scatter = lambda place: Operand(Region(SRAM, Address(place), F32, (0,)), place_)  # noqa: E731
    found = run([(x, (4,)), (index, (8,))], (3,), Arg(0, F32), tensor(F32, (5,)), scatter, before=before)
    expected = before.copy()
    expected[1] = x[0]
    assert np.array_equal(found, expected)


def test_packed_int4_is_computed_and_packed_again():
    x = np.array([[-8, 7, 3], [1, -1, 2]], I4.dtype)
    from compiler.simulator.convert import pack

    packed = pack(x, I4)
    operand = lambda place: Operand(Region(SRAM, Address(place), I4, (2, 1)))  # noqa: E731
    out = lambda place: Operand(Region(SRAM, Address(place), I4, (2, 1)))  # noqa: E731
    body = Apply("add", (Arg(0, I4), Literal(1, I4)), I4)
    found = run([(packed, operand)], (2, 3), body, tensor(I4, (2, 3)), out)
    assert found.astype(int).tolist() == [[-7, -8, 4], [2, 0, 3]]


def test_scalars_have_no_loops():
    x = np.float32(3)
    body = Apply("mul", (Arg(0, F32), Literal(2, F32)), F32)
    assert run([(np.asarray(x), ())], (), body, tensor(F32, ()), ()).item() == 6
    total = run(
        [(draw(4), (4,))], (4,), Arg(0, F32), tensor(F32, ()), (), reduced=1, combiner=Combiner.ADD, initial=0.0
    )
    assert total.shape == ()
    np.testing.assert_allclose(total, draw(4).sum(), rtol=1e-6)


def test_a_constant_body_is_joined_as_often_as_there_are_points():
    parts = {"reduced": 1, "combiner": Combiner.ADD, "initial": 1}
    found = run([], (2, 5), Literal(3, I32), tensor(I32, (2,)), (4,), accumulate=I32, **parts)
    assert found.tolist() == [16, 16]


def test_integer_sums_wrap_in_the_type_they_are_summed_in():
    x = np.full((1, 3), 100, np.int8)
    parts = {"reduced": 1, "combiner": Combiner.ADD, "initial": 0}
    assert run([(x, (3, 1))], (1, 3), Arg(0, I8), tensor(I8, (1,)), (1,), accumulate=I8, **parts).tolist() == [44]
    wide = run([(x, (3, 1))], (1, 3), Arg(0, I8), tensor(I32, (1,)), (4,), accumulate=I32, **parts)
    assert wide.tolist() == [300]


def test_a_result_may_overwrite_what_it_reads():
    x = draw(6)
    shifted = lambda place: Operand(Region(SRAM, Address(place), F32, (4,)))  # noqa: E731
    program = vector_program([(x, (4,))], (5,), Apply("neg", (Arg(0, F32),), F32), tensor(F32, (6,)), shifted)
    step = program.body[1]
    inside = replace(step, out=Operand(Region(SRAM, Address(4), F32, (4,))))
    store = replace(program.body[2], source=Operand(Region(SRAM, Address(0), U8, (1,))))
    (found,) = execute(executable(replace(program, body=(program.body[0], inside, store))), [x])
    assert np.array_equal(found, np.concatenate([x[:1], -x[:5]]))


@pytest.mark.parametrize(("combiner", "start"), [(Combiner.ADD, 7), (Combiner.MAX, -3)])
def test_nothing_joined_to_a_start_is_the_start(combiner, start):
    found = reduced(combiner, np.zeros((2, 0, 3), np.float32), (1,), F32, np.full((2, 3), start, np.float32))
    np.testing.assert_array_equal(found, np.full((2, 3), start))
