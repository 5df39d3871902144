"""The static verifier: what it accepts, and each kind of refusal."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidProgram
from compiler.ir import F32, F64, I8, I32, Location
from compiler.ops.work import Apply, Arg, Literal, Position
from compiler.program.addresses import (
    Touch,
    address_bounds,
    all_values,
    distinct_bytes,
    in_bytes,
    reach,
    value_of,
)
from compiler.program.executable import Block, Executable, If, Loop, Run
from compiler.program.handmade_test import DRAM, SRAM, matmul_program, one_matmul, vector_program, without_waits
from compiler.program.instructions import Address, Operand, Region, Repeat, Rotation, Wait
from compiler.program.ordering import runs, share_bytes
from compiler.program.random_programs_test import addresses
from compiler.program.verifier import verify_executable, verify_program
from compiler.targets import Dataflow, load_target

TARGET = load_target("reference-npu")


def change(program, number, edit):
    def visit(step):
        if isinstance(step, Repeat):
            return replace(step, body=tuple(visit(inner) for inner in step.body))
        return edit(step) if step.id == number else step

    return replace(program, body=tuple(visit(step) for step in program.body))


def refused(program, said, target=TARGET):
    with pytest.raises(InvalidProgram, match=said) as refusal:
        verify_program(program, target)
    assert "\n" not in refusal.value.message


PROGRAM = matmul_program(96, 20, 33, 16)


def test_a_double_buffered_program_is_accepted():
    verify_program(PROGRAM, TARGET)
    verify_program(matmul_program(16 * 400, 20, 33, 16), TARGET)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, r"matmul 2 \(loop indices \[0\]\) reads bytes .* and transfer 1 \(loop indices \[2\]\) writes bytes"),
        (
            2,
            r"transfer \d.* writes bytes .* and matmul 2 \(loop indices \[0\]\) reads .* of sram in no fixed order",
        ),
        (3, r"matmul 2 \(loop indices \[0\]\) writes bytes .* and transfer 3 \(loop indices \[0\]\) reads bytes"),
    ],
)
def test_two_instructions_that_share_bytes_must_be_ordered(number, said):
    refused(without_waits(PROGRAM, number), said)


def test_a_lag_that_is_one_too_long_is_refused():
    longer = change(PROGRAM, 1, lambda step: replace(step, waits=(Wait(2, 2),)))
    refused(longer, r"matmul 2 \(loop indices \[0\]\) reads .* transfer 1 \(loop indices \[2\]\) writes")
    shorter = change(PROGRAM, 1, lambda step: replace(step, waits=(Wait(2, 0),)))
    verify_program(shorter, TARGET)


def test_a_lag_counts_from_the_latest_instance():
    # Only the second load touches what the second matmul reads; waiting for the load before it is too little.
    def only_second(step):
        place = step.a.address
        fixed = Address(place.base + place.rotations[0].stride)
        return replace(step, a=replace(step.a, address=fixed), waits=(Wait(0), Wait(1, 1), Wait(3, 1)))

    late = change(change(PROGRAM, 1, lambda step: replace(step, waits=(Wait(2),))), 2, only_second)
    late = replace(late, body=(late.body[0], replace(late.body[1], count=2)))
    refused(late, r"transfer 1 \(loop indices \[1\]\) writes .* matmul 2 \(loop indices \[1\]\) reads")


def test_order_may_go_through_other_instructions():
    # The next load waits for the store, which waits for the matmul that reads the tile.
    through = change(PROGRAM, 1, lambda step: replace(step, waits=(Wait(3, 1),)))
    verify_program(through, TARGET)


def test_interleaved_rows_share_no_bytes():
    left = Touch(Region(DRAM, Address(0), F32, (64, 4)), (8, 8), writes=True)
    right = Touch(Region(DRAM, Address(32), F32, (64, 4)), (8, 8), writes=False)
    assert not share_bytes(left, right, 32)
    assert share_bytes(left, right, 28)
    assert share_bytes(left, right, 64 * 7 - 32 + 3)
    assert not share_bytes(left, right, 64 * 7 + 32)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-40, 40)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 5), st.integers(-40, 40)), min_size=1, max_size=3),
    st.integers(-200, 200),
    st.sampled_from([F32, I8, F64]),
)
def test_shared_bytes_and_counts_agree_with_listing_them(a, b, distance, element):
    def listed(loops, start):
        offsets = np.zeros(1, int)
        for extent, stride in loops:
            offsets = (offsets[:, None] + np.arange(extent) * stride).ravel()
        return {start + offset + byte for offset in offsets.tolist() for byte in range(element.bits // 8)}

    def touch(loops):
        region = Region(SRAM, Address(0), element, tuple(stride for _, stride in loops))
        return Touch(region, tuple(extent for extent, _ in loops), writes=True)

    first, second = touch(a), touch(b)
    assert share_bytes(first, second, distance) == bool(listed(a, 0) & listed(b, distance))
    assert distinct_bytes(first.region, first.extents) == len(listed(a, 0))
    low, high = reach(first.region, first.extents)
    assert (low, high - 1) == (min(listed(a, 0)), max(listed(a, 0)))
    starts, length = runs(first)
    assert {start + byte for start in starts.tolist() for byte in range(length)} == listed(a, 0)
    assert all(one < two for one, two in pairwise(starts.tolist()))


@given(addresses(2), st.integers(1, 7), st.integers(1, 7))
def test_bounds_are_those_of_all_instances(address, outer, inner):
    values = [value_of(address, (i, j)) for i in range(outer) for j in range(inner)]
    assert all_values(address, (outer, inner)) == values
    assert address_bounds(address, (outer, inner)) == (min(values), max(values))


def test_a_rotation_and_a_term_of_one_loop_are_bounded_together():
    address = Address(0, ((0, -4),), (Rotation(0, 4, 4),))
    assert address_bounds(address, (4,)) == (0, 0)


def test_narrow_elements_count_in_bytes():
    from compiler.ir import I4

    assert in_bytes(Region(SRAM, Address(0), I4, (2, 1)), (3, 3)) == ((3, 2), (2, 1), 1)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda step: replace(step, id=1), "its id is taken"),
        (lambda step: replace(step, kernel=4), r"kernel 4; expected one of 0\.\.0"),
        (lambda step: replace(step, waits=(Wait(77),)), "waits for instruction 77"),
        (lambda step: replace(step, waits=(Wait(1, -1),)), "lag -1"),
        (lambda step: replace(step, m=(0,)), "expected all at least 1"),
        (lambda step: replace(step, m=(4, 4)), r"a region has 2 strides; expected 3"),
        (lambda step: replace(step, a=replace(step.a, memory=DRAM)), "a region in dram; expected sram"),
        (lambda step: replace(step, a=replace(step.a, element=I32)), "i32 x f32 into f32; expected another pair"),
        (
            lambda step: replace(step, out=replace(step.out, element=I32)),
            "f32 x f32 into i32; expected a result of f32",
        ),
        (lambda step: replace(step, a=replace(step.a, address=Address(-4))), r"bytes -4\.\."),
        (lambda step: replace(step, a=replace(step.a, address=Address(10**6))), "of SRAM; expected within"),
        (lambda step: replace(step, a=replace(step.a, address=Address(0, ((3, 4),)))), "uses loop indices"),
        (lambda step: replace(step, a=replace(step.a, address=Address(0, (), (Rotation(0, 0, 4),)))), "fewer than one"),
    ],
)
def test_a_matmul_must_fit_memories_target_and_program(edit, said):
    refused(change(PROGRAM, 2, edit), said)


def test_transfers_go_between_the_memories_and_keep_the_type():
    def other(step, **parts):
        return replace(step, destination=Operand(replace(step.destination.region, **parts)))

    refused(change(PROGRAM, 1, lambda step: other(step, memory=DRAM)), "a region in dram; expected sram")
    refused(change(PROGRAM, 1, lambda step: other(step, element=I32)), "from f32 to i32; expected one element type")
    refused(change(PROGRAM, 3, lambda step: other(step, address=Address(0))), "which is read-only")


def test_the_program_must_fit_the_target():
    refused(replace(PROGRAM, sram_bytes=1 << 40), "bytes of SRAM; target 'reference-npu' has 2097152")
    refused(replace(PROGRAM, dram_bytes=1 << 50), "bytes of DRAM; target 'reference-npu' has")
    refused(replace(PROGRAM, dram_bytes=100), r"buffer 'a' lies at 0\.\.12671; expected within 0\.\.99")
    refused(replace(PROGRAM, body=(Repeat(0, PROGRAM.body),)), "a repeat of 0 iterations")
    refused(PROGRAM, "f32 x f32 into f32; expected another pair on target 'edge-npu'", load_target("edge-npu"))


X = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Apply("fly", (Arg(0, F32),), F32), "function 'fly' of 1 operands"),
        (Apply("add", (Arg(0, F32),), F32), "function 'add' of 1 operands"),
        (Arg(1, F32), "reads input 1"),
        (Arg(0, I32), "reads input 0 as i32"),
        (Position(4, F32), "index of loop 4"),
    ],
)
def test_bodies_must_make_sense(body, said):
    from compiler.ir import tensor

    refused(vector_program([(X, (4,))], (3,), body, tensor(F32, (3,)), (4,)), said)


def test_a_type_that_the_vector_unit_lacks_is_refused():
    from compiler.ir import tensor

    program = vector_program([], (3,), Literal(0.0, F64), tensor(F64, (3,)), (8,))
    refused(program, "f64, which the vector unit of target 'reference-npu' lacks")


def test_a_dataflow_that_the_array_does_not_offer_is_refused():
    multiply = replace(one_matmul(4, 4, 4, "reference-npu").body[0], dataflow=Dataflow.WEIGHT_STATIONARY)
    verify_program(replace(one_matmul(4, 4, 4, "reference-npu"), body=(multiply,)), TARGET)
    program = replace(one_matmul(4, 4, 4, "systolic-4x4-os"), body=(multiply,))
    with pytest.raises(InvalidProgram, match="dataflow ws; expected one of target 'systolic-4x4-os', os"):
        verify_program(program, load_target("systolic-4x4-os"))


def _executable(block):
    return Executable("reference-npu", block, {}, {}, ("x",), ("y",))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (Block((0, 1), (Run(PROGRAM, (0, 7), (2,)),), (2,)), "a run reads slot 7, .* expected one of \\[0, 1\\]"),
        (Block((0, 1), (Run(PROGRAM, (0, 1), (2,)),), (3,)), "a block's end reads slot 3"),
        (Block((0, 1), (Run(PROGRAM, (0,), (2,)),), (2,)), "2 input buffers; a run gives it 1 slots"),
        (Block((0,), (If(9, Block((), (), ()), Block((), (), ()), (), Location()),), ()), "a if reads slot 9"),
        (
            Block((0,), (If(0, Block((), (), (5,)), Block((), (), (0,)), (1,), Location()),), ()),
            "a block's end reads slot 5",
        ),
        (Block((0,), (Loop(None, None, (4,), Block((), (), ()), (), Location()),), ()), "a loop reads slot 4"),
    ],
)
def test_steps_read_slots_that_are_filled(block, said):
    with pytest.raises(InvalidProgram, match=said):
        verify_executable(_executable(block), TARGET)
