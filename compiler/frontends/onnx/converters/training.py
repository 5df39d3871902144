"""Steps of optimizers as elementwise arithmetic. Source: the operators' definitions in ai.onnx.preview.training-1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from compiler.frontends.onnx.converters.common import cast
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ops.compare import Gt, Select
from compiler.ops.elementwise import Add, Div, Mul, Pow, Sqrt, Sub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Value

_DOMAIN: Final = "ai.onnx.preview.training"
_Step: TypeAlias = "Callable[[Site, Value, Sequence[Value]], tuple[Value, ...]]"


def _each(site: Site, states: int, step: _Step) -> Results:
    """The step for each optimized tensor: inputs are rate, time, all tensors, all gradients, then each state's."""
    given = site.given[2:]
    groups = 2 + states
    if len(given) % groups or not given:
        site.invalid(f"it has {len(site.inputs)} inputs; expected 2 and {groups} for each optimized tensor")
    count = len(given) // groups
    steps = [
        step(site, given[index], [given[index + count * place] for place in range(1, groups)]) for index in range(count)
    ]
    return [result[place] for place in range(1 + states) for result in steps]


def _scaled(site: Site, name: str, value: Value) -> Value:
    """The value times an attribute."""
    return site.b(Mul, value, site.scalar_like(site.attribute(name), value))


def _regularized(site: Site, x: Value, gradient: Value) -> Value:
    """norm_coefficient * x + gradient."""
    return site.b(Add, _scaled(site, "norm_coefficient", x), gradient)


def _rate(site: Site, like: Value) -> Value:
    return cast(site, site.input(0), like.tensor.element)


def _is_later(site: Site) -> Value:
    """Whether this is not the first step."""
    return site.b(Gt, site.input(1), site.scalar_like(0, site.input(1)))


@converts("Adagrad", domain=_DOMAIN)
def adagrad(site: Site) -> Results:
    """x - r / (1 + t decay) g / (sqrt(h + g g) + epsilon)."""

    def step(site: Site, x: Value, rest: Sequence[Value]) -> tuple[Value, ...]:
        gradient, total = rest
        decayed = _scaled(site, "decay_factor", cast(site, site.input(1), x.tensor.element))
        rate = site.b(Div, _rate(site, x), site.b(Add, decayed, site.scalar_like(1, x)))
        gradient = _regularized(site, x, gradient)
        total = site.b(Add, total, site.b(Mul, gradient, gradient))
        divisor = site.b(Add, site.b(Sqrt, total), site.scalar_like(site.attribute("epsilon"), x))
        return site.b(Sub, x, site.b(Div, site.b(Mul, rate, gradient), divisor)), total

    return _each(site, 1, step)


@converts("Adam", domain=_DOMAIN)
def adam(site: Site) -> Results:
    """Momentum and squared gradients, with bias correction from the second step on."""

    def step(site: Site, x: Value, rest: Sequence[Value]) -> tuple[Value, ...]:
        gradient, momentum, squares = rest
        gradient = _regularized(site, x, gradient)
        momentum = _mixed(site, "alpha", momentum, gradient)
        squares = _mixed(site, "beta", squares, site.b(Mul, gradient, gradient))
        divisor = site.b(Add, site.b(Sqrt, squares), site.scalar_like(site.attribute("epsilon"), x))
        moved = site.b(Sub, x, site.b(Mul, _corrected_rate(site, x), site.b(Div, momentum, divisor)))
        kept = site.scalar_like(1 - site.attribute("norm_coefficient_post"), x)
        return site.b(Mul, kept, moved), momentum, squares

    return _each(site, 2, step)


def _mixed(site: Site, name: str, old: Value, new: Value) -> Value:
    """a old + (1 - a) new for an attribute a."""
    fresh = site.b(Mul, new, site.scalar_like(1 - site.attribute(name), new))
    return site.b(Add, _scaled(site, name, old), fresh)


def _corrected_rate(site: Site, like: Value) -> Value:
    """R sqrt(1 - beta^t) / (1 - alpha^t), and r at t = 0."""
    rate, time = _rate(site, like), cast(site, site.input(1), like.tensor.element)

    def rest(name: str) -> Value:
        return site.b(Sub, site.scalar_like(1, like), site.b(Pow, site.scalar_like(site.attribute(name), like), time))

    corrected = site.b(Div, site.b(Mul, rate, site.b(Sqrt, rest("beta"))), rest("alpha"))
    return site.b(Select, _is_later(site), corrected, rate)


@converts("Momentum", domain=_DOMAIN)
def momentum(site: Site) -> Results:
    """Plain or Nesterov's momentum; the first step takes the gradient whole."""
    mode = str(site.attribute("mode"))
    if mode not in {"standard", "nesterov"}:
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected standard or nesterov")

    def step(site: Site, x: Value, rest: Sequence[Value]) -> tuple[Value, ...]:
        gradient, velocity = rest
        gradient = _regularized(site, x, gradient)
        share = site.b(Select, _is_later(site), site.scalar_like(site.attribute("beta"), x), site.scalar_like(1, x))
        velocity = site.b(Add, _scaled(site, "alpha", velocity), site.b(Mul, share, gradient))
        moved = velocity if mode == "standard" else site.b(Add, gradient, _scaled(site, "alpha", velocity))
        return site.b(Sub, x, site.b(Mul, _rate(site, x), moved)), velocity

    return _each(site, 1, step)


@converts("Gradient", domain=_DOMAIN)
def gradient(site: Site) -> Results:
    """Refused: a compiler for inference keeps no operations to differentiate."""
    return site.refuse("it asks for derivatives, and models are compiled for inference alone")
