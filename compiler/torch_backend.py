"""``torch.compile(model, backend="opatlas")``: graphs of PyTorch on the simulated accelerator, and a report of them.

    model = torch.compile(model, backend="opatlas", options={"target": "edge-npu", "precision": "float16"})
    y = model(x)
    print(report())

A graph is compiled when it is first called. What the compiler refuses is raised with its diagnosis; where Python code
breaks the graph, torch runs it between two graphs, and the report says where.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.api import Options, compile
from compiler.errors import InvalidInput, ValueNeeded
from compiler.frontends.torch.traced import import_traced
from compiler.frontends.torch.types import array_from, element_from
from compiler.ir import tensor, type_of
from compiler.targets.loader import DEFAULT_TARGET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.api import CompiledModel, HostOperator, SimulationResult
    from compiler.ir import Array, Type

_OPTIONS: Final = ("target", "precision")


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Where torch ended a graph because it could not follow the Python code: why, and ``file:line, in function``."""

    reason: str
    location: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


@dataclass(slots=True)
class GraphReport:
    """One graph: its number in order of compilation, its operators, and what its runs cost, all modelled."""

    number: int
    operators: int
    target: str
    runs: int = 0
    cycles: int = 0
    seconds: float = 0.0
    energy_pj: float = 0.0
    placement: str = "not run"
    host_operators: tuple[HostOperator, ...] = ()
    last: SimulationResult | None = None
    """All costs of the last run."""

    def add(self, result: SimulationResult) -> None:
        """Count a run."""
        self.runs += 1
        self.cycles += result.cycles
        self.seconds += result.seconds
        self.energy_pj += result.energy_pj
        self.placement = result.placement
        self.host_operators = result.host_operators
        self.last = result

    def lines(self) -> list[str]:
        """The graph in words."""
        first = (
            f"graph {self.number} on {self.target}: {self.operators} operators, {self.runs} runs, {self.placement}, "
            f"{self.cycles:,} cycles"
        )
        return [
            first,
            *(f"  on the host: {one.operator} at {one.location}: {one.reason}" for one in self.host_operators),
        ]


@dataclass(slots=True)
class Report:
    """What was compiled since the last `reset`: graphs in order, and the breaks between them."""

    graphs: list[GraphReport] = field(default_factory=list)
    breaks: list[GraphBreak] = field(default_factory=list)

    @property
    def cycles(self) -> int:
        """Cycles of all runs of all graphs."""
        return sum(graph.cycles for graph in self.graphs)

    def __str__(self) -> str:
        lines = [line for graph in self.graphs for line in graph.lines()]
        return "\n".join([*lines, *(f"graph break at {found}" for found in self.breaks)])


_REPORT: Final = Report()
_SEEN_BREAKS: Final[list[int]] = [0]


def report() -> Report:
    """What was compiled and run since the last `reset`."""
    _note_breaks()
    return Report(list(_REPORT.graphs), list(_REPORT.breaks))


def reset() -> None:
    """Forget what was reported. Graphs that torch holds on to run on, and are reported no more."""
    _note_breaks()
    _REPORT.graphs.clear()
    _REPORT.breaks.clear()


def _note_breaks() -> None:
    """Take over what torch has recorded of graph breaks."""
    from torch._dynamo.utils import graph_break_reasons

    if len(graph_break_reasons) < _SEEN_BREAKS[0]:
        # torch._dynamo.reset() empties the list.
        _SEEN_BREAKS[0] = 0
    for found in graph_break_reasons[_SEEN_BREAKS[0] :]:
        frame = found.user_stack[-1] if found.user_stack else None
        location = "unknown place" if frame is None else f"{frame.filename}:{frame.lineno}, in {frame.name}"
        reason = next((line.strip() for line in str(found.reason).splitlines() if line.strip()), "no reason given")
        _REPORT.breaks.append(GraphBreak(reason, location))
    _SEEN_BREAKS[0] = len(graph_break_reasons)


def opatlas(
    module: Any,  # noqa: ANN401 - an fx.GraphModule
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401 - what torch calls in the graph's place
    """The backend: torch's own functionalization gives ATen calls, which are imported, compiled and simulated.

    ``options`` are ``target`` (name, path or Target) and ``precision`` as `compiler.api.Options` has it. Raises
    InvalidInput for others, and as `compiler.api.compile`.
    """
    from torch._dynamo.backends.common import aot_autograd

    del mode
    unknown = sorted(set(options or {}) - set(_OPTIONS))
    if unknown:
        raise InvalidInput(
            f"option '{unknown[0]}' of backend opatlas is unknown; expected one of {', '.join(_OPTIONS)}"
        )
    chosen = dict(options or {})
    target, precision = chosen.get("target", DEFAULT_TARGET), chosen.get("precision")

    def compiled(traced: Any, inputs: Sequence[Any]) -> Any:  # noqa: ANN401
        del inputs
        from functorch.compile import make_boxed_func  # type: ignore[import-untyped]

        return make_boxed_func(_Graph(traced, target, Options(precision=precision)))

    return aot_autograd(fw_compiler=compiled)(module, example_inputs)


class _Graph:
    """A compiled graph, called by torch with tensors and numbers."""

    def __init__(self, traced: Any, target: Any, options: Options) -> None:  # noqa: ANN401
        self._traced = traced
        self._target, self._options = target, options
        self._names = [node.name for node in traced.graph.nodes if node.op == "placeholder"]
        output = next(node for node in traced.graph.nodes if node.op == "output").args[0]
        self._outputs = list(output) if isinstance(output, (list, tuple)) else [output]
        self._by_types: dict[tuple[Type, ...], CompiledModel] = {}
        self._whole = self._compiled_whole()
        calls = sum(1 for node in traced.graph.nodes if node.op == "call_function")
        _note_breaks()
        self._report = GraphReport(len(_REPORT.graphs), calls, str(getattr(target, "name", target)))
        _REPORT.graphs.append(self._report)

    def __call__(self, *arguments: Any) -> list[Any]:  # noqa: ANN401
        """The graph's results, in torch's order. Raises OpatlasErrors of lowering and simulation."""
        arrays = [_array(argument) for argument in arguments]
        result = self._model(arrays).simulate(arrays)
        self._report.add(result)
        assert result.outputs is not None
        found = iter(result.outputs)
        return [self._result(item, found) for item in self._outputs]

    def _compiled_whole(self) -> CompiledModel | None:
        """The graph with its symbols; None where sizes decide what is computed: then it is compiled for each call's."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        try:
            # torch calls backends while its fake tensors are in force, and weights are real.
            with unset_fake_temporarily():
                return compile(import_traced(self._traced), self._target, options=self._options)
        except ValueNeeded:
            return None

    def _model(self, arrays: Sequence[Array]) -> CompiledModel:
        if self._whole is not None:
            return self._whole
        key = tuple(tensor(type_of(array).element, array.shape) for array in arrays)
        if key not in self._by_types:
            graph = import_traced(self._traced, dict(zip(self._names, key, strict=True)))
            self._by_types[key] = compile(graph, self._target, options=self._options)
        return self._by_types[key]

    def _result(self, item: Any, found: Any) -> Any:  # noqa: ANN401
        """The next output as what torch expects in this place: a tensor, a number, or nothing."""
        if item is None:
            return None
        fake = item.meta.get("val") if hasattr(item, "meta") else item
        if fake is None:
            return None
        array = next(found)
        return _tensor(array, fake.dtype) if hasattr(fake, "shape") else array.item()


def _array(argument: Any) -> Array:  # noqa: ANN401
    import torch

    if isinstance(argument, torch.Tensor):
        return np.ascontiguousarray(array_from(argument)).reshape(tuple(argument.shape))
    return np.asarray(argument)


def _tensor(array: Array, dtype: Any) -> Any:  # noqa: ANN401
    """A tensor of its own with the array's data."""
    import torch

    wanted = element_from(dtype).dtype
    held = np.array(array, wanted, order="C")
    if wanted.kind != "V" and wanted.name in np.sctypeDict:
        return torch.from_numpy(held)
    carrier = {1: np.uint8, 2: np.int16}[wanted.itemsize]
    return torch.from_numpy(held.view(carrier)).view(dtype)
