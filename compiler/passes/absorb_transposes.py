"""Transposes before a matrix product go into it: a dot_general reads its operands in any order of dims.

matmul(transpose(a), b) => dot_general(a, b), and so for b or both, where both operands have the same leading dims (no
broadcasting) and rank 2 or more; dot_general(transpose(a), b) likewise. The sums are the same, over the same products;
only the order in which a machine adds them may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from compiler.ops.contraction import DotGeneral, MatMul
from compiler.ops.movement import Transpose
from compiler.passes.canonical.shapes import dims_of
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import (
    REASSOCIATE,
    Match,
    Numerics,
    RewriteCounter,
    RuleSet,
    anything,
    operation,
    rewrite,
    rule,
)

if TYPE_CHECKING:
    from compiler.ir import AttributeValue, Graph, Value

_TRANSPOSED: Final = operation(Transpose, anything(), name="transposed")


def _source(value: Value) -> tuple[Value, tuple[int, ...]]:
    """What a transpose reads and how it permutes; the value itself, unpermuted, where none defines it."""
    op = value.op
    if op is not None and isinstance(op.definition, Transpose):
        return op.operand(0), op.call().integers("permutation")
    return value, tuple(range(len(dims_of(value) or ())))


def _mapped(axes: tuple[int, ...], permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(permutation[axis] for axis in axes)


def _product(match: Match) -> Value:
    a, b = match.root.operand(0), match.root.operand(1)
    a_dims, b_dims = dims_of(a), dims_of(b)
    match.require(a_dims is not None and b_dims is not None, "a rank is not known")
    assert a_dims is not None
    assert b_dims is not None
    match.require(len(a_dims) == len(b_dims) >= 2, "the ranks differ or are below 2")
    lead = a_dims[:-2]
    match.require(lead == b_dims[:-2] and all(isinstance(dim, int) for dim in lead), "leading dims broadcast")
    batch = tuple(range(len(lead)))
    contract = len(lead) + 1, len(lead)
    return _dot(match, a, b, batch, batch, (contract[0],), (contract[1],))


def _dot(
    match: Match,
    a: Value,
    b: Value,
    a_batch: tuple[int, ...],
    b_batch: tuple[int, ...],
    a_contract: tuple[int, ...],
    b_contract: tuple[int, ...],
) -> Value:
    """The dot_general that reads the sources of a and b; free dims must stay in order, since the result has theirs."""
    (a, a_order), (b, b_order) = _source(a), _source(b)
    for order, used in ((a_order, (*a_batch, *a_contract)), (b_order, (*b_batch, *b_contract))):
        free = [axis for place, axis in enumerate(order) if place not in used]
        match.require(free == sorted(free), "the free dims come in another order")
    attributes: dict[str, AttributeValue] = {
        "a_batch": _mapped(a_batch, a_order),
        "b_batch": _mapped(b_batch, b_order),
        "a_contract": _mapped(a_contract, a_order),
        "b_contract": _mapped(b_contract, b_order),
    }
    if "to" in match.root.attributes:
        attributes["to"] = match.root.attributes["to"]
    return match.builder.op(DotGeneral, [a, b], (), **attributes).result


@rule(operation(MatMul, _TRANSPOSED, anything("b")), REASSOCIATE)
def transpose_into_matmul_left(match: Match) -> Value:
    """matmul(transpose(a), b) => dot_general(a, b)."""
    return _product(match)


@rule(operation(MatMul, anything("a"), _TRANSPOSED), REASSOCIATE)
def transpose_into_matmul_right(match: Match) -> Value:
    """matmul(a, transpose(b)) => dot_general(a, b)."""
    return _product(match)


def _general(match: Match) -> Value:
    call = match.root.call()
    ranks = [len(dims_of(match.root.operand(index)) or ()) for index in (0, 1)]

    def axes(key: str) -> tuple[int, ...]:
        rank = ranks[key.startswith("b")]
        return tuple(axis % rank for axis in call.integers(key))

    match.require(all(ranks), "a rank is not known")
    keys = ("a_batch", "b_batch", "a_contract", "b_contract")
    return _dot(match, match.root.operand(0), match.root.operand(1), *map(axes, keys))


@rule(operation(DotGeneral, _TRANSPOSED, anything("b")), REASSOCIATE)
def transpose_into_dot_left(match: Match) -> Value:
    """dot_general(transpose(a), b) => dot_general(a, b)."""
    return _general(match)


@rule(operation(DotGeneral, anything("a"), _TRANSPOSED), REASSOCIATE)
def transpose_into_dot_right(match: Match) -> Value:
    """dot_general(a, transpose(b)) => dot_general(a, b)."""
    return _general(match)


RULES: Final = RuleSet(
    (transpose_into_matmul_left, transpose_into_matmul_right, transpose_into_dot_left, transpose_into_dot_right)
)


@dataclass(frozen=True)
class AbsorbTransposes(Pass):
    """Let matrix products read their operands in the order in which they lie."""

    name: ClassVar[str] = "absorb_transposes"
    numerics: ClassVar[Numerics] = REASSOCIATE

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Hits by rule."""
        result = rewrite(graph, RULES, counter)
        return PassResult(result.modified, result.hits)
