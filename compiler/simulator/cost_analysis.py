"""What a graph asks for, whatever the target: floating-point operations and bytes, as XLA's cost analysis counts them.

XLA (``HloCostAnalysis``): a dot or convolution is 2 flops a multiply-accumulate, an elementwise function or a combiner
one a point, transcendental functions are counted apart, and an operation accesses the bytes of all its operands and
results. Windows that reach into padding are counted whole here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.ir import TensorType
from compiler.ops.registry import Operator
from compiler.targets.functions import Cost, body_functions, cost_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compiler.ir import Graph, Op, Value
    from compiler.ops.work import Loops

_MOVES = frozenset({"cast", "cast_saturate", "bitcast"})


@dataclass(frozen=True, slots=True)
class OpCost:
    """One operation. ``known`` is False where its loops are not (sizes that depend on data, regions): then 0."""

    op: Op
    flops: int
    transcendentals: int
    bytes_accessed: int
    known: bool = True


@dataclass(frozen=True, slots=True)
class GraphCost:
    """A whole graph. ``argument_bytes``, ``constant_bytes`` and ``output_bytes`` are those of its border."""

    operations: tuple[OpCost, ...]
    argument_bytes: int
    constant_bytes: int
    output_bytes: int

    @property
    def flops(self) -> int:
        """Arithmetic operations but transcendental ones; a multiply-accumulate is two."""
        return sum(cost.flops for cost in self.operations)

    @property
    def transcendentals(self) -> int:
        """Transcendental functions applied."""
        return sum(cost.transcendentals for cost in self.operations)

    @property
    def bytes_accessed(self) -> int:
        """Bytes of each operation's operands and results."""
        return sum(cost.bytes_accessed for cost in self.operations)

    @property
    def unknown(self) -> int:
        """Operations whose cost depends on data."""
        return sum(not cost.known for cost in self.operations)


def operation_cost(op: Op) -> OpCost:
    """The cost of one operation of a graph with static sizes."""
    accessed = _nbytes([value for value in (*op.operands, *op.results) if value is not None])
    definition = op.definition
    if not isinstance(definition, Operator) or not all(_is_static(value) for value in (*op.operands, *op.results)):
        return OpCost(op, 0, 0, accessed, known=False)
    if definition.alias:
        return OpCost(op, 0, 0, 0)
    work = definition.work(op.call(), tuple(result.type for result in op.results))
    if work is None:
        return OpCost(op, 0, 0, accessed, known=False)
    counted = [_counted(loops) for loops in work]
    return OpCost(op, sum(flops for flops, _ in counted), sum(others for _, others in counted), accessed)


def cost_analysis(graph: Graph) -> GraphCost:
    """The cost of every operation of a graph that does something; those in regions are not counted."""
    ops = [op for op in graph.ops if not op.definition.terminator and not op.definition.holds_constant]
    constants = [op.results[0] for op in graph.ops if op.definition.holds_constant]
    return GraphCost(
        tuple(operation_cost(op) for op in ops),
        _nbytes(graph.inputs),
        _nbytes(constants),
        _nbytes(dict.fromkeys(graph.outputs)),
    )


def _counted(loops: Loops) -> tuple[int, int]:
    functions = [node for node in body_functions(loops.body) if node.function not in _MOVES]
    transcendental = sum(cost_of(node.function) is Cost.TRANSCENDENTAL for node in functions)
    simple = len(functions) - transcendental + (loops.combiner is not None)
    points = math.prod(loops.extents)
    return points * simple, points * transcendental


def _is_static(value: Value | None) -> bool:
    return value is None or (isinstance(value.type, TensorType) and value.type.is_static)


def _nbytes(values: Iterable[Value]) -> int:
    return sum(value.type.nbytes for value in values if isinstance(value.type, TensorType) and value.type.is_static)
