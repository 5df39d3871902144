"""Counting of n-grams. Which are there is data, so it runs on the host."""

from __future__ import annotations

import itertools
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import F32, I32, I64, Call, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import (
    NUMBERS,
    STRINGS,
    TEXTS,
    Attribute,
    Operand,
    Variable,
    choice,
    integer,
    integers,
    register,
)
from compiler.ops.strings import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compiler.ir import Array

_SCALED: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "tf": lambda counts, _weights: counts,
    "idf": lambda counts, weights: np.where(counts > 0, weights, np.float32(0)),
    "tfidf": lambda counts, weights: counts * weights,
}
_T: Final = Variable("T", STRINGS | {I32, I64})


@register
class NgramCounts(Evaluated):
    """How often each n-gram of a pool occurs in x [C] or in each row of x [N, C]; float32, one column an index.

    The pool lists 1-grams, then 2-grams and so on; ``starts`` has the place of the first of each length. N-gram i is
    counted in column ``columns[i]``. Lengths ``shortest`` to ``longest`` count, with 0 to ``skips`` elements between
    neighbours (the same number within an n-gram; 1-grams count once). Mode tf gives counts, idf the weight of each
    n-gram whose count is not 0, tfidf counts times weights; without weights they are 1. Source: ONNX TfIdfVectorizer-9.
    """

    name: ClassVar[str] = "ngram_counts"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("mode", choice("tf", "idf", "tfidf"), doc="counts, weights, or their products"),
        Attribute("shortest", integer(1), doc="least length"),
        Attribute("longest", integer(1), doc="greatest length"),
        Attribute("skips", integer(0), doc="greatest number of elements between neighbours"),
        Attribute("starts", integers(0), doc="where the n-grams of each length start in the pool"),
        Attribute("columns", integers(0), doc="column of each n-gram"),
        Attribute("numbers", integers(), None, "the pool for integers"),
        Attribute("words", TEXTS, None, "the pool for strings"),
        Attribute("weights", NUMBERS, None, "a factor an n-gram"),
    )

    def check(self, call: Call) -> None:
        """Raises InvalidAttribute for a pool that is missing or that the starts and columns do not fit."""
        super().check(call)
        given = [name for name in ("numbers", "words") if call.get(name) is not None]
        wanted = "words" if call.tensor(0).element in STRINGS else "numbers"
        if given != [wanted]:
            msg = f"ngram_counts: pools {given} for operand {call.tensor(0)}; expected '{wanted}' alone"
            raise InvalidAttribute(msg)
        if not call.integers("columns") or call.integer("longest") < call.integer("shortest"):
            msg = "ngram_counts: no columns, or lengths in the wrong order; expected at least one n-gram"
            raise InvalidAttribute(msg)
        count = 1 + max(
            (number for grams in self._grams(call).values() for found in grams.values() for number in found), default=-1
        )
        if count > len(call.integers("columns")):
            msg = f"ngram_counts: {len(call.integers('columns'))} columns for {count} n-grams; expected one each"
            raise InvalidAttribute(msg)
        weights = cast("tuple[float, ...] | None", call.get("weights"))
        if weights is not None and len(weights) < len(call.integers("columns")):
            msg = f"ngram_counts: {len(weights)} weights for {len(call.integers('columns'))} n-grams; expected one each"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """One column up to the greatest index. Raises TypeMismatch for another rank than 1 or 2."""
        x = call.tensor(0)
        if x.dims is None:
            return (tensor(F32, None),)
        if len(x.dims) not in {1, 2}:
            msg = f"ngram_counts: operand 'x' is {x}; expected dims [C] or [N, C]"
            raise TypeMismatch(msg)
        return (tensor(F32, (*x.dims[:-1], self._width(call))),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0])
        if x.ndim not in {1, 2}:
            msg = f"ngram_counts: operand 'x' has shape {list(x.shape)}; expected [C] or [N, C]"
            raise EvaluationError(msg)
        grams, width = self._grams(call), self._width(call)
        columns = np.array(call.integers("columns"))
        weights = np.asarray(call.get("weights") or (1.0,) * len(columns), np.float32)
        rows = x.reshape(prod(x.shape[:-1]), x.shape[-1])
        result = np.zeros((*x.shape[:-1], width), np.float32)
        for row, target in zip(rows, result.reshape(-1, width), strict=True):
            items = flat(row) if x.dtype.kind in "OUS" else row.tolist()
            counts = _counted(items, grams, call.integer("skips"), len(columns))
            np.add.at(target, columns, _SCALED[call.text("mode")](counts, weights[: len(columns)]))
        return (result,)

    @staticmethod
    def _width(call: Call) -> int:
        return max(call.integers("columns")) + 1

    @staticmethod
    def _grams(call: Call) -> dict[int, dict[tuple[Any, ...], list[int]]]:
        """Numbers of the n-grams of each length that counts."""
        pool = cast("tuple[Any, ...]", call.get("numbers") if call.get("words") is None else call.get("words"))
        starts = [*call.integers("starts"), len(pool)]
        number = 0
        found: dict[int, dict[tuple[Any, ...], list[int]]] = {}
        for size, (low, high) in enumerate(itertools.pairwise(starts), 1):
            grams = defaultdict(list)
            for place in range(low, high - size + 1, size):
                grams[pool[place : place + size]].append(number)
                number += 1
            if call.integer("shortest") <= size <= call.integer("longest"):
                found[size] = grams
        return found


def _counted(
    row: Sequence[Any], grams: Mapping[int, Mapping[tuple[Any, ...], Sequence[int]]], skips: int, count: int
) -> Array:
    """How often each n-gram occurs."""
    counts = np.zeros(count, np.float32)
    for size, pool in grams.items():
        for step in range(1, (skips if size > 1 else 0) + 2):
            for start in range(len(row) - (size - 1) * step):
                for number in pool.get(tuple(row[start : start + (size - 1) * step + 1 : step]), ()):
                    counts[number] += 1
    return counts
