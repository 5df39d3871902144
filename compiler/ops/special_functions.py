"""Functions of mathematical physics and statistics, element by element; they have no loop form and run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import Call, Type
from compiler.ops.compose import Evaluated
from compiler.ops.registry import FLOAT, REQUIRED, Attribute, Operand, Variable, choice, register
from compiler.ops.shapes import broadcast_dims

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array


def _polynomial(first: tuple[float, float], step: Callable[[Array, Any, Array, Array], Array]) -> Callable[..., Array]:
    """Orthogonal polynomials P_n(x) by their recurrence: P_0 = 1, P_1 = first[0] x + first[1], then ``step``.

    The degree is truncated to an integer; below 0 the polynomial is 0. Not a number where x is none and the degree > 0.
    """

    def values(x: Array, n: Array) -> Array:
        x, n = np.broadcast_arrays(x, np.trunc(n))
        before, current = np.ones_like(x), first[0] * x + first[1]
        result = np.where(n == 0, before, np.where(n >= 1, current, 0.0))
        for degree in range(1, int(np.max(n, initial=0.0))):
            before, current = current, step(x, degree, current, before)
            result = np.where(n > degree, current, result)
        return np.asarray(result)

    return values


def _chebyshev(first: tuple[float, float]) -> Callable[..., Array]:
    return _polynomial(first, lambda x, _, current, before: 2 * x * current - before)


def _shifted(first: tuple[float, float]) -> Callable[..., Array]:
    plain = _chebyshev(first)
    return lambda x, n: plain(2 * x - 1, n)


def _scipy(name: str) -> Callable[..., Array]:
    def values(*operands: Array) -> Array:
        from scipy import special

        return np.asarray(getattr(special, name)(*operands))

    return values


def _airy(x: Array) -> Array:
    from scipy import special

    return np.asarray(special.airy(x)[0])


def _polygamma(x: Array, n: Array) -> Array:
    from scipy import special

    return np.asarray(special.polygamma(n.astype(np.int64), x))


FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Array]]]] = {
    "airy_ai": (1, _airy),
    "bessel_j0": (1, _scipy("j0")),
    "bessel_j1": (1, _scipy("j1")),
    "bessel_y0": (1, _scipy("y0")),
    "bessel_y1": (1, _scipy("y1")),
    "digamma": (1, _scipy("psi")),
    "erfc": (1, _scipy("erfc")),
    "erfcx": (1, _scipy("erfcx")),
    "erfinv": (1, _scipy("erfinv")),
    "i0": (1, _scipy("i0")),
    "i0e": (1, _scipy("i0e")),
    "i1": (1, _scipy("i1")),
    "i1e": (1, _scipy("i1e")),
    "k0": (1, _scipy("k0")),
    "k0e": (1, _scipy("k0e")),
    "k1": (1, _scipy("k1")),
    "k1e": (1, _scipy("k1e")),
    "lgamma": (1, _scipy("gammaln")),
    "log_ndtr": (1, _scipy("log_ndtr")),
    "ndtri": (1, _scipy("ndtri")),
    "spherical_bessel_j0": (1, lambda x: np.sinc(x / np.pi)),
    "igamma": (2, _scipy("gammainc")),
    "igammac": (2, _scipy("gammaincc")),
    "polygamma": (2, _polygamma),
    "zeta": (2, _scipy("zeta")),
    "chebyshev_t": (2, _chebyshev((1, 0))),
    "chebyshev_u": (2, _chebyshev((2, 0))),
    "chebyshev_v": (2, _chebyshev((2, -1))),
    "chebyshev_w": (2, _chebyshev((2, 1))),
    "shifted_chebyshev_t": (2, _shifted((1, 0))),
    "shifted_chebyshev_u": (2, _shifted((2, 0))),
    "shifted_chebyshev_v": (2, _shifted((2, -1))),
    "shifted_chebyshev_w": (2, _shifted((2, 1))),
    "hermite_h": (2, _polynomial((2, 0), lambda x, n, current, before: 2 * x * current - 2 * n * before)),
    "hermite_he": (2, _polynomial((1, 0), lambda x, n, current, before: x * current - n * before)),
    "laguerre_l": (
        2,
        _polynomial((-1, 1), lambda x, n, current, before: ((2 * n + 1 - x) * current - n * before) / (n + 1)),
    ),
    "legendre_p": (
        2,
        _polynomial((1, 0), lambda x, n, current, before: ((2 * n + 1) * x * current - n * before) / (n + 1)),
    ),
}
"""Name -> number of operands and the function in float64. Sources: scipy.special; DLMF 18.9 for the recurrences."""


@register
class SpecialFunction(Evaluated):
    """One of the functions of ``FUNCTIONS``, computed in float64 and rounded once; two operands are broadcast."""

    name: ClassVar[str] = "special_function"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", Variable("T", FLOAT)),
        Operand("y", Variable("T", FLOAT), optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("function", choice(*FUNCTIONS), REQUIRED, "Which one."),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The common shape. Raises TypeMismatch for another number of operands than the function has."""
        function = str(call.attributes["function"])
        types = [call.tensor(index) for index, type_ in enumerate(call.types) if type_ is not None]
        if len(types) != FUNCTIONS[function][0]:
            msg = f"special_function: {function} has {len(types)} operands; expected {FUNCTIONS[function][0]}"
            raise TypeMismatch(msg)
        return (types[0].with_dims(broadcast_dims(self.name, types)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        function = FUNCTIONS[str(call.attributes["function"])][1]
        wide = [np.asarray(value).astype(np.float64) for value in operands if value is not None]
        return (np.asarray(function(*wide)).astype(call.tensor(0).element.dtype),)
