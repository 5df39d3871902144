"""Brings graphs to one form by exact rules (compiler/passes/canonical), until none fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from compiler.passes.canonical import arithmetic, conversion, movement
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import RewriteCounter, RuleSet, rewrite

if TYPE_CHECKING:
    from compiler.ir import Graph

RULES: Final = RuleSet((*arithmetic.RULES, *conversion.RULES, *movement.RULES))


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Apply the exact rules."""

    name: ClassVar[str] = "canonicalize"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Rules as compiler/passes/canonical lists them; hits by rule."""
        result = rewrite(graph, RULES, counter)
        return PassResult(result.modified, result.hits)
