"""The expression language of manifests: arithmetic and comparisons over names, read at a glance.

``-rank(data) <= axis < rank(data)`` is a whole constraint. Names are inputs (their shape as a tuple, or None when
absent), attributes (their value, their default, or None), type parameters (an element name), ``element`` (the case's),
``data_class``, ``version``, ``outputs`` and ``first``, the shape of the first input. Only what stands in the tables
below is understood; anything else is refused when the manifest is read.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

Shape = tuple[int, ...]


def rank(shape: Shape) -> int:
    """Count of dimensions."""
    return len(shape)


def size(shape: Sequence[int]) -> int:
    """Count of elements."""
    return math.prod(shape)


def broadcast(*shapes: Shape) -> Shape | None:
    """The shape that numpy's rule gives for several shapes, None if they do not go together."""
    result: list[int] = []
    for position in range(1, max(len(shape) for shape in shapes) + 1):
        dims = {shape[-position] for shape in shapes if len(shape) >= position} - {1}
        if len(dims) > 1:
            return None
        result.insert(0, dims.pop() if dims else 1)
    return tuple(result)


def onto(source: Shape, target: Shape) -> bool:
    """Whether ``source`` broadcasts to exactly ``target``."""
    return broadcast(source, target) == target


def inside(axes: int | Sequence[int] | None, count: int) -> bool:
    """Whether each axis lies in [-count, count) and no two mean the same one."""
    if axes is None:
        return True
    listed = [axes] if isinstance(axes, int) else list(axes)
    wrapped = {axis % count for axis in listed if -count <= axis < count} if count else set()
    return len(wrapped) == len(listed)


def without(shape: Shape, axes: int | Sequence[int]) -> Shape:
    """A shape with the given axes left out."""
    listed = [axes] if isinstance(axes, int) else axes
    dropped = {axis % len(shape) for axis in listed}
    return tuple(dim for index, dim in enumerate(shape) if index not in dropped)


def at(shape: Sequence[int], axes: int | Sequence[int] | None) -> Shape:
    """The dimensions at the given axes; all of them for None."""
    if axes is None:
        return tuple(shape)
    return tuple(shape[axis] for axis in ([axes] if isinstance(axes, int) else axes))


def fits(shape: Shape, part: Shape, axis: int | None) -> bool:
    """Whether ``part`` is ``shape`` from ``axis`` on, or at its end without one: broadcasting before opset 7."""
    start = rank(shape) - rank(part) if axis is None else axis % rank(shape)
    return rank(part) < rank(shape) and part == shape[start : start + rank(part)]


def bits(element: str) -> int:
    """Width of an element type."""
    found = re.match(r"[a-z]+(\d+)", element)
    return int(found[1]) if found else 8


_LARGEST = {"float4e2m1": 6, "float6e2m3": 7, "float6e3m2": 28}
"""Greatest finite values of the narrowest floats, rounded down: OCP Microscaling Formats, version 1.0."""


def greatest(element: str) -> int:
    """The greatest whole number up to 100 that goes into an element type (into bool, as true)."""
    if element.startswith(("int", "uint")):
        return min(100, (1 << (bits(element) - element.startswith("int"))) - 1)
    return _LARGEST.get(element, 100)


def least(element: str) -> int:
    """The least whole number from -100 on that goes into an element type; 1 for the scale type, which has no zero."""
    if element == "float8e8m0":
        return 1
    if element.startswith("int"):
        return -greatest(element) - (bits(element) < 8)
    return 0 if element.startswith("uint") else -greatest(element)


def is_float(element: str) -> bool:
    """Whether an element type is a floating one."""
    return "float" in element


def lower(text: str) -> str:
    """Text in lower case."""
    return text.lower()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rank": rank, "size": size, "broadcast": broadcast, "onto": onto, "inside": inside, "without": without, "at": at,
    "fits": fits, "bits": bits, "lower": lower,
    "greatest": greatest, "least": least, "is_float": is_float,
    "len": len, "min": min, "max": max, "sum": sum, "abs": abs, "all": all, "any": any, "sorted": sorted, "set": set,
    "list": list, "range": range, "zip": zip, "ceil": math.ceil, "str": str,
}  # fmt: skip

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Load, ast.Store, ast.operator, ast.unaryop, ast.boolop,
    ast.cmpop, ast.GeneratorExp, ast.ListComp, ast.comprehension,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expression:
    """One parsed expression. ``names`` are the free names that it reads."""

    text: str
    names: frozenset[str]
    code: CodeType

    def __call__(self, names: Mapping[str, object]) -> Any:  # noqa: ANN401 - the manifest's author decides
        """Evaluate with the given names.

        :raises ValueError: if a name is missing or an operation does not go with its operands.
        """
        try:
            return eval(self.code, {**_GLOBALS, **names})  # noqa: S307 - only whitelisted syntax gets here
        except (NameError, TypeError, IndexError, ZeroDivisionError, KeyError) as error:
            raise ValueError(f"'{self.text}': {error}") from error


_GLOBALS: dict[str, Any] = {"__builtins__": {}, **FUNCTIONS}


def parse(text: str) -> Expression:
    """Parse an expression.

    :raises ValueError: if it is not an expression, or uses syntax or a function outside of the language.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"'{text}' is no expression: {error.msg}") from error
    bound: list[str] = []
    read: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"'{text}': {type(node).__name__} is not part of the expression language")  # noqa: TRY004
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise ValueError(f"'{text}': unknown function, expected one of {', '.join(sorted(FUNCTIONS))}")
        if isinstance(node, ast.Name):
            (bound if isinstance(node.ctx, ast.Store) else read).append(node.id)
    # `min` may be a function in one place of an expression and an input in another.
    called = Counter(node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call))  # type: ignore[attr-defined]
    free = frozenset((Counter(read) - called).keys() - set(bound) - (FUNCTIONS.keys() - {"min", "max"}))
    return Expression(text, free, compile(tree, "<manifest>", "eval"))
