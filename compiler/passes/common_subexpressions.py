"""Equal pure operations are done once.

Equal: the same definition, operands (in any order for commutative operators of two), attributes and constants to the
bit, and regions equal up to names. An operation in a region may be replaced by an equal one around the region.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from compiler.ir import Constant, TensorType, attributes_key, graphs_equal
from compiler.ops.registry import Operator
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import RewriteCounter, is_pure
from compiler.rewrite.driver import replace_value

if TYPE_CHECKING:
    from collections.abc import Hashable

    from compiler.ir import Graph, Op, Type


@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Replace a pure operation by an equal one before it."""

    name: ClassVar[str] = "common_subexpressions"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """One sweep in program order: operands are merged before their users are looked at."""
        types = Counter(constant.type for constant in graph.constants())
        sweep = _Sweep(counter, {type_ for type_, count in types.items() if count > 1})
        sweep.block(graph, {})
        return PassResult(bool(sweep.hits), sweep.hits)


class _Sweep:
    """Operations seen so far by what makes them equal; a region sees those around it."""

    def __init__(self, counter: RewriteCounter, repeated: set[Type]) -> None:
        self.counter = counter
        self.repeated = repeated
        self.hits: Counter[str] = Counter()

    def block(self, graph: Graph, outer: dict[Hashable, Op]) -> None:
        seen = dict(outer) if graph.parent is not None else outer
        for op in graph.ops:
            if op.definition.terminator:
                continue
            for region in op.regions:
                self.block(region, seen)
            key = self.key(op)
            if key is None:
                continue
            first = seen.setdefault(key, op)
            if first is op or not _same_content(first, op):
                continue
            if not self.counter.allow("common_subexpressions", op):
                return
            self.hits[op.name] += 1
            for old, new in zip(op.results, first.results, strict=True):
                replace_value("common_subexpressions", op, old, new)
            op.erase()

    def key(self, op: Op) -> Hashable | None:
        """What equal operations share; None for those that are not to be merged."""
        if not is_pure(op):
            return None
        if op.definition.holds_constant:
            constant = op.attributes["value"]
            # Hashing all data of a large model costs a second: only constants with a like by type are looked at, and
            # first by a few elements.
            if not isinstance(constant, Constant) or constant.type not in self.repeated:
                return None
            return (constant.type, constant.seed, _sample(constant))
        operands: Hashable = op.operands
        if len(op.operands) == 2 and _commutes(op):
            operands = frozenset(op.operands)
        return (op.definition, operands, attributes_key(op.attributes), len(op.regions))


def _commutes(op: Op) -> bool:
    definition, type_ = op.definition, op.operand(0).type
    return isinstance(definition, Operator) and isinstance(type_, TensorType) and definition.commutes(type_.element)


def _sample(constant: Constant) -> bytes:
    """Some bytes that equal constants share."""
    if constant.is_abstract or constant.array.dtype.hasobject or not constant.array.flags.c_contiguous:
        return constant.digest
    flat = constant.array.reshape(-1)
    return bytes(flat[:: max(1, flat.size // 16)].tobytes())


def _same_content(a: Op, b: Op) -> bool:
    if a.definition.holds_constant:
        return a.attributes["value"] == b.attributes["value"]
    return all(graphs_equal(x, y) for x, y in zip(a.regions, b.regions, strict=True))
