"""Steps on the host: evaluated with the operators' reference evaluation, timed by a simple model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.errors import EvaluationError
from compiler.simulator.report import HostReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Graph, Value
    from compiler.program.executable import Host
    from compiler.targets import Target


def evaluate_host(step: Host, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of the step's operation. Raises EvaluationError."""
    op = step.op
    with np.errstate(all="ignore"):
        results = op.definition.evaluate(op.call(), operands, run_region)
    if len(results) != len(step.results):
        msg = f"'{op.name}' at {op.location} gave {len(results)} results; expected {len(step.results)}"
        raise EvaluationError(msg)
    return results


def run_region(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of a region that uses nothing but its inputs. Raises EvaluationError for one that captures values."""
    values: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
    for op in graph.ops:
        missing = [operand for operand in op.operands if operand is not None and operand not in values]
        if missing:
            msg = f"'{op.name}' at {op.location}, in a region run on the host, uses a value from outside of the region"
            raise EvaluationError(msg)
        operands = [None if operand is None else values[operand] for operand in op.operands]
        if op.definition.terminator:
            return operands
        results = op.definition.evaluate(op.call(), operands, run_region)
        values.update(zip(op.results, results, strict=True))
    msg = f"graph '{graph.name}' has no terminator"
    raise EvaluationError(msg)


def model_host(step: Host, moved: int, elements: int, target: Target) -> HostReport:
    """Cycles of the step: latency, ``moved`` bytes over the host's link, one visit of each of ``elements``."""
    host = target.host
    cycles = (
        host.latency_cycles + math.ceil(moved / host.bytes_per_cycle) + math.ceil(elements / host.elements_per_cycle)
    )
    return HostReport(step.op.name, step.reason, str(step.op.location), cycles, moved)


def size_of(value: Any) -> tuple[int, int]:  # noqa: ANN401 - an array, a list or dict of values, or None
    """Bytes and elements of a running value."""
    if value is None:
        return 0, 0
    if isinstance(value, (list, tuple)):
        sizes = [size_of(item) for item in value]
        return sum(size for size, _ in sizes), sum(count for _, count in sizes)
    if isinstance(value, dict):
        return size_of([*value, *value.values()])
    array = np.asarray(value)
    return array.nbytes, array.size
