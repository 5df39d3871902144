"""Cycles: the closed forms of systolic arrays, exact skipping of repeats, and bounds that every run must keep."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidProgram
from compiler.ir import BF16, F32, I8, I32
from compiler.program.addresses import placed
from compiler.program.handmade_test import executable, matmul_program, one_matmul
from compiler.program.instructions import Engine
from compiler.program.random_programs_test import programs
from compiler.simulator import Costs, Machine, SimulationOptions
from compiler.simulator.timing import Clock
from compiler.targets import Dataflow, load_target
from compiler.targets.array import matmul_cycles

SHAPES = [
    (1, 1, 1), (1, 1000, 512), (32, 32, 32), (33, 32, 31), (31, 33, 65), (128, 3072, 768), (128, 768, 768), (7, 5, 3),
    (3136, 64, 576), (12544, 64, 147), (784, 128, 1152), (196, 256, 2304), (49, 512, 4608), (50, 1, 9), (1, 1, 4096),
    (4096, 1, 1), (1, 4096, 1), (64, 64, 64), (65, 65, 65), (100, 10, 1000), (197, 768, 768),
]  # fmt: skip


def closed_form(dataflow, m, n, k, rows, columns):
    """As published for SCALE-Sim, whose cycle count is the index of the last cycle."""
    if dataflow == "os":
        return math.ceil(m / rows) * math.ceil(n / columns) * (k + rows + columns - 2) - 1
    if dataflow == "ws":
        return math.ceil(k / rows) * math.ceil(n / columns) * (m + 2 * rows + columns - 2) - 1
    return math.ceil(k / rows) * math.ceil(m / columns) * (n + 2 * rows + columns - 2) - 1


@pytest.mark.parametrize("array", [(32, 32), (128, 128), (8, 20)], ids=str)
@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_without_overlap_a_matmul_takes_the_closed_form_plus_one_cycle(shape, dataflow, array):
    name = f"systolic-{array[0]}x{array[1]}-{dataflow}-ideal"
    machine = Machine(executable(one_matmul(*shape, name)), options=SimulationOptions(overlap=False))
    assert machine.simulate().cycles == closed_form(dataflow, *shape, *array) + 1


@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
def test_a_whole_program_with_free_transfers_takes_the_closed_form_plus_one(dataflow):
    program = matmul_program(64, 80, 96, 64, target=f"systolic-32x32-{dataflow}-ideal")
    cycles = Machine(executable(program), options=SimulationOptions(overlap=False)).simulate().cycles
    assert cycles == closed_form(dataflow, 64, 80, 96, 32, 32) + 1
    finite = replace(program, target=f"systolic-32x32-{dataflow}")
    free = SimulationOptions(overlap=False, infinite_bandwidth=True)
    assert Machine(executable(finite), options=free).simulate().cycles == cycles


def resnet18():
    """The 21 layers as SCALE-Sim's topology file has them: no padding, partial windows counted."""

    def conv(size, kernel, channels, filters, stride):
        out = math.ceil((size - kernel + stride) / stride)
        layers.append((out * out, filters, kernel * kernel * channels))

    layers = []
    conv(224, 7, 3, 64, 2)
    for _ in range(4):
        conv(56, 3, 64, 64, 1)
    for channels, filters, size in ((64, 128, 56), (128, 256, 28), (256, 512, 14)):
        conv(size, 3, channels, filters, 2)
        conv(size // 2, 3, filters, filters, 1)
        conv(size, 1, channels, filters, 2)
        conv(size // 2, 3, filters, filters, 1)
        conv(size // 2, 3, filters, filters, 1)
    return [*layers, (1, 1000, 512)]


@pytest.mark.parametrize(
    ("target", "cycles"),
    [("32x32-os", 1718353), ("32x32-ws", 2519815), ("128x128-os", 262370), ("128x128-ws", 417628)],
)
def test_resnet18_takes_the_cycles_that_scale_sim_measures(target, cycles):
    matrix = load_target(f"systolic-{target}").matrix
    assert sum(matmul_cycles(matrix, *layer) - 1 for layer in resnet18()) == cycles


@pytest.mark.parametrize(("dataflow", "cycles"), [("os", 318719), ("ws", 511487), ("is", 303935)])
def test_bert_ffn1_takes_the_cycles_that_scale_sim_measures(dataflow, cycles):
    assert matmul_cycles(load_target(f"systolic-32x32-{dataflow}").matrix, 128, 3072, 768) - 1 == cycles


def test_a_hidden_preload_costs_only_its_first_load():
    matrix = load_target("datacenter-npu").matrix
    m, folds = 200, 6
    expected = (2 * 128 - 1) + (folds - 1) * 200 + (128 + 128 - 2 + 200)
    assert matmul_cycles(matrix, m, 384, 256) == expected
    assert expected < folds * (m + 2 * 128 + 128 - 2)


def test_output_stationary_folds_follow_each_other_once_their_sums_can_leave_under_the_next():
    matrix = load_target("reference-npu").matrix
    # 3 x 2 folds of 100 steps; the skew and the way out show once. A short fold waits for the rows of the one before.
    assert matmul_cycles(matrix, 96, 64, 100) == 5 * 100 + 100 + 62
    assert matmul_cycles(matrix, 96, 64, 10) == 5 * 32 + 10 + 62
    assert matmul_cycles(matrix, 96, 64, 100, batch=2) == 11 * 100 + 100 + 62


@pytest.mark.parametrize("dataflow", list(Dataflow))
def test_an_instruction_may_ask_for_any_dataflow_that_the_array_offers(dataflow):
    target = load_target("reference-npu")
    (multiply,) = one_matmul(100, 70, 90, "reference-npu").body
    own = target.matrix.model_copy(update={"dataflow": dataflow, "alternatives": ()})
    asked = Costs(target).charge(replace(multiply, dataflow=dataflow))
    assert asked == Costs(target.model_copy(update={"matrix": own})).charge(multiply)
    systolic = load_target("systolic-32x32-os")
    if dataflow is not Dataflow.OUTPUT_STATIONARY:
        with pytest.raises(InvalidProgram, match=f"asks for dataflow {dataflow.value}; target .* offers os"):
            Costs(systolic).charge(replace(multiply, dataflow=dataflow))


def test_narrow_types_pass_several_products_a_cycle():
    matrix = load_target("reference-npu").matrix
    assert matmul_cycles(matrix, 32, 32, 256, depth=4) == 256 // 4 + 62
    program = one_matmul(32, 32, 256, "reference-npu", I8, I32)
    assert Machine(executable(program)).simulate().cycles == 256 // 4 + 62


@given(programs(most_trips=300), st.sampled_from(["reference-npu", "systolic-4x4-ws-ideal"]))
def test_skipping_a_recurring_repeat_changes_nothing(program, target):
    clock = Clock(program, Costs(load_target(target)))
    if sum(item.instances for item in clock.items) > 20_000:
        return
    skipped, unrolled = clock.measure(), clock.measure(skip=False)
    assert replace(skipped, simulated=unrolled.simulated) == unrolled
    schedule, timeline = clock.timeline()
    assert replace(schedule, simulated=unrolled.simulated) == unrolled
    assert max((queue[-1].end for queue in timeline if queue), default=0) == unrolled.cycles


def test_a_long_repeat_costs_time_by_its_period_not_its_count():
    clock = Clock(matmul_program(32 * 1_000_000, 80, 96, 32), Costs(load_target("reference-npu")))
    schedule = clock.measure()
    assert schedule.simulated < 100
    assert schedule.cycles > 1_000_000


def intervals(clock):
    return {instance.order: instance for queue in clock.timeline()[1] for instance in queue}


@given(programs(most_trips=6))
def test_engines_take_their_instructions_one_after_another_and_waits_hold(program):
    clock = Clock(program, Costs(load_target("reference-npu")))
    schedule, timeline = clock.timeline()
    for queue in timeline:
        for before, after in pairwise(queue):
            assert before.order < after.order
            assert before.end <= after.start
    ends: dict[int, list[int]] = {}
    for instance in sorted((instance for queue in timeline for instance in queue), key=lambda one: one.order):
        instruction = clock.items[instance.item].instruction
        for wait in instruction.waits:
            earlier = ends.get(wait.on, [])
            if len(earlier) > wait.lag:
                assert instance.start >= earlier[-1 - wait.lag]
        ends.setdefault(instruction.id, []).append(instance.end)
    for engine, busy in enumerate(schedule.busy):
        assert busy + sum(schedule.idle[engine]) == schedule.cycles
    assert sum(schedule.kernel_cycles) == schedule.cycles


@given(programs(most_trips=6))
def test_without_overlap_one_instruction_runs_at_a_time(program):
    clock = Clock(program, Costs(load_target("reference-npu")))
    schedule, timeline = clock.timeline(overlap=False)
    instances = sorted((instance for queue in timeline for instance in queue), key=lambda one: one.start)
    assert all(before.end <= after.start for before, after in pairwise(instances))
    assert schedule.cycles == clock.measure(overlap=False).cycles == max((one.end for one in instances), default=0)


@given(
    st.integers(1, 8), st.integers(1, 90), st.integers(1, 90), st.integers(1, 40),
    st.sampled_from([(F32, F32), (BF16, F32), (I8, I32)]),
    st.sampled_from(["reference-npu", "systolic-16x8-ws", "systolic-5x7-is"]),
    st.sampled_from([0.5, 3.0, 32.0, 1000.0]),
)  # fmt: skip
def test_every_run_stays_between_its_bounds(tiles, n, k, tile, types, target_name, bandwidth):
    target = load_target(target_name).with_memory(bytes_per_cycle=bandwidth)
    program = matmul_program(tiles * tile, n, k, tile, *types, target=target_name)
    run = executable(program)
    report = Machine(run, target).simulate()
    matrix = target.matrix
    depth = matrix.product(types[0], types[0]).depth
    macs = tiles * tile * n * k
    compute = sum(report.busy[engine] for engine in ("matrix", "vector"))
    transfers = sum(
        item.instances for item in placed(program.body) if item.instruction.engine in (Engine.DMA_IN, Engine.DMA_OUT)
    )
    lowest = max(macs / (matrix.rows * matrix.columns * depth), report.compulsory_bytes / bandwidth)
    assert lowest <= report.cycles
    # Each transfer rounds its last beat up.
    highest = compute + report.bus_bytes / bandwidth + transfers * (target.dram.latency_cycles + 1)
    assert report.cycles <= highest
    assert report.bus_bytes >= report.traffic_bytes >= report.compulsory_bytes
    assert report.utilization["macs"] <= 1
    sequential = Machine(run, target, SimulationOptions(overlap=False)).simulate()
    assert report.cycles <= sequential.cycles
    faster = Machine(run, target.with_memory(bytes_per_cycle=bandwidth * 1.7)).simulate()
    assert faster.cycles <= report.cycles


@given(programs(most_trips=20))
def test_energy_agrees_by_operator_by_component_and_in_total(program):
    report = Machine(executable(program)).simulate()
    total = report.energy_pj
    assert math.isclose(sum(report.energy_by_operator.values()), total, rel_tol=1e-9)
    assert math.isclose(sum(report.energy_by_component.values()), total, rel_tol=1e-9)
    assert math.isclose(sum(sum(kernel.energy.values()) for kernel in report.kernels), total, rel_tol=1e-9)


@given(programs(most_trips=20), st.sampled_from([0.25, 1.0, 8.0, 500.0]))
def test_cycles_never_grow_with_bandwidth_and_never_exceed_running_in_turn(program, bandwidth):
    run, target = executable(program), load_target("reference-npu")
    slow = Machine(run, target.with_memory(bytes_per_cycle=bandwidth)).simulate().cycles
    fast = Machine(run, target.with_memory(bytes_per_cycle=bandwidth * 2)).simulate().cycles
    in_turn = Machine(run, target.with_memory(bytes_per_cycle=bandwidth), SimulationOptions(overlap=False)).simulate()
    assert fast <= slow <= in_turn.cycles
