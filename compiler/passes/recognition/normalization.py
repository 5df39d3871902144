"""Layer, root mean square and group norms, from means and roots; then their scales and biases.

1. (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) => layer_norm(x)
2. x / sqrt(mean(x^2) + eps) => rms_norm(x)
3. norm(x) * s => norm(x, s), s one number an element of the normalized dims
4. layer_norm(x, s) + b => layer_norm(x, s, b)
5. reshape(layer_norm(reshape(x, [N, G, -1]))) * s + b => group_norm(x, s, b), s and b one number a channel

Means run over the last dims and keep them. Epsilon is added under the root: beside it, it is another function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.ops.elementwise import Add, Div, Mul, Sub
from compiler.ops.normalization import GroupNorm, LayerNorm, RmsNorm
from compiler.ops.reshape import Reshape, Reshaping
from compiler.passes.canonical.shapes import dims_of, same_shape, size_vector
from compiler.passes.recognition.pieces import (
    defined_by,
    divided_by_root,
    mean_of,
    require_unshared,
    sizes_along,
    square_of,
    sum_with_scalar,
)
from compiler.rewrite import REASSOCIATE, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Op, Value
    from compiler.rewrite import Rule


@rule(operation((Mul, Div), anything(), anything()), REASSOCIATE)
def normalization(match: Match) -> Value:
    """x / sqrt(mean(x^2) + eps) => rms_norm(x), or layer_norm where x is centred."""
    match.require(match.root.result.tensor.element.is_float, "no float")
    for numerator, under in divided_by_root(match.root):
        parts = sum_with_scalar(under)
        mean = None if parts is None else mean_of(parts[0])
        squared = None if mean is None else square_of(mean.x)
        if parts is None or mean is None or squared is not numerator or parts[1] < 0:
            continue
        match.require(same_shape(numerator, match.root.result), "broadcasting changes the shape")
        source = _centred(numerator, mean.axis)
        if source is not None:
            require_unshared(match, [source])
            return match.build(LayerNorm, source, axis=mean.axis, epsilon=parts[1])
        require_unshared(match, [numerator])
        return match.build(RmsNorm, numerator, axis=mean.axis, epsilon=parts[1])
    reason = "no value over the root of its own mean square plus a number"
    raise NoMatch(reason)


def _centred(value: Value, axis: int) -> Value | None:
    """x, where the value is x minus its mean over the dims from ``axis`` on."""
    op = defined_by(value, Sub)
    mean = None if op is None else mean_of(op.operand(1))
    return mean.x if op is not None and mean is not None and mean.x is op.operand(0) and mean.axis == axis else None


def _per_element(match: Match, op: Op, vector: Value) -> Value:
    """The vector with the normalized dims alone. Raises NoMatch where it differs elsewhere or broadcasts in them."""
    axis, dims = op.call().integer("axis"), dims_of(op.operand(0))
    match.require(dims is not None, "the rank is not known")
    assert dims is not None
    normalized = dims[axis % len(dims) :]
    given = dims_of(vector)
    match.require(given is not None and len(given) >= len(normalized), "the operand broadcasts in a normalized dim")
    assert given is not None
    cut = len(given) - len(normalized)
    match.require(given[cut:] == normalized and all(isinstance(dim, int) for dim in given[cut:]), "sizes differ")
    match.require(all(dim == 1 for dim in given[:cut]) and len(given) <= len(dims), "it differs outside them")
    if not cut:
        return vector
    return match.build(Reshape, vector, match.constant(size_vector(tuple(int(dim) for dim in given[cut:]))))


@rule(
    operation(Mul, operation((LayerNorm, RmsNorm), anything("x"), name="norm", single_use=True), anything("scale")),
    REASSOCIATE,
)
def scale_of_norm(match: Match) -> Value:
    """norm(x) * s => norm(x, s)."""
    op = match.defining("norm")
    match.require(match["scale"] is not match["norm"], "a square")
    scale = _per_element(match, op, match["scale"])
    return match.builder.op(op.definition, [match["x"], scale], (), **op.attributes).result


@rule(
    operation(
        Add,
        operation(LayerNorm, anything("x"), anything("scale"), name="norm", single_use=True),
        anything("bias"),
    ),
    REASSOCIATE,
)
def bias_of_norm(match: Match) -> Value:
    """layer_norm(x, s) + b => layer_norm(x, s, b)."""
    op = match.defining("norm")
    bias = _per_element(match, op, match["bias"])
    return match.builder.op(op.definition, [match["x"], match["scale"], bias], (), **op.attributes).result


_GROUPED: Final = operation(
    Reshaping,
    operation(LayerNorm, operation(Reshaping, anything("x"), more=True), name="norm", single_use=True),
    more=True,
    name="back",
    single_use=True,
)


@rule(
    operation(Add, operation(Mul, _GROUPED, anything("scale"), name="scaled", single_use=True), anything("bias")),
    REASSOCIATE,
)
def group_norm_pieces(match: Match) -> Value:
    """reshape(layer_norm(reshape(x, [N, G, -1]))) * s + b => group_norm(x, s, b)."""
    norm, x = match.defining("norm"), match["x"]
    grouped, shape = sizes_of(norm.operand(0)), sizes_of(x)
    match.require(grouped is not None and shape is not None, "sizes are not known")
    assert grouped is not None
    assert shape is not None
    match.require(len(grouped) == 3 and len(shape) > 2 and grouped[0] == shape[0], "no groups of channels")
    match.require(grouped[1] > 0 and shape[1] % grouped[1] == 0, "the groups do not divide the channels")
    match.require(norm.call().integer("axis") % 3 == 2, "the mean runs over the groups too")
    match.require(same_shape(x, match["back"]) and same_shape(x, match.root.result), "the shape changes")
    vectors = [_channels(match, match[name], shape) for name in ("scale", "bias")]
    return match.build(GroupNorm, x, *vectors, num_groups=grouped[1], epsilon=norm.call().number("epsilon"))


def sizes_of(value: Value) -> tuple[int, ...] | None:
    """All sizes as numbers, where they are known."""
    dims = dims_of(value)
    return None if dims is None else sizes_along(value, range(len(dims)))


def _channels(match: Match, vector: Value, shape: tuple[int, ...]) -> Value:
    """A vector of [C] from one of [1, C, 1, ...]. Raises NoMatch."""
    sizes = sizes_of(vector)
    wanted = (shape[1], *[1] * (len(shape) - 2))
    match.require(sizes is not None and sizes in (wanted, (1, *wanted)), "it is not one number a channel")
    return match.build(Reshape, vector, match.constant(np.array([shape[1]], np.int64)))


RULES: Final[tuple[Rule, ...]] = (normalization, scale_of_norm, bias_of_norm, group_norm_pieces)
