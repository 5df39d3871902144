"""Models, inputs and listings: what commands do between reading options and printing."""

from __future__ import annotations

import difflib
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.api import CompiledModel, SimulationResult
    from compiler.ir import Graph, Type
    from compiler.simulator import SimulationReport


_NPY = ".npy"
_MOST_DRAWN = 1 << 31
_LONGEST_ENTRY = 65535
"""Bytes of a file's name inside a zip file."""


class BadOption(ValueError):
    """A value of an option that can't be used; the message says what was found and what was expected."""


def with_weights(model: Path, weights: Path | None) -> Path | tuple[Path, Path]:
    """Return what a compilation takes: the model's path, or with weights of its own file a pair. Raises `BadOption`."""
    from compiler.frontends.door import CAFFE_SUFFIX

    if weights is None:
        return model
    if model.suffix != CAFFE_SUFFIX:
        raise BadOption(f"found weights for {model.name}, expected a {CAFFE_SUFFIX} file: others hold their weights")
    return model, weights


def compile_model(
    model: Any,  # noqa: ANN401 - see compiler.api.compile
    target: str,
    *,
    precision: str | None = None,
    dump_dir: Path | None = None,
) -> CompiledModel:
    """Compile a model file, or what else the compiler takes, for a target."""
    from compiler import api

    options = (
        api.Options(dump_dir=dump_dir) if precision is None else api.Options(dump_dir=dump_dir, precision=precision)
    )
    return api.compile(model, target=target, options=options)


def bindings(pairs: Sequence[str] | None) -> dict[str, int]:
    """Return `NAME=NUMBER` options as a dictionary; true and false count as 1 and 0."""
    found: dict[str, int] = {}
    for pair in pairs or ():
        name, equals, number = pair.rpartition("=")
        number = {"true": "1", "false": "0"}.get(number.lower(), number)
        if not (name and equals and number.isascii() and number.isdigit()):
            raise BadOption(f"found {pair!r}, expected NAME=NUMBER")
        found[name] = int(number)
    return found


def write(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    from reports.files import atomic_bytes, atomic_text

    if isinstance(content, bytes):
        with atomic_bytes(path) as stream:
            stream.write(content)
    else:
        with atomic_text(path) as text_stream:
            text_stream.write(content)


def save_arrays(path: Path, names: Sequence[str], arrays: Sequence[Any]) -> None:
    """Write arrays by name to an npz file. Raises `BadOption` for a name that can't be an entry's.

    Not by `numpy.savez`, which has parameters of its own: an output may be called `file`.
    """
    import numpy as np

    from reports.files import atomic_bytes

    for name in names:
        if len(name.encode()) + len(_NPY) > _LONGEST_ENTRY or "\0" in name:
            what = "with a zero byte" if "\0" in name else "too long"
            raise BadOption(f"output '{name[:40]}' has a name {what} for an npz file")
    with atomic_bytes(path) as stream, zipfile.ZipFile(stream, "w") as file:
        for name, array in dict(zip(names, arrays, strict=True)).items():
            with file.open(name + _NPY, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=True)


@dataclass(frozen=True, slots=True)
class Draw:
    """Where inputs come from: an npz file, else a seed and the sizes of symbolic dims (1 where none is given)."""

    path: Path | None
    sizes: Mapping[str, int]
    seed: int


def read_inputs(compiled: CompiledModel, draw: Draw) -> dict[str, Any]:
    """Return inputs by name. Raises `InvalidInput`."""
    compiled.require_symbols(draw.sizes)
    if draw.path is None:
        return seeded_inputs(compiled, draw.sizes, draw.seed)
    types = {name: value.type for name, value in zip(compiled.input_names, compiled.graph.inputs, strict=True)}
    return {name: _in_own_type(array, types.get(name)) for name, array in load_arrays(draw.path).items()}


def _in_own_type(array: Any, type_: Type | None) -> Any:  # noqa: ANN401 - numpy arrays
    """Return an array in the type that it stands for: an npz file keeps the bytes of bfloat16 and not that they are it.

    Strings are objects here, as they are for onnxruntime.
    """
    from compiler.ir import TensorType

    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind != "V" or not isinstance(type_, TensorType):
        return array
    dtype = type_.element.dtype
    return array.view(dtype) if array.dtype.names is None and array.dtype.itemsize == dtype.itemsize else array


def load_arrays(path: Path) -> dict[str, Any]:
    """Read an npz file, to arrays in this machine's byte order.

    Raises `InvalidInput` for a file that is none, is damaged, or holds objects.
    """
    import zlib

    import numpy as np

    from compiler.errors import InvalidInput

    try:
        # numpy.load takes other kinds of file as well.
        zipfile.ZipFile(path).close()
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, EOFError, ValueError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput(f"{path}: no readable npz file of plain arrays ({reason})") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InvalidInput(f"{path}: no readable npz file of plain arrays ('{name}' is no array)")
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}


def seeded_inputs(compiled: CompiledModel, bind: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Draw inputs of a model. Raises `InvalidInput` where that is not possible."""
    types = {name: value.type for name, value in zip(compiled.input_names, compiled.graph.inputs, strict=True)}
    return _drawn(types, bind, seed)


def _drawn(types: Mapping[str, Type], bind: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Draw values: normal floats, and integers of 0 and 1, which index any table and are true and false."""
    import numpy as np

    from compiler.errors import InvalidInput
    from compiler.ir import TensorType

    if seed < 0:
        raise InvalidInput(f"seed {seed} is negative; expected at least 0")
    random = np.random.default_rng(seed)
    drawn: dict[str, Any] = {}
    for name, type_ in types.items():
        if not isinstance(type_, TensorType) or type_.dims is None:
            raise InvalidInput(f"input '{name}' is {type_}: values of that kind are not drawn, give --inputs F.npz")
        shape = [bind.get(dim, 1) if isinstance(dim, str) else dim for dim in type_.dims]
        if max(math.prod(shape), *shape, 0) > _MOST_DRAWN:
            raise InvalidInput(
                f"input '{name}' has {math.prod(shape)} elements in {shape}; at most {_MOST_DRAWN} are drawn"
            )
        numbers = random.standard_normal(shape) if type_.element.is_float else random.integers(0, 2, shape)
        drawn[name] = np.asarray(numbers).astype(type_.element.dtype)
    return drawn


def framework_operators(framework: str) -> list[dict[str, Any]]:
    """Return one row an operator version that the framework defines: whether a manifest and a converter have it."""
    import opsets

    converted, named = _CONVERTED[framework](), opsets.named_operators(framework)
    return [
        {
            "operator": operator,
            "version": version,
            "manifest": "yes" if (operator, version) in named else "no",
            "converter": "yes" if converted(operator, version) else "no",
        }
        for operator, version in opsets.denominator(framework, opsets.DOMAINS[framework][0]).pairs
    ]


def _converted_onnx() -> Callable[[str, int], bool]:
    from compiler.frontends.onnx.site import converter_for

    return lambda operator, version: converter_for("", operator, version) is not None


def _converted_torch() -> Callable[[str, int], bool]:
    """An operator of which some overload has a converter; a manifest's entry may have the name of a form behind it."""
    import compiler.frontends.torch  # noqa: F401 - fills the table
    from compiler.frontends.torch.site import converted_operators

    names = {name.partition(".")[0] for name in converted_operators()}
    return lambda operator, _: operator.partition("-")[0] in names


def _converted_tensorflow() -> Callable[[str, int], bool]:
    from compiler.frontends.tensorflow import covered_operators

    names = covered_operators()
    return lambda operator, _: operator in names


def _converted_caffe() -> Callable[[str, int], bool]:
    import compiler.frontends.caffe  # noqa: F401 - fills the table
    from compiler.frontends.caffe.site import converter_for

    return lambda operator, _: converter_for(operator) is not None


_CONVERTED: Mapping[str, Callable[[], Callable[[str, int], bool]]] = {
    "onnx": _converted_onnx,
    "torch": _converted_torch,
    "tensorflow": _converted_tensorflow,
    "caffe": _converted_caffe,
}
"""By framework, what tells whether the compiler converts an operator."""


def ir_operators() -> list[dict[str, Any]]:
    """Return one row an operator of the IR."""
    from compiler.ops import Composite, operators

    return [
        {
            "operator": name,
            "family": operator.family,
            "kind": "composite" if isinstance(operator, Composite) else "primitive",
            "operands": ", ".join(
                f"{spec.name}{'?' if spec.optional else ''}{'...' if spec.variadic else ''}"
                for spec in operator.operands
            ),
            "attributes": ", ".join(spec.name for spec in operator.attributes),
        }
        for name, operator in operators().items()
    ]


def operator_reference(name: str | None) -> str:
    """Return the reference of one operator of the IR, or of all, as Markdown. Raises `BadOption` for another name."""
    from compiler.ops import operators
    from compiler.ops.document import describe, reference

    if name is None:
        return reference().rstrip() + "\n"
    found = operators().get(name)
    if found is None:
        close = difflib.get_close_matches(name, operators()) or ["those that `opatlas ops` lists"]
        raise BadOption(f"operator {name!r} is unknown, expected one of {', '.join(close)}")
    return describe(found).rstrip() + "\n"


def target_row(name: str) -> dict[str, Any]:
    """Return what `opatlas targets` shows of a target."""
    from compiler.errors import InvalidTarget
    from compiler.targets import load_target

    try:
        target = load_target(name)
    except InvalidTarget:
        return {
            "target": name,
            "description": "a family: put numbers for R and C",
            "array": "",
            "types": "",
            "SRAM": "",
        }
    pairs = [(product.a.dtype.name, product.b.dtype.name) for product in target.matrix.products]
    return {
        "target": name,
        "description": target.description,
        "array": f"{target.matrix.rows}x{target.matrix.columns} {target.matrix.dataflow.value}",
        "types": ", ".join(one for one, other in pairs if one == other),
        "SRAM": f"{target.sram.bytes // 1024:,} KiB",
    }


@dataclass(frozen=True, slots=True)
class Emitted:
    """What a compilation is written as: text or bytes, and arrays that stand in a file beside it."""

    content: str | bytes
    arrays: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the content to `path`, and the arrays, if any, to `<path>.npz` before it."""
        if self.arrays:
            save_arrays(_beside(path), list(self.arrays), list(self.arrays.values()))
        write(path, self.content)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.npz")


def _whole_graph(compiled: CompiledModel) -> Graph:
    """Return the graph of a model. Raises `BadOption` where only inputs decide what it is."""
    graph = compiled.graph
    if len(graph.outputs) != len(graph.output_names):
        raise BadOption("--emit: what this model computes depends on its inputs, so that only a program can be written")
    return graph


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an output is written for: sizes of symbols, for a program; the operator set, for an ONNX model."""

    bind: Mapping[str, int]
    opset: int | None = None


def _emit_ir(compiled: CompiledModel, _wanted: Wanted) -> Emitted:
    from compiler.ir.printer import print_graph, resources

    graph = _whole_graph(compiled)
    return Emitted(print_graph(graph), resources(graph))


def _emit_onnx(compiled: CompiledModel, wanted: Wanted) -> Emitted:
    from compiler.exporters.onnx import export_model

    return Emitted(bytes(export_model(_whole_graph(compiled), wanted.opset).SerializeToString()))


def _emit_program(compiled: CompiledModel, wanted: Wanted) -> Emitted:
    from compiler.program.printer import constant_data, print_executable

    executable = compiled.executable(seeded_inputs(compiled, wanted.bind, seed=0))
    return Emitted(print_executable(executable), constant_data(executable))


EMITTERS: Mapping[str, Callable[[CompiledModel, Wanted], Emitted]] = {
    "ir": _emit_ir,
    "onnx": _emit_onnx,
    "program": _emit_program,
}
"""What `opatlas compile --emit` can write."""


def is_program(path: Path) -> bool:
    """Tell a program file, zip or text, from a model, which is a protobuf."""
    from compiler.frontends.door import is_tensorflow, is_torch

    # Frameworks write zip files too.
    if not path.is_file() or is_tensorflow(path) or is_torch(path):
        return False
    with path.open("rb") as stream:
        start = stream.read(4096)
    return start.startswith((b"PK", b"program(", b"executable("))


def unbound(compiled: CompiledModel, bind: Mapping[str, int]) -> list[str]:
    """Return the symbolic sizes of a model's inputs that are not given."""
    return [name for name in compiled.symbols if name not in bind]


def estimate(
    compiled: CompiledModel, bind: Mapping[str, int], trips: Mapping[str, int], branches: Mapping[str, bool]
) -> SimulationResult:
    """Return the costs of a model without data. Raises `InvalidInput` that names the sizes which are missing."""
    from compiler.errors import InvalidInput, TimingNeedsData

    try:
        return compiled.estimate(bind=bind, trips=trips, branches=branches)
    except TimingNeedsData as error:
        missing = unbound(compiled, bind)
        if not missing:
            raise
        options = " ".join(f"--bind {name}=N" for name in missing)
        raise InvalidInput(f"timing needs the sizes of symbolic dims: give {options}") from error


def simulate_program(
    path: Path, inputs: Path | None, seed: int, *, timing_only: bool
) -> tuple[str, Sequence[str], SimulationResult]:
    """Simulate a program: its text with its constants in a file beside it, or a zip that has both.

    Returns the target's name, the names of the outputs and the result. Raises InvalidProgram where the file's
    addresses, types or waits do not hold: anybody may have written it.
    """
    from compiler.api import HostOperator, SimulationResult
    from compiler.errors import InvalidInput
    from compiler.program.executable_parser import load_executable, parse_executable
    from compiler.program.verifier import verify_executable
    from compiler.simulator import simulate
    from compiler.targets import load_target

    if zipfile.is_zipfile(path):
        executable = load_executable(path)
    else:
        constants = load_arrays(_beside(path)) if _beside(path).exists() else {}
        executable = parse_executable(path.read_text("utf-8"), constants)
    target = load_target(executable.target)
    verify_executable(executable, target)
    given: list[Any] | None = None
    if not timing_only:
        slots = zip(executable.input_names, executable.block.inputs, strict=True)
        types = {name: executable.types[slot] for name, slot in slots}
        feeds = _drawn(types, {}, seed) if inputs is None else load_arrays(inputs)
        missing = [name for name in executable.input_names if name not in feeds]
        if missing:
            raise InvalidInput(f"{path}: inputs {missing} are missing in {inputs}")
        given = [feeds[name] for name in executable.input_names]
    report = simulate(executable, given, target)
    hosts = tuple(HostOperator(entry.operator, entry.reason, entry.location) for entry in report.host)
    result = SimulationResult(
        outputs=report.outputs,
        placement=("mixed" if report.programs else "host") if hosts else "accelerator",
        host_operators=hosts,
        cycles=report.cycles,
        seconds=report.seconds,
        traffic_bytes=report.traffic_bytes,
        compulsory_bytes=report.compulsory_bytes,
        peak_sram_bytes=report.peak_sram_bytes,
        sram_bound_bytes=report.sram_bound_bytes,
        energy_pj=report.energy_pj,
        energy_by_component=report.energy_by_component,
        utilization=report.utilization,
        operators_before=0,
        operators_after=0,
        stage_ms={},
        report=report,
    )
    return executable.target, executable.output_names, result


def details(report: SimulationReport) -> dict[str, Any]:
    """Return what a simulation knows beyond its totals, as plain data: kernels, costliest first, and idle cycles."""
    kernels = [
        {
            "kernel": entry.kernel.name,
            "operators": list(entry.kernel.operators),
            "location": str(entry.kernel.location),
            "runs": runs,
            "cycles": entry.cycles * runs,
            "bound": entry.bound.value,
            "macs": entry.macs * runs,
            "traffic_bytes": (entry.read_bytes + entry.written_bytes) * runs,
            "energy_pj": sum(entry.energy.values()) * runs,
        }
        for program, runs in report.programs
        for entry in program.kernels
    ]
    return {"kernels": sorted(kernels, key=lambda kernel: -kernel["cycles"]), "stalls": report.stalls}


def write_report(model: str, result: SimulationResult, folder: Path) -> Path:
    """Write the performance of a simulation and its timeline to a folder; return the page's path."""
    from compiler.program.addresses import placed
    from opatlas.performance import MOST_INSTANCES, performance
    from reports.performance import TRACE, write_performance

    programs = [program for program, _ in result.report.programs]
    with_trace = sum(item.instances for entry in programs for item in placed(entry.program.body)) <= MOST_INSTANCES
    if with_trace:
        write(folder / TRACE, trace_text(result.report))
    return write_performance(performance(model, result), folder, with_trace=with_trace)


def trace_text(report: SimulationReport) -> str:
    """Return the timeline of a simulation as the JSON of a Chrome trace, which Perfetto opens too."""
    from compiler.simulator import Costs, trace_json
    from compiler.simulator.timing import Clock
    from compiler.simulator.trace import trace_events

    events: list[dict[str, Any]] = []
    for process, (entry, _) in enumerate(report.programs):
        clock = Clock(entry.program, Costs(report.target))
        events += trace_events(clock, clock.timeline(overlap=True)[1], process)
    return trace_json(events)
