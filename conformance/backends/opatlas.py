"""The bundled compiler, from model to simulated accelerator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from compiler import api
from compiler.errors import OpatlasError
from compiler.ops.registry import Composite
from compiler.targets import load_target
from conformance.backends.protocol import CaseFailure, Report
from conformance.backends.registry import explain_generic
from conformance.comparison import Output
from conformance.errors import BadSelection
from reports.record import HostOperator, Outcome, Placement, Stage

DEFAULT_TARGET = "reference-npu"

_LARGEST_INTERPRETED = 32
"""Operations of a graph up to which the compiler's own interpreter is asked too: whole models take it seconds."""


class _Simulated:
    def __init__(self, model: object, target: str, inputs: Sequence[Any] | None = None) -> None:
        self._model, self._target = model, target
        self._compiled: Any = api.compile(model, target=target, inputs=inputs)
        self.report = Report()
        size = sum(1 for _ in self._compiled.graph.ops)
        self.evaluate = self._compiled.evaluate if size <= _LARGEST_INTERPRETED else None

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        result: Any = self._compiled.simulate(list(inputs))
        self.report = _report(result)
        outputs: Sequence[Output] = result.outputs
        return outputs

    def composites(self, inputs: Sequence[Output]) -> Counter[str]:
        """Composites in the canonical graph for these inputs, by name."""
        graph = self._compiled.canonical(list(inputs))
        return Counter(op.name for op in graph.walk() if isinstance(op.definition, Composite))

    def run_decomposed(self, inputs: Sequence[Output]) -> Sequence[Output]:
        """The outputs with every composite in pieces and every loop nest a kernel of its own."""
        plain = api.compile(self._model, target=self._target, options=api.Options(fuse=False))
        return plain.run(list(inputs))

    def estimate(self) -> None:
        """Costs alone, in `report`."""
        self.report = _report(self._compiled.estimate())


def _report(result: Any) -> Report:  # noqa: ANN401 - the field names are the contract
    hosts = (HostOperator(operator=h.operator, reason=h.reason, location=h.location) for h in result.host_operators)
    return Report(
        placement=Placement(result.placement),
        cycles=int(result.cycles),
        traffic_bytes=int(result.traffic_bytes),
        compulsory_bytes=int(result.compulsory_bytes),
        energy_pj=float(result.energy_pj),
        peak_sram_bytes=int(result.peak_sram_bytes),
        operators_before=int(result.operators_before),
        operators_after=int(result.operators_after),
        utilization={engine: float(share) for engine, share in result.utilization.items()},
        host_operators=tuple(hosts),
        stage_ms={stage: float(milliseconds) for stage, milliseconds in result.stage_ms.items()},
    )


class Opatlas:
    """The compiler's public face on one target. A refusal is an `OpatlasError`; anything else is a fault of its own."""

    name = "opatlas"
    shares: frozenset[str] = frozenset()
    names_diagnoses = True
    takes_native = True

    def __init__(self, target: str) -> None:
        self._target = target

    def compile(self, model: object) -> _Simulated:
        return _Simulated(model, self._target)

    def compile_file(self, path: Path) -> _Simulated:
        """Open a model file."""
        return _Simulated(path, self._target)

    def compile_module(self, module: object, inputs: Sequence[Any]) -> _Simulated:
        """Trace a framework's module with example inputs."""
        return _Simulated(module, self._target, inputs)

    def explain(self, error: Exception, stage: Stage) -> CaseFailure:
        if not isinstance(error, OpatlasError):
            return replace(explain_generic(error, stage), outcome=Outcome.ERROR, named=False)
        reached = Stage(error.stage) if error.stage is not None else stage
        return CaseFailure(Outcome.UNSUPPORTED, reached, error.diagnosis, error.message)

    def versions(self) -> dict[str, str]:
        found = {"numpy": np.__version__}
        try:
            found["opatlas"] = version("opatlas")
        except PackageNotFoundError:
            found["opatlas"] = "source"
        return found


def create(target: str) -> Opatlas:
    """Return the compiler for `target`, the name of a shipped one or the path of a YAML file. Raises `BadSelection`."""
    try:
        load_target(target)
    except OpatlasError as error:
        raise BadSelection(f"--target: {error.message}") from error
    return Opatlas(target)
