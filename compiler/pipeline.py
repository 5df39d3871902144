"""The only ordered list of passes, and why each stands where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.ir import Builder, Graph
from compiler.ops.registry import Composite

if TYPE_CHECKING:
    from compiler.targets.schema import Target


def optimize(graph: Graph, target: Target, options: Any) -> Graph:  # noqa: ANN401, ARG001
    """The graph with composites decomposed and dead operations gone."""
    _decompose(graph)
    return graph


def _decompose(graph: Graph) -> None:
    changed = True
    while changed:
        changed = False
        for op in list(graph.ops):
            for region in op.regions:
                _decompose(region)
            if isinstance(op.definition, Composite):
                results = op.definition.decompose(op, Builder(graph, op, op.location))
                for old, new in zip(op.results, results, strict=True):
                    old.replace_with(new)
                op.erase()
                changed = True
    for op in reversed(list(graph.ops)):
        if not op.definition.terminator and not any(result.users for result in op.results):
            op.erase()
