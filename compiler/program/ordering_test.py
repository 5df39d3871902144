"""The proof of order against a plain search: every pair of instances, every byte, every path of queues and waits."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidProgram
from compiler.ir import F32, I32, UNKNOWN_LOCATION, tensor
from compiler.ops.work import Arg, OutOfRange
from compiler.program.addresses import touches, value_of
from compiler.program.executable import Buffer, Kernel, Program, Role
from compiler.program.instructions import (
    Address,
    Lookup,
    Memory,
    Operand,
    Region,
    Repeat,
    Rotation,
    Transfer,
    Vector,
    Wait,
)
from compiler.program.ordering import check_order
from compiler.program.segments import Segments

WORDS = 8
KERNEL = Kernel("k", (), UNKNOWN_LOCATION, 0, 0, 0)
BUFFERS = (
    Buffer("in", 0, tensor(F32, (WORDS,)), Role.INPUT),
    Buffer("spill", 64, tensor(F32, (WORDS,)), Role.TEMPORARY),
)


@st.composite
def operands(draw, memory, depth):
    extent, stride = draw(st.sampled_from([(1, 4), (2, 4), (2, 8), (3, 8)]))
    room = WORDS - 1 - (extent - 1) * stride // 4
    rotations = ()
    if depth and draw(st.booleans()) and room >= 2:
        rotations = (Rotation(draw(st.integers(0, depth - 1)), 2, 4 * draw(st.integers(1, room // 2))),)
        room -= rotations[0].stride // 4
    base = 4 * draw(st.integers(0, room)) + (64 if memory is Memory.DRAM else 0)
    return extent, Operand(Region(memory, Address(base, (), rotations), F32, (stride,)))


@st.composite
def instructions(draw, number, ids, depth):
    waits = tuple(draw(st.lists(st.builds(Wait, st.integers(0, ids - 1), st.integers(0, 1)), max_size=3)))
    extent, sram = draw(operands(Memory.SRAM, depth))
    if draw(st.booleans()):
        _, other = draw(operands(Memory.SRAM, depth))
        base = other.region.address.base if extent == 1 else 0
        source = Operand(Region(Memory.SRAM, Address(base), F32, (4,)))
        return Vector(number, 0, (extent,), (source,), Arg(0, F32), sram, waits=waits)
    dram = Operand(Region(Memory.DRAM, Address(64 + 4 * draw(st.integers(0, 3))), F32, (4,)))
    sides = (dram, sram) if draw(st.booleans()) else (sram, dram)
    return Transfer(number, 0, (extent,), *sides, waits)


@st.composite
def programs(draw):
    ids = draw(st.integers(2, 5))
    cut = draw(st.integers(0, ids - 1))
    head = tuple(draw(instructions(number, ids, 0)) for number in range(cut))
    loop = Repeat(draw(st.integers(1, 4)), tuple(draw(instructions(number, ids, 1)) for number in range(cut, ids)))
    return Program("p", "t", BUFFERS, (KERNEL,), (*head, loop), 128, 4 * WORDS)


def instances(program):
    """(instruction, loop indices) in program order."""
    for step in program.body:
        if isinstance(step, Repeat):
            yield from ((inner, (index,)) for index in range(step.count) for inner in step.body)
        else:
            yield step, ()


def bytes_of(instruction, indices):
    """What an instance reads and writes, byte by byte."""
    sets = {False: set(), True: set()}
    for touch in touches(instruction):
        start = value_of(touch.region.address, indices)
        for index in range(touch.extents[0]):
            first = start + index * touch.region.strides[0]
            sets[touch.writes] |= {(touch.region.memory, first + byte) for byte in range(4)}
    return sets


def races(program):
    """Whether two instances that share a byte which one writes are joined by no path of queues and waits."""
    order = list(instances(program))
    before = []
    for position, (instruction, _) in enumerate(order):
        direct = []
        for earlier in range(position - 1, -1, -1):
            if order[earlier][0].engine is instruction.engine:
                direct.append(earlier)
                break
        for wait in instruction.waits:
            same = [earlier for earlier in range(position) if order[earlier][0].id == wait.on]
            if len(same) > wait.lag:
                direct.append(same[-1 - wait.lag])
        before.append(set(direct).union(*(before[earlier] for earlier in direct)))
    touched = [bytes_of(*instance) for instance in order]
    for first, second in combinations(range(len(order)), 2):
        a, b = touched[first], touched[second]
        conflict = (a[True] & (b[True] | b[False])) | (a[False] & b[True])
        if conflict and first not in before[second]:
            return True
    return False


@given(programs())
def test_a_program_is_refused_exactly_when_a_search_finds_a_race(program):
    segments = Segments(program)
    if races(program):
        with pytest.raises(InvalidProgram, match="in no fixed order"):
            check_order(program, segments)
    else:
        check_order(program, segments)


def test_both_verdicts_occur():
    copy = Operand(Region(Memory.SRAM, Address(0), F32, (4,)))
    load = Transfer(0, 0, (2,), Operand(Region(Memory.DRAM, Address(0), F32, (4,))), copy)
    free = Vector(1, 0, (2,), (copy,), Arg(0, F32), Operand(Region(Memory.SRAM, Address(16), F32, (4,))))
    waiting = Vector(1, 0, (2,), (copy,), Arg(0, F32), free.out, waits=(Wait(0),))
    for last, racing in ((free, True), (waiting, False)):
        program = Program("p", "t", BUFFERS, (KERNEL,), (load, last), 128, 4 * WORDS)
        assert races(program) is racing


@pytest.mark.parametrize(("extent", "ordered"), [(WORDS, False), (WORDS - 1, True)])
def test_data_dependent_addresses_count_as_all_that_the_lookup_may_reach(extent, ordered):
    index = Lookup(Region(Memory.SRAM, Address(0), I32, (4,)), 4, extent, OutOfRange.WRAP)
    table = Operand(Region(Memory.DRAM, Address(64), F32, (0,)), (index,))
    gather = Transfer(1, 0, (2,), table, Operand(Region(Memory.SRAM, Address(16), F32, (4,))))
    last = Operand(Region(Memory.DRAM, Address(64 + 4 * (WORDS - 1)), F32, (4,)))
    spill = Transfer(0, 0, (1,), Operand(Region(Memory.SRAM, Address(8), F32, (4,))), last)
    program = Program("p", "t", BUFFERS, (KERNEL,), (spill, gather), 128, 4 * WORDS)
    if ordered:
        check_order(program, Segments(program))
        return
    with pytest.raises(InvalidProgram, match=r"transfer 0 writes .* and transfer 1 reads bytes 64\.\.95 of dram"):
        check_order(program, Segments(program))
