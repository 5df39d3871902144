"""What a simulation yields: cycles, idle time by cause, traffic, energy, roofline class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from compiler.program.instructions import Engine
from compiler.simulator.costs import COMPONENTS
from compiler.simulator.timing import CAUSES, ENGINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.program.executable import Kernel, Program
    from compiler.simulator.timing import Clock, Schedule
    from compiler.targets import Target


STATIC: Final = "static"
HOST: Final = "host"
"""Components of energy beside those of instructions: what flows all the time, and the host at work."""


class Bound(Enum):
    """What limits a kernel: the engine kind that is busiest with it."""

    MATRIX = "matrix"
    VECTOR = "vector"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel of a program, for one run of it. Bytes are of DRAM; energy is picojoules by component.

    ``full_cycles``: what its multiply-accumulates would take with every cell of the array at work.
    ``cycles`` is by how much the kernel moved the end of the run: with overlap, what it hides behind others is theirs.
    """

    kernel: Kernel
    cycles: int
    busy: dict[Engine, int]
    macs: int
    full_cycles: float
    read_bytes: int
    written_bytes: int
    energy: dict[str, float]
    bus_bytes: int = 0
    """DRAM bytes moved with the rest of their bursts."""

    @property
    def bound(self) -> Bound:
        """The roofline class."""
        work = {
            Bound.MATRIX: self.busy[Engine.MATRIX],
            Bound.VECTOR: self.busy[Engine.VECTOR],
            Bound.MEMORY: max(self.busy[Engine.DMA_IN], self.busy[Engine.DMA_OUT]),
        }
        return max(work, key=lambda bound: work[bound])


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """One run of one program. ``idle`` + ``busy`` of an engine is ``cycles``."""

    program: Program
    cycles: int
    busy: dict[Engine, int]
    idle: dict[Engine, dict[str, int]]
    kernels: tuple[KernelReport, ...]

    @property
    def read_bytes(self) -> int:
        """Bytes read from DRAM."""
        return sum(kernel.read_bytes for kernel in self.kernels)

    @property
    def written_bytes(self) -> int:
        """Bytes written to DRAM."""
        return sum(kernel.written_bytes for kernel in self.kernels)

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that inputs, constants and outputs of each kernel need at least."""
        return sum(kernel.kernel.compulsory_bytes for kernel in self.kernels)

    @property
    def energy(self) -> dict[str, float]:
        """Picojoules by component."""
        names = (*COMPONENTS, STATIC)
        return {name: math.fsum(kernel.energy[name] for kernel in self.kernels) for name in names}


def static_picojoules(cycles: int, target: Target) -> float:
    """What the accelerator takes in a time whatever it does."""
    return cycles / target.frequency_hz * (target.energy.static_watts or 0.0) * 1e12


def report_program(clock: Clock, schedule: Schedule, target: Target) -> ProgramReport:
    """The figures of one run of a program that was timed. Static energy goes by the cycles of each kernel."""
    program = clock.program
    static = [static_picojoules(cycles, target) for cycles in schedule.kernel_cycles]
    count = max(1, len(program.kernels))
    busy = [dict.fromkeys(ENGINES, 0) for _ in range(count)]
    sums = [[0, 0, 0, 0] for _ in range(count)]
    full: list[list[float]] = [[] for _ in range(count)]
    energy: list[list[list[float]]] = [[[] for _ in COMPONENTS] for _ in range(count)]
    for item, charge in zip(clock.items, clock.charges, strict=True):
        kernel, times = item.instruction.kernel, item.instances
        busy[kernel][charge.engine] += charge.cycles * times
        for index, amount in enumerate((charge.macs, charge.dram_read, charge.dram_written, charge.bus_bytes)):
            sums[kernel][index] += amount * times
        full[kernel].append(charge.full_cycles * times)
        for parts, spent in zip(energy[kernel], charge.energy, strict=True):
            parts.append(spent * times)
    kernels = tuple(
        KernelReport(
            kernel,
            schedule.kernel_cycles[index],
            busy[index],
            sums[index][0],
            math.fsum(full[index]),
            sums[index][1],
            sums[index][2],
            {**dict(zip(COMPONENTS, map(math.fsum, energy[index]), strict=True)), STATIC: static[index]},
            sums[index][3],
        )
        for index, kernel in enumerate(program.kernels)
    )
    idle = {engine: dict(zip(CAUSES, row, strict=True)) for engine, row in zip(ENGINES, schedule.idle, strict=True)}
    return ProgramReport(program, schedule.cycles, dict(zip(ENGINES, schedule.busy, strict=True)), idle, kernels)


@dataclass(frozen=True, slots=True)
class HostReport:
    """An operation on the host: cycles and bytes moved to and from it are modelled, not simulated."""

    operator: str
    reason: str
    location: str
    cycles: int
    moved_bytes: int

    def energy(self, target: Target) -> dict[str, float]:
        """Picojoules by component: the host's own, and what the accelerator takes while it waits."""
        own = self.cycles / target.frequency_hz * (target.energy.host_watts or 0.0) * 1e12
        return {STATIC: static_picojoules(self.cycles, target), HOST: own}


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """A whole run. ``programs`` has each program with the number of its runs; host cycles are modelled.

    ``outputs`` is None after timing without data.
    """

    target: Target
    outputs: list[Any] | None
    programs: tuple[tuple[ProgramReport, int], ...]
    host: tuple[HostReport, ...]
    steps: tuple[ProgramReport | HostReport, ...] = ()
    """Programs, where each ran first, and host steps, in order."""

    def _total(self, values: Sequence[int]) -> int:
        return sum(value * times for value, (_, times) in zip(values, self.programs, strict=True))

    @property
    def accelerator_cycles(self) -> int:
        """Simulated cycles."""
        return self._total([report.cycles for report, _ in self.programs])

    @property
    def host_cycles(self) -> int:
        """Modelled cycles of the host steps."""
        return sum(step.cycles for step in self.host)

    @property
    def cycles(self) -> int:
        """All cycles: accelerator and host take turns."""
        return self.accelerator_cycles + self.host_cycles

    @property
    def seconds(self) -> float:
        """Time at the target's frequency."""
        return self.cycles / self.target.frequency_hz

    @property
    def busy(self) -> dict[str, int]:
        """Busy cycles an engine."""
        return {engine.value: self._total([report.busy[engine] for report, _ in self.programs]) for engine in ENGINES}

    @property
    def utilization(self) -> dict[str, float]:
        """Busy share an engine; ``macs`` is the share of the array's multiply-accumulates that was used."""
        cycles = self.cycles
        if not cycles:
            return dict.fromkeys((*self.busy, "macs"), 0.0)
        full = math.fsum(kernel.full_cycles * times for report, times in self.programs for kernel in report.kernels)
        return {**{name: spent / cycles for name, spent in self.busy.items()}, "macs": full / cycles}

    @property
    def macs(self) -> int:
        """Multiply-accumulates done."""
        return self._total([sum(kernel.macs for kernel in report.kernels) for report, _ in self.programs])

    @property
    def stalls(self) -> dict[str, dict[str, int]]:
        """Idle cycles an engine by cause; host time is the cause ``host``."""
        return {
            engine.value: {
                **{cause: self._total([report.idle[engine][cause] for report, _ in self.programs]) for cause in CAUSES},
                "host": self.host_cycles,
            }
            for engine in ENGINES
        }

    @property
    def read_bytes(self) -> int:
        """Bytes read from DRAM."""
        return self._total([report.read_bytes for report, _ in self.programs])

    @property
    def written_bytes(self) -> int:
        """Bytes written to DRAM."""
        return self._total([report.written_bytes for report, _ in self.programs])

    @property
    def traffic_bytes(self) -> int:
        """Bytes read from and written to DRAM."""
        return self.read_bytes + self.written_bytes

    @property
    def bus_bytes(self) -> int:
        """Bytes on the DRAM's bus: traffic with the rest of its bursts."""
        return self._total([sum(kernel.bus_bytes for kernel in report.kernels) for report, _ in self.programs])

    @property
    def compulsory_bytes(self) -> int:
        """Sum over kernels of the bytes of inputs, constants and outputs, each once."""
        return self._total([report.compulsory_bytes for report, _ in self.programs])

    @property
    def peak_sram_bytes(self) -> int:
        """Highest SRAM use of any program."""
        return max((report.program.sram_bytes for report, _ in self.programs), default=0)

    @property
    def sram_bound_bytes(self) -> int:
        """The most bytes of SRAM that are in use at one time in any program, under which no peak can be."""
        return max((report.program.sram_bound_bytes for report, _ in self.programs), default=0)

    @property
    def energy_by_component(self) -> dict[str, float]:
        """Picojoules by component."""
        parts: dict[str, list[float]] = {name: [] for name in (*COMPONENTS, STATIC, HOST)}
        for report, times in self.programs:
            for name, spent in report.energy.items():
                parts[name].append(spent * times)
        for step in self.host:
            for name, spent in step.energy(self.target).items():
                parts[name].append(spent)
        return {name: math.fsum(spent) for name, spent in parts.items()}

    @property
    def energy_by_operator(self) -> dict[str, float]:
        """Picojoules by the operators that a kernel stands for, joined with ``+``."""
        parts: dict[str, list[float]] = {}
        for report, times in self.programs:
            for kernel in report.kernels:
                name = "+".join(kernel.kernel.operators) or kernel.kernel.name
                parts.setdefault(name, []).extend(spent * times for spent in kernel.energy.values())
        for step in self.host:
            parts.setdefault(step.operator, []).extend(step.energy(self.target).values())
        return {name: math.fsum(spent) for name, spent in parts.items()}

    @property
    def energy_pj(self) -> float:
        """Picojoules in all."""
        return math.fsum(self.energy_by_component.values())

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """Each kernel of each program, once."""
        return tuple(kernel for report, _ in self.programs for kernel in report.kernels)
