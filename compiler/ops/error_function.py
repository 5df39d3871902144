"""The complement of the error function, which keeps digits that 1 - erf(x) loses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from compiler.ops.compose import Emit, Pointwise
from compiler.ops.registry import FLOAT, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, Call, Value

_NEAR: Final = (
    (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1,
     1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
     5.57535335369399327526e2),
    (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
     1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2),
)  # fmt: skip
_FAR: Final = (
    (5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195,
     7.40974269950448939160, 2.97886665372100240670),
    (1.0, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1, 1.70814450747565897222e1,
     9.60896809063285878198, 3.36907645100081516050),
)  # fmt: skip
"""Numerators and denominators of erfc(x) e^(x^2) for 1 <= x < 8 and beyond: Cephes' ndtr.c."""


def _polynomial(emit: Emit, x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the highest power first."""
    element = x.tensor.element
    found = emit("add", emit("mul", x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        found = emit("add", emit("mul", found, x), emit.scalar(coefficient, element))
    return found


@register
class Erfc(Pointwise):
    """1 - erf(x), to the precision of the type for large x too. Source: C99's erfc; the formula is Cephes' ndtr.c."""

    name: ClassVar[str] = "erfc"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", FLOAT)),)

    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        del call
        size = emit("abs", x)
        # Polynomials of greater numbers overflow, and e^(-x^2) is 0 there in any type.
        inner = emit("min", size, emit.scalar(40.0, x.tensor.element))
        near, far = (
            emit("div", _polynomial(emit, inner, above), _polynomial(emit, inner, below))
            for above, below in (_NEAR, _FAR)
        )
        ratio = emit("select", emit("lt", inner, 8.0), near, far)
        tail = emit("mul", emit("exp", emit("neg", emit("mul", inner, inner))), ratio)
        outer = emit("select", emit("lt", x, 0), emit("sub", 2.0, tail), tail)
        return emit("select", emit("lt", size, 1.0), emit("sub", 1.0, emit("erf", x)), outer)

    def values(self, call: Call, x: Array) -> Array:
        del call
        return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x.astype(np.float64))).astype(x.dtype)
