"""The public face: compile a model for a target, run it on the simulated accelerator, read off what it cost."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from compiler.errors import InvalidInput, InvalidModel, OpatlasError, ValueNeeded
from compiler.frontends.door import caffe_files, is_tensorflow, is_torch
from compiler.ir import UNKNOWN, Graph, TensorType, Type, Value, element_of, tensor
from compiler.ir.verifier import verify
from compiler.lowering.lower import LoweringOptions, lower
from compiler.ops.interpreter import interpret
from compiler.passes.manager import Instruments, run_passes
from compiler.passes.narrow import narrow_for, narrow_to
from compiler.passes.specialize import specialize, value_inputs
from compiler.pipeline import canonical_passes, optimize
from compiler.program.executable import Executable
from compiler.simulator import Machine, SimulationOptions
from compiler.targets.loader import DEFAULT_TARGET, load_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compiler.ir import Array
    from compiler.program.executable import Executable
    from compiler.simulator import SimulationReport
    from compiler.targets.schema import Target

Model: TypeAlias = "Any"
"""What a compilation takes: a path, a ModelProto, a graph, or a framework's own object."""

_CACHED_EXECUTABLES: Final = 16
_LARGEST_VALUE_INPUT: Final = 4096
"""Inputs that decide shapes are compiled into the executable up to this many elements."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile. ``verify_each`` checks the graph after every pass; ``dump_dir`` gets the graph after each change.

    ``fuse`` False makes every loop nest a kernel of its own and leaves composites apart; ``overlap`` False lets
    engines work one after the other. ``precision`` (float16, bfloat16) allows the target to compute in that type where
    it lacks the model's own.
    """

    precision: str | None = None
    fuse: bool = True
    overlap: bool = True
    verify_each: bool = False
    dump_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class HostOperator:
    """An operation that ran on the host, and why."""

    operator: str
    reason: str
    location: str


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a run gave and what it cost. All costs are modelled; bytes are DRAM's; ``utilization`` is busy / cycles.

    ``sram_bound_bytes`` is the most bytes of SRAM that are in use at one time: ``peak_sram_bytes`` cannot be under it.

    ``placement`` is accelerator, host, mixed, or folded (nothing was left to run).
    """

    outputs: list[Any] | None
    placement: str
    host_operators: tuple[HostOperator, ...]
    cycles: int
    seconds: float
    traffic_bytes: int
    compulsory_bytes: int
    peak_sram_bytes: int
    sram_bound_bytes: int
    energy_pj: float
    energy_by_component: dict[str, float]
    utilization: dict[str, float]
    operators_before: int
    operators_after: int
    stage_ms: dict[str, float]
    report: SimulationReport
    """The simulator's own report: per program, kernel and host step."""
    graph: Graph | None = None
    """What was lowered: the graph after all passes. None for a program that was read from a file."""


@dataclass(slots=True)
class _Clock:
    """Milliseconds a stage; names the stage in errors that pass through."""

    ms: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        except OpatlasError as error:
            error.stage = error.stage or name
            raise
        except RecursionError as error:
            refusal = InvalidModel("the model is nested more deeply than it can be followed")
            refusal.stage = name
            raise refusal from error
        finally:
            self.ms[name] = self.ms.get(name, 0.0) + (perf_counter() - start) * 1e3


def compile(
    model: Model,
    target: str | Path | Target = DEFAULT_TARGET,
    *,
    inputs: Sequence[Any] | None = None,
    options: Options | None = None,
) -> CompiledModel:
    """Import and verify a model for a target.

    ``model`` is a path (an ONNX file, a .pt2 file, a prototxt, a SavedModel's folder, a .keras file, a frozen .pb), a
    ModelProto, a graph, an ExportedProgram of torch, a concrete function, a Keras model, a GraphDef, or an nn.Module,
    Keras layer or tf.function with example ``inputs`` (tensors or arrays); ``target`` a name, the path of a YAML file,
    or a Target.
    Outputs come in the framework's own flattened order. Everything that depends on input sizes is done at the first
    run with them. Raises an OpatlasError whose ``stage`` is import or verify.
    """
    clock = _Clock()
    with clock.stage("import"):
        loaded = load_target(target)
        try:
            if is_torch(model):
                from compiler.frontends.torch import exported

                model = exported(model, inputs)
            elif is_tensorflow(model):
                from compiler.frontends.tensorflow import program_of

                model = program_of(model, inputs)
            graph = _import(model)
        except ValueNeeded as error:
            assert not isinstance(model, Graph)
            return _DeferredModel(model, error, loaded, options or Options(), clock.ms)
    with clock.stage("verify"):
        verify(graph)
    return CompiledModel(graph, loaded, options or Options(), clock.ms)


def _import(
    model: Model,
    known: Mapping[str, Array] | None = None,
    types: Mapping[str, Type] | None = None,
) -> Graph:
    if isinstance(model, Graph):
        return model
    if is_torch(model):
        from compiler.frontends.torch import import_torch

        return import_torch(model, types=types)
    if is_tensorflow(model):
        from compiler.frontends.tensorflow import import_tensorflow

        return import_tensorflow(model, types=types, known=known)
    files = caffe_files(model)
    if files is not None:
        from compiler.frontends.caffe import import_caffe

        return import_caffe(*files)
    from compiler.frontends.onnx import import_model

    return import_model(model, known=known, types=types)


def _signature(model: Model) -> Graph:
    if is_torch(model):
        from compiler.frontends import torch

        return torch.import_signature(model)
    if is_tensorflow(model):
        from compiler.frontends import tensorflow

        return tensorflow.import_signature(model)
    from compiler.frontends.onnx import import_signature

    return import_signature(model)


class CompiledModel:
    """A verified model for a target; executables are made for the input sizes that come, and kept for the last ones."""

    def __init__(self, graph: Graph, target: Target, options: Options, stage_ms: dict[str, float]) -> None:
        self.graph = graph
        self.target = target
        self.options = options
        self._import_ms = stage_ms
        self._value_inputs = tuple(value_inputs(graph))
        self._machines: OrderedDict[tuple[Any, ...], tuple[Machine, Graph]] = OrderedDict()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(value.name for value in self.graph.inputs)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbolic dims of the inputs, whose sizes a caller may bind."""
        types = (value.type for value in self.graph.inputs)
        dims = (dim for type_ in types if isinstance(type_, TensorType) for dim in type_.dims or ())
        return tuple(dict.fromkeys(dim for dim in dims if isinstance(dim, str) and dim != UNKNOWN))

    def require_symbols(self, bind: Mapping[str, int]) -> None:
        """Check that sizes are given for symbols that there are. Raises InvalidInput."""
        for name in bind:
            if name not in self.symbols:
                msg = f"'{name}' is no symbolic dim of an input; expected one of {list(self.symbols)}"
                raise InvalidInput(msg)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in order."""
        return self.graph.output_names

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """The outputs for these inputs (arrays in order, or by name), computed on the simulated accelerator."""
        outputs = self.simulate(inputs).outputs
        assert outputs is not None
        return outputs

    def simulate(self, inputs: Sequence[Any] | Mapping[str, Any]) -> SimulationResult:
        """Outputs and costs for these inputs. Raises an OpatlasError with its ``stage``."""
        clock = _Clock(dict(self._import_ms))
        with clock.stage("verify"):
            ordered = self._ordered(inputs)
            types = [_bound(value, item) for value, item in zip(self.graph.inputs, ordered, strict=True)]
            known = self._known(ordered)
        machine, graph = self._machine(types, known, clock)
        with clock.stage("simulate"):
            report = machine.simulate(ordered)
        return self._result(machine, graph, report, clock)

    def evaluate(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """The outputs by the operators' own definitions: what passes, lowering and simulator are held to.

        Raises an OpatlasError with its ``stage``.
        """
        clock = _Clock()
        with clock.stage("verify"):
            ordered = self._ordered(inputs)
            types = [_bound(value, item) for value, item in zip(self.graph.inputs, ordered, strict=True)]
            graph = specialize(self.graph, types, self._known(ordered))
        with clock.stage("simulate"):
            return interpret(graph, ordered)

    def estimate(
        self,
        bind: Mapping[str, int] | None = None,
        *,
        trips: Mapping[str, int] | None = None,
        branches: Mapping[str, bool] | None = None,
    ) -> SimulationResult:
        """Costs alone, without data: ``bind`` gives the sizes of symbolic dims. ``outputs`` is None.

        ``trips`` gives the trip count of a loop and ``branches`` the branch of an if, by the name of their node. Raises
        TimingNeedsData where only data decides.
        """
        clock = _Clock(dict(self._import_ms))
        with clock.stage("verify"):
            self.require_symbols(bind or {})
            types = [_with_dims(value, bind or {}) for value in self.graph.inputs]
        machine, graph = self._machine(types, {}, clock)
        options = replace(machine.options, trips=trips or {}, branches=branches or {})
        with clock.stage("simulate"):
            report = Machine(machine.executable, self.target, options).simulate()
        return self._result(machine, graph, report, clock)

    def imported(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Graph:  # noqa: ARG002 - for overriding
        """The graph as it was imported, for these inputs."""
        return self.graph

    def optimized(
        self, bind: Mapping[str, int] | None = None, *, target: Target | None = None, dtype: str | None = None
    ) -> Graph:
        """The graph after all passes for a target (None: the model's own), for these sizes of symbolic dims.

        ``dtype`` (float32, float16, bfloat16) is the type in which floats wider than it are computed.
        """
        self.require_symbols(bind or {})
        graph = specialize(self.graph, [_with_dims(value, bind or {}) for value in self.graph.inputs], {})
        if dtype is not None:
            graph = narrow_to(graph, dtype)
        optimize(graph, target or self.target)
        return graph

    def executable(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Executable:
        """What these inputs would run. Raises an OpatlasError with its ``stage``."""
        ordered = self._ordered(inputs)
        types = [_bound(value, item) for value, item in zip(self.graph.inputs, ordered, strict=True)]
        return self._machine(types, self._known(ordered), _Clock())[0].executable

    def canonical(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Graph:
        """The graph for these inputs in its canonical form: composites whole, no target seen yet."""
        ordered = self._ordered(inputs)
        types = [_bound(value, item) for value, item in zip(self.graph.inputs, ordered, strict=True)]
        graph = specialize(self.graph, types, self._known(ordered))
        run_passes(graph, canonical_passes())
        return graph

    def _result(self, machine: Machine, graph: Graph, report: SimulationReport, clock: _Clock) -> SimulationResult:
        return SimulationResult(
            outputs=report.outputs,
            placement=_placement(machine.executable, report),
            host_operators=tuple(HostOperator(step.operator, step.reason, step.location) for step in report.host),
            cycles=report.cycles,
            seconds=report.seconds,
            traffic_bytes=report.traffic_bytes,
            compulsory_bytes=report.compulsory_bytes,
            peak_sram_bytes=report.peak_sram_bytes,
            sram_bound_bytes=report.sram_bound_bytes,
            energy_pj=report.energy_pj,
            energy_by_component=report.energy_by_component,
            utilization=report.utilization,
            operators_before=_count(self.graph),
            operators_after=_count(graph),
            stage_ms=clock.ms,
            report=report,
            graph=graph,
        )

    def _ordered(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        names = self.input_names
        if hasattr(inputs, "keys"):
            given = dict(inputs)
            unknown, missing = sorted(set(given) - set(names)), [name for name in names if name not in given]
            if unknown or missing:
                msg = f"inputs {unknown or missing} are {'unknown' if unknown else 'missing'}; expected {list(names)}"
                raise InvalidInput(msg)
            return [given[name] for name in names]
        ordered = list(inputs)
        if len(ordered) != len(names):
            msg = f"{len(ordered)} inputs given; expected {len(names)}: {list(names)}"
            raise InvalidInput(msg)
        return ordered

    def _known(self, ordered: Sequence[Any]) -> dict[Value, Array]:
        return {
            self.graph.inputs[index]: ordered[index]
            for index in self._value_inputs
            if isinstance(ordered[index], np.ndarray) and ordered[index].size <= _LARGEST_VALUE_INPUT
        }

    def _machine(self, types: Sequence[Type], known: Mapping[Value, Array], clock: _Clock) -> tuple[Machine, Graph]:
        """The executable for these input types and values, on its machine, and the graph that it was lowered from."""
        values = tuple((value.index, array.dtype.str, array.tobytes()) for value, array in known.items())
        key = (tuple(types), values)
        found = self._machines.get(key)
        if found is None:
            with clock.stage("optimize"):
                graph = specialize(self.graph, types, known)
                if self.options.precision is not None:
                    graph = narrow_for(graph, self.target, self.options.precision)
                instruments = Instruments(self.options.dump_dir, self.options.verify_each)
                optimize(graph, self.target, instruments, fuse=self.options.fuse)
            with clock.stage("lower"):
                executable = lower(graph, self.target, LoweringOptions(self.options.fuse, self.options.overlap))
                options = SimulationOptions(overlap=self.options.overlap)
                found = self._machines[key] = (Machine(executable, self.target, options), graph)
            if len(self._machines) > _CACHED_EXECUTABLES:
                self._machines.popitem(last=False)
        self._machines.move_to_end(key)
        return found


class _DeferredModel(CompiledModel):
    """A model in which values or sizes of inputs decide what is computed, such as the axes of a reduction.

    It is imported at the first run with such inputs, and kept for the last ones. Costs alone need inputs too.
    """

    def __init__(
        self,
        model: Model,
        missing: ValueNeeded,
        target: Target,
        options: Options,
        stage_ms: dict[str, float],
    ) -> None:
        super().__init__(_signature(model), target, options, stage_ms)
        self._model = model
        self._missing = missing
        self._read: OrderedDict[tuple[Any, ...], CompiledModel] = OrderedDict()

    def simulate(self, inputs: Sequence[Any] | Mapping[str, Any]) -> SimulationResult:
        """As the base; raises ValueNeeded where a value that decides is no input."""
        return self._with_values(inputs).simulate(inputs)

    def evaluate(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """As the base; raises ValueNeeded where a value that decides is no input."""
        return self._with_values(inputs).evaluate(inputs)

    def imported(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Graph:
        """The graph for the values of these inputs."""
        return self._with_values(inputs).graph

    def executable(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Executable:
        """As the base; raises ValueNeeded where a value that decides is no input."""
        return self._with_values(inputs).executable(inputs)

    def canonical(self, inputs: Sequence[Any] | Mapping[str, Any]) -> Graph:
        """As the base; raises ValueNeeded where a value that decides is no input."""
        return self._with_values(inputs).canonical(inputs)

    def estimate(
        self,
        bind: Mapping[str, int] | None = None,  # noqa: ARG002 - the interface
        *,
        trips: Mapping[str, int] | None = None,  # noqa: ARG002
        branches: Mapping[str, bool] | None = None,  # noqa: ARG002
    ) -> SimulationResult:
        """Raises ValueNeeded: without inputs it is not known what is computed."""
        raise self._missing

    def _with_values(self, inputs: Sequence[Any] | Mapping[str, Any]) -> CompiledModel:
        given = dict(zip(self.input_names, self._ordered(inputs), strict=True))
        types = {value.name: _bound(value, given[value.name]) for value in self.graph.inputs}
        clock = _Clock(dict(self._import_ms))
        known: dict[str, Array] = {}
        key: tuple[Any, ...] = ()
        graph: Graph | None = None
        with clock.stage("import"):
            while graph is None:
                values = ((name, array.dtype.str, array.shape, array.tobytes()) for name, array in known.items())
                key = (*types.values(), *values)
                if key in self._read:
                    self._read.move_to_end(key)
                    return self._read[key]
                try:
                    graph = _import(self._model, known, types)
                except ValueNeeded as missing:
                    if missing.value not in given or missing.value in known:
                        raise
                    known[missing.value] = np.asarray(given[missing.value])
        with clock.stage("verify"):
            verify(graph)
        self._read[key] = CompiledModel(graph, self.target, self.options, clock.ms)
        if len(self._read) > _CACHED_EXECUTABLES:
            self._read.popitem(last=False)
        return self._read[key]


def _count(graph: Graph) -> int:
    """Operations that do something: constants and terminators do not count."""
    return sum(1 for op in graph.walk() if not op.definition.holds_constant and not op.definition.terminator)


def _placement(executable: Executable, report: SimulationReport) -> str:
    """Where the work was done; ``folded`` when every output is a constant and nothing ran."""
    if report.host:
        return "mixed" if report.programs else "host"
    if report.programs:
        return "accelerator"
    return "folded" if all(slot in executable.constants for slot in executable.block.outputs) else "host"


def _bound(value: Value, item: Any) -> Type:  # noqa: ANN401 - an array, a list or None
    """The type of an input as it comes. Raises InvalidInput where it does not fit the model."""
    if not isinstance(value.type, TensorType):
        return value.type
    if not isinstance(item, (np.ndarray, np.generic, bool, int, float, complex, str)):
        msg = f"input '{value.name}' is of type {type(item).__name__}; expected an array, {value.type}"
        raise InvalidInput(msg)
    array = np.asarray(item)
    declared = value.type
    found = tensor(element_of(array.dtype), tuple(int(size) for size in array.shape))
    dims = declared.dims
    fits = found.element is declared.element and (
        dims is None
        or (
            len(dims) == array.ndim
            and all(isinstance(dim, str) or dim == size for dim, size in zip(dims, array.shape, strict=True))
        )
    )
    if not fits:
        msg = f"input '{value.name}' is {found}; expected {declared}"
        raise InvalidInput(msg)
    return found


def _with_dims(value: Value, bind: Mapping[str, int]) -> Type:
    if not isinstance(value.type, TensorType) or value.type.dims is None:
        return value.type
    return value.type.with_dims([bind.get(dim, dim) if isinstance(dim, str) else dim for dim in value.type.dims])
