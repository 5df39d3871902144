"""The class of cost of each scalar function of a vector unit, for which a target gives cycles."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from compiler.ops.work import Apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiler.ops.work import Expression
    from compiler.targets.schema import VectorCycles


class Cost(Enum):
    """The classes of cost that a target gives cycles for."""

    SIMPLE = "simple"
    DIVISION = "division"
    TRANSCENDENTAL = "transcendental"


_DIVISION: Final = ("sqrt", "rsqrt", "reciprocal", "div", "mod", "rem")
_TRANSCENDENTAL: Final = (
    "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "logistic", "atan2", "pow",
)  # fmt: skip
_COSTS: Final = dict.fromkeys(_DIVISION, Cost.DIVISION) | dict.fromkeys(_TRANSCENDENTAL, Cost.TRANSCENDENTAL)


def cost_of(function: str) -> Cost:
    """The class of a scalar function by its name; whatever is neither a division nor transcendental is simple."""
    return _COSTS.get(function, Cost.SIMPLE)


def function_cycles(function: str, cycles: VectorCycles) -> int:
    """Cycles that a function takes in a lane."""
    found: int = getattr(cycles, cost_of(function).value)
    return found


def body_functions(expression: Expression) -> Iterator[Apply]:
    """Each applied function of a body once."""
    seen: set[int] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.operands)
