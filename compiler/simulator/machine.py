"""Runs an executable: programs on the simulated accelerator, other steps on the host, with or without data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidInput, TimingNeedsData
from compiler.ir import TensorType
from compiler.program.executable import Alias, Host, If, Loop, Run
from compiler.simulator.costs import Costs
from compiler.simulator.functional import ProgramRunner
from compiler.simulator.host import evaluate_host, model_host, size_of
from compiler.simulator.options import SimulationOptions
from compiler.simulator.report import HostReport, ProgramReport, SimulationReport, report_program
from compiler.simulator.timing import Clock
from compiler.simulator.trace import trace_events
from compiler.targets import load_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compiler.ir import Location
    from compiler.program.executable import Block, Executable, Program, Slot
    from compiler.targets import Target


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()
"""A value that timing without data does not have."""


class Machine:
    """An executable on a target. Compiled programs, schedules and reports are kept between runs.

    ``target`` defaults to the one that the executable was made for. Raises InvalidTarget.
    """

    def __init__(
        self, executable: Executable, target: Target | None = None, options: SimulationOptions | None = None
    ) -> None:
        self.executable = executable
        self.target = load_target(executable.target) if target is None else target
        self.options = options or SimulationOptions()
        self._costs = Costs(self.target, free_transfers=self.options.infinite_bandwidth)
        self._clocks: dict[int, Clock] = {}
        self._runners: dict[int, ProgramRunner] = {}
        self._reports: dict[int, ProgramReport] = {}

    def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for ``inputs`` (arrays, lists for sequences, None for an empty optional), in order.

        Raises InvalidInput, InvalidProgram, EvaluationError.
        """
        return _Execution(self, with_data=True).run(inputs)

    def simulate(self, inputs: Sequence[Any] | None = None) -> SimulationReport:
        """Outputs and costs; without ``inputs`` costs alone. Raises TimingNeedsData where only data decides."""
        execution = _Execution(self, with_data=inputs is not None)
        outputs = execution.run(inputs)
        programs = tuple((self.report(program), times) for program, times in execution.runs.values())
        steps = tuple(step if isinstance(step, HostReport) else self.report(step) for step in execution.order)
        given = outputs if inputs is not None else None
        return SimulationReport(self.target, given, programs, tuple(execution.host), steps)

    def clock(self, program: Program) -> Clock:
        """The program prepared for timing."""
        found = self._clocks.get(id(program))
        if found is None:
            found = self._clocks[id(program)] = Clock(program, self._costs)
        return found

    def runner(self, program: Program) -> ProgramRunner:
        """The program prepared for data. Raises InvalidProgram."""
        found = self._runners.get(id(program))
        if found is None:
            found = self._runners[id(program)] = ProgramRunner(self.clock(program), overlap=self.options.overlap)
        return found

    def report(self, program: Program) -> ProgramReport:
        """Cycles, traffic and energy of one run of the program."""
        found = self._reports.get(id(program))
        if found is None:
            clock = self.clock(program)
            schedule = clock.measure(overlap=self.options.overlap)
            found = self._reports[id(program)] = report_program(clock, schedule, self.target)
        return found

    def trace(self, programs: Sequence[Program]) -> list[dict[str, Any]]:
        """Events of a Chrome trace of these programs, each on its own process track."""
        events: list[dict[str, Any]] = []
        for process, program in enumerate(programs):
            clock = self.clock(program)
            _, timeline = clock.timeline(overlap=self.options.overlap)
            events.extend(trace_events(clock, timeline, process))
        return events


class _Execution:
    """One run: the values of slots, and what was run."""

    def __init__(self, machine: Machine, *, with_data: bool) -> None:
        self.machine = machine
        self.with_data = with_data
        self.values: dict[Slot, Any] = {}
        self.runs: dict[int, tuple[Program, int]] = {}
        self.host: list[HostReport] = []
        self.order: list[Program | HostReport] = []

    def run(self, inputs: Sequence[Any] | None) -> list[Any]:
        executable = self.machine.executable
        block = executable.block
        for slot, constant in executable.constants.items():
            self.values[slot] = UNKNOWN if constant.is_abstract and not self.with_data else constant.array
        given = [UNKNOWN] * len(block.inputs) if inputs is None else list(inputs)
        if len(given) != len(block.inputs):
            msg = f"{len(given)} inputs given; expected {len(block.inputs)}: {', '.join(executable.input_names)}"
            raise InvalidInput(msg)
        return self.block(block, given)

    def block(self, block: Block, inputs: Sequence[Any]) -> list[Any]:
        self.values.update(zip(block.inputs, inputs, strict=True))
        for step in block.steps:
            _STEPS[type(step)](self, step)
        return [self.values[slot] for slot in block.outputs]

    def step_run(self, step: Run) -> None:
        program = step.program
        _, times = self.runs.get(id(program), (program, 0))
        if not times:
            self.order.append(program)
        self.runs[id(program)] = (program, times + 1)
        if not self.with_data:
            self.values.update(dict.fromkeys(step.outputs, UNKNOWN))
            return
        outputs = self.machine.runner(program).run([self.values[slot] for slot in step.inputs])
        self.values.update(zip(step.outputs, outputs, strict=True))

    def step_host(self, step: Host) -> None:
        operands = [None if slot is None else self.values[slot] for slot in step.operands]
        if any(operand is UNKNOWN for operand in operands):
            results: Sequence[Any] = [UNKNOWN] * len(step.results)
        else:
            results = evaluate_host(step, operands)
        self.values.update(zip(step.results, results, strict=True))
        sizes = [self._size(slot, step.op.location) for slot in (*step.operands, *step.results) if slot is not None]
        moved, elements = sum(size for size, _ in sizes), sum(count for _, count in sizes)
        self.host.append(model_host(step, moved, elements, self.machine.target))
        self.order.append(self.host[-1])

    def _size(self, slot: Slot, location: Location) -> tuple[int, int]:
        value = self.values[slot]
        if value is not UNKNOWN:
            return size_of(value)
        type_ = self.machine.executable.types.get(slot)
        if not isinstance(type_, TensorType) or not type_.is_static:
            name = f"the size of a value of type {type_}"
            raise TimingNeedsData(name, str(location))
        return type_.nbytes, type_.size

    def step_alias(self, step: Alias) -> None:
        value = self.values[step.operand]
        if value is not UNKNOWN:
            array = np.asarray(value)
            if array.dtype != step.type.element.dtype:
                array = np.ascontiguousarray(array).reshape(array.shape).view(step.type.element.dtype)
            value = array.reshape(step.type.shape)
        self.values[step.result] = value

    def step_if(self, step: If) -> None:
        condition = self.values[step.condition]
        if condition is UNKNOWN:
            taken = _told(self.machine.options.branches, step.location)
            if taken is None:
                name = "the condition of an if"
                raise TimingNeedsData(name, str(step.location))
        else:
            taken = _truth(condition)
        outputs = self.block(step.then_block if taken else step.else_block, [])
        self.values.update(zip(step.results, outputs, strict=True))

    def step_loop(self, step: Loop) -> None:
        carried = [self.values[slot] for slot in step.carried]
        limit = None if step.trip_count is None else self.values[step.trip_count]
        condition = True if step.condition is None else self.values[step.condition]
        told = _told(self.machine.options.trips, step.location)
        if told is not None and not self.with_data:
            limit, condition = told, True
        scanned: list[list[Any]] = [[] for _ in range(len(step.results) - len(carried))]
        for iteration in self._iterations(limit, step):
            if not self._goes_on(condition, told, step):
                break
            condition, carried, rows = self._iterate(step, iteration, condition, carried)
            for column, row in zip(scanned, rows, strict=True):
                column.append(row)
        stacked = [
            self._stack(column, slot) for column, slot in zip(scanned, step.results[len(carried) :], strict=True)
        ]
        self.values.update(zip(step.results, (*carried, *stacked), strict=True))

    def _iterations(self, limit: Any, step: Loop) -> Iterator[int]:  # noqa: ANN401 - an array or a number
        if limit is UNKNOWN:
            name = "the trip count of a loop"
            raise TimingNeedsData(name, str(step.location))
        bound = None if limit is None else int(np.asarray(limit).reshape(-1)[0])
        iteration = 0
        while bound is None or iteration < bound:
            yield iteration
            iteration += 1

    def _goes_on(self, condition: Any, told: int | None, step: Loop) -> bool:  # noqa: ANN401 - an array or UNKNOWN
        if condition is UNKNOWN:
            if told is not None:
                return True
            name = "the condition of a loop"
            raise TimingNeedsData(name, str(step.location))
        return _truth(condition)

    def _iterate(
        self,
        step: Loop,
        iteration: int,
        condition: Any,  # noqa: ANN401 - a value or UNKNOWN
        carried: list[Any],
    ) -> tuple[Any, list[Any], list[Any]]:
        truth = condition if condition is UNKNOWN else np.asarray(_truth(condition))
        outputs = self.block(step.body, [np.asarray(iteration, np.int64), truth, *carried])
        return outputs[0], outputs[1 : 1 + len(carried)], outputs[1 + len(carried) :]

    def _stack(self, rows: list[Any], slot: Slot) -> Any:  # noqa: ANN401 - an array or UNKNOWN
        if any(row is UNKNOWN for row in rows):
            return UNKNOWN
        if rows:
            return np.stack(rows)
        type_ = self.machine.executable.types.get(slot)
        if not isinstance(type_, TensorType):
            return UNKNOWN if not self.with_data else np.zeros((0,), np.float32)
        dims = [dim if isinstance(dim, int) else 0 for dim in type_.dims or ()]
        return np.zeros((0, *dims[1:]), type_.element.dtype)


_STEPS: Final[dict[type, Callable[[_Execution, Any], None]]] = {
    Run: _Execution.step_run,
    Host: _Execution.step_host,
    Alias: _Execution.step_alias,
    If: _Execution.step_if,
    Loop: _Execution.step_loop,
}


def _truth(value: Any) -> bool:  # noqa: ANN401 - a bool or an array of one
    return bool(np.asarray(value).reshape(-1)[0])


def _told(answers: Any, location: Location) -> Any:  # noqa: ANN401 - a mapping by name, to int or bool
    for node in location.nodes:
        if node.name in answers:
            return answers[node.name]
    return None


def execute(executable: Executable, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of one functional run. For repeated runs keep a :class:`Machine`."""
    return Machine(executable).execute(inputs)


def simulate(
    executable: Executable,
    inputs: Sequence[Any] | None = None,
    target: Target | None = None,
    options: SimulationOptions | None = None,
) -> SimulationReport:
    """Outputs and costs of one run; without ``inputs`` costs alone. For repeated runs keep a :class:`Machine`."""
    return Machine(executable, target, options).simulate(inputs)
