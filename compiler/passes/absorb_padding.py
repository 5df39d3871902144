"""A pad before a window operator becomes the operator's own padding, where that means the same.

1. conv(pad(x, 0)): convolution pads with zeros.
2. max_pool(pad(x, lowest)): padding never wins in max_pool, so that only the lowest value of the type means the same.
   A pad with zeros stays: after it a window of negative numbers gives 0.
3. avg_pool(pad(x, 0)), with or without count_include_pad: what the pad put there counts, so that the pool counts its
   padding; its own padding must be none, or counted already.

Only non-negative constant pads of the spatial dims, explicit padding, and no ceil_mode (it would add other windows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from compiler.ops.contraction import Conv
from compiler.ops.padding import Pad
from compiler.ops.pooling import AvgPool, MaxPool, lowest
from compiler.passes.canonical.shapes import integers_of
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import EXACT, Match, RewriteCounter, RuleSet, anything, operation, rewrite, rule, same_bits

if TYPE_CHECKING:
    from compiler.ir import Graph, Value

_PAD: Final = operation(Pad, anything("x"), anything("pads"), name="pad", more=True)


def _padding(match: Match) -> tuple[list[int], list[int]]:
    """Elements put before and after each spatial dim. Raises NoMatch where the pad is of another kind."""
    pad, rank = match.defining("pad"), match.tensor("x").rank
    call = pad.call()
    definition = pad.definition
    assert isinstance(definition, Pad)
    pads = integers_of(pad.operand(1))
    given = len(pad.operands) > 3 and pad.operands[3] is not None
    axes = integers_of(pad.operands[3]) if given else None
    match.require(pads is not None and (axes is not None or not given), "the pads are not known")
    assert pads is not None
    match.require(call.text("mode") == "constant", "it repeats elements")
    margins = definition.margins(call, rank, pads, axes)
    match.require(not any(margin.interior for margin in margins), "it puts something between elements")
    match.require(all(margin.low >= 0 and margin.high >= 0 for margin in margins), "it takes elements away")
    match.require(all(margin.is_nothing for margin in margins[:2]), "it pads the batch or the channels")
    return [margin.low for margin in margins[2:]], [margin.high for margin in margins[2:]]


def _require_fill(match: Match, wanted: complex, *, may_be_omitted: bool) -> None:
    pad = match.defining("pad")
    value = pad.operands[2] if len(pad.operands) > 2 else None
    array = None if value is None else pad.call().value(2)
    fits = may_be_omitted if value is None else array is not None and same_bits(np.asarray(array), wanted)
    match.require(fits, f"it does not pad with {wanted}")


def _absorb(match: Match, **changed: bool) -> Value:
    root, (low, high) = match.root, _padding(match)
    call = root.call()
    match.require(call.text("auto_pad") == "explicit", "the padding of the operator follows the size")
    match.require(not call.get("ceil_mode"), "rounding up would add other windows")
    own = call.integers("pads") or (0,) * (2 * len(low))
    joined = tuple(a + b for a, b in zip(own, (*low, *high), strict=True))
    attributes = {**root.attributes, "pads": joined, **changed}
    return match.builder.op(root.definition, [match["x"], *root.operands[1:]], (), **attributes).result


@rule(operation(Conv, _PAD, anything("w")), EXACT)
def pad_into_conv(match: Match) -> Value:
    """conv(pad(x, 0), w) => conv(x, w) with more padding."""
    _require_fill(match, 0, may_be_omitted=True)
    return _absorb(match)


@rule(operation(MaxPool, _PAD), EXACT)
def pad_into_max_pool(match: Match) -> Value:
    """max_pool(pad(x, lowest)) => max_pool(x) with more padding."""
    _require_fill(match, lowest(match.tensor("x").element), may_be_omitted=False)
    return _absorb(match)


@rule(operation(AvgPool, _PAD), EXACT)
def pad_into_avg_pool(match: Match) -> Value:
    """avg_pool(pad(x, 0)) => avg_pool(x) that counts its padding."""
    _require_fill(match, 0, may_be_omitted=True)
    call = match.root.call()
    counted = call.flag("count_include_pad") or not any(call.integers("pads"))
    match.require(counted, "the pool's own padding does not count, the pad's does")
    return _absorb(match, count_include_pad=True)


RULES: Final = RuleSet((pad_into_conv, pad_into_max_pool, pad_into_avg_pool))


@dataclass(frozen=True)
class AbsorbPadding(Pass):
    """Let convolutions and pools do the padding before them."""

    name: ClassVar[str] = "absorb_padding"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Hits by rule."""
        result = rewrite(graph, RULES, counter)
        return PassResult(result.modified, result.hits)
