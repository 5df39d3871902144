"""Special functions: gamma, Bessel, Airy, inverse error functions, orthogonal polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.torch.converters.common import cast, number, operand
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.special_functions import SpecialFunction

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter

_OF_ONE: Final = {
    "lgamma": "lgamma",
    "digamma": "digamma",
    "erfinv": "erfinv",
    "i0": "i0",
    "special_i0e": "i0e",
    "special_i1": "i1",
    "special_i1e": "i1e",
    "special_modified_bessel_i0": "i0",
    "special_modified_bessel_i1": "i1",
    "special_modified_bessel_k0": "k0",
    "special_modified_bessel_k1": "k1",
    "special_scaled_modified_bessel_k0": "k0e",
    "special_scaled_modified_bessel_k1": "k1e",
    "special_bessel_j0": "bessel_j0",
    "special_bessel_j1": "bessel_j1",
    "special_bessel_y0": "bessel_y0",
    "special_bessel_y1": "bessel_y1",
    "special_spherical_bessel_j0": "spherical_bessel_j0",
    "special_airy_ai": "airy_ai",
    "special_erfcx": "erfcx",
    "special_log_ndtr": "log_ndtr",
    "special_ndtri": "ndtri",
    "special_gammaln": "lgamma",
    "special_digamma": "digamma",
    "special_psi": "digamma",
    "special_erfinv": "erfinv",
    "special_i0": "i0",
}
"""Operator -> function of one tensor; integers are floats first."""

_POLYNOMIALS: Final = (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
)  # fmt: skip


def _one(function: str) -> Converter:
    def convert(site: Site) -> Value:
        found = site.value(next(iter(site.arguments)))
        return site.op(SpecialFunction, cast(site, found, site.element()), function=function)

    return convert


def _two(function: str, *names: str) -> Converter:
    def convert(site: Site) -> Value:
        element = site.element()
        return site.op(SpecialFunction, *(operand(site, site[name], element) for name in names), function=function)

    return convert


for _name, _function in _OF_ONE.items():
    converts(_name)(_one(_function))
for _name in _POLYNOMIALS:
    converts(f"special_{_name}", f"special_{_name}.x_scalar", f"special_{_name}.n_scalar")(
        _two(_name.replace("_polynomial", ""), "x", "n")
    )
converts("igamma", "special_gammainc")(_two("igamma", "self", "other"))
converts("igammac", "special_gammaincc")(_two("igammac", "self", "other"))
converts("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar")(_two("zeta", "self", "other"))


@converts("polygamma", "special_polygamma")
def polygamma(site: Site) -> Value:
    """The derivative of order n of the digamma function."""
    element = site.element()
    return site.op(
        SpecialFunction, cast(site, site.value("self"), element), number(site, site["n"], element), function="polygamma"
    )
