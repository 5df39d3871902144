"""Rotary embeddings, from halves or neighbours that are turned into each other.

1. x * c + concat(-second(x), first(x)) * s => rotary(x, c, s), c and s with two equal halves
2. concat(first * c - second * s, second * c + first * s) => rotary(x, c, s)
3. neighbours, stacked and joined again, likewise => rotary(x, c, s), interleaved

x is [B, H, S, D]; angles are the same for all heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.ir import known_value
from compiler.ops.attention import Rotary
from compiler.ops.elementwise import Add, Elementwise, Mul, Neg, Sub
from compiler.ops.indexing import Gather
from compiler.ops.movement import Concat, Slice, Split
from compiler.ops.reshape import Reshape, Reshaping
from compiler.passes.canonical.shapes import integers_of, same_shape, size_vector
from compiler.passes.recognition.normalization import sizes_of
from compiler.passes.recognition.pieces import RESHAPES, defined_by, require_unshared
from compiler.rewrite import REASSOCIATE, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.ir import Op, Value
    from compiler.rewrite import Rule


@dataclass(frozen=True, slots=True)
class _Part:
    """Elements start, start + step, ... of the last dim of x, ``count`` of them."""

    x: Value
    start: int
    step: int
    count: int


def _part(value: Value) -> _Part | None:
    """Which part of a last dim the value is: by a slice, a split, or a column of pairs."""
    for reader in (_sliced, _split, _column):
        found = reader(value)
        if found is not None:
            return found
    return None


def _sliced(value: Value) -> _Part | None:
    op, sizes = defined_by(value, Slice), sizes_of(value)
    if op is None or sizes is None:
        return None
    before = sizes_of(op.operand(0))
    starts = integers_of(op.operand(1))
    steps = integers_of(op.operands[4]) if len(op.operands) > 4 else None
    if before is None or starts is None or before[:-1] != sizes[:-1]:
        return None
    axes = integers_of(op.operands[3]) if len(op.operands) > 3 and op.operands[3] is not None else None
    axes = tuple(range(len(starts))) if axes is None else tuple(axis % len(before) for axis in axes)
    last = len(before) - 1
    if last not in axes:
        return None
    place = axes.index(last)
    start = starts[place] + (before[-1] if starts[place] < 0 else 0)
    return _Part(op.operand(0), start, 1 if steps is None else steps[place], sizes[-1])


def _split(value: Value) -> _Part | None:
    op, sizes = defined_by(value, Split), sizes_of(value)
    if op is None or sizes is None or op.call().integer("axis") % len(sizes) != len(sizes) - 1:
        return None
    before = [sizes_of(result) for result in op.results[: value.index]]
    widths = [one[-1] for one in before if one is not None]
    return _Part(op.operand(0), sum(widths), 1, sizes[-1]) if len(widths) == value.index else None


def _column(value: Value) -> _Part | None:
    """Element i of each pair of reshape(x, [..., D / 2, 2])."""
    sizes = sizes_of(value)
    gathered = defined_by(value, Gather)
    if gathered is not None and sizes is not None:
        index = known_value(gathered.operand(1))
        pairs = sizes_of(gathered.operand(0))
        on_last = pairs is not None and gathered.call().integer("axis") % len(pairs) == len(pairs) - 1
        if not on_last or index is None or index.size != 1:
            return None
        return _of_pairs(gathered.operand(0), int(index.reshape(-1)[0]), sizes)
    op = defined_by(value, *RESHAPES)
    inner = None if op is None else _sliced(op.operand(0)) or _split(op.operand(0))
    if inner is None or inner.count != 1 or sizes is None:
        return None
    return _of_pairs(inner.x, inner.start, sizes)


def _of_pairs(pairs: Value, place: int, sizes: tuple[int, ...]) -> _Part | None:
    op, dims = defined_by(pairs, *RESHAPES), sizes_of(pairs)
    if op is None or dims is None or dims[-1] != 2 or dims[:-1] != sizes:
        return None
    whole = sizes_of(op.operand(0))
    if whole is None or whole != (*dims[:-2], dims[-2] * 2):
        return None
    return _Part(op.operand(0), place % 2, 2, dims[-2])


def _products(value: Value, definition: type[Add | Sub]) -> tuple[tuple[Value, Value], tuple[Value, Value]] | None:
    """((a, b), (c, d)) where the value is a * b + c * d, or minus."""
    op = defined_by(value, definition)
    if op is None:
        return None
    left, right = defined_by(op.operand(0), Mul), defined_by(op.operand(1), Mul)
    if left is None or right is None:
        return None
    return (left.operand(0), left.operand(1)), (right.operand(0), right.operand(1))


def _other(pair: tuple[Value, Value], one: Value) -> Value | None:
    if pair[0] is one:
        return pair[1]
    return pair[0] if pair[1] is one else None


@dataclass(frozen=True, slots=True)
class _Turn:
    """real = first * c - second * s, imaginary = first * s + second * c."""

    first: Value
    second: Value
    cos: Value
    sin: Value


def _turns(real: Value, imaginary: Value) -> Iterator[_Turn]:
    """Each way to read two values so: which factors are angles is not to be seen from the products alone."""
    difference, total = _products(real, Sub), _products(imaginary, Add)
    if difference is None or total is None:
        return
    left, right = difference
    for first, cos in (left, left[::-1]):
        for second, sin in (right, right[::-1]):
            for a, b in (total, total[::-1]):
                if _other(a, first) is sin and _other(b, second) is cos:
                    yield _Turn(first, second, cos, sin)


def _angles(match: Match, value: Value, x: Value, half: int) -> Value:
    """Cosines or sines as [B, S, D / 2] from [B, 1, S, D / 2] and less. Raises NoMatch where heads differ."""
    sizes, whole = sizes_of(value), sizes_of(x)
    match.require(sizes is not None and whole is not None, "sizes are not known")
    assert sizes is not None
    assert whole is not None
    padded = (*[1] * (4 - len(sizes)), *sizes)
    fits = len(sizes) <= 4 and padded[1] == 1 and padded[3] == half and padded[2] == whole[2]
    match.require(fits and padded[0] in (1, whole[0]), "the angles are not one for each position and pair")
    return match.build(Reshape, value, match.constant(size_vector((padded[0], padded[2], half))))


@dataclass(frozen=True, slots=True)
class _Found:
    """A turn of the ``2 * half`` elements from ``start`` on of the last dim of x, by steps of 1 or 2."""

    turn: _Turn
    x: Value
    start: int
    half: int


def _found(real: Value, imaginary: Value, step: int) -> _Found | None:
    """The first way to read two values as parts of one tensor that turn into each other."""
    for turn in _turns(real, imaginary):
        first, second = _part(turn.first), _part(turn.second)
        if first is None or second is None or first.x is not second.x or first.count != second.count:
            continue
        distance = 1 if step == 2 else first.count
        if first.step == second.step == step and second.start - first.start == distance:
            return _Found(turn, first.x, first.start, first.count)
    return None


def _rotary(match: Match, found: _Found, step: int, beside: Sequence[Value] = ()) -> Value:
    x, turn = found.x, found.turn
    sizes = sizes_of(x)
    match.require(sizes is not None and len(sizes) == 4, "x is not [B, H, S, D]")
    assert sizes is not None
    require_unshared(match, [x, turn.cos, turn.sin, *beside])
    if 2 * found.half != sizes[3]:
        ends = (found.start, found.start + 2 * found.half, 3, 1)
        x = match.build(Slice, x, *[match.constant(size_vector((number,))) for number in ends])
    angles = [_angles(match, value, x, found.half) for value in (turn.cos, turn.sin)]
    return match.build(Rotary, x, *angles, interleaved=step == 2)


@rule(operation(Concat, anything(), anything(), more=True), REASSOCIATE)
def rotary_halves(match: Match) -> Value:
    """concat(first * c - second * s, second * c + first * s) => rotary(x, c, s); others beside them stay."""
    match.require(_joins_last(match.root), "joined along another dim")
    parts = [match.root.operand(index) for index in range(len(match.root.operands))]
    for place in range(len(parts) - 1):
        found = _found(parts[place], parts[place + 1], 1)
        if found is not None:
            before, after = parts[:place], parts[place + 2 :]
            others = [*before, _rotary(match, found, 1, [*before, *after]), *after]
            return (
                others[0] if len(others) == 1 else match.build(Concat, *others, axis=match.root.call().integer("axis"))
            )
    reason = "no two terms that turn into each other"
    raise NoMatch(reason)


@rule(
    operation(
        Reshaping,
        operation(
            Concat,
            operation(Reshaping, anything("real"), more=True),
            operation(Reshaping, anything("imaginary"), more=True),
            name="pairs",
        ),
        more=True,
    ),
    REASSOCIATE,
)
def rotary_interleaved(match: Match) -> Value:
    """The same of neighbours, stacked and joined again => rotary(x, c, s), interleaved."""
    pairs, real = sizes_of(match["pairs"]), sizes_of(match["real"])
    match.require(_joins_last(match.defining("pairs")), "joined along another dim")
    match.require(pairs is not None and real is not None and pairs == (*real, 2), "no pairs")
    found = _found(match["real"], match["imaginary"], 2)
    match.require(found is not None, "no two terms that turn into each other")
    assert found is not None
    match.require(sizes_of(found.x) == sizes_of(match.root.result), "the result has another shape")
    return _rotary(match, found, 2)


def _joins_last(op: Op) -> bool:
    rank = op.result.tensor.rank
    return op.call().integer("axis") % rank == rank - 1


@rule(
    operation(
        Add,
        operation(Mul, anything(), anything(), name="plain", single_use=True),
        operation(Mul, anything(), anything(), name="turned", single_use=True),
    ),
    REASSOCIATE,
)
def rotary_rotated_half(match: Match) -> Value:
    """x * c + concat(-second(x), first(x)) * s => rotary(x, c, s), c and s with two equal halves."""
    plain, turned = match.defining("plain"), match.defining("turned")
    for moved, sin in ((0, 1), (1, 0)):
        x = _rotated_half(turned.operand(moved))
        cos = None if x is None else _other((plain.operand(0), plain.operand(1)), x)
        if x is not None and cos is not None:
            return _rotary_of_whole(match, x, cos, turned.operand(sin))
    reason = "no term is the rotated half of the other's"
    raise NoMatch(reason)


def _rotated_half(value: Value) -> Value | None:
    """x, where the value is its second half negated, then its first."""
    op = defined_by(value, Concat)
    if op is None or len(op.operands) != 2 or not _joins_last(op):
        return None
    negated = defined_by(op.operand(0), Neg)
    second = None if negated is None else _part(negated.operand(0))
    first = _part(op.operand(1))
    if first is None or second is None or first.x is not second.x:
        return None
    half, sizes = first.count, sizes_of(first.x)
    halves = (first.start, second.start, second.count, first.step, second.step) == (0, half, half, 1, 1)
    return first.x if halves and sizes is not None and sizes[-1] == 2 * half else None


def _rotary_of_whole(match: Match, x: Value, cos: Value, sin: Value) -> Value:
    sizes = sizes_of(x)
    match.require(sizes is not None and len(sizes) == 4, "x is not [B, H, S, D]")
    assert sizes is not None
    match.require(same_shape(x, match.root.result), "the result has another shape")
    match.require(_equal_halves(cos) and _equal_halves(sin), "the two halves of the angles may differ")
    require_unshared(match, [x, cos, sin])
    half = sizes[3] // 2
    halves = [_first_half(match, value, half) for value in (cos, sin)]
    angles = [_angles(match, value, x, half) for value in halves]
    return match.build(Rotary, x, *angles)


def _first_half(match: Match, value: Value, half: int) -> Value:
    vectors = [match.constant(np.array([number], np.int64)) for number in (0, half, value.tensor.rank - 1, 1)]
    return match.build(Slice, value, *vectors)


def _equal_halves(value: Value) -> bool:
    """Whether the two halves of the last dim are surely equal."""
    sizes = sizes_of(value)
    if sizes is None or not sizes or sizes[-1] % 2:
        return False
    array = known_value(value)
    if array is not None:
        return bool(np.array_equal(array[..., : sizes[-1] // 2], array[..., sizes[-1] // 2 :]))
    op = value.op
    if op is None:
        return False
    if isinstance(op.definition, Concat):
        return len(op.operands) == 2 and _joins_last(op) and op.operand(0) is op.operand(1)
    if isinstance(op.definition, Reshaping):
        before = sizes_of(op.operand(0))
        return before is not None and before[-1:] == sizes[-1:] and _equal_halves(op.operand(0))
    if isinstance(op.definition, Elementwise):
        return all(operand is not None and _spreads_or_halves(operand) for operand in op.operands)
    return False


def _spreads_or_halves(value: Value) -> bool:
    sizes = sizes_of(value)
    return sizes is not None and (not sizes or sizes[-1] == 1 or _equal_halves(value))


RULES: Final[tuple[Rule, ...]] = (rotary_halves, rotary_interleaved, rotary_rotated_half)
