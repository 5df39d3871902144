"""What the rules that recognize composites ask of values: scalars, squares, means, roots, products of factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import ml_dtypes
import numpy as np

from compiler.ir import known_value
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Add, Div, Mul, Neg, Pow, Reciprocal, Rsqrt, Sqrt
from compiler.ops.reduce import ReduceMean, ReduceSum
from compiler.ops.reshape import Reshape, Squeeze, Unsqueeze
from compiler.ops.shapes import normalize_axes
from compiler.passes.canonical.shapes import dims_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compiler.ir import Definition, Op, Value
    from compiler.rewrite import Match

RESHAPES: Final = (Reshape, Squeeze, Unsqueeze)
"""What only gives the same elements other dims."""
_DEEPEST: Final = 8
"""How far a product is followed: the longest spelling of a composite has five factors."""


def defined_by(value: Value | None, *definitions: type[Definition]) -> Op | None:
    """The operation that defines the value, where it is one of these."""
    op = None if value is None else value.op
    return op if op is not None and isinstance(op.definition, definitions) else None


def scalar(value: Value | None) -> float | None:
    """The number that a constant holds in every element; None for anything else, and for an empty one."""
    if value is None or value.op is None or not value.op.definition.holds_constant:
        return None
    array = known_value(value)
    if array is None or array.size == 0 or array.dtype.hasobject or array.dtype.kind in "cb":
        return None
    first = array.reshape(-1)[0]
    if array.size > 1 and not np.all(array == first):
        return None
    return float(first)


def is_near(found: float | None, wanted: float, value: Value) -> bool:
    """Whether a number is ``wanted`` to two roundings of the value's type: its own and a factor's."""
    if found is None:
        return False
    eps = float(ml_dtypes.finfo(value.tensor.element.dtype).eps)  # type: ignore[no-untyped-call]
    return abs(found - wanted) <= 2 * eps * abs(wanted)


def widened_from(value: Value) -> Value:
    """What a cast to a wider float reads; the value itself where there is none."""
    op = defined_by(value, Cast)
    if op is None:
        return value
    source = op.operand(0)
    narrow, wide = source.tensor.element, value.tensor.element
    return source if narrow.is_float and wide.is_float and narrow.bits < wide.bits else value


def square_of(value: Value) -> Value | None:
    """x, where the value is x * x or x to the power 2."""
    op = defined_by(value, Mul, Pow)
    if op is None:
        return None
    if isinstance(op.definition, Mul):
        return op.operand(0) if op.operand(0) is op.operand(1) else None
    return op.operand(0) if scalar(op.operand(1)) == 2 else None


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of ``x`` over the dims from ``axis`` on, which are kept."""

    x: Value
    axis: int


def trailing_axis(op: Op) -> int | None:
    """The first dim that a reduction runs over, where it keeps its dims and runs over all behind it too."""
    call = op.call()
    rank = call.tensor(0).rank
    axes = sorted(normalize_axes("reduction", call.integers("axes") or tuple(range(rank)), rank))
    kept = call.flag("keep_dims")
    return axes[0] if kept and axes and axes == list(range(axes[0], rank)) else None


def mean_of(value: Value) -> Mean | None:
    """What the value is the mean of: by one operation, or as a sum over a count or times its inverse."""
    op = defined_by(value, ReduceMean)
    if op is not None:
        axis = trailing_axis(op)
        return None if axis is None else Mean(op.operand(0), axis)
    op = defined_by(value, Div, Mul)
    if op is None:
        return None
    number, total = scalar(op.operand(1)), defined_by(op.operand(0), ReduceSum)
    if number is None or total is None:
        return None
    axis, dims = trailing_axis(total), dims_of(total.operand(0))
    if axis is None or dims is None or not all(isinstance(dim, int) for dim in dims[axis:]):
        return None
    count = float(np.prod([int(dim) for dim in dims[axis:]]))
    wanted = count if isinstance(op.definition, Div) else 1 / count
    return Mean(total.operand(0), axis) if is_near(number, wanted, value) else None


def sum_with_scalar(value: Value) -> tuple[Value, float] | None:
    """(x, c), where the value is x + c."""
    op = defined_by(value, Add)
    if op is None:
        return None
    for x, c in ((op.operand(0), op.operand(1)), (op.operand(1), op.operand(0))):
        number = scalar(c)
        if number is not None and scalar(x) is None:
            return x, number
    return None


def divided_by_root(op: Op) -> Iterator[tuple[Value, Value]]:
    """Each (x, y) for which the operation is x / sqrt(y), however that is written."""
    a, b = op.operand(0), op.operand(1)
    if isinstance(op.definition, Div):
        root = defined_by(b, Sqrt)
        if root is not None:
            yield a, root.operand(0)
        return
    for x, inverse in ((a, b), (b, a)):
        y = _under_inverse_root(inverse)
        if y is not None:
            yield x, y


def _under_inverse_root(value: Value) -> Value | None:
    op = defined_by(value, Rsqrt, Reciprocal, Pow, Div)
    if op is None:
        return None
    if isinstance(op.definition, Rsqrt):
        return op.operand(0)
    if isinstance(op.definition, Pow):
        return op.operand(0) if scalar(op.operand(1)) == -0.5 else None
    if isinstance(op.definition, Div) and scalar(op.operand(0)) != 1:
        return None
    root = defined_by(op.operand(len(op.operands) - 1), Sqrt)
    return None if root is None else root.operand(0)


@dataclass(slots=True)
class Product:
    """A value as a number times factors; ``steps`` are all values on the way that are no constants."""

    number: float = 1.0
    factors: list[Value] = field(default_factory=list)
    steps: dict[Value, None] = field(default_factory=dict)


def product_of(value: Value, stop: Value | None = None) -> Product:
    """The value taken apart by products, quotients by numbers and small powers, but for ``stop``."""
    found = Product()
    _collect(value, stop, found, _DEEPEST)
    return found


def _collect(value: Value, stop: Value | None, found: Product, depth: int) -> None:
    number = scalar(value)
    if number is not None:
        found.number *= number
        return
    found.steps[value] = None
    op = defined_by(value, Mul, Div, Neg, Pow)
    if value is stop or op is None or depth == 0:
        found.factors.append(value)
    elif isinstance(op.definition, Mul):
        _collect(op.operand(0), stop, found, depth - 1)
        _collect(op.operand(1), stop, found, depth - 1)
    elif isinstance(op.definition, Neg):
        found.number = -found.number
        _collect(op.operand(0), stop, found, depth - 1)
    else:
        _collect_by_number(op, value, stop, found, depth)


def _collect_by_number(op: Op, value: Value, stop: Value | None, found: Product, depth: int) -> None:
    """A quotient by a number, or a square or a cube."""
    number = scalar(op.operand(1))
    if isinstance(op.definition, Div) and number not in (None, 0.0):
        assert number is not None
        found.number /= number
        _collect(op.operand(0), stop, found, depth - 1)
    elif isinstance(op.definition, Pow) and number in (2.0, 3.0):
        for _ in range(int(number)):
            _collect(op.operand(0), stop, found, depth - 1)
    else:
        found.factors.append(value)


def require_unshared(match: Match, leaves: Iterable[Value]) -> None:
    """Go on only where nothing else needs what lies between the leaves and the root: rewriting it away then saves it.

    Raises NoMatch.
    """
    match.require(unshared(match.root, leaves), "a piece has other users")


def unshared(root: Op, leaves: Iterable[Value]) -> bool:
    """Whether all that the root needs down to the leaves is needed by nothing else."""
    inside = interior(root, leaves)
    return all(user in inside for op in inside if op is not root for result in op.results for user in result.users)


def interior(root: Op, leaves: Iterable[Value]) -> set[Op]:
    """The root and the operations between it and the leaves, constants left out."""
    stop = set(leaves)
    inside, pending = {root}, [root]
    while pending:
        for operand in pending.pop().operands:
            op = None if operand is None or operand in stop else operand.op
            if op is not None and op not in inside and not op.definition.holds_constant:
                inside.add(op)
                pending.append(op)
    return inside


def sizes_along(value: Value, axes: Sequence[int]) -> tuple[int, ...] | None:
    """The sizes of these dims; None where one is no number."""
    dims = dims_of(value)
    if dims is None:
        return None
    found = [dims[axis] for axis in axes]
    return tuple(int(size) for size in found) if all(isinstance(size, int) for size in found) else None
