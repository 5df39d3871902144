"""Questions about operations that rules and passes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.ir import UNKNOWN, Dim, TensorType
from compiler.ops.registry import Operator

if TYPE_CHECKING:
    from compiler.ir import Array, Op, Type


def is_pure(op: Op) -> bool:
    """Whether the operation, with all in its regions, only computes its results from its operands."""
    definition = op.definition
    if definition.holds_constant:
        return True
    if not isinstance(definition, Operator) or not definition.pure:
        return False
    return all(inner.definition.terminator or is_pure(inner) for region in op.regions for inner in region.ops)


def same_bits(array: Array, scalar: complex) -> bool:
    """Whether every element has exactly the bits of ``scalar`` in the array's type; False for an empty array."""
    if array.size == 0 or array.dtype.hasobject:
        return False
    wanted = np.array(scalar).astype(array.dtype)
    return np.ascontiguousarray(array).tobytes() == wanted.tobytes() * array.size


def refine(a: Type, b: Type) -> Type:
    """The type of a value that has both: numbers win over symbols, symbols over unknown; ``a`` in a contradiction."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
            return a if a.dims is not None or b.dims is None else a.with_dims(b.dims)
        return a.with_dims([_more_precise(x, y) for x, y in zip(a.dims, b.dims, strict=True)])
    return a


def _more_precise(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) or a == UNKNOWN else a
