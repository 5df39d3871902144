"""The two methods that a backend has, and what it may tell beside outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from onnx import ModelProto

from conformance.comparison import Output
from reports.record import HostOperator, Outcome, Placement, Stage


@dataclass(frozen=True, slots=True)
class Report:
    """What a run cost and where it ran; None where a backend does not tell."""

    placement: Placement | None = None
    cycles: int | None = None
    traffic_bytes: int | None = None
    compulsory_bytes: int | None = None
    energy_pj: float | None = None
    peak_sram_bytes: int | None = None
    operators_before: int | None = None
    operators_after: int | None = None
    utilization: Mapping[str, float] = field(default_factory=dict)
    host_operators: tuple[HostOperator, ...] = ()
    stage_ms: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class Program(Protocol):
    """A compiled model. It may also have `report`, set by `run`, and `evaluate(inputs)`, its own interpreter.

    A compiler that recognizes composites may have `composites(inputs)`, their counts by name in its canonical graph,
    and `run_decomposed(inputs)`, the outputs without any of that; one that estimates costs, `estimate()`, which sets
    `report`.
    """

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        """Return the outputs in the order of the model's outputs."""


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """What an exception of a backend means: its outcome, the stage it was at, its diagnosis and a line of reason.

    `named`: its class is one of the backend's own diagnoses, not a stray exception.
    """

    outcome: Outcome
    stage: Stage
    diagnosis: str
    reason: str
    named: bool = True


class BackendUnderTest(Protocol):
    """A compiler. `shares` names the oracles that are the same code and therefore have no vote about it.

    It may also have `compile_file(path) -> Program`; cases that are about files are `not_run` without. With a true
    `takes_native` it gets programs of other frameworks themselves, and `compile_module(module, inputs)` those that are
    to be traced. A true
    `names_diagnoses` says that its refusals bear the class names that broken models ask for.
    """

    name: str
    shares: frozenset[str]

    def compile(self, model: ModelProto) -> Program:
        """Return a program. Raises what the compiler raises; `explain` says what that means."""

    def explain(self, error: Exception, stage: Stage) -> CaseFailure:
        """Return what an exception from `compile` or `run` means; `stage` is which of the two it was."""

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that it stands on."""
