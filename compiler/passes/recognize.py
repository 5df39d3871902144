"""Finds composites in what frameworks export of them: the pieces become one operation again.

Each rule (compiler/passes/recognition) states what it may do to the numbers. A composite is computed in its compute
type and rounded once, where pieces of a narrow type round at each step: results may differ by that rounding, so the
rules are REASSOCIATE. What only looks like a composite (another axis, a mask after the softmax, a constant that is a
little off) is left alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from compiler.passes.manager import Pass, PassResult
from compiler.passes.recognition import activation, attention, normalization, rotary, softmax
from compiler.rewrite import REASSOCIATE, Numerics, RewriteCounter, RuleSet, rewrite

if TYPE_CHECKING:
    from compiler.ir import Graph

STAGES: Final = (
    RuleSet((*softmax.RULES, *activation.RULES, *normalization.RULES, *attention.EINSUM_RULES)),
    RuleSet((*attention.RULES, *rotary.RULES)),
)
"""Inner composites first: attention is recognized by its softmax."""
RULES: Final = RuleSet(tuple(rule for stage in STAGES for rule in stage.rules))
"""All of them, for explanations."""


@dataclass(frozen=True)
class Recognize(Pass):
    """Apply the rules that make composites of their pieces."""

    name: ClassVar[str] = "recognize"
    numerics: ClassVar[Numerics] = REASSOCIATE

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Hits by rule."""
        hits: Counter[str] = Counter()
        for rules in STAGES:
            hits.update(rewrite(graph, rules, counter).hits)
        return PassResult(bool(hits), hits)
