"""Attention by blocks of queries whose scores stay in SRAM: they never see DRAM, and K and V are read once.

attention(q, k, v) => for each batch entry and each group of heads that shares keys: attention(q[rows], k, v) for blocks
of rows, joined again. A row's softmax needs that row's scores alone, so blocks change no number. Without this the
scores of all heads, [B, H, S, L] in the compute type and more than once, go through DRAM wherever SRAM does not hold
them: 57 times the bytes of q, k, v and the result for 1,024 queries and keys of 64 elements.

Keys and values that are too many to stay beside a block of scores are read again by each block, which is then as large
as it can be. Only up to a number of blocks: programs are unrolled, and each block costs compile time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from compiler.ir import I64, Builder, TensorType
from compiler.ops.attention import Attention
from compiler.ops.compose import Emit
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import REASSOCIATE, Numerics, RewriteCounter
from compiler.rewrite.driver import replace_value

if TYPE_CHECKING:
    from compiler.ir import Graph, Op, Value

_SHARE: Final = 0.65
"""Share of SRAM for keys, values and a block's scores: the rest is for queries, results and statistics of rows."""
_CACHE: Final = 0.27
"""Share of SRAM up to which keys and values stay there beside blocks; more of them are read again by each block."""
_STREAMED: Final = 0.5
"""Share of SRAM for a block's scores where keys and values come through tiles: the larger, the fewer blocks."""
_HARDLY_ANY: Final = 0.35
"""Share of SRAM up to which all scores together stay there by themselves."""
_MULTIPLE: Final = 16
"""Rows of a block come in multiples of this, which arrays and vector units fill well."""


@dataclass(frozen=True)
class TileAttention(Pass):
    """Split attention into blocks for an SRAM of ``sram_bytes``, at most ``most_blocks`` an operation."""

    sram_bytes: int = 0
    most_blocks: int = 128
    name: ClassVar[str] = "tile_attention"
    numerics: ClassVar[Numerics] = REASSOCIATE

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Every attention that is too large, in program order."""
        hits: Counter[str] = Counter()
        for op in [op for op in graph.walk() if isinstance(op.definition, Attention)]:
            if counter.limit is not None and counter.count >= counter.limit:
                break
            tiling = self._tiling(op)
            if tiling is not None:
                counter.allow(self.name, op)
                hits[self.name] += 1
                _split(op, tiling)
        return PassResult(bool(hits), hits)

    def _tiling(self, op: Op) -> _Tiling | None:
        """How to split it; None where it fits whole, or where blocks would not."""
        lengths = op.operands[4] if len(op.operands) > 4 else None
        types = [value.type for value in op.operands if value is not None]
        if lengths is not None or op.call().text("scores") != "none":
            return None
        if not all(isinstance(type_, TensorType) and type_.is_static for type_ in types):
            return None
        (batch, heads, queries, size), (_, groups, keys, _) = op.operand(0).tensor.shape, op.operand(1).tensor.shape
        narrow, wide = op.operand(1).tensor.element.bits // 8, 4
        # Scores, their exponentials, and the weights as they meet v.
        row = keys * (2 * wide + narrow)
        if not (batch and heads and queries and keys) or batch * heads * queries * row <= _HARDLY_ANY * self.sram_bytes:
            return None
        cache = keys * (size + op.operand(2).tensor.shape[3]) * narrow
        together = heads // groups
        room = _SHARE * self.sram_bytes - cache if cache <= _CACHE * self.sram_bytes else _STREAMED * self.sram_bytes
        fitting = int(room / (row * together))
        rows = min(queries, fitting // _MULTIPLE * _MULTIPLE or fitting)
        if rows < 1 or batch * groups * -(-queries // rows) > self.most_blocks:
            return None
        return _Tiling(batch, groups, together, queries, rows)


@dataclass(frozen=True, slots=True)
class _Tiling:
    """Blocks of ``rows`` of the queries of each of ``groups`` groups of ``together`` heads."""

    batch: int
    groups: int
    together: int
    queries: int
    rows: int


def _split(op: Op, tiling: _Tiling) -> None:
    graph = op.graph
    assert graph is not None
    emit = Emit(Builder(graph, op, op.location))
    entries = [
        emit.concat([_group(op, emit, tiling, entry, group) for group in range(tiling.groups)], 1)
        for entry in range(tiling.batch)
    ]
    replace_value("tile_attention", op, op.result, emit.concat(entries, 0))
    op.erase()


def _group(op: Op, emit: Emit, tiling: _Tiling, entry: int, group: int) -> Value:
    """The result of one batch entry and one group of heads, [1, together, S, E]."""
    first = group * tiling.together
    q = _part(emit, op.operand(0), {0: (entry, 1), 1: (first, tiling.together)})
    k, v = (_part(emit, op.operand(index), {0: (entry, 1), 1: (group, 1)}) for index in (1, 2))
    blocks = []
    for start in range(0, tiling.queries, tiling.rows):
        count = min(tiling.rows, tiling.queries - start)
        mask = op.operands[3] if len(op.operands) > 3 else None
        if mask is not None:
            lead = 4 - mask.tensor.rank
            wanted = {0: (entry, 1), 1: (first, tiling.together), 2: (start, count)}
            mask = _part(emit, mask, {axis - lead: part for axis, part in wanted.items() if axis >= lead})
        operands = [_part(emit, q, {2: (start, count)}), k, v, mask, None, _offset(op, emit, entry, start)]
        while operands[-1] is None:
            operands.pop()
        blocks.append(emit("attention", *operands, **op.attributes))
    return emit.concat(blocks, 2)


def _part(emit: Emit, value: Value, parts: dict[int, tuple[int, int]]) -> Value:
    """``count`` elements from ``start`` on along some dims; dims of size 1 broadcast and stay."""
    shape = value.tensor.shape
    kept = {
        axis: (start, start + count)
        for axis, (start, count) in parts.items()
        if shape[axis] != 1 and (start, count) != (0, shape[axis])
    }
    if not kept:
        return value
    starts, ends = ([bounds[end] for bounds in kept.values()] for end in (0, 1))
    return emit("slice", value, *map(emit.integers, (starts, ends, list(kept), [1] * len(kept))))


def _offset(op: Op, emit: Emit, entry: int, start: int) -> Value | None:
    """How far a block's queries stand behind the first key, where that matters."""
    call = op.call()
    if not call.flag("causal") and call.integer("left_window") < 0 and call.integer("right_window") < 0:
        return None
    given = op.operands[5] if len(op.operands) > 5 else None
    if given is None:
        return emit.constant(np.asarray(start, np.int64))
    if given.tensor.rank:
        given = _part(emit, given, {0: (entry, 1)})
    return emit("add", emit.cast(given, I64), emit.constant(np.asarray(start, np.int64)))
