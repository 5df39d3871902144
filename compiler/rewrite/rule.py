"""Rules: a pattern, a class of numeric change, and a function that checks conditions and builds the replacement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from compiler.ir import Builder, Definition, TensorType, Value, known_value
from compiler.rewrite.pattern import Bindings, Continue, OperationPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array, AttributeValue, Constant, Op
    from compiler.rewrite.numerics import Numerics


class NoMatch(Exception):
    """Raised inside a rule's function where a condition does not hold; the argument says which."""


class Match:
    """What a rule's function works with: the values that names stand for, and a builder for the replacement.

    Operations built are inserted before the matched root and stand for the framework nodes of all matched operations.
    """

    __slots__ = ("_bindings", "_builder", "built", "root")

    def __init__(self, root: Op, bindings: Bindings) -> None:
        self.root = root
        self._bindings = bindings
        self._builder: Builder | None = None
        self.built: list[Op] = []

    def __getitem__(self, name: str) -> Value:
        """The value that ``name`` stands for."""
        return self._bindings.values[name]

    def defining(self, name: str) -> Op:
        """The operation that defines the value; for names of operation patterns."""
        op = self[name].op
        assert op is not None
        return op

    def array(self, name: str) -> Array:
        """The data of a constant pattern's value."""
        found = known_value(self[name])
        assert found is not None
        return found

    def tensor(self, name: str) -> TensorType:
        """The tensor type of a value. Raises NoMatch for other types."""
        return tensor_of(self[name])

    def require(self, condition: bool, reason: str) -> None:
        """Go on only under the condition. Raises NoMatch with the reason."""
        if not condition:
            raise NoMatch(reason)

    @property
    def builder(self) -> Builder:
        """Builds before the root."""
        if self._builder is None:
            matched = self._bindings.matched
            location = self.root.location.fused(*[op.location for op in matched if op is not self.root])
            self._builder = _Recorder(self.root, self.built)
            self._builder.location = location
        return self._builder

    def build(
        self, definition: Definition | type[Definition], *operands: Value | None, **attributes: AttributeValue
    ) -> Value:
        """Build an operation with one result."""
        return self.builder(definition, *operands, **attributes)

    def constant(self, data: Array | Constant) -> Value:
        """Build a constant."""
        return self.builder.constant(data)


class _Recorder(Builder):
    """A builder that remembers what it built."""

    __slots__ = ("_built",)

    def __init__(self, root: Op, built: list[Op]) -> None:
        assert root.graph is not None
        super().__init__(root.graph, root)
        self._built = built

    def op(self, *arguments: Any, **attributes: Any) -> Op:  # noqa: ANN401 - as the base
        built = super().op(*arguments, **attributes)
        self._built.append(built)
        return built


def tensor_of(value: Value) -> TensorType:
    """The tensor type of a value. Raises NoMatch for other types."""
    if not isinstance(value.type, TensorType):
        msg = f"'{value.name}' is {value.type}, no tensor"
        raise NoMatch(msg)
    return value.type


Replacement: TypeAlias = "Value | Sequence[Value]"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """pattern => replacement, where conditions hold.

    ``replace`` checks conditions with ``Match.require`` and returns a value for each result of the root. ``numerics``
    is what it may do to the numbers.
    """

    name: str
    pattern: OperationPattern
    numerics: Numerics
    replace: Callable[[Match], Replacement]
    _match: Callable[[Op, Bindings, Continue], bool] = field(init=False, repr=False)
    screen: Callable[[Op], bool] = field(init=False, repr=False)
    """A quick necessary condition for :meth:`attempt`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "screen", self.pattern.screen())
        object.__setattr__(self, "_match", self.pattern.compile_operation())

    @property
    def doc(self) -> str:
        """One line: what the rule does."""
        return (self.replace.__doc__ or "").strip().partition("\n")[0]

    def attempt(self, op: Op, trace: list[tuple[int, str]] | None = None) -> tuple[Match, Sequence[Value]] | None:
        """Match at ``op`` and build the replacement before it; None, with nothing built, where the rule does not fire.

        ``trace`` receives (depth, reason) of each failed attempt.
        """
        bindings = Bindings(trace)
        found: tuple[Match, Sequence[Value]] | None = None

        def accept() -> bool:
            nonlocal found
            match = Match(op, bindings)
            try:
                replacement = self.replace(match)
            except NoMatch as failure:
                for built in reversed(match.built):
                    built.erase()
                reason = str(failure)
                return bindings.refuse(lambda: reason)
            found = (match, (replacement,) if isinstance(replacement, Value) else replacement)
            return True

        return found if self._match(op, bindings, accept) else None


def rule(
    pattern: OperationPattern, numerics: Numerics, name: str = ""
) -> Callable[[Callable[[Match], Replacement]], Rule]:
    """Decorator: make a rule of a function; its name is the rule's."""

    def make(replace: Callable[[Match], Replacement]) -> Rule:
        return Rule(name or replace.__name__, pattern, numerics, replace)

    return make
