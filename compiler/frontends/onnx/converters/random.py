"""Random numbers: nothing that draws them is folded or merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.onnx.converters.common import cast, shape_of
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import BOOL, F32, Definition, ElementType, Value
from compiler.onnx_types import element_from
from compiler.ops.compare import Ge, Select
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Div, Sub
from compiler.ops.sampling import Bernoulli, Multinomial, RandomNormal, RandomUniform

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Converter

_DISTRIBUTIONS: Final[dict[str, tuple[type[Definition], tuple[str, ...]]]] = {
    "RandomNormal": (RandomNormal, ("mean", "scale")),
    "RandomUniform": (RandomUniform, ("low", "high")),
}


def _seed(site: Site) -> dict[str, float]:
    seed = site.attribute("seed")
    return {} if seed is None else {"seed": seed}


def _element(site: Site, default: ElementType) -> ElementType:
    number = site.attribute("dtype")
    return default if number is None else element_from(number, f"attribute 'dtype' of node '{site.node}'")


def _drawn(definition: type[Definition], names: tuple[str, ...]) -> Converter:
    def convert(site: Site) -> Value:
        numbers = {name: site.attribute(name) for name in names}
        shape = site.integers(*(site.attribute("shape") or ()))
        return site.b(definition, shape, to=_element(site, F32), **numbers, **_seed(site))

    return convert


def _drawn_like(definition: type[Definition], names: tuple[str, ...]) -> Converter:
    def convert(site: Site) -> Value:
        numbers = {name: site.attribute(name) for name in names}
        x = site.input(0)
        return site.b(definition, shape_of(site, x), to=_element(site, x.tensor.element), **numbers, **_seed(site))

    return convert


for _name, (_definition, _names) in _DISTRIBUTIONS.items():
    converts(_name)(_drawn(_definition, _names))
    converts(f"{_name}Like")(_drawn_like(_definition, _names))


@converts("Bernoulli")
def bernoulli(site: Site) -> Value:
    """1 with the probability that the element says."""
    x = site.input(0)
    return site.b(Bernoulli, x, to=_element(site, x.tensor.element), **_seed(site))


@converts("Multinomial")
def multinomial(site: Site) -> Value:
    """Classes by their unnormalized log-probabilities."""
    to = element_from(site.attribute("dtype"), f"attribute 'dtype' of node '{site.node}'")
    return site.b(Multinomial, site.input(0), samples=site.attribute("sample_size"), to=to, **_seed(site))


def _all_kept(site: Site) -> Value:
    return site.b(Fill, shape_of(site, site.input(0)), site.scalar(1, BOOL))


def _dropped(site: Site, ratio: Value) -> tuple[Value, Value]:
    """Each element is zero with probability ``ratio``, else divided by 1 - ratio."""
    x = site.input(0)
    element = x.tensor.element
    drawn = site.b(RandomUniform, shape_of(site, x), to=F32, **_seed(site))
    kept = site.b(Ge, drawn, cast(site, ratio, F32))
    rest = cast(site, site.b(Sub, site.scalar(1, F32), cast(site, ratio, F32)), element)
    return site.b(Select, kept, site.b(Div, x, rest), site.scalar_like(0, x)), kept


@converts("Dropout", until=6)
def dropout_with_mode(site: Site) -> Results:
    """Attribute ``is_test`` says whether anything is dropped; the mask has the type of x."""
    x, ratio = site.input(0), site.attribute("ratio")
    if site.attribute("is_test") or ratio == 0:
        return [x, cast(site, _all_kept(site), x.tensor.element) if site.wants(1) else None]
    result, kept = _dropped(site, site.scalar(ratio, F32))
    return [result, cast(site, kept, x.tensor.element)]


@converts("Dropout", since=7, until=11)
def dropout_in_inference(site: Site) -> Results:
    """Nothing is dropped; the mask is of bools since version 10."""
    x = site.input(0)
    if not site.wants(1):
        return [x, None]
    return [x, _all_kept(site) if site.version >= 10 else cast(site, _all_kept(site), x.tensor.element)]


@converts("Dropout", since=12)
def dropout(site: Site) -> Results:
    """Nothing is dropped unless input ``training_mode`` is true and the ratio is not 0."""
    x = site.input(0)
    ratio = site.input(1) if site.has(1) else site.scalar(0.5, F32)
    known = site.known(ratio)
    if not site.has(2) or not site.needed(2).any() or (known is not None and not known.any()):
        return [x, _all_kept(site) if site.wants(1) else None]
    return _dropped(site, ratio)
