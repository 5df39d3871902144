"""Bounds that every run must keep, on random graphs, element types and targets (2,000 in the profile `thorough`)."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir import BF16, F16, F32, Builder, Graph, tensor
from compiler.lowering.lower import lower
from compiler.ops.activation import Relu
from compiler.ops.contraction import MatMul
from compiler.ops.elementwise import Add, Exp, Mul
from compiler.ops.movement import Concat, Transpose
from compiler.ops.reduce import ReduceSum
from compiler.pipeline import optimize
from compiler.program.addresses import placed
from compiler.program.instructions import Engine, Matmul
from compiler.simulator import Machine, SimulationOptions
from compiler.targets import Dataflow, load_target
from compiler.targets.loader import validate

SIZES = st.sampled_from([1, 3, 8, 17, 64, 130, 300])


def product(draw, b, values):
    x = draw(st.sampled_from(values))
    rows, element = x.tensor.shape[1], x.tensor.element
    fitting = [value for value in values if value.tensor.shape[0] == rows]
    if fitting and draw(st.booleans()):
        return b(MatMul, x, draw(st.sampled_from(fitting)))
    return b(MatMul, x, b.constant(np.ones((rows, draw(SIZES)), element.dtype)))


def joined(draw, b, values):
    x = draw(st.sampled_from(values))
    same = [value for value in values if value.tensor.shape == x.tensor.shape]
    return b(draw(st.sampled_from([Add, Mul])), x, draw(st.sampled_from(same)))


def unary(draw, b, values):
    return b(draw(st.sampled_from([Exp, Relu])), draw(st.sampled_from(values)))


def turned(draw, b, values):
    return b(Transpose, draw(st.sampled_from(values)), permutation=(1, 0))


def summed(draw, b, values):
    return b(ReduceSum, draw(st.sampled_from(values)), axes=(draw(st.integers(0, 1)),), keep_dims=True)


def stacked(draw, b, values):
    x = draw(st.sampled_from(values))
    return b(Concat, x, x, axis=draw(st.integers(0, 1)))


STEPS = [product, product, product, joined, unary, turned, summed, stacked]


@st.composite
def graphs(draw):
    element = draw(st.sampled_from([F32, F16, BF16]))
    graph = Graph("random", [tensor(element, (draw(SIZES), draw(SIZES))) for _ in range(draw(st.integers(1, 3)))])
    builder, values = Builder(graph), list(graph.inputs)
    for _ in range(draw(st.integers(1, 8))):
        made = draw(st.sampled_from(STEPS))(draw, builder, values)
        if made.tensor.size <= 100_000:
            values.append(made)
    builder.output(values[-1], *draw(st.lists(st.sampled_from(values), max_size=2)))
    return graph


@st.composite
def targets(draw):
    description = load_target("reference-npu").model_dump()
    flow, *others = draw(st.permutations([flow.value for flow in Dataflow]))
    description["matrix"] |= {
        "rows": draw(st.integers(1, 64)), "columns": draw(st.integers(1, 64)), "dataflow": flow,
        "alternatives": draw(st.sampled_from([(), tuple(others)])), "hide_preload": draw(st.booleans()),
    }  # fmt: skip
    description["sram"] |= {"bytes": draw(st.sampled_from([1 << 15, 1 << 18, 1 << 21])), "banks": 8}
    description["sram"]["word_bytes"] = draw(st.sampled_from([None, 4, 8]))
    description["dram"] |= {
        "bytes_per_cycle": draw(st.sampled_from([0.3, 2.0, 32.0, 700.0])),
        "latency_cycles": draw(st.sampled_from([0, 7, 400])), "burst_bytes": draw(st.sampled_from([1, 32, 128])),
    }  # fmt: skip
    description["vector"]["lanes"] = draw(st.integers(1, 128))
    description["energy"] |= {"static_watts": draw(st.sampled_from([None, 0.7])), "host_watts": 1.5}
    description["sources"] |= dict.fromkeys(("sram", "energy.static_watts", "energy.host_watts"), "drawn")
    if description["energy"]["static_watts"] is None:
        del description["sources"]["energy.static_watts"]
    return validate(description, "drawn")


@given(graphs(), targets())
def test_every_run_of_a_random_graph_on_a_random_target_keeps_its_bounds(graph, target):
    optimize(graph, target)
    executable = lower(graph, target)
    report = Machine(executable, target).simulate()
    items = [item for program, _ in report.programs for item in placed(program.program.body)]
    transfers = sum(item.instances for item in items if item.instruction.engine in (Engine.DMA_IN, Engine.DMA_OUT))
    bandwidth, latency, cycles = target.dram.bytes_per_cycle, target.dram.latency_cycles, report.accelerator_cycles

    cells = target.matrix.rows * target.matrix.columns
    least = math.fsum(item.instances * least_cycles(item.instruction, target, cells) for item in items)
    assert max(least, report.compulsory_bytes / bandwidth) <= cycles * (1 + 1e-12)
    compute = sum(report.busy[engine] for engine in ("matrix", "vector"))
    # The last beat of a transfer is rounded up.
    assert cycles <= compute + report.bus_bytes / bandwidth + transfers * (latency + 1)
    assert report.bus_bytes >= report.traffic_bytes >= report.compulsory_bytes
    assert all(0 <= share <= 1 for share in report.utilization.values())

    in_turn = Machine(executable, target, SimulationOptions(overlap=False)).simulate()
    assert report.cycles <= in_turn.cycles
    faster = Machine(executable, target.with_memory(bytes_per_cycle=bandwidth * 1.9)).simulate()
    assert faster.cycles <= report.cycles

    total = report.energy_pj
    assert math.isclose(math.fsum(report.energy_by_operator.values()), total, rel_tol=1e-9)
    assert math.isclose(math.fsum(report.energy_by_component.values()), total, rel_tol=1e-9)
    kernels = math.fsum(math.fsum(kernel.energy.values()) for kernel in report.kernels)
    hosts = math.fsum(math.fsum(step.energy(target).values()) for step in report.host)
    assert math.isclose(kernels + hosts, total, rel_tol=1e-9)


def least_cycles(instruction, target, cells):
    if not isinstance(instruction, Matmul):
        return 0.0
    product = target.matrix.product(instruction.a.element, instruction.b.element)
    loops = (*instruction.batch, *instruction.m, *instruction.n, *instruction.k)
    return math.prod(loops) / (cells * product.depth)
