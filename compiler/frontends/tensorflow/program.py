"""What the importer reads: a traced graph with its inputs, its captured values and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """A ``tf.Graph`` to import.

    ``inputs`` and ``outputs`` are symbolic tensors by the name that callers use, in ``tf.nest``'s flattened order.
    ``captured`` has, by the name of its placeholder, what the graph takes from outside: eager tensors, and the handles
    of variables. ``batched`` says that dim 0 of every input is one and the same batch. ``traced`` says that the
    graph's operations know the lines of the user's source that made them. ``owner`` keeps variables alive.
    """

    graph: Any
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[str, Any], ...]
    captured: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    batched: bool = False
    traced: bool = False
    owner: Any = None
    library: Mapping[str, Any] = field(default_factory=dict)
    """Definitions (FunctionDef) of the functions that came with a graph, by name."""
    functions: dict[str, Any] = field(default_factory=dict)
    """Graphs of the functions that were called so far, by name."""
