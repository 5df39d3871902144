"""Live bytes over time, counted by hand."""

import pytest

from compiler.ir import F32, tensor
from compiler.ops.work import Apply, Arg
from compiler.program.executable import Buffer, Program, Role
from compiler.program.handmade_test import DRAM, SRAM, dense, matmul_program
from compiler.program.instructions import Memory, Operand, Transfer, Vector, Wait
from compiler.simulator import Costs
from compiler.simulator.occupancy import Occupancy, occupancy
from compiler.simulator.power import peak_picojoules_a_cycle
from compiler.simulator.timing import Clock
from compiler.targets import load_target

TARGET = load_target("reference-npu")
X = Arg(0, F32)


def at(memory, address, extents=(64,)):
    return Operand(dense(memory, address, F32, extents))


def program(*steps, buffers=()):
    from compiler.ir import UNKNOWN_LOCATION
    from compiler.program.executable import Kernel

    return Program("p", "reference-npu", buffers, (Kernel("k", ("k",), UNKNOWN_LOCATION, 0, 0, 0),), steps, 1024, 1024)


def chain():
    """Load 256 bytes to 0, double them into 256, store these."""
    return program(
        Transfer(0, 0, (64,), at(DRAM, 0), at(SRAM, 0)),
        Vector(1, 0, (64,), (at(SRAM, 0),), Apply("add", (X, X), F32), at(SRAM, 256), waits=(Wait(0),)),
        Transfer(2, 0, (64,), at(SRAM, 256), at(DRAM, 256), waits=(Wait(1),)),
        buffers=(
            Buffer("x", 0, tensor(F32, (64,)), Role.INPUT),
            Buffer("t", 256, tensor(F32, (64,)), Role.TEMPORARY),
        ),
    )


def test_a_byte_is_live_from_the_start_of_its_write_to_the_end_of_its_last_read():
    clock = Clock(chain(), Costs(TARGET))
    timeline = clock.timeline()[1]
    # The load takes 100 + 8 cycles, the addition 4 + 1, the store 108.
    found = occupancy(clock, timeline, Memory.SRAM)
    assert found == Occupancy((0, 108, 113, 221), (256, 512, 256, 0))
    assert found.peak == 512


def test_of_dram_only_temporaries_count():
    clock = Clock(chain(), Costs(TARGET))
    assert occupancy(clock, clock.timeline()[1], Memory.DRAM) == Occupancy((113, 221), (256, 0))


def test_bytes_that_are_written_over_are_free_between_their_last_read_and_the_next_write():
    first = Transfer(0, 0, (64,), at(DRAM, 0), at(SRAM, 0))
    again = Transfer(2, 0, (64,), at(DRAM, 0), at(SRAM, 0), waits=(Wait(1),))
    read = Vector(1, 0, (64,), (at(SRAM, 0),), X, at(SRAM, 512), waits=(Wait(0),))
    last = Vector(3, 0, (64,), (at(SRAM, 0),), X, at(SRAM, 512), waits=(Wait(2),))
    clock = Clock(program(first, read, again, last), Costs(TARGET))
    found = occupancy(clock, clock.timeline()[1], Memory.SRAM)
    assert found == Occupancy((0, 108, 113, 221, 226), (256, 512, 256, 512, 0))


def test_the_peak_never_exceeds_the_addresses_that_a_plan_uses():
    made = matmul_program(256, 80, 96, 32)
    clock = Clock(made, Costs(TARGET))
    found = occupancy(clock, clock.timeline()[1], Memory.SRAM)
    assert 0 < found.peak <= made.sram_bytes
    assert found.live[-1] == 0


def test_thinning_keeps_the_peaks():
    found = Occupancy(tuple(range(10)), (1, 9, 2, 3, 8, 1, 1, 1, 5, 0))
    assert found.thinned(4) == Occupancy((0, 3, 6, 9), (9, 8, 5, 0))
    assert found.thinned(10) is found


def test_peak_power_adds_what_runs_at_once():
    clock = Clock(chain(), Costs(TARGET))
    # A copy moves 256 bytes at 160 and 2.5 pJ each over 108 cycles; the addition spends more, in 5.
    addition = 64 * 0.9 + 512 * 2.5
    assert peak_picojoules_a_cycle(clock, clock.timeline()[1]) == pytest.approx(max(addition / 5, 256 * 162.5 / 108))
    free = Clock(chain(), Costs(TARGET, free_transfers=True))
    assert peak_picojoules_a_cycle(free, free.timeline()[1]) == pytest.approx(addition / 5)
