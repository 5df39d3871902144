"""Where an operation came from: the framework nodes it stands for. Survives every rewrite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A framework node: its name in the model, its operator there, and the file or scope that holds it."""

    name: str
    operator: str = ""
    source: str = ""

    def __str__(self) -> str:
        shown = f"{self.name} ({self.operator})" if self.operator else self.name
        return f"{self.source}: {shown}" if self.source else shown


@dataclass(frozen=True, slots=True)
class Location:
    """The framework nodes that an operation stands for, in order and without repeats. Empty: made by the compiler."""

    nodes: tuple[Node, ...] = ()

    def fused(self, *others: Location) -> Location:
        """A location that stands for these nodes and those of ``others``."""
        merged = dict.fromkeys(self.nodes)
        for other in others:
            merged.update(dict.fromkeys(other.nodes))
        return self if len(merged) == len(self.nodes) else Location(tuple(merged))

    def __str__(self) -> str:
        return " + ".join(str(node) for node in self.nodes) or "(made by the compiler)"


UNKNOWN_LOCATION = Location()


def at(name: str, operator: str = "", source: str = "") -> Location:
    """The location of one framework node."""
    return Location((Node(name, operator, source),))
