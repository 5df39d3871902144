"""Attention and rotary embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from compiler.frontends.onnx.converters.common import as_int64, cast, concat, shape_of, squeeze
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import F32, I64, Value
from compiler.onnx_types import element_from
from compiler.ops.attention import Attention, Rotary
from compiler.ops.elementwise import Sub
from compiler.ops.movement import Concat, Transpose
from compiler.ops.reshape import Reshape

_SCORES: Final = ("raw", "capped", "biased", "weights")
"""What the fourth output is, by attribute ``qk_matmul_output_mode``."""


def _split_heads(site: Site, x: Value, heads: int) -> Value:
    """[B, S, H * D] to [B, H, S, D]."""
    sizes = concat(site, [shape_of(site, x, 0, 2), site.integers(heads, -1)])
    return site.b(Transpose, site.b(Reshape, x, site.folded(sizes)), permutation=(0, 2, 1, 3))


def _join_heads(site: Site, x: Value) -> Value:
    """[B, H, S, D] to [B, S, H * D]."""
    turned = site.b(Transpose, x, permutation=(0, 2, 1, 3))
    sizes = concat(site, [shape_of(site, turned, 0, 2), site.integers(-1)])
    return site.b(Reshape, turned, site.folded(sizes))


def _heads(site: Site, name: str) -> int:
    count = site.attribute(name)
    if not count or count < 1:
        site.bad_attribute(f"attribute '{name}' is {count}; inputs of rank 3 need it")
    return int(count)


@dataclass(frozen=True, slots=True)
class _Cache:
    """Keys and values with the past ones before them, and how far queries stand behind the first key."""

    key: Value
    value: Value
    offset: Value | None


def _cached(site: Site, query: Value, key: Value, value: Value) -> _Cache:
    past_key, past_value, lengths = site.optional(4), site.optional(5), site.optional(6)
    if (past_key is None) != (past_value is None):
        site.invalid("only one of 'past_key' and 'past_value' is given; expected both or none")
    if past_key is not None and past_value is not None:
        if lengths is not None:
            site.invalid("both a past and 'nonpad_kv_seqlen' are given; expected one of them")
        before = site.folded(squeeze(site, shape_of(site, past_key, 2, 3), (0,)))
        joined = (site.b(Concat, past_key, key, axis=2), site.b(Concat, past_value, value, axis=2))
        return _Cache(*joined, before)
    if lengths is not None:
        return _Cache(key, value, site.folded(site.b(Sub, cast(site, lengths, I64), shape_of(site, query, 2, 3))))
    return _Cache(key, value, None)


@converts("Attention")
def attention(site: Site) -> Results:
    """Heads are split off inputs of rank 3; a past is put before keys and values, which are then results too."""
    query, key, value = site.input(0), site.input(1), site.input(2)
    flat = site.rank(query) == 3
    if flat:
        query = _split_heads(site, query, _heads(site, "q_num_heads"))
        key, value = (_split_heads(site, x, _heads(site, "kv_num_heads")) for x in (key, value))
    cache = _cached(site, query, key, value)
    mode = site.attribute("qk_matmul_output_mode")
    if not 0 <= mode < len(_SCORES):
        site.bad_attribute(f"attribute 'qk_matmul_output_mode' is {mode}; expected 0 to {len(_SCORES) - 1}")
    attributes: dict[str, Any] = {
        "softcap": site.attribute("softcap"),
        "causal": bool(site.attribute("is_causal")),
        "scores": _SCORES[mode] if site.wants(3) else "none",
    }
    if site.attribute("scale") is not None:
        attributes["scale"] = site.attribute("scale")
    for name, window in (("left_window", "left_window_size"), ("right_window", "right_window_size")):
        if site.attribute(window) is not None:
            attributes[name] = site.attribute(window)
    precision = site.attribute("softmax_precision")
    if precision:
        element = element_from(precision, f"attribute 'softmax_precision' of node '{site.node}'")
        if element.bits > max(query.tensor.element.bits, F32.bits):
            attributes["compute_type"] = element
    lengths = site.optional(6)
    mask = site.optional(3)
    if mask is not None and mask.tensor.element.is_integer:
        # The schema allows integers and the text is silent on them: they are added, as floats are.
        mask = cast(site, mask, query.tensor.element)
    operands = [query, cache.key, cache.value, mask, None if lengths is None else as_int64(site, lengths)]
    results = site.b.op(Attention, [*operands, cache.offset], **attributes).results
    y = _join_heads(site, results[0]) if flat else results[0]
    return [y, cache.key, cache.value, results[1] if len(results) > 1 else None]


@converts("RotaryEmbedding")
def rotary_embedding(site: Site) -> Value:
    """Heads are split off an input of rank 3, and joined again."""
    x = site.input(0)
    flat = site.rank(x) == 3
    if flat:
        x = _split_heads(site, x, _heads(site, "num_heads"))
    rotated = site.b(
        Rotary,
        x,
        site.input(1),
        site.input(2),
        site.optional(3),
        interleaved=bool(site.attribute("interleaved")),
        dim=site.attribute("rotary_embedding_dim"),
    )
    return _join_heads(site, rotated) if flat else rotated
