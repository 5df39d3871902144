"""A graph without its data: enough to lower it for any target and to time that, in this process or another.

Large constants become abstract, so a network of hundreds of megabytes is some kilobytes of text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from compiler.ir import Constant
from compiler.ir.parser import parse_graph
from compiler.ir.printer import print_graph, resources
from compiler.ir.traversal import clone_graph
from compiler.lowering.lower import lower
from compiler.ops.registry import lookup
from compiler.simulator import Machine

if TYPE_CHECKING:
    from compiler.ir import Array, Graph
    from compiler.simulator import SimulationReport
    from compiler.targets import Target

_KEPT: Final = 4096
"""Constants of at most so many elements keep their data: sizes, axes, tables and scalars decide what is computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """The text of an optimized graph and the data of its small constants."""

    text: str
    small: dict[str, Array]

    @classmethod
    def of(cls, graph: Graph) -> Skeleton:
        """The skeleton of a graph, which stays as it is."""
        bare = clone_graph(graph)
        for number, op in enumerate(bare.walk()):
            value = op.attributes.get("value") if op.definition.holds_constant else None
            if isinstance(value, Constant) and not value.is_abstract and value.type.size > _KEPT:
                op.attributes = {**op.attributes, "value": Constant.abstract(value.type, number)}
        return cls(print_graph(bare), resources(bare))

    @property
    def digest(self) -> str:
        """Hash of all that decides what it costs."""
        found = blake2b(self.text.encode(), digest_size=16)
        for key in sorted(self.small):
            found.update(key.encode())
            found.update(self.small[key].tobytes())
        return found.hexdigest()

    def time(self, target: Target) -> SimulationReport:
        """What the graph costs on a target. Raises LoweringError, TimingNeedsData."""
        return Machine(lower(_parsed(self), target), target).simulate()


@lru_cache(maxsize=8)
def _parsed(skeleton: Skeleton) -> Graph:
    return parse_graph(skeleton.text, lookup, skeleton.small)
