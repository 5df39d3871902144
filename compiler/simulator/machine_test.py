"""The executable tree: host steps, aliases, branches and loops, with data and without."""

import json
from dataclasses import replace

import numpy as np
import pytest

from compiler.errors import EvaluationError, InvalidInput, TimingNeedsData
from compiler.ir import BOOL, F32, I32, I64, Builder, Constant, Graph, at, tensor
from compiler.ops.registry import lookup
from compiler.program import load_executable, parse_executable, print_executable, save_executable
from compiler.program.executable import Alias, Block, Executable, Host, If, Loop
from compiler.program.handmade_test import executable, matmul_program
from compiler.program.printer import constant_data
from compiler.simulator import Machine, SimulationOptions, simulate, trace_json

VECTOR = tensor(F32, (3,))


def op(name, *types):
    graph = Graph("g", types)
    return Builder(graph, location=at(f"my_{name}", name.title())).op(lookup(name), graph.inputs)


def host(name, operands, results, *types):
    return Host(op(name, *types), operands, results, "for the test")


def tree(steps, inputs, outputs, constants=None, types=None):
    names = tuple(f"x{slot}" for slot in inputs), tuple(f"y{slot}" for slot in outputs)
    return Executable("reference-npu", Block(inputs, tuple(steps), outputs), constants or {}, types or {}, *names)


def test_host_steps_evaluate_and_are_modelled():
    run = tree([host("add", (0, 1), (2,), VECTOR, VECTOR)], (0, 1), (2,))
    x = np.float32([1, 2, 3])
    report = Machine(run).simulate([x, x])
    assert report.outputs[0].tolist() == [2, 4, 6]
    (step,) = report.host
    assert (step.operator, step.reason, step.location) == ("add", "for the test", "my_add (Add)")
    # 2000 cycles to get there, 36 bytes at 8 a cycle, 9 elements at one a cycle.
    assert step.cycles == 2000 + 5 + 9
    assert report.cycles == step.cycles == report.stalls["matrix"]["host"]


def test_timing_without_data_uses_types_and_asks_where_they_do_not_say():
    steps = [host("add", (0, 1), (2,), VECTOR, VECTOR)]
    typed = tree(steps, (0, 1), (2,), types=dict.fromkeys(range(3), VECTOR))
    assert simulate(typed).cycles == 2014
    assert simulate(typed).outputs is None
    with pytest.raises(TimingNeedsData, match="size of a value of type None"):
        simulate(tree(steps, (0, 1), (2,)))


def test_an_alias_costs_nothing_and_reinterprets():
    steps = [Alias(0, 1, tensor(F32, (2, 2))), Alias(1, 2, tensor(I32, (4,)))]
    report = Machine(tree(steps, (0,), (1, 2))).simulate([np.float32([1, 2, 3, 4])])
    assert report.outputs[0].tolist() == [[1, 2], [3, 4]]
    assert report.outputs[1][0] == 0x3F800000
    assert report.cycles == 0


def branch():
    then = Block((), (host("add", (1, 1), (2,), VECTOR, VECTOR),), (2,))
    otherwise = Block((), (), (1,))
    return tree(
        [If(0, then, otherwise, (4,), at("choice", "If"))], (0, 1), (4,), types=dict.fromkeys(range(1, 5), VECTOR)
    )


def test_an_if_takes_one_branch():
    x = np.float32([1, 2, 3])
    machine = Machine(branch())
    assert machine.execute([np.array(True), x])[0].tolist() == [2, 4, 6]
    assert machine.execute([np.array([False]), x])[0].tolist() == [1, 2, 3]
    with pytest.raises(TimingNeedsData, match=r"condition of an if \(at choice \(If\)\)"):
        machine.simulate()
    assert Machine(branch(), options=SimulationOptions(branches={"choice": False})).simulate().cycles == 0
    assert Machine(branch(), options=SimulationOptions(branches={"choice": True})).simulate().cycles > 0


def loop(trip_count=0, condition=None):
    """Carries a running sum of the iteration numbers and scans it."""
    number = tensor(I64, ())
    body = Block((10, 11, 12), (host("add", (10, 12), (13,), number, number),), (11, 13, 13))
    step = Loop(trip_count, condition, (1,), body, (20, 21), at("again", "Loop"))
    types = dict.fromkeys((0, 1, 10, 12, 13, 20), number) | {21: tensor(I64, ("?",)), 11: tensor(BOOL, ())}
    return tree([step], (0, 1, 2), (20, 21), types=types)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_loop_carries_and_stacks(trips):
    start, go = np.array(100, np.int64), np.array(True)
    total, rows = Machine(loop()).execute([np.array(trips, np.int64), start, go])
    assert int(total) == 100 + sum(range(trips))
    assert rows.tolist() == [100 + sum(range(i + 1)) for i in range(trips)]
    assert rows.dtype == np.int64


def test_a_loop_whose_condition_is_false_runs_not_at_all():
    total, rows = Machine(loop(condition=2)).execute([np.array(9, np.int64), np.array(1, np.int64), np.array(False)])
    assert int(total) == 1
    assert rows.shape == (0,)


def test_trips_are_told_by_name_when_there_is_no_data():
    with pytest.raises(TimingNeedsData, match="trip count of a loop"):
        Machine(loop()).simulate()
    once = Machine(loop(), options=SimulationOptions(trips={"again": 1})).simulate().cycles
    assert Machine(loop(), options=SimulationOptions(trips={"again": 7})).simulate().cycles == 7 * once


def test_a_known_trip_count_needs_no_telling():
    run = loop(trip_count=30)
    run = replace(run, constants={30: Constant.of(np.array(3, np.int64))})
    assert (
        Machine(run).simulate().cycles
        == 3 * Machine(loop(), options=SimulationOptions(trips={"again": 1})).simulate().cycles
    )


def test_a_wrong_number_of_inputs_is_refused():
    with pytest.raises(InvalidInput, match="1 inputs given; expected 2: x0, x1"):
        Machine(branch()).execute([np.array(True)])


def test_a_program_in_a_loop_counts_as_often_as_it_runs():
    inner = executable(matmul_program(32, 20, 33, 16))
    (step,) = inner.block.steps
    body = Block((10, 11), (replace(step, inputs=(1, 2), outputs=(12,)),), (11,))
    run = tree([Loop(0, None, (), body, (), at("again"))], (0, 1, 2), (), {0: Constant.of(np.array(5))})
    run = replace(run, block=replace(run.block, inputs=(1, 2)), input_names=("a", "b"))
    report, single = Machine(run).simulate(), Machine(inner).simulate()
    assert (report.cycles, report.traffic_bytes) == (5 * single.cycles, 5 * single.traffic_bytes)
    assert report.energy_pj == pytest.approx(5 * single.energy_pj, rel=1e-12)


def test_a_trace_has_a_slice_for_each_instance_on_the_track_of_its_engine():
    program = matmul_program(64, 20, 33, 16)
    machine = Machine(executable(program))
    trace = json.loads(trace_json(machine.trace([program])))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 1 + 3 * 4
    assert max(event["ts"] + event["dur"] for event in slices) == machine.simulate().cycles
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert names == {"dma_in", "dma_out", "matrix", "vector"}


@pytest.mark.parametrize("make", [branch, loop, lambda: executable(matmul_program(32, 20, 33, 16))])
def test_an_executable_reads_back_and_does_the_same(make, tmp_path):
    run = make()
    text = print_executable(run)
    again = parse_executable(text, constant_data(run))
    assert print_executable(again) == text
    save_executable(run, tmp_path / "run.opx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.opx"]
    assert print_executable(load_executable(tmp_path / "run.opx")) == text
    first = (tmp_path / "run.opx").read_bytes()
    save_executable(again, tmp_path / "run.opx")
    assert (tmp_path / "run.opx").read_bytes() == first


def test_a_saved_executable_runs(tmp_path):
    save_executable(branch(), tmp_path / "run.opx")
    run = load_executable(tmp_path / "run.opx")
    assert Machine(run).execute([np.array(True), np.float32([1, 2, 3])])[0].tolist() == [2, 4, 6]


def test_a_failing_host_step_says_so():
    run = tree([host("add", (0, 1), (2, 3), VECTOR, VECTOR)], (0, 1), (2,))
    with pytest.raises(EvaluationError, match="gave 1 results; expected 2"):
        Machine(run).execute([np.float32([1]), np.float32([1])])


def test_energy_and_traffic_are_those_of_every_instance():
    tiles, tile, n, k = 4, 16, 20, 33
    report = Machine(executable(matmul_program(tiles * tile, n, k, tile))).simulate()
    loaded, stored = (n * k + tiles * tile * k) * 4, tiles * tile * n * 4
    assert (report.read_bytes, report.written_bytes) == (loaded, stored)
    touched = loaded + stored + tiles * (tile * k + k * n + tile * n) * 4
    energy = report.energy_by_component
    assert energy["dram"] == pytest.approx(report.bus_bytes * 160, rel=1e-12)
    assert report.bus_bytes == sum(-(-count // 64) * 64 for count in (n * k * 4, *[tile * k * 4, tile * n * 4] * tiles))
    assert energy["sram"] == pytest.approx(touched * 2.5, rel=1e-12)
    assert energy["matrix"] == pytest.approx(tiles * tile * n * k * 4.6, rel=1e-12)
    assert energy["vector"] == 0
    (kernel,) = report.kernels
    assert kernel.macs == tiles * tile * n * k
    assert kernel.bound.value == "memory"
