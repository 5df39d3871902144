"""Activations. Every default is that of the schema's own version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.onnx.converters.common import unsqueeze
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Definition, Value
from compiler.ops import activation

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Converter

_TABLE: Final[dict[str, tuple[type[Definition], tuple[str, ...]]]] = {
    "Celu": (activation.Celu, ("alpha",)),
    "Elu": (activation.Elu, ("alpha",)),
    "HardSigmoid": (activation.HardSigmoid, ("alpha", "beta")),
    "HardSwish": (activation.HardSwish, ()),
    "LeakyRelu": (activation.LeakyRelu, ("alpha",)),
    "Mish": (activation.Mish, ()),
    "Relu": (activation.Relu, ()),
    "Selu": (activation.Selu, ("alpha", "gamma")),
    "Shrink": (activation.Shrink, ("lambd", "bias")),
    "Softplus": (activation.Softplus, ()),
    "Softsign": (activation.Softsign, ()),
    "Swish": (activation.Silu, ("alpha",)),
    "ThresholdedRelu": (activation.ThresholdedRelu, ("alpha",)),
}
"""ONNX operator -> the IR's operator and the attributes of the same name that both have."""


def _with_attributes(definition: type[Definition], names: tuple[str, ...]) -> Converter:
    def convert(site: Site) -> Value:
        return site.b(definition, site.input(0), **{name: float(site.attribute(name)) for name in names})

    return convert


for _name, (_definition, _names) in _TABLE.items():
    converts(_name)(_with_attributes(_definition, _names))


@converts("Gelu")
def gelu(site: Site) -> Value:
    """Exact (erf) or by tanh."""
    approximate = site.attribute("approximate")
    if approximate not in {"none", "tanh"}:
        site.bad_attribute(f"attribute 'approximate' is '{approximate}'; expected none or tanh")
    return site.b(activation.Gelu, site.input(0), approximate=approximate)


@converts("PRelu")
def prelu(site: Site) -> Value:
    """The slope broadcasts to x; before version 7 a vector of slopes has one a channel (dim 1)."""
    x, slope = site.input(0), site.input(1)
    if site.version < 7:
        rank, width = site.rank(x), site.rank(slope)
        if width == 1 and slope.tensor.dims != (1,) and rank > 2:
            slope = unsqueeze(site, slope, tuple(range(1, rank - 1)))
    elif x.tensor.dims is not None and slope.tensor.dims is not None and site.rank(slope) > site.rank(x):
        site.bad_shape(f"slope has rank {site.rank(slope)}; expected at most that of x, {site.rank(x)}")
    return site.b(activation.PRelu, x, slope)
