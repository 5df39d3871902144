"""What an operator is (a definition) and what it sees when it is applied (a call)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from compiler.errors import InvalidGraph
from compiler.ir.constant import Array, Constant
from compiler.ir.types import ElementType, TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compiler.ir.graph import Graph

AttributeValue: TypeAlias = "bool | int | float | str | ElementType | Type | Constant | tuple[AttributeValue, ...]"
Attributes: TypeAlias = "Mapping[str, AttributeValue]"

RunRegion: TypeAlias = "Callable[[Graph, Sequence[Any]], list[Any]]"
"""Evaluates a region on its arguments (numpy arrays, lists for sequences, None for an empty optional)."""


class Definition(ABC):
    """What an operator is. One instance a class; an operation points to it.

    ``terminator`` marks the definition that ends a graph and whose operands are the graph's outputs;
    ``holds_constant`` the one whose only result is its attribute ``value``.
    """

    name: ClassVar[str]
    terminator: ClassVar[bool] = False
    holds_constant: ClassVar[bool] = False
    _instance: ClassVar[Definition | None] = None

    @classmethod
    def instance(cls) -> Self:
        """The one instance of the class."""
        found = cls.__dict__.get("_instance")
        if not isinstance(found, cls):
            found = cls()
            cls._instance = found
        return found

    def complete(self, attributes: Attributes) -> Attributes:
        """The attributes with defaults for those that are absent."""
        return attributes

    @abstractmethod
    def check(self, call: Call) -> None:
        """Check operands and attributes against the signature. Raises TypeMismatch or InvalidAttribute."""

    @abstractmethod
    def infer(self, call: Call) -> tuple[Type, ...]:
        """The result types. Raises TypeMismatch, InvalidAttribute."""

    @abstractmethod
    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:
        """The results as numpy arrays. Raises EvaluationError where the operator has no meaning for the operands."""


class Call:
    """An operator applied: what a definition sees of an operation.

    ``types`` has None for an omitted optional operand. ``values`` holds what is known of an operand before anything
    runs (a constant's array), else None.
    """

    __slots__ = ("attributes", "regions", "types", "values")

    def __init__(
        self,
        types: Sequence[Type | None],
        attributes: Attributes,
        values: Sequence[Array | None] | None = None,
        regions: Sequence[Graph] = (),
    ) -> None:
        self.types = tuple(types)
        self.attributes = attributes
        self.values = (None,) * len(self.types) if values is None else tuple(values)
        self.regions = tuple(regions)

    def has(self, index: int) -> bool:
        """Whether operand ``index`` is given."""
        return index < len(self.types) and self.types[index] is not None

    def tensor(self, index: int) -> TensorType:
        """The tensor type of operand ``index``. Raises InvalidGraph when it is omitted or no tensor."""
        found = self.types[index] if index < len(self.types) else None
        if not isinstance(found, TensorType):
            msg = f"operand {index} is {found if found is not None else 'omitted'}; expected a tensor"
            raise InvalidGraph(msg)
        return found

    def shape(self, index: int) -> tuple[int, ...]:
        """The static sizes of operand ``index``. Raises UnsupportedType where one is symbolic."""
        return self.tensor(index).shape

    def value(self, index: int) -> Array | None:
        """The known value of operand ``index``, else None."""
        return self.values[index] if index < len(self.values) else None

    def get(self, name: str) -> AttributeValue | None:
        """The attribute, or None where it is not set."""
        return self.attributes.get(name)

    def _expect(self, name: str, wanted: type | tuple[type, ...]) -> Any:  # noqa: ANN401 - narrowed by the callers
        found = self.attributes.get(name)
        if not isinstance(found, wanted):
            msg = f"attribute '{name}' is {found!r}; expected {wanted}"
            raise InvalidGraph(msg)
        return found

    def integer(self, name: str) -> int:
        """An integer attribute."""
        return int(self._expect(name, int))

    def number(self, name: str) -> float:
        """A float attribute."""
        return float(self._expect(name, (float, int)))

    def flag(self, name: str) -> bool:
        """A bool attribute."""
        return bool(self._expect(name, bool))

    def text(self, name: str) -> str:
        """A string attribute."""
        return str(self._expect(name, str))

    def integers(self, name: str) -> tuple[int, ...]:
        """A tuple of integers."""
        return tuple(int(item) for item in self._expect(name, tuple))

    def numbers(self, name: str) -> tuple[float, ...]:
        """A tuple of floats."""
        return tuple(float(item) for item in self._expect(name, tuple))

    def element(self, name: str) -> ElementType:
        """An element type attribute."""
        found = self._expect(name, ElementType)
        assert isinstance(found, ElementType)
        return found

    def constant(self, name: str) -> Constant:
        """A constant attribute."""
        found = self._expect(name, Constant)
        assert isinstance(found, Constant)
        return found
