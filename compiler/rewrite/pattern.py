"""Patterns over values, compiled once into matchers.

A matcher takes a value, the bindings so far and a continuation, and calls the continuation for each way to match, until
one accepts. Both orders of a commutative operator's two operands are tried; that comes from the operator, not from the
pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from compiler.ir import known_value
from compiler.ops.registry import Operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Definition, Op, Value

Root: TypeAlias = "type[Operator] | tuple[type[Operator], ...] | Callable[[Operator], bool]"
"""Which operators an operation pattern takes: a class, several, or a question about the operator's facts."""

Continue: TypeAlias = "Callable[[], bool]"
Matcher: TypeAlias = "Callable[[Value | None, Bindings, Continue], bool]"


class Bindings:
    """What names stand for in a match under way. ``trace`` collects (depth, reason) of failures when it is a list."""

    __slots__ = ("matched", "trace", "values")

    def __init__(self, trace: list[tuple[int, str]] | None = None) -> None:
        self.values: dict[str, Value] = {}
        self.matched: list[Op] = []
        self.trace = trace

    def refuse(self, reason: Callable[[], str]) -> bool:
        """Note why a match ends here; always False."""
        if self.trace is not None:
            self.trace.append((len(self.matched) + len(self.values), reason()))
        return False


@dataclass(frozen=True, slots=True)
class Pattern:
    """Base: binds the value it matches to ``name``; the same name twice means the same value."""

    name: str = ""

    def screens(self) -> Callable[[Value | None], bool] | None:
        """A quick necessary condition on a value, where there is one."""
        return None

    def compile(self) -> Matcher:
        """The matcher."""
        name = self.name

        def match(value: Value | None, bindings: Bindings, then: Continue) -> bool:
            if value is None:
                return bindings.refuse(lambda: f"operand '{name}' is omitted")
            if not name:
                return then()
            values = bindings.values
            bound = values.get(name)
            if bound is not None:
                return then() if bound is value else bindings.refuse(lambda: f"'{name}' would stand for two values")
            values[name] = value
            if then():
                return True
            del values[name]
            return False

        return match


@dataclass(frozen=True, slots=True)
class ConstantPattern(Pattern):
    """A value that a constant with data defines."""

    def screens(self) -> Callable[[Value | None], bool] | None:
        """It is a constant."""
        return _is_constant

    def compile(self) -> Matcher:
        """The matcher."""
        # The two-argument super() does not work in slotted dataclasses before Python 3.14.
        bind = Pattern.compile(self)
        name = self.name

        def match(value: Value | None, bindings: Bindings, then: Continue) -> bool:
            op = None if value is None else value.op
            if value is None or op is None or not op.definition.holds_constant or known_value(value) is None:
                return bindings.refuse(lambda: f"operand '{name}' is no constant with data")
            return bind(value, bindings, then)

        return match


@dataclass(frozen=True, slots=True)
class OperationPattern(Pattern):
    """A value that an operation of ``root`` defines, its operands matched in turn.

    ``more``: the operation may have further operands. ``single_use``: the operation has one result, used once, so that
    rewriting it away saves it.
    """

    root: Root = Operator
    operands: tuple[Pattern, ...] = ()
    more: bool = False
    single_use: bool = False

    def takes(self, definition: Definition) -> bool:
        """Whether an operation of this definition can match."""
        return isinstance(definition, Operator) and (
            isinstance(definition, self.root) if isinstance(self.root, (type, tuple)) else self.root(definition)
        )

    def screens(self) -> Callable[[Value | None], bool] | None:
        """An operation that the pattern takes defines it."""
        takes = self.takes
        return lambda value: value is not None and value.op is not None and takes(value.op.definition)

    def screen(self) -> Callable[[Op], bool]:
        """A quick necessary condition on an operation: most do not match, and cost only this."""
        tests = [operand.screens() for operand in self.operands]
        needed = [(index, test) for index, test in enumerate(tests) if test is not None]
        count = len(self.operands)

        def passes(op: Op) -> bool:
            operands = op.operands
            if len(operands) < count:
                return False
            for index, test in needed:
                if not test(operands[index]) and not (count == 2 and test(operands[1 - index])):
                    return False
            return True

        return passes

    def compile_operation(self) -> Callable[[Op, Bindings, Continue], bool]:
        """The matcher of an operation that :meth:`takes` accepted."""
        match_operands = _all_operands(self.operands)
        count = len(self.operands)
        more = self.more

        def match(op: Op, bindings: Bindings, then: Continue) -> bool:
            operands = op.operands
            if len(operands) != count and (len(operands) < count or not more):
                return bindings.refuse(lambda: f"'{op.name}' has {len(operands)} operands; the rule takes {count}")
            bindings.matched.append(op)
            if match_operands(operands, bindings, then):
                return True
            if count == 2 and operands[0] is not operands[1] and getattr(op.definition, "commutative", False):
                swapped = (operands[1], operands[0], *operands[2:])
                if match_operands(swapped, bindings, then):
                    return True
            bindings.matched.pop()
            return False

        return match

    def compile(self) -> Matcher:
        """The matcher of a value."""
        bind = Pattern.compile(self)
        match_operation = self.compile_operation()
        takes, single_use, shown = self.takes, self.single_use, _root_text(self.root)

        def match(value: Value | None, bindings: Bindings, then: Continue) -> bool:
            op = None if value is None else value.op
            if value is None or op is None or not takes(op.definition):
                found = "nothing" if value is None else "an input" if op is None else f"the result of '{op.name}'"
                return bindings.refuse(lambda: f"an operand is {found}; the rule takes the result of {shown}")
            if single_use and (len(op.results) != 1 or len(value.users) != 1):
                return bindings.refuse(lambda: f"the result of '{op.name}' has other users")
            return bind(value, bindings, lambda: match_operation(op, bindings, then))

        return match


def _is_constant(value: Value | None) -> bool:
    return value is not None and value.op is not None and value.op.definition.holds_constant


MatchOperands: TypeAlias = "Callable[[tuple[Value | None, ...], Bindings, Continue], bool]"


def _all_operands(patterns: tuple[Pattern, ...]) -> MatchOperands:
    """One matcher for several operands."""
    in_turn = _in_turn(tuple(pattern.compile() for pattern in patterns))
    names = [pattern.name for pattern in patterns if type(pattern) in {Pattern, ConstantPattern} and pattern.name]
    if len(patterns) == 2 and len(set(names)) == 2:
        return _two_leaves(*patterns, in_turn)
    return in_turn


def _two_leaves(first: Pattern, second: Pattern, in_turn: MatchOperands) -> MatchOperands:
    """The commonest operands, anything or a constant each, bound without continuations between them.

    ``in_turn`` does the same in general: it is asked where a name is bound already, and for the reason of a refusal.
    """
    a_name, b_name = first.name, second.name
    a_constant, b_constant = isinstance(first, ConstantPattern), isinstance(second, ConstantPattern)

    def match(operands: tuple[Value | None, ...], bindings: Bindings, then: Continue) -> bool:
        a, b = operands[0], operands[1]
        values = bindings.values
        if (
            a is None
            or b is None
            or (a_constant and known_value(a) is None)
            or (b_constant and known_value(b) is None)
            or (values and (a_name in values or b_name in values))
        ):
            return in_turn(operands, bindings, then)
        values[a_name] = a
        values[b_name] = b
        if then():
            return True
        del values[a_name], values[b_name]
        return False

    return match


def _in_turn(matchers: tuple[Matcher, ...]) -> MatchOperands:
    """Each operand's matcher continues with the next one's."""
    if not matchers:
        return lambda operands, bindings, then: then()  # noqa: ARG005 - the common signature
    first = matchers[0]
    if len(matchers) == 1:
        return lambda operands, bindings, then: first(operands[0], bindings, then)
    if len(matchers) == 2:
        second = matchers[1]
        return lambda operands, bindings, then: first(
            operands[0], bindings, lambda: second(operands[1], bindings, then)
        )
    rest = _in_turn(matchers[1:])
    return lambda operands, bindings, then: first(operands[0], bindings, lambda: rest(operands[1:], bindings, then))


def _root_text(root: Root) -> str:
    if isinstance(root, type):
        return root.__name__
    if isinstance(root, tuple):
        return " or ".join(one.__name__ for one in root)
    return (root.__doc__ or root.__name__).strip().rstrip(".")


def anything(name: str = "") -> Pattern:
    """Any value."""
    return Pattern(name)


def constant(name: str = "") -> Pattern:
    """A constant whose data is there."""
    return ConstantPattern(name)


def operation(
    root: Root, *operands: Pattern, name: str = "", more: bool = False, single_use: bool = False
) -> OperationPattern:
    """The result of an operation of ``root`` on these operands."""
    return OperationPattern(name, root, operands, more, single_use)
