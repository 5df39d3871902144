"""Exact rules of data movement: what moves nothing goes, what moves twice moves once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.ir import UNKNOWN
from compiler.ops.elementwise import Elementwise
from compiler.ops.movement import BroadcastTo, Concat, Reverse, Slice, Split, Tile, Transpose
from compiler.ops.padding import Pad
from compiler.ops.reshape import Reshape, Reshaping
from compiler.ops.shapes import normalize_axes
from compiler.passes.canonical.shapes import dims_of, integers_of, is_static, same_shape, size_vector
from compiler.rewrite import EXACT, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Op, Value
    from compiler.rewrite import Rule


def _permutation(op: Op) -> tuple[int, ...]:
    return op.call().integers("permutation")


@rule(operation(Transpose, anything("x")), EXACT)
def transpose_nothing(match: Match) -> Value:
    """transpose(x) that keeps every dim in its place => x."""
    permutation = _permutation(match.root)
    match.require(permutation == tuple(range(len(permutation))), "a dim moves")
    return match["x"]


@rule(operation(Transpose, operation(Transpose, anything("x"), name="inner")), EXACT)
def transpose_twice(match: Match) -> Value:
    """transpose(transpose(x)) => one transpose."""
    inner, outer = _permutation(match.defining("inner")), _permutation(match.root)
    return match.build(Transpose, match["x"], permutation=tuple(inner[axis] for axis in outer))


@rule(operation(Transpose, anything("x")), EXACT)
def transpose_to_reshape(match: Match) -> Value:
    """transpose(x) that moves only dims of size 1 => reshape(x): no element moves."""
    permutation, dims = _permutation(match.root), dims_of(match["x"])
    match.require(dims is not None and is_static(match.root.result), "sizes are not known")
    assert dims is not None
    match.require(permutation != tuple(range(len(permutation))), "nothing moves at all")
    moved = [axis for axis in permutation if dims[axis] != 1]
    match.require(moved == sorted(moved), "a dim of another size than 1 moves")
    return match.build(Reshape, match["x"], match.constant(size_vector(match.root.result.tensor.shape)))


@rule(
    operation(
        Elementwise,
        operation(Transpose, anything("x"), name="a", single_use=True),
        operation(Transpose, anything("y"), name="b", single_use=True),
    ),
    EXACT,
)
def transposes_joined(match: Match) -> Value:
    """f(transpose(x), transpose(y)) => transpose(f(x, y)), for one permutation and one shape."""
    permutation = _permutation(match.defining("a"))
    match.require(permutation == _permutation(match.defining("b")), "the permutations differ")
    match.require(dims_of(match["x"]) == dims_of(match["y"]) and is_static(match["x"]), "x and y broadcast")
    operands = [op.operand(0) for op in (value.op for value in match.root.operands if value is not None) if op]
    joined = match.builder.op(match.root.definition, operands, (), **match.root.attributes).result
    return match.build(Transpose, joined, permutation=permutation)


@rule(operation(Transpose, operation(Elementwise, anything(), name="f", more=True, single_use=True)), EXACT)
def transpose_around(match: Match) -> Value:
    """transpose(f(transpose(x), c)) => f(transpose(x), c) with one transpose, where c has one element."""
    inner = match.defining("f")
    operands = list(inner.operands)
    places = [index for index, value in enumerate(operands) if value is not None and _single_transpose(value)]
    match.require(len(places) == 1, "not exactly one operand is a transpose with this one user")
    others = [value for index, value in enumerate(operands) if index != places[0] and value is not None]
    match.require(all(dims_of(value) == () for value in others), "another operand has dims")
    transpose = inner.operand(places[0]).op
    assert transpose is not None
    first, second = _permutation(transpose), _permutation(match.root)
    order = tuple(first[axis] for axis in second)
    operands[places[0]] = match.build(Transpose, transpose.operand(0), permutation=order)
    return match.builder.op(inner.definition, operands, (), **inner.attributes).result


def _single_transpose(value: Value) -> bool:
    return value.op is not None and isinstance(value.op.definition, Transpose) and len(value.users) == 1


@rule(operation(Reshaping, anything("x"), more=True), EXACT)
def reshape_nothing(match: Match) -> Value:
    """reshape(x) to x's own shape => x."""
    x, result = match["x"], match.root.result
    dims = dims_of(x)
    # One unknown dim is what is left of an equal number of elements, unless there are none.
    one_left = x.type is result.type and dims is not None and dims.count(UNKNOWN) == 1 and 0 not in dims
    named = dims is not None and all(isinstance(dim, int) or dim == UNKNOWN for dim in dims)
    match.require(same_shape(x, result) or (one_left and named), "the shape changes")
    return x


@rule(operation(Reshape, operation(Reshaping, anything("x"), more=True), anything("shape")), EXACT)
def reshape_twice(match: Match) -> Value:
    """reshape(reshape(x), shape) => reshape(x, shape)."""
    return match.build(Reshape, match["x"], match["shape"])


@rule(operation(Reshaping, operation(Reshaping, anything("x"), more=True), more=True), EXACT)
def reshapings_joined(match: Match) -> Value:
    """squeeze(reshape(x)), unsqueeze(squeeze(x)) and the like => one reshape, where the sizes are known."""
    match.require(not isinstance(match.root.definition, Reshape), "it is a reshape already")
    match.require(is_static(match.root.result), "sizes are not known")
    return match.build(Reshape, match["x"], match.constant(size_vector(match.root.result.tensor.shape)))


@rule(operation(Slice, anything("x"), anything(), anything(), more=True), EXACT)
def slice_nothing(match: Match) -> Value:
    """slice(x) with positive steps that takes every element => x."""
    match.require(is_static(match["x"]) and same_shape(match["x"], match.root.result), "elements are left out")
    operands = match.root.operands
    steps = integers_of(operands[4]) if len(operands) > 4 and operands[4] is not None else ()
    match.require(steps is not None and all(step > 0 for step in steps), "a step is negative or not known")
    return match["x"]


@rule(operation(Concat, anything("x"), more=True), EXACT)
def concat_nothing(match: Match) -> Value:
    """concat(x) => x; operands without elements along the axis are left out."""
    operands = [operand for operand in match.root.operands if operand is not None]
    axis = match.root.call().integer("axis")
    kept = [operand for operand in operands if (dims := dims_of(operand)) is None or dims[axis] != 0] or operands[:1]
    match.require(len(kept) < len(operands) or len(operands) == 1, "every operand has elements")
    if len(kept) == 1:
        match.require(len(operands) == 1 or same_shape(kept[0], match.root.result), "the shape is not known")
        return kept[0]
    return match.builder.op(match.root.definition, kept, axis=axis).result


@rule(operation(Concat, anything(), more=True), EXACT)
def concat_of_concat(match: Match) -> Value:
    """concat(a, concat(b, c)) along one axis => concat(a, b, c)."""
    axis = _concat_axis(match.root)
    match.require(axis >= 0, "the rank is not known")
    flat: list[Value | None] = []
    for operand in match.root.operands:
        inner = operand.op if operand is not None and len(operand.users) == 1 else None
        joins = inner is not None and isinstance(inner.definition, Concat) and _concat_axis(inner) == axis
        flat.extend(inner.operands if joins and inner is not None else [operand])
    match.require(len(flat) > len(match.root.operands), "no operand is a concat along the axis with this one user")
    return match.builder.op(match.root.definition, flat, axis=axis).result


def _concat_axis(op: Op) -> int:
    """The axis from the front, -1 where the rank is not known."""
    rank = len(dims_of(op.result) or ())
    return normalize_axes("concat", (op.call().integer("axis"),), rank)[0] if rank else -1


@rule(operation(Concat, operation(Split, anything("x"), more=True), more=True), EXACT)
def concat_of_split(match: Match) -> Value:
    """concat(all parts of split(x), in order) along the same axis => x."""
    first = match.root.operand(0).op
    assert first is not None
    match.require(match.root.operands == first.results, "not all parts in their order")
    rank = len(dims_of(match["x"]) or ())
    match.require(rank > 0, "the rank is not known")
    axes = [normalize_axes("split", (op.call().integer("axis"),), rank) for op in (first, match.root)]
    match.require(axes[0] == axes[1], "the axes differ")
    return match["x"]


@rule(operation(Split, anything("x"), more=True), EXACT)
def split_nothing(match: Match) -> Value:
    """split(x) into one part => x."""
    match.require(len(match.root.results) == 1, "there are several parts")
    return match["x"]


@rule(operation(Pad, anything("x"), anything("pads"), more=True), EXACT)
def pad_nothing(match: Match) -> Value:
    """pad(x) by nothing => x."""
    pads = integers_of(match["pads"])
    match.require(pads is not None and not any(pads), "something is padded, or the pads are not known")
    match.require(not any(match.root.call().integers("interior")), "something is put between elements")
    return match["x"]


@rule(operation(BroadcastTo, anything("x"), anything()), EXACT)
def broadcast_nothing(match: Match) -> Value:
    """broadcast(x) to x's own shape => x."""
    match.require(same_shape(match["x"], match.root.result), "the shape changes")
    return match["x"]


@rule(operation(Tile, anything("x"), anything("repeats")), EXACT)
def tile_once(match: Match) -> Value:
    """tile(x) once along each dim => x."""
    repeats = integers_of(match["repeats"])
    match.require(repeats is not None and all(count == 1 for count in repeats), "a dim is repeated")
    return match["x"]


@rule(operation(Reverse, anything("x")), EXACT)
def reverse_nothing(match: Match) -> Value:
    """reverse(x) along no dim, or dims of size 1 => x."""
    axes, dims = match.root.call().integers("axes"), dims_of(match["x"])
    match.require(not axes or (dims is not None and all(dims[axis] in (0, 1) for axis in axes)), "elements move")
    return match["x"]


@rule(operation(Elementwise, anything(), anything()), EXACT)
def implicit_broadcast(match: Match) -> Value:
    """f(broadcast(x), y) => f(x, y), where y alone gives the result its shape."""
    operands = list(match.root.operands)
    for index, operand in enumerate(operands):
        op = None if operand is None else operand.op
        if op is None or not isinstance(op.definition, BroadcastTo):
            continue
        others = [other for place, other in enumerate(operands) if place != index]
        if others[0] is None or not is_static(match.root.result):
            continue
        if dims_of(others[0]) == dims_of(match.root.result):
            operands[index] = op.operand(0)
            return match.builder.op(match.root.definition, operands, (), **match.root.attributes).result
    raise NoMatch("no operand is a broadcast that the other one makes anyway")


RULES: Final[tuple[Rule, ...]] = (
    transpose_nothing,
    transpose_twice,
    transpose_to_reshape,
    transposes_joined,
    transpose_around,
    reshape_nothing,
    reshape_twice,
    reshapings_joined,
    slice_nothing,
    concat_nothing,
    concat_of_concat,
    concat_of_split,
    split_nothing,
    pad_nothing,
    broadcast_nothing,
    tile_once,
    reverse_nothing,
    implicit_broadcast,
)
