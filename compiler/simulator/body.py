"""Scalar bodies compiled to a list of array steps, each node of the expression once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from compiler.errors import InvalidProgram
from compiler.ops.work import Apply, Arg, Literal, Position
from compiler.simulator.convert import convert
from compiler.simulator.functions import FUNCTIONS, ScalarFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array, ElementType
    from compiler.ops.work import Expression

PositionOf: TypeAlias = "Callable[[int], Array]"
"""The index along a loop, as int64 that broadcasts over the iteration space."""


@dataclass(frozen=True, slots=True)
class _Step:
    function: ScalarFunction
    operands: tuple[int, ...]
    element: ElementType


class Body:
    """A compiled expression: slots 0..n-1 are the arguments, then literals and positions, then one a step."""

    def __init__(self, expression: Expression, arguments: int, who: str) -> None:
        self._who = who
        self._arguments = arguments
        self._leaves: list[Array | Position] = []
        self._steps: list[_Step] = []
        self._seen: dict[int, int] = {}
        self._pending: list[Expression] = []
        self._result = self._renumber(expression)

    def _renumber(self, expression: Expression) -> int:
        self._collect_leaves(expression, set())
        return self._visit(expression)

    def _collect_leaves(self, expression: Expression, seen: set[int]) -> None:
        stack: list[Expression] = [expression]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Apply):
                stack.extend(node.operands)
            elif isinstance(node, Arg):
                if not 0 <= node.index < self._arguments:
                    msg = f"{self._who}: the body uses input {node.index}; the instruction has {self._arguments}"
                    raise InvalidProgram(msg)
                self._seen[id(node)] = node.index
            else:
                self._seen[id(node)] = self._arguments + len(self._leaves)
                self._leaves.append(_literal(node) if isinstance(node, Literal) else node)

    def _visit(self, root: Expression) -> int:
        stack: list[tuple[Expression, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self._seen:
                continue
            assert isinstance(node, Apply)
            if not ready:
                stack.append((node, True))
                stack.extend((operand, False) for operand in reversed(node.operands))
                continue
            function = FUNCTIONS.get(node.function)
            if function is None:
                msg = (
                    f"{self._who}: scalar function '{node.function}' is unknown; expected one of {', '.join(FUNCTIONS)}"
                )
                raise InvalidProgram(msg)
            operands = tuple(self._seen[id(operand)] for operand in node.operands)
            self._seen[id(node)] = self._arguments + len(self._leaves) + len(self._steps)
            self._steps.append(_Step(function, operands, node.element))
        return self._seen[id(root)]

    @property
    def copies(self) -> int | None:
        """The argument that the body is, when it computes nothing."""
        return self._result if self._result < self._arguments else None

    def direct(self, element: ElementType) -> np.ufunc | None:
        """The ufunc of the last step, when it may write straight into an array of ``element``."""
        if not self._steps or self._result != self._arguments + len(self._leaves) + len(self._steps) - 1:
            return None
        last = self._steps[-1]
        return last.function.ufunc if last.element is element else None

    def __call__(self, arguments: Sequence[Array], position: PositionOf, out: Array | None = None) -> Array:
        """The body's values; with ``out``, the last step writes there if its operands have the element type of it."""
        values: list[Array] = list(arguments)
        values.extend(_position(leaf, position) if isinstance(leaf, Position) else leaf for leaf in self._leaves)
        last = len(self._steps) - 1
        for index, step in enumerate(self._steps):
            operands = [values[slot] for slot in step.operands]
            if index == last and out is not None and all(operand.dtype == out.dtype for operand in operands):
                ufunc: Any = step.function.ufunc
                ufunc(*operands, out=out)
                return out
            values.append(step.function.compute(operands, step.element))
        return values[self._result]


def _literal(node: Literal) -> Array:
    if node.element.is_integer and node.element.bits < 8:
        return convert(np.asarray(node.value), node.element)
    return np.asarray(node.value).astype(node.element.dtype)


def _position(node: Position, position: PositionOf) -> Array:
    index = position(node.iterator)
    if float(node.scale).is_integer() and float(node.offset).is_integer():
        return convert(index * int(node.scale) + int(node.offset), node.element)
    return convert(index * node.scale + node.offset, node.element)
