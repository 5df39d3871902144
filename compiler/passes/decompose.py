"""Replaces composites that the target does not execute whole by what they decompose to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from compiler.errors import OpatlasError
from compiler.ir import Builder
from compiler.ops.registry import Composite
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import REASSOCIATE, Numerics, RewriteCounter
from compiler.rewrite.driver import replace_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Graph, Op, Value


def nothing_whole(op: Op) -> bool:  # noqa: ARG001 - the predicate of a target that executes no composite
    """No composite stays whole."""
    return False


@dataclass(frozen=True)
class Decompose(Pass):
    """Decompose composites, and those that they decompose to, unless ``keep`` says that the target executes them.

    A composite whose decomposition refuses it (a size it needs is not known) stays whole, for the host.
    """

    keep: Callable[[Op], bool] = nothing_whole
    name: ClassVar[str] = "decompose"
    numerics: ClassVar[Numerics] = REASSOCIATE

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """In program order; what a decomposition builds is looked at next."""
        hits: Counter[str] = Counter()
        pending = [op for op in graph.walk() if isinstance(op.definition, Composite)][::-1]
        while pending:
            op = pending.pop()
            if op.graph is None or self.keep(op):
                continue
            if counter.limit is not None and counter.count >= counter.limit:
                break
            built = decompose(op)
            if built is not None:
                counter.allow(self.name, op)
                hits[op.name] += 1
                pending.extend(new for new in reversed(built) if isinstance(new.definition, Composite))
        return PassResult(bool(hits), hits)


def decompose(op: Op) -> list[Op] | None:
    """Replace one composite; returns what was built, or None, with nothing changed, where it cannot be decomposed."""
    definition, graph = op.definition, op.graph
    assert isinstance(definition, Composite)
    assert graph is not None
    before = op.previous
    try:
        values = definition.decompose(op, Builder(graph, op, op.location))
    except OpatlasError:
        _erase_between(graph, before, op)
        return None
    built = _between(graph, before, op)
    _replace(op, values)
    return built


def _replace(op: Op, values: Sequence[Value]) -> None:
    for old, new in zip(op.results, values, strict=True):
        replace_value("decompose", op, old, new)
    op.erase()


def _between(graph: Graph, first: Op | None, last: Op) -> list[Op]:
    found: list[Op] = []
    op = graph.first if first is None else first.next
    while op is not None and op is not last:
        found.append(op)
        op = op.next
    return found


def _erase_between(graph: Graph, first: Op | None, last: Op) -> None:
    for op in reversed(_between(graph, first, last)):
        op.erase()
