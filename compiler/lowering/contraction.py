"""Recognises the nests that a matrix array can take, by their structure alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from compiler.ops.work import Apply, Arg, Combiner, Expression, Index

if TYPE_CHECKING:
    from compiler.ir import ElementType
    from compiler.lowering.nests import Nest, Read

_PRODUCT: Final = "mul"
_CONVERSION: Final = "cast"


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products and the role of each loop: batch in both factors, m in ``a`` alone, n in ``b`` alone, k summed.

    ``a`` and ``b`` are numbers of the nest's reads.
    """

    a: int
    b: int
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]

    def swapped(self) -> Contraction:
        """The same with the factors exchanged: the transposed product."""
        return Contraction(self.b, self.a, self.batch, self.n, self.m, self.k)


def contraction_of(nest: Nest) -> Contraction | None:
    """The roles of a sum of products of two affine reads, else None.

    The products are formed in the accumulator's type, so a conversion of a factor to that type says nothing more.
    """
    if nest.combiner is not Combiner.ADD or nest.initial != 0 or nest.is_scan or len(nest.reads) != len(("a", "b")):
        return None
    factors = _factors(nest.body, nest.accumulate)
    if factors is None or not all(read.is_affine for read in nest.reads):
        return None
    if not all(isinstance(dim, Index) for dim in nest.write):
        return None
    a, b = factors
    return _roles(nest, a, b)


def _factors(body: Expression, accumulate: ElementType | None) -> tuple[int, int] | None:
    while isinstance(body, Apply) and body.function == _CONVERSION and body.element is accumulate:
        (body,) = body.operands
    if not isinstance(body, Apply) or body.function != _PRODUCT:
        return None
    found = []
    for operand in body.operands:
        inner = operand
        if isinstance(inner, Apply) and inner.function == _CONVERSION:
            (inner,) = inner.operands
        if not isinstance(inner, Arg):
            return None
        found.append(inner.index)
    return (found[0], found[1]) if found[0] != found[1] else None


def _roles(nest: Nest, a: int, b: int) -> Contraction | None:
    in_a, in_b = nest.reads[a].iterators(), nest.reads[b].iterators()
    folded = nest.folded
    if not folded or not all(loop in in_a and loop in in_b for loop in folded if nest.extents[loop] > 1):
        return None
    batch: list[int] = []
    m: list[int] = []
    n: list[int] = []
    for loop in nest.parallel:
        if (loop in in_a) == (loop in in_b):
            batch.append(loop)
        else:
            (m if loop in in_a else n).append(loop)
    return Contraction(a, b, tuple(batch), tuple(m), tuple(n), folded)


def with_wide_products(nest: Nest) -> Nest:
    """The sum of products with its products formed in the accumulator's type, as the vector unit must be told."""
    body, wide = nest.body, nest.accumulate
    if wide is None or not isinstance(body, Apply) or body.element is wide:
        return nest
    factors = tuple(Apply(_CONVERSION, (operand,), wide) for operand in body.operands)
    return replace(nest, body=Apply(body.function, factors, wide))


def factor_elements(nest: Nest, found: Contraction) -> tuple[ElementType, ElementType]:
    """Element types of the two factors as they lie in memory."""
    reads: tuple[Read, ...] = nest.reads
    return reads[found.a].value.tensor.element, reads[found.b].value.tensor.element
