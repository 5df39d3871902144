"""A block as a list of steps that no framework owns: what the block language makes and the back-ends render."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Shape: TypeAlias = "tuple[int, ...]"

BOOL: Final = "bool"
INT64: Final = "int64"
FLOAT32: Final = "float32"
FLOATS: Final = ("float64", "float32", "float16", "bfloat16")


@dataclass(eq=False, slots=True)
class Var:
    """A tensor of known shape and element type; ``name`` is the definition's own word for it, where it has one."""

    shape: Shape
    dtype: str
    name: str | None = None
    step: Step | None = None

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape)


@dataclass(eq=False, slots=True)
class Step:
    """One word on its operands. ``operands`` are tensors and numbers, ``settings`` what else the back-end renders."""

    word: str
    operands: tuple[Any, ...]
    settings: dict[str, Any]
    results: tuple[Var, ...] = ()


@dataclass(slots=True)
class Program:
    """Steps in order, from inputs and weights to outputs, each named as the definition names it."""

    inputs: dict[str, Var] = field(default_factory=dict)
    weights: dict[str, Var] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    outputs: tuple[Var, ...] = ()

    def add(self, word: str, operands: Sequence[Any], settings: dict[str, Any], results: Sequence[Var]) -> Step:
        """Append a step."""
        step = Step(word, tuple(operands), settings, tuple(results))
        for var in results:
            var.step = step
        self.steps.append(step)
        return step

    def live_steps(self) -> list[Step]:
        """The steps that some output needs."""
        needed = {id(var) for var in self.outputs}
        kept: list[Step] = []
        for step in reversed(self.steps):
            if any(id(var) in needed for var in step.results):
                kept.append(step)
                needed |= {id(operand) for operand in step.operands if isinstance(operand, Var)}
        return kept[::-1]
