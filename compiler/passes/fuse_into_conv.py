"""What follows a convolution channel by channel goes into its weights: batch norm, and factors a channel.

1. batch_norm(conv(x, w)) => conv(x, w') + b'
2. batch_norm(conv(x, w) + b) => conv(x, w') + b', with b constant and the same for all positions of a channel
3. conv(x, w) * s => conv(x, w'), with s constant and the same for all positions of a channel

Only where the weights are constants with data that nothing else uses, and the new ones are finite. New weights are
computed in float64 and rounded once. The bias stays an addition: lowering joins it to the kernel's epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from compiler.ops.contraction import Conv
from compiler.ops.elementwise import Add, Mul
from compiler.ops.normalization import BatchNorm
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import (
    REASSOCIATE,
    Match,
    Numerics,
    RewriteCounter,
    RuleSet,
    anything,
    constant,
    operation,
    rewrite,
    rule,
)

if TYPE_CHECKING:
    from compiler.ir import Array, Graph, Value

_CONV: Final = operation(Conv, anything("x"), constant("w"), name="conv", single_use=True)
_STATISTICS: Final = (constant("scale"), constant("bias"), constant("mean"), constant("variance"))


def _channel_factors(match: Match, name: str, rank: int) -> Array:
    """A constant as one number a channel. Raises NoMatch where it differs inside a channel."""
    array = match.array(name)
    shape = (1,) * (rank - array.ndim) + array.shape
    inside = len(shape) == rank and all(size == 1 for axis, size in enumerate(shape) if axis != 1)
    match.require(inside, f"'{name}' is not one number a channel")
    channels = match["conv"].tensor.known_dims[1]
    match.require(shape[1] in (1, channels), f"'{name}' broadcasts the channels")
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (match.array("w").shape[0],))


def _scaled_conv(match: Match, factor: Array) -> Value:
    """The convolution with each output channel's weights times its factor."""
    weights = match.array("w")
    match.require(match.tensor("w").element.is_float, "the weights are no floats")
    match.require(len(match["w"].users) == 1, "the weights have other users")
    conv = match.defining("conv")
    match.require("to" not in conv.attributes, "the convolution converts its result")
    with np.errstate(all="ignore"):
        wide = weights.astype(np.float64) * factor.reshape(-1, *[1] * (weights.ndim - 1))
        scaled = wide.astype(weights.dtype)
    finite = np.isfinite(scaled.astype(np.float64)).all() and np.isfinite(factor).all()
    match.require(bool(finite), "a new weight is not finite")
    return match.builder.op(conv.definition, [match["x"], match.constant(scaled)], (), **conv.attributes).result


def _normalized(match: Match, before: Array) -> Value:
    """Conv' + bias', for batch norm of conv + before. Formula: ONNX BatchNormalization-15."""
    scale, bias, mean, variance = (match.array(name).astype(np.float64) for name in _NAMES)
    epsilon = match.root.call().number("epsilon")
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        wide = (before - mean) * factor + bias
    element = match.root.result.tensor.element
    shift = wide.astype(element.dtype)
    match.require(bool(np.isfinite(shift.astype(np.float64)).all()), "the new bias is not finite")
    rank = match.tensor("w").rank
    channelwise = match.constant(shift.reshape(1, -1, *[1] * (rank - 2)))
    return match.build(Add, _scaled_conv(match, factor), channelwise)


_NAMES: Final = ("scale", "bias", "mean", "variance")


@rule(operation(BatchNorm, _CONV, *_STATISTICS), REASSOCIATE)
def batch_norm_into_conv(match: Match) -> Value:
    """batch_norm(conv(x, w)) => conv(x, w') + b'."""
    return _normalized(match, np.zeros(()))


@rule(operation(BatchNorm, operation(Add, _CONV, constant("before"), single_use=True), *_STATISTICS), REASSOCIATE)
def batch_norm_into_conv_with_bias(match: Match) -> Value:
    """batch_norm(conv(x, w) + b) => conv(x, w') + b'."""
    return _normalized(match, _channel_factors(match, "before", match.tensor("w").rank))


@rule(operation(Mul, _CONV, constant("factor")), REASSOCIATE)
def factor_into_conv(match: Match) -> Value:
    """conv(x, w) * s => conv(x, w')."""
    return _scaled_conv(match, _channel_factors(match, "factor", match.tensor("w").rank))


RULES: Final = RuleSet((batch_norm_into_conv, batch_norm_into_conv_with_bias, factor_into_conv))


@dataclass(frozen=True)
class FuseIntoConv(Pass):
    """Fold batch norms and channel factors into the weights of the convolution before them."""

    name: ClassVar[str] = "fuse_into_conv"
    numerics: ClassVar[Numerics] = REASSOCIATE

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Hits by rule."""
        result = rewrite(graph, RULES, counter)
        return PassResult(result.modified, result.hits)
