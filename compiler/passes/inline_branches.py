"""A branch whose condition is a constant becomes the operations of the region taken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from compiler.ir import known_value
from compiler.ops.control import If
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import RewriteCounter
from compiler.rewrite.driver import replace_value

if TYPE_CHECKING:
    from compiler.ir import Graph, Op


@dataclass(frozen=True)
class InlineBranches(Pass):
    """Inline branches with a constant condition, outer ones first."""

    name: ClassVar[str] = "inline_branches"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Branches that were inside an inlined region are looked at in their new place."""
        hits: Counter[str] = Counter()
        for op in list(graph.walk()):
            if op.graph is None or not isinstance(op.definition, If):
                continue
            condition = known_value(op.operand(0))
            if condition is None or condition.size != 1:
                continue
            if not counter.allow(self.name, op):
                break
            hits[op.name] += 1
            _inline(op, op.regions[0 if bool(np.all(condition)) else 1])
        return PassResult(bool(hits), hits)


def _inline(op: Op, region: Graph) -> None:
    assert op.graph is not None
    outputs = region.outputs
    region.terminator.erase()
    for inner in region.ops:
        region.unlink(inner)
        op.graph.insert(inner, op)
    for old, new in zip(op.results, outputs, strict=True):
        replace_value("inline_branches", op, old, new)
    op.erase()
