"""Linear algebra that pivots: which rows are exchanged is data, so it runs on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import Call, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import FLOAT, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence


@register
class Determinant(Evaluated):
    """The determinants of the matrices in the last two dims: [*, M, M] -> [*]. Source: ONNX Det-11.

    Computed in float64 by elimination with row exchanges, and rounded once.
    """

    name: ClassVar[str] = "determinant"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", FLOAT)),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The dims before the last two. Raises TypeMismatch where those are not square."""
        x = call.tensor(0)
        if x.dims is None:
            return (tensor(x.element, None),)
        sizes = {dim for dim in x.dims[-2:] if isinstance(dim, int)}
        if len(x.dims) < 2 or len(sizes) > 1:
            msg = f"determinant: operand 'x' is {x}; expected square matrices in the last two dims"
            raise TypeMismatch(msg)
        return (tensor(x.element, x.dims[:-2]),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        x = np.asarray(operands[0])
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            msg = f"determinant: operand 'x' has shape {list(x.shape)}; expected square matrices"
            raise TypeMismatch(msg)
        return (np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype),)
