"""Takes away what no output needs.

1. Pure operations without used results, in regions too.
2. Results of a branch that nothing uses, with the regions' outputs for them.
3. Values carried by a loop, and values it collects, that neither a used result nor the condition depends on.
Graph inputs stay: they are the interface.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from compiler.ir import Op
from compiler.ops.control import If, Loop
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import RewriteCounter, is_pure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Graph, Value


@dataclass(frozen=True)
class DeadCode(Pass):
    """Erase pure operations, branch results and loop-carried values that nothing needs."""

    name: ClassVar[str] = "dead_code"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Last operations first, so that one sweep suffices in a graph; again where a region lost outputs."""
        hits: Counter[str] = Counter()
        while _sweep(graph, counter, hits):
            pass
        return PassResult(bool(hits), hits)


def _sweep(graph: Graph, counter: RewriteCounter, hits: Counter[str]) -> bool:
    """One sweep; True where operands were dropped that may have been the last use of something before."""
    again = False
    op = graph.last
    while op is not None:
        before = op.previous
        if not op.definition.terminator:
            if is_pure(op) and not any(result.users for result in op.results):
                if not counter.allow("erase", op):
                    return False
                hits[op.name] += 1
                op.erase()
            else:
                op, shrunk = _shrink(op, counter, hits)
                for region in op.regions:
                    again = _sweep(region, counter, hits) or again
                again = again or shrunk
        op = before
    return again


def _shrink(op: Op, counter: RewriteCounter, hits: Counter[str]) -> tuple[Op, bool]:
    if isinstance(op.definition, If):
        kept = [index for index, result in enumerate(op.results) if result.users]
        if len(kept) < len(op.results) and counter.allow("drop branch result", op):
            hits["drop branch result"] += len(op.results) - len(kept)
            for region in op.regions:
                _keep_outputs(region, kept)
            return _replace(op, op.operands, kept), True
    if isinstance(op.definition, Loop):
        return _shrink_loop(op, counter, hits)
    return op, False


def _shrink_loop(op: Op, counter: RewriteCounter, hits: Counter[str]) -> tuple[Op, bool]:
    body = op.regions[0]
    carried = len(op.operands) - 2
    kept = _needed_results(op, body, carried)
    if len(kept) == len(op.results) or not counter.allow("drop loop value", op):
        return op, False
    hits["drop loop value"] += len(op.results) - len(kept)
    _keep_outputs(body, [0, *(1 + index for index in kept)])
    dropped = [index for index in range(carried) if index not in kept]
    _erase_dead(body)
    for index in reversed(dropped):
        body.erase_input(2 + index)
    operands = [*op.operands[:2], *(op.operands[2 + index] for index in range(carried) if index in kept)]
    return _replace(op, operands, kept), True


def _needed_results(op: Op, body: Graph, carried: int) -> list[int]:
    """Results to keep: used ones, and carried values that they or the condition depend on from turn to turn."""
    outputs = body.outputs
    needed = {index for index, result in enumerate(op.results) if result.users}
    fixed = [op_ for op_ in body.walk() if not op_.definition.terminator and not is_pure(op_)]
    while True:
        roots = [outputs[0], *(outputs[1 + index] for index in needed)]
        reached = _depends_on(roots, fixed, body)
        more = needed | {index for index in range(carried) if body.inputs[2 + index] in reached}
        if more == needed:
            return sorted(needed)
        needed = more


def _depends_on(values: Iterable[Value], ops: Iterable[Op], body: Graph) -> set[Value]:
    """All values that these depend on, within the body and its regions."""
    pending = [*values]
    seen: set[Value] = set()
    done: set[Op] = set()

    def take(op: Op) -> None:
        if op in done:
            return
        done.add(op)
        for inner in op.walk():
            pending.extend(operand for operand in inner.operands if operand is not None)
        parent = op.graph.parent if op.graph is not None and op.graph is not body else None
        if parent is not None:
            take(parent)

    for op in ops:
        take(op)
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if value.op is not None:
                take(value.op)
    return seen


def _erase_dead(body: Graph) -> None:
    """Erase pure operations without users, last first."""
    op = body.last
    while op is not None:
        before = op.previous
        if not op.definition.terminator and is_pure(op) and not any(result.users for result in op.results):
            op.erase()
        op = before


def _keep_outputs(region: Graph, kept: Sequence[int]) -> None:
    outputs = region.outputs
    region.terminator.set_operands([outputs[index] for index in kept])
    if region.output_names:
        region.output_names = tuple(region.output_names[index] for index in kept)


def _replace(op: Op, operands: Sequence[Value | None], kept: Sequence[int]) -> Op:
    """The same operation on these operands with only the results ``kept``; its regions move."""
    assert op.graph is not None
    types = [op.results[index].type for index in kept]
    new = op.graph.insert(Op(op.definition, operands, types, op.attributes, op.regions, op.location), op)
    for index, result in zip(kept, new.results, strict=True):
        result.name = op.results[index].name
        op.results[index].replace_with(result)
    op.regions = ()
    op.erase()
    return new
