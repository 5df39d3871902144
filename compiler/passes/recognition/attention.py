"""Attention, from two products and the softmax between them.

1. einsum of two operands => one product, where it is one
2. softmax(mask(cap(scale * q k^T))) v => attention(q, k, v, mask), where

   scale   is any product of numbers with q, k or their product
   cap     is c * tanh(x / c), or nothing
   mask    is added, or selects the scores against a number so low that a softmax makes nothing of it, or is nothing
   k, v    may be repeated, n heads of q for each of theirs

A constant mask that hides what comes later, and what is long past, becomes `causal` and a window. A mask after the
softmax, a softmax over another dim, weights that something else needs: none of them is attention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import OpatlasError
from compiler.ir import BOOL, known_value
from compiler.ops.attention import Attention
from compiler.ops.compare import Select
from compiler.ops.contraction import DotGeneral, MatMul
from compiler.ops.convert import Cast
from compiler.ops.einsum import Einsum
from compiler.ops.elementwise import Add, Div, Mul, Tanh
from compiler.ops.indexing import Gather
from compiler.ops.movement import BroadcastTo, Tile, Transpose
from compiler.ops.reshape import Reshape, Squeeze, Unsqueeze
from compiler.ops.softmax import Softmax
from compiler.passes.canonical.shapes import dims_of, same_shape, size_vector
from compiler.passes.recognition.normalization import sizes_of
from compiler.passes.recognition.pieces import RESHAPES, defined_by, require_unshared, scalar, widened_from
from compiler.rewrite import REASSOCIATE, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Array, AttributeValue, Op, Value
    from compiler.rewrite import Rule

LOW: Final = -1e4
"""A score of this and less gives a weight of zero beside any score that models have (BERT hides keys by it)."""


@dataclass(frozen=True, slots=True)
class _Product:
    """a [..., M, K] times b: ``b`` is [..., N, K] where it is ``turned``, else [..., K, N]."""

    a: Value
    b: Value
    turned: bool


def _product(value: Value) -> _Product | None:
    """A batched product of two values of one rank, 3 or 4, whose leading dims pair up."""
    op = defined_by(value, MatMul, DotGeneral)
    if op is None:
        return None
    a, b = op.operand(0), op.operand(1)
    a_dims, b_dims = dims_of(a), dims_of(b)
    if a_dims is None or b_dims is None or len(a_dims) != len(b_dims) or len(a_dims) not in (3, 4):
        return None
    if isinstance(op.definition, MatMul):
        return _Product(a, b, turned=False) if a_dims[:-2] == b_dims[:-2] else None
    call, rank = op.call(), len(a_dims)
    lead = tuple(range(rank - 2))
    if call.integers("a_batch") != lead or call.integers("b_batch") != lead:
        return None
    if call.integers("a_contract") != (rank - 1,) or call.integers("b_contract") not in ((rank - 1,), (rank - 2,)):
        return None
    return _Product(a, b, turned=call.integers("b_contract") == (rank - 1,))


@dataclass(frozen=True, slots=True)
class _Scores:
    """What a softmax is taken of: the product, and what was done to it."""

    product: _Product
    scale: float = 1.0
    softcap: float = 0.0
    mask: Value | None = None
    empty: str = "nan"


def _scores(value: Value) -> _Scores | None:
    """Mask, then cap, then scale, each where it is there."""
    value = widened_from(value)
    op = defined_by(value, Select)
    if op is not None:
        low, found = scalar(op.operand(2)), _capped(op.operand(1))
        if found is None or low is None or low > LOW or not same_shape(op.operand(1), value):
            return None
        return replace(found, mask=op.operand(0), empty="uniform" if math.isfinite(low) else "nan")
    op = defined_by(value, Add)
    if op is not None:
        for scores, mask in ((op.operand(0), op.operand(1)), (op.operand(1), op.operand(0))):
            found = _capped(scores) if same_shape(scores, value) else None
            if found is not None:
                return replace(found, mask=mask)
        return None
    return _capped(value)


def _capped(value: Value) -> _Scores | None:
    """c * tanh(x / c), or no cap."""
    value = widened_from(value)
    number, inner = _times_number(value)
    tanh = defined_by(inner, Tanh)
    if tanh is None:
        return _scaled(value)
    factor, x = _times_number(tanh.operand(0))
    if number <= 0 or factor == 0:
        return None
    # The scale may have been joined to the cap's own factor: x * (scale / c).
    found = _scaled(x)
    return None if found is None else replace(found, scale=found.scale * factor * number, softcap=number)


def _times_number(value: Value) -> tuple[float, Value]:
    """(c, x), where the value is x * c or x / c and nothing else needs it; (1, value) otherwise."""
    op = defined_by(value, Mul, Div)
    if op is None or len(value.users) != 1:
        return 1.0, value
    a, b = op.operand(0), op.operand(1)
    for x, c in ((a, b), (b, a))[: 1 if isinstance(op.definition, Div) else 2]:
        number = scalar(c)
        if number is not None and number != 0 and math.isfinite(number) and same_shape(x, value):
            return (1 / number if isinstance(op.definition, Div) else number), x
    return 1.0, value


def _scaled(value: Value) -> _Scores | None:
    """The product times numbers, before or after."""
    value = widened_from(value)
    scale, inner = _times_number(value)
    inner = widened_from(inner)
    product = _product(inner)
    if product is None:
        return None
    a_scale, a = _times_number(product.a)
    b_scale, b = _times_number(product.b)
    return _Scores(_Product(a, b, product.turned), scale * a_scale * b_scale)


def _unrepeated(match: Match, value: Value, heads: int) -> Value:
    """What heads were repeated from, n times each in place; the value itself where they were not."""
    sizes = sizes_of(value)
    op = defined_by(value, *RESHAPES, Gather)
    if op is None or sizes is None or len(sizes) != 4:
        return value
    if isinstance(op.definition, Gather):
        return op.operand(0) if _repeats_in_place(op, heads) else value
    widened = defined_by(op.operand(0), BroadcastTo, Tile)
    wide, thin = sizes_of(op.operand(0)), None if widened is None else sizes_of(widened.operand(0))
    if widened is None or wide is None or thin is None or len(wide) != 5 or not wide[1]:
        return value
    batch, groups, length, size = wide[0], wide[1], *wide[3:]
    if wide != (batch, groups, heads // groups, length, size) or thin != (batch, groups, 1, length, size):
        return value
    return match.build(Reshape, widened.operand(0), match.constant(size_vector((batch, groups, length, size))))


def _repeats_in_place(op: Op, heads: int) -> bool:
    """Whether a gather along dim 1 reads each head n times in turn."""
    before, places = sizes_of(op.operand(0)), known_value(op.operand(1))
    if before is None or len(before) != 4 or places is None or not before[1] or heads % before[1]:
        return False
    return op.call().integer("axis") % 4 == 1 and np.array_equal(places, np.arange(heads) // (heads // before[1]))


def _keys(match: Match, product: _Product) -> Value:
    """k as [..., L, D]: what a transpose turned, or the operand turned back."""
    if product.turned:
        return product.b
    rank = product.b.tensor.rank
    swap = (*range(rank - 2), rank - 1, rank - 2)
    op = defined_by(product.b, Transpose)
    if op is not None and op.call().integers("permutation") == swap:
        return op.operand(0)
    if op is None:
        return match.build(Transpose, product.b, permutation=swap)
    joined = tuple(op.call().integers("permutation")[axis] for axis in swap)
    return match.build(Transpose, op.operand(0), permutation=joined)


@dataclass(frozen=True, slots=True)
class _Mask:
    """A mask as the operator takes it."""

    value: Value | None
    causal: bool = False
    left_window: int = -1


def _known_mask(mask: Value | None, queries: int, keys: int) -> _Mask:
    """Causal masks and windows from a constant mask; the mask itself where it is none of them."""
    array = None if mask is None else known_value(mask)
    if mask is None or array is None or array.size == 0:
        return _Mask(mask)
    if array.dtype != np.bool_:
        wide = array.astype(np.float64)
        if not np.all((wide == 0) | (wide <= LOW)):
            return _Mask(mask)
        array = wide == 0
    if array.all():
        return _Mask(None)
    if array.shape[-2:] != (queries, keys) or queries != keys:
        return _Mask(mask)
    rows = array.reshape(-1, queries, keys)
    return _band(rows[0], mask) if np.all(rows == rows[0]) else _Mask(mask)


def _band(seen: Array, mask: Value) -> _Mask:
    """A mask in which a query sees itself and so many keys before it."""
    ahead = np.arange(seen.shape[1]) - np.arange(seen.shape[0])[:, None]
    left = int((-ahead[seen]).max(initial=0))
    if np.array_equal(seen, ahead <= 0):
        return _Mask(None, causal=True)
    if np.array_equal(seen, (ahead <= 0) & (ahead >= -left)):
        return _Mask(None, causal=True, left_window=left)
    return _Mask(mask)


@rule(operation((MatMul, DotGeneral), anything(), anything()), REASSOCIATE)
def attention_pieces(match: Match) -> Value:
    """softmax(mask(scale * q k^T)) v => attention(q, k, v, mask)."""
    outer = _product(match.root.result)
    if outer is None or outer.turned:
        raise NoMatch("no batched product of weights and values")
    softmax = _softmax_under(outer.a)
    match.require(softmax is not None, "the weights are no softmax along their last dim")
    assert softmax is not None
    found = _scores(softmax.operand(0))
    match.require(found is not None, "the softmax is not of a product, scaled and masked")
    assert found is not None
    leaves = [found.product.a, found.product.b, outer.b, *([] if found.mask is None else [found.mask])]
    require_unshared(match, leaves)
    return _build(match, found, outer.b)


def _softmax_under(weights: Value) -> Op | None:
    """The softmax along the last dim that the weights are, rounded to another type or not."""
    cast = defined_by(weights, Cast)
    softmax = defined_by(weights if cast is None else cast.operand(0), Softmax)
    if softmax is None or len(softmax.result.users) != 1:
        return None
    call = softmax.call()
    return softmax if call.integer("axis") % call.tensor(0).rank == call.tensor(0).rank - 1 else None


def _build(match: Match, found: _Scores, values: Value) -> Value:
    q, k = found.product.a, _keys(match, found.product)
    sizes = [sizes_of(value) for value in (q, k, values)]
    if sizes[0] is None or sizes[1] is None or sizes[2] is None:
        raise NoMatch("sizes are not known")
    elements = {value.tensor.element for value in (q, k, values, match.root.result)}
    match.require(len(elements) == 1, "queries, keys, values and result are of different types")
    mask = _known_mask(found.mask, sizes[0][-2], sizes[1][-2])
    flat = len(sizes[0]) == 3
    operands = [q, k, values, mask.value]
    if flat:
        one = match.constant(np.array([1], np.int64))
        operands = [
            value if value is None or value.tensor.rank < 3 else match.build(Unsqueeze, value, one)
            for value in operands
        ]
    else:
        operands[1:3] = [_unrepeated(match, value, sizes[0][1]) for value in (k, values)]
        match.require(_groups(operands[1]) == _groups(operands[2]), "keys and values are repeated differently")
    if mask.value is not None and not 0 < mask.value.tensor.rank <= len(sizes[0]):
        raise NoMatch("the mask has no dim of keys, or more dims than the scores")
    empty = found.empty if mask.value is not None and mask.value.tensor.element is BOOL else "nan"
    attributes: dict[str, AttributeValue] = {
        "scale": found.scale,
        "softcap": found.softcap,
        "causal": mask.causal,
        "empty": empty,
    }
    result = match.build(Attention, *operands, **attributes, left_window=mask.left_window)
    return match.build(Squeeze, result, match.constant(np.array([1], np.int64))) if flat else result


def _groups(value: Value | None) -> int:
    sizes = None if value is None else sizes_of(value)
    return -1 if sizes is None else sizes[1]


@rule(operation(Einsum, anything(), anything()), REASSOCIATE)
def einsum_to_product(match: Match) -> Value:
    """einsum(a, b) => the contraction that it is."""
    definition = match.root.definition
    assert isinstance(definition, Einsum)
    try:
        (value,) = definition.decompose(match.root, match.builder)
    except OpatlasError as error:
        raise NoMatch(error.message) from error
    return value


RULES: Final[tuple[Rule, ...]] = (attention_pieces,)
EINSUM_RULES: Final[tuple[Rule, ...]] = (einsum_to_product,)
