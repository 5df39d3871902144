"""The performance of one run as plain data, version 1: what the table, plots, plan and cost analysis are made from.

Everything in it is a function of model, target and options, so that two runs write the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.api import SimulationResult
    from compiler.ir import Graph
    from compiler.simulator import HostReport, KernelReport, ProgramReport, SimulationReport
    from compiler.simulator.occupancy import Occupancy
    from compiler.simulator.timing import Clock, Instance
    from compiler.targets import Target

SCHEMA: Final = "opatlas.performance"
VERSION: Final = 1
MOST_INSTANCES: Final = 1_000_000
"""Programs that run more instructions than this are summed up without their timeline: no occupancy, no peak power."""
_DRAWN: Final = 1500


def performance(model: str, result: SimulationResult) -> dict[str, Any]:
    """Return the performance of a simulation as plain data."""
    report = result.report
    timed = [_Timed.of(program, report.target) for program, _ in report.programs]
    operators = _operators(report, {id(entry.report): entry for entry in timed}, model)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "model": model,
        "target": _target(report.target),
        "placement": result.placement,
        "totals": _totals(result, timed),
        "utilization": report.utilization,
        "stalls": report.stalls,
        "operators": operators,
        "occupancy": [plain for entry in timed for plain in entry.occupancies(report.target)],
        "plan": _plan(operators),
        "cost_analysis": None if result.graph is None else _cost_analysis(result.graph, report),
    }


@dataclass(frozen=True, slots=True)
class _Timed:
    """A program with its timeline, if that is short enough: first start and last end a kernel."""

    report: ProgramReport
    clock: Clock
    timeline: Sequence[Sequence[Instance]] | None
    spans: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, report: ProgramReport, target: Target) -> _Timed:
        from compiler.simulator import Costs
        from compiler.simulator.timing import Clock

        clock = Clock(report.program, Costs(target))
        if sum(item.instances for item in clock.items) > MOST_INSTANCES:
            return cls(report, clock, None, {})
        timeline = clock.timeline()[1]
        spans: dict[int, tuple[int, int]] = {}
        for one in (one for queue in timeline for one in queue):
            kernel = clock.items[one.item].instruction.kernel
            first, last = spans.get(kernel, (one.start, one.end))
            spans[kernel] = min(first, one.start), max(last, one.end)
        return cls(report, clock, timeline, spans)

    def occupancies(self, target: Target) -> Iterator[dict[str, Any]]:
        """What is live in each memory over time, thinned for drawing."""
        from compiler.program.instructions import Memory
        from compiler.simulator.occupancy import occupancy

        if self.timeline is None:
            return
        capacity = {Memory.SRAM: target.sram.bytes, Memory.DRAM: target.dram.bytes}
        planned = {Memory.SRAM: self.report.program.sram_bytes, Memory.DRAM: self.report.program.dram_bytes}
        for memory in (Memory.SRAM, Memory.DRAM):
            found: Occupancy = occupancy(self.clock, self.timeline, memory)
            drawn = found.thinned(_DRAWN)
            yield {
                "program": self.report.program.name,
                "memory": memory.value,
                "capacity_bytes": capacity[memory],
                "planned_bytes": planned[memory],
                "peak_live_bytes": found.peak,
                "times": list(drawn.times),
                "bytes": list(drawn.live),
            }

    def peak_watts(self, target: Target) -> float | None:
        """The highest dynamic power of any cycle."""
        from compiler.simulator.power import peak_picojoules_a_cycle

        if self.timeline is None:
            return None
        return peak_picojoules_a_cycle(self.clock, self.timeline) * 1e-12 * target.frequency_hz


def _target(target: Target) -> dict[str, Any]:
    cells = target.matrix.rows * target.matrix.columns
    bandwidth = target.dram.bytes_per_cycle
    return {
        "name": target.name,
        "description": target.description,
        "frequency_hz": target.frequency_hz,
        "array": f"{target.matrix.rows}x{target.matrix.columns}",
        "dataflows": [flow.value for flow in target.matrix.dataflows],
        "macs_per_cycle": {
            f"{product.a.dtype.name} x {product.b.dtype.name}": cells * product.depth
            for product in target.matrix.products
        },
        "vector_lanes": target.vector.lanes,
        "dram_bytes_per_cycle": None if math.isinf(bandwidth) else bandwidth,
        "sram_bytes": target.sram.bytes,
    }


def _totals(result: SimulationResult, timed: Sequence[_Timed]) -> dict[str, Any]:
    report = result.report
    joules = report.energy_pj * 1e-12
    peaks = [entry.peak_watts(report.target) for entry in timed]
    return {
        "cycles": report.cycles,
        "accelerator_cycles": report.accelerator_cycles,
        "host_cycles": report.host_cycles,
        "seconds": report.seconds,
        "macs": report.macs,
        "read_bytes": report.read_bytes,
        "written_bytes": report.written_bytes,
        "traffic_bytes": report.traffic_bytes,
        "compulsory_bytes": report.compulsory_bytes,
        "bus_bytes": report.bus_bytes,
        "peak_sram_bytes": report.peak_sram_bytes,
        "energy_pj": report.energy_pj,
        "energy_by_component": report.energy_by_component,
        "average_watts": joules / report.seconds if report.seconds else 0.0,
        "peak_watts": None if None in peaks else max((peak for peak in peaks if peak is not None), default=0.0),
        "energy_delay_joule_seconds": joules * report.seconds,
        "operators_before": result.operators_before,
        "operators_after": result.operators_after,
    }


def _operators(report: SimulationReport, timed: dict[int, _Timed], model: str) -> list[dict[str, Any]]:
    """One row a kernel or host operation, in the order in which they ran first."""
    runs = {id(program): times for program, times in report.programs}
    rows: list[dict[str, Any]] = []
    hosts: dict[tuple[str, str, str], dict[str, Any]] = {}
    start = 0
    for step in report.steps:
        if id(step) in timed:
            entry = timed[id(step)]
            rows += [_kernel(entry, index, start, runs[id(step)], model) for index in range(len(entry.report.kernels))]
        else:
            _host(step, start, rows, hosts, model, report.target)  # type: ignore[arg-type] # what is no program is a host step
        start += step.cycles
    for order, row in enumerate(rows):
        share = row["cycles"] / report.cycles if report.cycles else 0.0
        row |= {"order": order, "share": share}
    return rows


def _kernel(entry: _Timed, index: int, start: int, runs: int, model: str) -> dict[str, Any]:
    kernel: KernelReport = entry.report.kernels[index]
    first, last = entry.spans.get(index, (None, None))
    span = 0 if first is None or last is None else last - first
    traffic = kernel.read_bytes + kernel.written_bytes
    operations = 2 * kernel.macs + kernel.kernel.operations
    shares = {engine.value: busy / span if span else 0.0 for engine, busy in kernel.busy.items()}
    return {
        "order": 0,
        "operators": list(kernel.kernel.operators),
        "nodes": [str(node).removeprefix(f"{model}: ") for node in kernel.kernel.location.nodes],
        "device": "accelerator",
        "reason": "",
        "runs": runs,
        "start_cycle": None if first is None else start + first,
        "span_cycles": None if first is None else span,
        "cycles": kernel.cycles * runs,
        "share": 0.0,
        "bound": kernel.bound.value,
        "macs": kernel.macs * runs,
        "operations": operations * runs,
        "utilization": {**shares, "macs": kernel.full_cycles / span if span else 0.0},
        "read_bytes": kernel.read_bytes * runs,
        "written_bytes": kernel.written_bytes * runs,
        "traffic_bytes": traffic * runs,
        "compulsory_bytes": kernel.kernel.compulsory_bytes * runs,
        "intensity": operations / traffic if traffic else None,
        "energy_pj": math.fsum(kernel.energy.values()) * runs,
        "energy_by_component": {name: energy * runs for name, energy in kernel.energy.items()},
    }


def _host(
    step: HostReport,
    start: int,
    rows: list[dict[str, Any]],
    hosts: dict[tuple[str, str, str], dict[str, Any]],
    model: str,
    target: Target,
) -> None:
    """Add a row, or add to that of the same operation's earlier runs."""
    key = (step.operator, step.location, step.reason)
    row = hosts.get(key)
    if row is None:
        row = hosts[key] = {
            "order": 0,
            "operators": [step.operator],
            "nodes": [step.location.removeprefix(f"{model}: ")],
            "device": "host",
            "reason": step.reason,
            "runs": 0,
            "start_cycle": start,
            "span_cycles": step.cycles,
            "cycles": 0,
            "share": 0.0,
            "bound": "host",
            "macs": 0,
            "operations": 0,
            "utilization": {},
            "read_bytes": 0,
            "written_bytes": 0,
            "traffic_bytes": 0,
            "compulsory_bytes": 0,
            "intensity": None,
            "energy_pj": 0.0,
            "energy_by_component": {},
        }
        rows.append(row)
    row["runs"] += 1
    row["cycles"] += step.cycles
    row["traffic_bytes"] += step.moved_bytes
    spent = step.energy(target)
    row["energy_pj"] += math.fsum(spent.values())
    row["energy_by_component"] = {name: row["energy_by_component"].get(name, 0.0) + pj for name, pj in spent.items()}


def _plan(operators: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a framework node, as Core ML's compute plan has them: where it can run, where it does, at which share.

    The cost of a kernel that stands for several nodes is given at each of them with their number, not divided: it is
    their cost together.
    """
    return [
        {
            "node": node,
            "operators": row["operators"],
            "supported": ["accelerator", "host"] if row["device"] == "accelerator" else ["host"],
            "preferred": row["device"],
            "reason": row["reason"],
            "kernel": row["order"],
            "nodes_of_kernel": len(row["nodes"]),
            "cost_share": row["share"],
        }
        for row in operators
        for node in row["nodes"] or ["(made by the compiler)"]
    ]


def _cost_analysis(graph: Graph, report: SimulationReport) -> dict[str, Any]:
    from compiler.program.executable import Role
    from compiler.simulator.cost_analysis import cost_analysis

    found = cost_analysis(graph)
    temporary = max(
        (
            sum(buffer.type.nbytes for buffer in entry.program.buffers if buffer.role is Role.TEMPORARY)
            for entry, _ in report.programs
        ),
        default=0,
    )
    return {
        "flops": found.flops,
        "transcendentals": found.transcendentals,
        "bytes_accessed": found.bytes_accessed,
        "argument_bytes": found.argument_bytes,
        "constant_bytes": found.constant_bytes,
        "output_bytes": found.output_bytes,
        "temporary_bytes": temporary,
        "peak_bytes": max((entry.program.dram_bytes for entry, _ in report.programs), default=0),
        "operations": len(found.operations),
        "operations_of_unknown_cost": found.unknown,
        "by_operator": _by_operator(found.operations),
    }


def _by_operator(operations: Sequence[Any]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for cost in operations:
        row = sums.setdefault(cost.op.name, {"count": 0, "flops": 0, "transcendentals": 0, "bytes_accessed": 0})
        row["count"] += 1
        row["flops"] += cost.flops
        row["transcendentals"] += cost.transcendentals
        row["bytes_accessed"] += cost.bytes_accessed
    return dict(sorted(sums.items(), key=lambda item: (-item[1]["flops"], item[0])))
