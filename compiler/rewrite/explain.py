"""Says why a rule fires at an operation or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import InvalidGraph

if TYPE_CHECKING:
    from compiler.ir import Graph, Op
    from compiler.rewrite.rule import Rule


def explain(graph: Graph, rule: Rule, op: Op) -> str:
    """Why ``rule`` does not fire at ``op``, an operation of ``graph`` or its regions; or that it does.

    The graph is left as it was. Of several ways to match, the one that went furthest is told. Raises InvalidGraph when
    the operation is not in the graph.
    """
    if not any(op is other for other in graph.walk()):
        msg = f"operation '{op.name}' at {op.location} is not in graph '{graph.name}'"
        raise InvalidGraph(msg)
    place = f"at '{op.name}' ({op.location})"
    if not rule.pattern.takes(op.definition):
        return f"rule '{rule.name}' does not fire {place}: its root takes other operators"
    trace: list[tuple[int, str]] = []
    found = rule.attempt(op, trace)
    if found is None:
        reason = max(trace, key=lambda entry: entry[0])[1] if trace else "it does not match"
        return f"rule '{rule.name}' does not fire {place}: {reason}"
    for built in reversed(found[0].built):
        built.erase()
    return f"rule '{rule.name}' fires {place}"
