"""Host evaluation of values that follow from known ones through pure operators: shapes, axes, trip counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import OpatlasError
from compiler.ir import Call, TensorType, known_value, operands_with_captures
from compiler.ops.shape import ShapeOf, SizeOf
from compiler.rewrite import is_pure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Graph, Op, Value

LARGEST_VALUE: Final = 4096
"""Values of more elements are bulk data and not evaluated beforehand."""

LONGEST_CHAIN: Final = 10_000
"""Operations evaluated for one value at most."""

SIZES_ONLY: Final = (ShapeOf, SizeOf)
"""Operators whose results depend on the sizes of their operand alone."""


class Unknown(Exception):
    """A value does not follow from what is known."""


class Knowledge:
    """Values known so far: constants, what ``known`` gives, and all that pure operators make of them. Memoized."""

    def __init__(self, known: Mapping[Value, Any]) -> None:
        self._values: dict[Value, Any] = {
            value: np.asarray(data) if isinstance(value.type, TensorType) else data for value, data in known.items()
        }
        self._unknown: set[Value] = set()

    def value(self, value: Value) -> Any | None:  # noqa: ANN401 - an array, or a list for a sequence
        """What the value is, or None where that does not follow or takes bulk data."""
        try:
            with np.errstate(all="ignore"):
                return self._find(value)
        except (Unknown, OpatlasError):
            return None

    def _find(self, wanted: Value) -> Any:  # noqa: ANN401
        """Evaluate what ``wanted`` depends on, without recursion: chains of shape arithmetic can be long."""
        stack = [wanted]
        waiting: list[Value] = []
        try:
            for _ in range(LONGEST_CHAIN):
                if not stack:
                    return self._values[wanted]
                value = stack[-1]
                missing = [] if value in self._values else self._missing(value)
                if missing:
                    waiting.append(value)
                    stack.extend(missing)
                    continue
                if value not in self._values:
                    self._evaluate(value.op)
                stack.pop()
                if waiting and waiting[-1] is value:
                    waiting.pop()
        except (Unknown, OpatlasError):
            self._unknown.update([*waiting, stack[-1]])
            raise
        raise Unknown

    def _missing(self, value: Value) -> list[Value]:
        """What must be found before ``value``. Raises Unknown where it cannot be."""
        op = value.op
        if value in self._unknown or op is None or not is_pure(op) or _is_bulk(value):
            raise Unknown
        if op.definition.holds_constant:
            return []
        if isinstance(op.definition, SIZES_ONLY):
            type_ = op.operand(0).type
            if not isinstance(type_, TensorType) or not type_.is_static:
                raise Unknown
            return []
        return [operand for operand in operands_with_captures(op) if operand not in self._values]

    def _evaluate(self, op: Op | None) -> None:
        """Learn the results of an operation whose operands are known."""
        assert op is not None
        if op.definition.holds_constant:
            array = known_value(op.result)
            if array is None:
                raise Unknown
            self._values[op.result] = array
            return
        if isinstance(op.definition, SIZES_ONLY):
            operand = op.operand(0).tensor
            operands: list[Any] = [np.broadcast_to(np.zeros((), operand.element.dtype), operand.shape)]
        else:
            operands = [None if operand is None else self._values[operand] for operand in op.operands]
        results = op.definition.evaluate(_call(op, operands), operands, self._run_region)
        for result, data in zip(op.results, results, strict=True):
            self._values[result] = np.asarray(data) if isinstance(result.type, TensorType) else data

    def _run_region(self, region: Graph, arguments: Sequence[Any]) -> list[Any]:
        self._values.update(zip(region.inputs, arguments, strict=True))
        for op in region.ops:
            if op.definition.terminator:
                return [None if operand is None else self._values[operand] for operand in op.operands]
            self._evaluate(op)
        raise Unknown


def _call(op: Op, operands: Sequence[Any]) -> Call:
    return Call(
        [None if operand is None else operand.type for operand in op.operands],
        op.attributes,
        [operand if isinstance(operand, np.ndarray) else None for operand in operands],
        op.regions,
    )


def _is_bulk(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static and value.type.size > LARGEST_VALUE
