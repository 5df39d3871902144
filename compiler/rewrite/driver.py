"""The worklist driver: applies rules until none fires, revisiting what a rewrite may have enabled."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from compiler.errors import InvalidGraph, RewriteCycle
from compiler.ir import compatible
from compiler.rewrite.counter import RewriteCounter
from compiler.rewrite.facts import is_pure, refine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Definition, Graph, Op, Value
    from compiler.rewrite.rule import Match, Rule

LONGEST_LINEAGE: Final = 128
"""An operation that came from another through more rewrites than this is taken for the product of a cycle."""


class RuleSet:
    """Rules indexed by the definition of their root: an operator that no rule takes costs one look-up."""

    __slots__ = ("_by_definition", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_definition: dict[Definition, tuple[Rule, ...]] = {}

    def at(self, definition: Definition) -> tuple[Rule, ...]:
        """The rules whose root takes this definition, in their order."""
        found = self._by_definition.get(definition)
        if found is None:
            found = tuple(rule for rule in self.rules if rule.pattern.takes(definition))
            self._by_definition[definition] = found
        return found


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """Whether anything changed, and how often each rule fired."""

    hits: Counter[str] = field(default_factory=Counter)

    @property
    def modified(self) -> bool:
        """Whether any rule fired."""
        return bool(self.hits)


def rewrite(graph: Graph, rules: RuleSet, counter: RewriteCounter | None = None) -> RewriteResult:
    """Apply the rules to the graph and its regions until none fires or the counter's limit is reached.

    The order is a function of graph and rules alone: operations in program order, at each the rules in theirs. Pure
    operations that a rewrite leaves without users are erased. Raises RewriteCycle, naming the rules that alternate.
    """
    return _Driver(rules, counter or RewriteCounter()).run(graph)


class _Driver:
    """One run: the worklist and the lineage of operations that rewrites built."""

    def __init__(self, rules: RuleSet, counter: RewriteCounter) -> None:
        self.rules = rules
        self.counter = counter
        self.hits: Counter[str] = Counter()
        self.queue: deque[Op] = deque()
        self.queued: set[Op] = set()
        self.lineage: dict[Op, tuple[str, ...]] = {}

    def run(self, graph: Graph) -> RewriteResult:
        at, counter, queue, queued = self.rules.at, self.counter, self.queue, self.queued
        queue.extend([op for op in graph.walk() if at(op.definition)])
        queued.update(queue)
        while queue:
            if counter.limit is not None and counter.count >= counter.limit:
                break
            op = queue.popleft()
            queued.discard(op)
            if op.graph is None:
                continue
            for rule in at(op.definition):
                found = rule.attempt(op) if rule.screen(op) else None
                if found is not None:
                    self.apply(rule, op, *found)
                    break
        return RewriteResult(self.hits)

    def push(self, op: Op) -> None:
        if op not in self.queued and self.rules.at(op.definition):
            self.queued.add(op)
            self.queue.append(op)

    def apply(self, rule: Rule, op: Op, match: Match, values: Sequence[Value]) -> None:
        self.counter.allow(rule.name, op)
        self.hits[rule.name] += 1
        if len(values) != len(op.results):
            msg = f"rule '{rule.name}' gives {len(values)} values for the {len(op.results)} results of '{op.name}'"
            raise InvalidGraph(msg)
        built, queued = match.built, self.queued
        if built:
            self.record_lineage(rule, op, match)
        for index, old in enumerate(op.results):
            for user in old.users:
                if user not in queued:
                    self.push(user)
            replace_value(rule.name, op, old, values[index])
        for made in built:
            self.push(made)
        self.erase_dead(op)
        for made in built:
            if not any(result.users for result in made.results):
                self.erase_dead(made)

    def record_lineage(self, rule: Rule, op: Op, match: Match) -> None:
        line = (*self.lineage.pop(op, ()), rule.name)
        if len(line) > LONGEST_LINEAGE:
            names = [f"'{name}'" for name in dict.fromkeys(line[LONGEST_LINEAGE // 2 :])]
            what = "undo each other" if len(names) > 1 else "fires on what it made"
            msg = f"rewriting never comes to an end at '{op.name}' ({op.location}): {' and '.join(names)} {what}"
            raise RewriteCycle(msg)
        for built in match.built:
            if not built.definition.holds_constant:
                self.lineage[built] = line

    def erase_dead(self, op: Op) -> None:
        """Erase the operation and what only it kept alive; revisit the users of what lost a use."""
        pending = [op]
        while pending:
            dead = pending.pop()
            if dead.graph is None or (dead is not op and not is_pure(dead)):
                continue
            for result in dead.results:
                if result.users:
                    break
            else:
                feeding = dead.operands
                if self.lineage:
                    self.lineage.pop(dead, None)
                dead.erase()
                self.after_lost_use(feeding, pending)

    def after_lost_use(self, values: Iterable[Value | None], pending: list[Op]) -> None:
        for value in values:
            if value is None:
                continue
            users = len(value.users)
            if users == 0 and value.op is not None:
                pending.append(value.op)
            elif users == 1:
                self.push(next(iter(value.users)))


def replace_value(name: str, op: Op, old: Value, new: Value) -> None:
    """Let ``new`` stand for ``old``, a result of ``op``: uses, name, location and the more precise type of both.

    ``name`` is the rewrite's, for diagnoses. Raises InvalidGraph when the types contradict each other.
    """
    if new.type is not old.type:
        if not compatible(old.type, new.type):
            msg = f"rewrite '{name}' replaces a value of type {old.type} of '{op.name}' by one of type {new.type}"
            raise InvalidGraph(msg)
        if new.op is not None and not new.op.definition.holds_constant:
            new.type = refine(new.type, old.type)
    if old.name and not new.name and new.op is not None:
        new.name = old.name
    if new.op is not None and op.location.nodes and not new.op.definition.holds_constant:
        new.op.location = new.op.location.fused(op.location)
    old.replace_with(new)
