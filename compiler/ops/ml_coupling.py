"""Probabilities of classes from those of pairs: an iteration whose length is data, so it runs on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import Call, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import FLOAT, Attribute, Operand, Variable, integer, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_ROUNDS = 100


@register
class PairCoupling(Evaluated):
    """Probabilities [N, C] of classes from those [N, C(C-1)/2] with which the first of each pair wins.

    Pairs are in the order (0, 1), (0, 2), ..., (1, 2), ... The probabilities minimize the sum over pairs of
    (r_ji p_i - r_ij p_j)^2; the iteration ends when no optimality condition is off by 0.005 / C. Source: Wu, Lin, Weng:
    Probability Estimates for Multi-class Classification by Pairwise Coupling (2004), algorithm 2, as libsvm has it.
    """

    name: ClassVar[str] = "pair_coupling"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("wins", Variable("T", FLOAT)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("classes", integer(2), doc="number of classes C"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[N, C]. Raises TypeMismatch for another number of pairs."""
        wins, classes = call.tensor(0), call.integer("classes")
        pairs = classes * (classes - 1) // 2
        if wins.dims is None or len(wins.dims) != 2 or (isinstance(wins.dims[1], int) and wins.dims[1] != pairs):
            msg = f"pair_coupling: operand 'wins' is {wins}; expected [N, {pairs}]"
            raise TypeMismatch(msg)
        return (tensor(wins.element, (wins.dims[0], classes)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        wins = np.asarray(operands[0])
        classes = call.integer("classes")
        found = np.empty((wins.shape[0], classes), np.float64)
        upper = np.triu_indices(classes, 1)
        for row, target in zip(np.clip(wins.astype(np.float64), 1e-7, 1 - 1e-7), found, strict=True):
            r = np.zeros((classes, classes))
            r[upper] = row
            r.T[upper] = 1 - row
            target[:] = _coupled(r)
        return (found.astype(wins.dtype),)


def _coupled(r: Array) -> Array:
    """The probabilities for r[i, j], with which i wins against j."""
    classes = len(r)
    q = -r.T * r
    np.fill_diagonal(q, (r**2).sum(0))
    p = np.full(classes, 1 / classes)
    for _ in range(_ROUNDS):
        gradient = q @ p
        value = p @ gradient
        if np.abs(gradient - value).max() < 0.005 / classes:
            break
        for place in range(classes):
            step = (value - gradient[place]) / q[place, place]
            p[place] += step
            value = (value + step * (step * q[place, place] + 2 * gradient[place])) / (1 + step) ** 2
            gradient = (gradient + step * q[place]) / (1 + step)
            p /= 1 + step
    return p
