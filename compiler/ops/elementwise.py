"""Elementwise arithmetic: one scalar function a point, operands broadcast against each other as numpy does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.ir import ElementType, TensorType, Type
from compiler.ops.registry import NUMERIC, Operand, Operator, Variable, register
from compiler.ops.shapes import broadcast_dims
from compiler.ops.work import Apply, Arg, Expression, Loops, broadcast_access, identity_access, parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work

_T = Variable("T", NUMERIC)


class Elementwise(Operator):
    """Base: the result has the broadcast dims; ``function`` names the scalar function of the vector unit."""

    function: ClassVar[str]

    def result_element(self, call: Call) -> ElementType:
        """Element type of the result: that of the last operand, unless a subclass says otherwise."""
        return call.tensor(len(call.types) - 1).element

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Broadcast dims. Raises TypeMismatch where two sizes differ and neither is 1."""
        types = [call.tensor(index) for index in range(len(call.types))]
        return (types[0].with_dims(broadcast_dims(self.name, types)).with_element(self.result_element(call)),)

    def scalar(self, call: Call, operands: tuple[Arg, ...]) -> Expression:
        """The body of the loops."""
        return Apply(self.function, operands, self.result_element(call))

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over the result."""
        result = results[0]
        assert isinstance(result, TensorType)
        types = [call.tensor(index) for index in range(len(call.types))]
        arguments = tuple(Arg(index, type_.element) for index, type_ in enumerate(types))
        reads = tuple(broadcast_access(index, type_.shape, result.rank) for index, type_ in enumerate(types))
        body = self.scalar(call, arguments)
        return (Loops(parallel(result.shape), reads, body, identity_access(0, result.rank)),)


@register
class Add(Elementwise):
    """Sum; integers wrap."""

    name: ClassVar[str] = "add"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("a", _T), Operand("b", _T))
    function: ClassVar[str] = "add"
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def identity_element(self, element: ElementType) -> bool | int | float | None:
        """-0.0 for floats: x + 0.0 turns -0.0 into 0.0."""
        return -0.0 if element.is_float else 0

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """IEEE 754 addition."""
        return (np.add(operands[0], operands[1]),)
