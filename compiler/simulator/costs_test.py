"""What an instruction costs, counted by hand."""

from dataclasses import replace

import pytest

from compiler.errors import InvalidProgram
from compiler.ir import BF16, F32, F64, I8, I32, I64
from compiler.ops.work import Apply, Arg, Combiner, Literal, OutOfRange
from compiler.program.handmade_test import DRAM, SRAM, dense, one_matmul
from compiler.program.instructions import Address, Engine, Lookup, Matmul, Operand, Region, Transfer, Vector
from compiler.simulator import Costs, HostReport
from compiler.simulator.report import static_picojoules
from compiler.targets import load_target

TARGET = load_target("reference-npu")
COSTS = Costs(TARGET)


def vector(extents, body, inputs=1, out=None, **parts):
    region = Operand(dense(SRAM, 0, F32, extents))
    return Vector(0, 0, extents, (region,) * inputs, body, out or Operand(dense(SRAM, 0, F32, extents)), **parts)


X = Arg(0, F32)


@pytest.mark.parametrize(
    ("points", "body", "cycles"),
    [
        (64, Apply("add", (X, X), F32), 4 + 1),
        (65, Apply("add", (X, X), F32), 4 + 2),
        (1, X, 4 + 1),
        (640, Apply("div", (X, X), F32), 4 + 10 * 4),
        (640, Apply("exp", (Apply("neg", (X,), F32),), F32), 4 + 10 * (1 + 8)),
        (64, Literal(0.0, F32), 4 + 1),
    ],
)
def test_a_vector_instruction_takes_its_functions_over_the_lanes(points, body, cycles):
    assert COSTS.charge(vector((points,), body)).cycles == cycles


def test_a_node_used_twice_is_computed_once():
    square = Apply("mul", (X, X), F32)
    assert COSTS.charge(vector((64,), Apply("add", (square, square), F32))).cycles == 4 + 2


def test_a_reduction_adds_its_combiner_and_writes_only_its_results():
    out = Operand(dense(SRAM, 0, F32, (2,)))
    charge = COSTS.charge(vector((2, 64), X, out=out, reduced=1, combiner=Combiner.ADD, initial=0.0))
    assert charge.cycles == 4 + 2 * 1
    assert charge.energy == (0.0, 128 * 0.9, (128 + 2) * 4 * 2.5, 0.0)


def transfer(extents, strides, inward=True, lookups=()):
    source = Operand(Region(DRAM, Address(0), F32, strides), lookups)
    sides = source, Operand(dense(SRAM, 0, F32, extents))
    return Transfer(0, 0, extents, *(sides if inward else sides[::-1]))


@pytest.mark.parametrize(
    ("extents", "strides", "moved", "bus"),
    # Bursts are 64 bytes: runs that are far apart take their own, those that lie close share them.
    [
        ((8, 16), (64, 4), 512, 512),
        ((8, 16), (128, 4), 512, 512),
        ((8, 16), (0, 4), 64, 64),
        ((10, 3), (4, 4), 48, 64),
        ((10, 3), (8, 4), 84, 128),
        ((3, 5), (-40, 8), 60, 128),
        ((1, 1), (0, 0), 4, 64),
        ((8, 17), (128, 4), 544, 964 + 60),
        ((8, 17), (1024, 4), 544, 8 * 128),
        ((5, 2), (4096, 4), 40, 5 * 64),
    ],
)
def test_a_transfer_moves_each_byte_once_in_whole_bursts(extents, strides, moved, bus):
    charge = COSTS.charge(transfer(extents, strides))
    assert (charge.dram_read, charge.dram_written, charge.engine) == (moved, 0, Engine.DMA_IN)
    assert charge.bus_bytes == bus
    assert charge.cycles == 100 + -(-bus // 32)
    assert charge.energy[3] == bus * 160
    out = COSTS.charge(transfer(extents, strides, inward=False))
    assert (out.dram_read, out.dram_written, out.engine) == (0, moved, Engine.DMA_OUT)


def test_a_gather_moves_what_its_points_name():
    rows = Lookup(Region(SRAM, Address(0), I64, (8, 0)), 64, 100, OutOfRange.WRAP)
    assert COSTS.charge(transfer((5, 16), (0, 4), lookups=(rows,))).dram_read == 5 * 64


def test_free_transfers_take_no_time_and_move_as_much():
    charge = Costs(TARGET, free_transfers=True).charge(transfer((8, 16), (64, 4)))
    assert (charge.cycles, charge.beats, charge.dram_read) == (0, 0, 512)


def test_a_matmul_spends_energy_by_macs_and_by_what_its_dataflow_reads():
    (multiply,) = one_matmul(40, 50, 60, "reference-npu").body
    charge = COSTS.charge(multiply)
    # Output stationary: a once for each fold of columns (2), b once for each fold of rows (2), the result once.
    touched = (40 * 60 * 2 + 60 * 50 * 2 + 40 * 50) * 4
    assert charge.energy == (40 * 50 * 60 * 4.6, 0.0, touched * 2.5, 0.0)
    assert charge.macs == 120_000
    assert charge.full_cycles == pytest.approx(120_000 / 1024)
    again = COSTS.charge(replace(multiply, accumulate=True))
    assert again.energy[2] == (touched + 40 * 50 * 4) * 2.5


def test_stationary_weights_are_read_once_and_partial_sums_read_back():
    (multiply,) = one_matmul(40, 50, 60, "systolic-32x32-ws").body
    charge = Costs(load_target("systolic-32x32-ws")).charge(multiply)
    folds = 2
    touched = (40 * 60 * 2 + 60 * 50 + 40 * 50 * (folds - 1) + 40 * 50 * folds) * 4
    assert charge.energy[2] == touched * 2.5


def test_types_that_the_target_lacks_are_refused():
    (multiply,) = one_matmul(4, 4, 4, "reference-npu", BF16, F32).body
    assert isinstance(multiply, Matmul)
    with pytest.raises(InvalidProgram, match="multiplies bf16 by bf16 into f32; expected no such product"):
        Costs(load_target("edge-npu")).charge(multiply)
    (integers,) = one_matmul(4, 4, 4, "reference-npu", I8, I32).body
    with pytest.raises(InvalidProgram, match="expected int32"):
        COSTS.charge(replace(integers, out=replace(integers.out, element=F32)))
    with pytest.raises(InvalidProgram, match="computes in f64, which the vector unit"):
        COSTS.charge(vector((4,), Apply("exp", (X,), F64)))


def banked(word):
    sram = TARGET.sram.model_copy(update={"bytes": 32 * 4096, "banks": 32, "word_bytes": word})
    return Costs(TARGET.model_copy(update={"sram": sram}))


@pytest.mark.parametrize(
    ("stride", "cycles"),
    # 64 lanes read and write 64 floats a step from 32 banks of 4 bytes. In order both take 2 cycles; every second bank
    # alone serves a stride of 2 words, one bank a stride of 32, and all of them one of 33.
    [
        (4, 4 + 10 * 4),
        (8, 4 + 10 * (4 + 2)),
        (128, 4 + 10 * (64 + 2)),
        (132, 4 + 10 * 4),
        (0, 4 + 10 * (2 + 2 / 64 * 1)),
    ],
)
def test_lanes_that_meet_in_a_bank_wait_for_each_other(stride, cycles):
    source = Operand(Region(SRAM, Address(0), F32, (stride,)))
    step = Vector(0, 0, (640,), (source,), X, Operand(dense(SRAM, 0, F32, (640,))))
    found = banked(4).charge(step).cycles
    assert found == cycles if stride else 4 + 20 <= found <= 4 + 21
    assert COSTS.charge(step).cycles == 4 + 10


def test_static_power_and_the_host_s_are_energy_of_every_operator():
    target = load_target("edge-npu")
    assert static_picojoules(target.frequency_hz, target) == pytest.approx(0.05e12)
    step = HostReport("sort", "why", "where", target.frequency_hz, 0)
    assert step.energy(target) == {"static": pytest.approx(0.05e12), "host": pytest.approx(0.5e12)}
    assert static_picojoules(1000, load_target("reference-npu")) == 0
