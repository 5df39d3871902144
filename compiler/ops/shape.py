"""Sizes as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.ir import I64, UNKNOWN, Type, tensor
from compiler.ops.movement import X
from compiler.ops.registry import Attribute, Operand, Operator, integer, register
from compiler.ops.work import Access, Index, Literal, Loops, nests, parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work


@register
class ShapeOf(Operator):
    """The sizes of x's dims ``start`` to ``end`` - 1 as an int64 vector (ONNX Shape-15).

    Both bounds may count from the end and are clamped; an absent end is the rank.
    """

    name: ClassVar[str] = "shape_of"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("start", integer(), 0, "first dim"),
        Attribute("end", integer(), None, "the dim after the last"),
    )

    def _taken(self, call: Call, rank: int) -> range:
        end = None if call.get("end") is None else call.integer("end")
        return range(*slice(call.integer("start"), end).indices(rank))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A vector of known length where the rank is known."""
        x = call.tensor(0)
        return (tensor(I64, (UNKNOWN if x.dims is None else len(self._taken(call, x.rank)),)),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The array's sizes."""
        shape = np.shape(operands[0])
        return (np.array([shape[dim] for dim in self._taken(call, len(shape))], np.int64),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """One nest of one point a size."""
        shape = call.shape(0)
        return tuple(
            Loops(parallel((1,)), (), Literal(shape[dim], I64), Access(0, (Index((), place),)))
            for place, dim in enumerate(self._taken(call, len(shape)))
        )


@register
class SizeOf(Operator):
    """The number of x's elements as an int64 scalar (ONNX Size)."""

    name: ClassVar[str] = "size_of"
    operands: ClassVar[tuple[Operand, ...]] = (X,)

    def infer(self, call: Call) -> tuple[Type, ...]:  # noqa: ARG002
        """A scalar."""
        return (tensor(I64, ()),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The array's size."""
        return (np.array(np.size(operands[0]), np.int64),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """A nest of one point."""
        return nests(Loops((), (), Literal(call.tensor(0).size, I64), Access(0, ())))
