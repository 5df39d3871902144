"""Attention, and the rotary embedding of positions that goes before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import ml_dtypes
import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import BOOL, I32, I64, Call, Type, Value, element_of, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, known_sizes, padded
from compiler.ops.registry import FLAG, FLOAT, NUMBER, Attribute, Operand, Variable, choice, integer, register
from compiler.ops.shapes import broadcast_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, Dim, ElementType, TensorType

_T: Final = Variable("T", FLOAT)
_I: Final = frozenset({I32, I64})


@register
class Attention(Rounded):
    """softmax(scale * q k^T + mask) v. q [B, H, S, D], k [B, G, L, D], v [B, G, L, E] -> [B, H, S, E]; G divides H.

    Head h of q meets head h // (H / G) of k and v. ``scale`` absent: 1 / sqrt(D). Scores go through
    softcap * tanh(x / softcap) first where ``softcap`` is not 0. Query i may see key j only where all of these hold, p
    being i + ``offset`` (a scalar, or one a batch entry; omitted: 0): ``mask``, if bool, is true there (beyond its last
    key it is false); j <= p if ``causal``; p - left_window <= j <= p + right_window for bounds that are not negative;
    j < ``lengths`` of the batch entry. A float mask is added to the scores (beyond its last key it is -inf). A query
    that sees no key gives zeros. ``scores`` asks for a second result [B, H, S, L]: the scores raw, capped, biased, or
    the weights after the softmax. The weights are rounded to v's type before they meet v, as the definition says.
    Source: ONNX Attention-25.
    """

    name: ClassVar[str] = "attention"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("q", _T),
        Operand("k", _T),
        Operand("v", Variable("V", FLOAT)),
        Operand("mask", Variable("M", FLOAT | {BOOL}), optional=True),
        Operand("lengths", Variable("L", _I), optional=True),
        Operand("offset", Variable("O", _I), optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("scale", NUMBER, None, "factor of the scores; absent: 1 / sqrt(D)"),
        Attribute("softcap", NUMBER, 0.0, "bound that scores approach; 0: none"),
        Attribute("causal", FLAG, False, "no query sees a key behind its position"),
        Attribute("left_window", integer(-1), -1, "keys seen before the position; -1: all"),
        Attribute("right_window", integer(-1), -1, "keys seen behind the position; -1: all"),
        Attribute("empty", choice("zeros", "nan", "uniform"), "zeros", "what a query that sees no key gives"),
        Attribute("scores", choice("none", "raw", "capped", "biased", "weights"), "none", "what a second result holds"),
        COMPUTE_TYPE,
    )
    narrow: ClassVar[frozenset[int]] = frozenset({0, 1, 2})

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where ranks, heads, head sizes or lengths do not fit."""
        q, k, v = (call.tensor(index) for index in range(3))
        if q.dims is None or k.dims is None or v.dims is None:
            return (tensor(q.element, None),) * (1 if call.text("scores") == "none" else 2)
        if not q.rank == k.rank == v.rank == 4:
            msg = f"attention: q {q}, k {k}, v {v}; expected rank 4"
            raise TypeMismatch(msg)
        self._check_sizes(q, k, v)
        result = tensor(q.element, (*q.dims[:3], v.dims[3]))
        if call.text("scores") == "none":
            return (result,)
        return (result, tensor(q.element, (*q.dims[:3], k.dims[2])))

    @staticmethod
    def _check_sizes(q: TensorType, k: TensorType, v: TensorType) -> None:
        (_, heads, _, size), (_, groups, length, key), (_, values, count, _) = q.known_dims, k.known_dims, v.known_dims
        pairs: list[tuple[Dim, Dim]] = [(size, key), (length, count), (groups, values)]
        differ = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
        if differ or (isinstance(heads, int) and isinstance(groups, int) and (groups == 0 or heads % groups)):
            msg = f"attention: q {q}, k {k}, v {v}; expected [B, H, S, D], [B, G, L, D], [B, G, L, E] with G dividing H"
            raise TypeMismatch(msg)

    def _scale(self, call: Call) -> float:
        if call.get("scale") is not None:
            return call.number("scale")
        (size,) = known_sizes(call.tensor(0), (3,))
        return 1 / math.sqrt(size)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        q, k, v, mask, lengths, offset = padded(operands, 6)
        assert q is not None
        assert k is not None
        assert v is not None
        element = self.compute_element(call)
        scores = emit("mul", _emit_heads(emit, q, k, 3, element), self._scale(call))
        stages = {"raw": scores}
        softcap = call.number("softcap")
        if softcap:
            scores = emit("mul", emit("tanh", emit("div", scores, softcap)), softcap)
        stages["capped"] = scores
        scores = stages["biased"] = self._emit_biased(call, emit, scores, mask, lengths, offset)
        weights = stages["weights"] = _emit_softmax(emit, scores, guarded=call.text("empty") == "zeros")
        result = _emit_heads(emit, emit.cast(weights, v.tensor.element), v, 2, element)
        wanted = call.text("scores")
        return (result,) if wanted == "none" else (result, stages[wanted])

    def _emit_biased(
        self, call: Call, emit: Emit, scores: Value, mask: Value | None, lengths: Value | None, offset: Value | None
    ) -> Value:
        allowed: list[Value] = []
        if mask is not None and mask.tensor.element is BOOL:
            allowed.append(_emit_widened(call, emit, mask, fill=False))
        elif mask is not None:
            scores = emit("add", scores, _emit_widened(call, emit, mask, fill=float("-inf")))
        left, right = call.integer("left_window"), call.integer("right_window")
        if call.flag("causal") or left >= 0 or right >= 0:
            ahead = self._emit_distance(call, emit, offset)
            bounds = [0] * call.flag("causal") + [right] * (right >= 0)
            allowed += [emit("le", ahead, bound) for bound in bounds]
            if left >= 0:
                allowed.append(emit("ge", ahead, -left))
        if lengths is not None:
            (count,) = known_sizes(call.tensor(1), (2,))
            keys = emit.constant(np.arange(count).reshape(1, 1, 1, -1))
            allowed.append(emit("lt", keys, emit.unsqueeze(emit.cast(lengths, I64), [1, 2, 3])))
        if not allowed:
            return scores
        seen = allowed[0]
        for condition in allowed[1:]:
            seen = emit("and", seen, condition)
        return emit("select", seen, scores, emit.scalar(_hidden(call, scores.tensor.element), scores.tensor.element))

    @staticmethod
    def _emit_distance(call: Call, emit: Emit, offset: Value | None) -> Value:
        """Key j minus query position, [S, L], or [B, 1, S, L] where the offset is one a batch entry."""
        (queries,), (keys,) = known_sizes(call.tensor(0), (2,)), known_sizes(call.tensor(1), (2,))
        distance = emit.constant(np.arange(keys)[None, :] - np.arange(queries)[:, None])
        if offset is None:
            return distance
        wide = emit.cast(offset, I64)
        return emit("sub", distance, emit.unsqueeze(wide, [1, 2, 3]) if offset.tensor.rank else wide)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        q, k, v, mask, lengths, offset = padded(operands, 6)
        repeats, stored = q.shape[1] // k.shape[1], v.dtype
        q, k, v = (array.astype(self.compute_element(call).dtype, copy=False) for array in (q, k, v))
        k, v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
        stages = {"raw": (q * np.asarray(self._scale(call), q.dtype)) @ k.swapaxes(2, 3)}
        scores = stages["raw"]
        softcap = np.asarray(call.number("softcap"), q.dtype)
        stages["capped"] = scores = np.tanh(scores / softcap) * softcap if softcap else scores
        queries, keys = scores.shape[2:]
        position = np.arange(queries)[:, None] + np.zeros((1, 1, 1, 1), np.int64)
        if offset is not None:
            position = position + (offset.reshape(-1, 1, 1, 1) if offset.ndim else offset)
        ahead = np.arange(keys) - position
        left, right = call.integer("left_window"), call.integer("right_window")
        hidden = (ahead > 0) & call.flag("causal")
        hidden = hidden | ((ahead > right) & (right >= 0)) | ((ahead < -left) & (left >= 0))
        if lengths is not None:
            hidden = hidden | (np.arange(keys) >= lengths.reshape(-1, 1, 1, 1))
        if mask is not None:
            short = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1] if mask.shape[-1] > 1 else 0)]
            if mask.dtype == np.bool_:
                hidden = hidden | ~np.pad(mask, short)
            else:
                scores = scores + np.pad(mask, short, constant_values=-np.inf)
        scores = np.where(hidden, np.asarray(_hidden(call, element_of(q.dtype)), q.dtype), scores)
        stages["biased"] = scores
        greatest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        guarded = call.text("empty") == "zeros"
        powers = np.exp(scores - np.where(np.isneginf(greatest) & guarded, 0, greatest))
        total = powers.sum(axis=-1, keepdims=True)
        stages["weights"] = weights = powers / np.where((total == 0) & guarded, 1, total)
        weights = weights.astype(stored).astype(v.dtype)
        wanted = call.text("scores")
        return (weights @ v,) if wanted == "none" else (weights @ v, stages[wanted])


def _emit_heads(emit: Emit, a: Value, b: Value, contracted: int, element: ElementType) -> Value:
    """Each head of a [B, H, S, X] times its head of b, over the last dim of a and dim ``contracted`` of b."""
    heads, groups = a.tensor.known_dims[1], b.tensor.known_dims[1]
    batch, steps, out = a.tensor.known_dims[0], a.tensor.known_dims[2], b.tensor.known_dims[5 - contracted]
    if heads == groups:
        roles = {"a_batch": (0, 1), "b_batch": (0, 1), "a_contract": (3,), "b_contract": (contracted,)}
        return emit.contract("dot_general", a, b, element, **roles)
    (many,), (few,) = known_sizes(a.tensor, (1,)), known_sizes(b.tensor, (1,))
    split = emit.reshape(a, [batch, few, many // few, steps, a.tensor.known_dims[3]])
    roles = {"a_batch": (0, 1), "b_batch": (0, 1), "a_contract": (4,), "b_contract": (contracted,)}
    return emit.reshape(emit.contract("dot_general", split, b, element, **roles), [batch, many, steps, out])


def _hidden(call: Call, element: ElementType) -> float:
    """The score of a key that is not seen; the lowest number leaves a query that sees none with equal weights."""
    if call.text("empty") != "uniform":
        return float("-inf")
    return float(ml_dtypes.finfo(element.dtype).min)  # type: ignore[no-untyped-call]


def _emit_softmax(emit: Emit, scores: Value, *, guarded: bool) -> Value:
    """Softmax along the last dim; ``guarded``: 0 where all are -inf."""
    axes = (scores.tensor.rank - 1,)
    greatest = emit.reduce("reduce_max", scores, axes)
    if not guarded:
        powers = emit("exp", emit("sub", scores, greatest))
        return emit("div", powers, emit.reduce("reduce_sum", powers, axes))
    finite = emit("select", emit("eq", greatest, float("-inf")), 0.0, greatest)
    powers = emit("exp", emit("sub", scores, finite))
    total = emit.reduce("reduce_sum", powers, axes)
    return emit("div", powers, emit("select", emit("eq", total, 0.0), 1.0, total))


def _emit_widened(call: Call, emit: Emit, mask: Value, *, fill: float) -> Value:
    """The mask with as many keys as k has; a last dim of 1 broadcasts."""
    given, keys = mask.tensor.known_dims[-1], call.tensor(1).known_dims[2]
    if given in {keys, 1} or not isinstance(given, int) or not isinstance(keys, int):
        return mask
    rank = mask.tensor.rank
    pads = emit.integers([0] * (2 * rank - 1) + [keys - given])
    return emit("pad", mask, pads, emit.scalar(fill, mask.tensor.element))


@register
class Rotary(Rounded):
    """Rotates pairs of the first ``dim`` (0: all) elements of each head of x [B, H, S, D] by angles of its position.

    (a, b) becomes (cos a - sin b, sin a + cos b). Pairs are elements i and i + dim / 2, or, ``interleaved``, 2 i and
    2 i + 1. ``cos`` and ``sin`` are [B, S, dim / 2], or with ``positions`` [B, S] tables [P, dim / 2] that they index.
    Source: ONNX RotaryEmbedding-23.
    """

    name: ClassVar[str] = "rotary"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _T),
        Operand("cos", _T),
        Operand("sin", _T),
        Operand("positions", Variable("I", _I), optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("interleaved", FLAG, False, "pairs are neighbours, not halves apart"),
        Attribute("dim", integer(0), 0, "elements of a head that are rotated; 0: all"),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where the angles do not fit the rotated elements."""
        x, cos, sin = (call.tensor(index) for index in range(3))
        if x.dims is None:
            return (x,)
        if x.rank != 4:
            msg = f"rotary: x is {x}; expected rank 4"
            raise TypeMismatch(msg)
        broadcast_dims("rotary", [cos, sin])
        wanted = self._rotated(call, x) // 2 if isinstance(x.dims[3], int) else None
        last = cos.known_dims[-1]
        if wanted is not None and isinstance(last, int) and last != wanted:
            msg = f"rotary: cos is {cos}; expected a last dim of {wanted} for x {x}"
            raise TypeMismatch(msg)
        return (x.with_element(x.element),)

    @staticmethod
    def _rotated(call: Call, x: TensorType) -> int:
        size = x.known_dims[3]
        assert isinstance(size, int)
        return call.integer("dim") or size

    @staticmethod
    def _pairs(call: Call, count: int) -> Array:
        """The places of the first elements of all pairs, then of the second ones."""
        places = np.arange(count)
        return places.reshape(-1, 2).T.reshape(-1) if call.flag("interleaved") else places

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        x, cos, sin, positions = padded(operands, 4)
        assert x is not None
        assert cos is not None
        assert sin is not None
        (size,), count = known_sizes(x.tensor, (3,)), self._rotated(call, x.tensor)
        order, half = self._pairs(call, count), count // 2
        if positions is not None:
            cos, sin = (emit("gather", table, positions, axis=0) for table in (cos, sin))
        cos, sin = emit.unsqueeze(cos, [1]), emit.unsqueeze(sin, [1])
        turned = emit.slice(x, 3, 0, count)
        if call.flag("interleaved"):
            turned = emit("gather", turned, emit.constant(order), axis=3)
        first, second = emit.slice(turned, 3, 0, half), emit.slice(turned, 3, half, count)
        real = emit("sub", emit("mul", cos, first), emit("mul", sin, second))
        imaginary = emit("add", emit("mul", sin, first), emit("mul", cos, second))
        result = emit.concat([real, imaginary], 3)
        if call.flag("interleaved"):
            result = emit("gather", result, emit.constant(np.argsort(order)), axis=3)
        return (emit.concat([result, emit.slice(x, 3, count, size)], 3) if count < size else result,)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, cos, sin, positions = padded(operands, 4)
        count = self._rotated(call, call.tensor(0))
        if positions is not None:
            cos, sin = cos[positions], sin[positions]
        cos, sin = cos[:, None], sin[:, None]
        order = self._pairs(call, count)
        first, second = x[..., order[: count // 2]], x[..., order[count // 2 :]]
        result = x.copy()
        result[..., order[: count // 2]] = cos * first - sin * second
        result[..., order[count // 2 :]] = sin * first + cos * second
        return (result,)
