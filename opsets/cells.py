"""What there is to be covered, as data: cells, attributes and operators of a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cell:
    """One operator version and one element type that its schema allows for any input.

    ``tensor`` is false where the type only goes with a sequence or optional, or with an output of an operator without
    inputs: published counts of cells leave those out.
    """

    framework: str
    domain: str
    operator: str
    since_version: int
    dtype: str
    newest: bool
    tensor: bool = True


@dataclass(frozen=True, slots=True)
class AttributeVersion:
    """One attribute of one operator version."""

    framework: str
    domain: str
    operator: str
    since_version: int
    attribute: str
    newest: bool


@dataclass(frozen=True, slots=True)
class Denominator:
    """Everything that the framework's schema has. Deprecated versions are left out."""

    cells: tuple[Cell, ...]
    attributes: tuple[AttributeVersion, ...]
    pairs: tuple[tuple[str, int], ...]
    """(operator, since version)"""
    active: frozenset[str]
    """Operators whose newest version is not deprecated; of other frameworks those in scope."""
    excluded: Mapping[str, str] = field(default_factory=dict)
    """Operators out of scope, with the reason."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further sets of what a case may reach, by name: torch's core operators and overloads."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of operators, sorted."""
        return tuple(sorted({operator for operator, _ in self.pairs}))
