"""Random tensors, and what training drops at random. Only shapes and types of such results can be held to anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from compiler.frontends.torch.converters.common import (
    cast,
    number,
    operand,
    rank_of,
    reshape,
    shape_of,
    vector,
)
from compiler.frontends.torch.converters.creation import shape_wanted
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import BOOL, F32, F64, I64, Value
from compiler.ops.elementwise import Add, Ceil, Div, Exp, Floor, Log, Mul, Neg, Sub, Tan
from compiler.ops.sampling import Bernoulli, Multinomial, RandomNormal, RandomUniform
from compiler.ops.selection import TopK

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter
    from compiler.ir import ElementType


def _random(make: Any, **attributes: Any) -> Converter:  # noqa: ANN401 - a class of the IR
    return lambda site: site.op(make, shape_wanted(site), to=site.element(), **attributes)


converts("rand", "rand_like")(_random(RandomUniform))
converts("randn", "randn_like")(_random(RandomNormal))


@converts("randperm")
def randperm(site: Site) -> Value:
    """A random order: the positions of random numbers in order."""
    size = reshape(site, operand(site, site["n"], I64), [1])
    numbers = site.op(RandomUniform, size, to=F32)
    return cast(site, site.b.op(TopK, [numbers, size], axis=0).results[1], site.element())


@converts("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def randint(site: Site) -> Value:
    """Random integers from low to high - 1."""
    numbers = site.op(
        RandomUniform, shape_wanted(site), to=F32, low=float(site.get("low", 0)), high=float(site["high"])
    )
    return cast(site, site.op(Floor, numbers), site.element())


@converts("bernoulli")
def bernoulli(site: Site) -> Value:
    """1 with the probability that the element gives."""
    return site.op(Bernoulli, site.value("self"), to=site.element())


@converts("bernoulli.p", "bernoulli.float", "bernoulli.Tensor")
def bernoulli_alike(site: Site) -> Value:
    """1 with the probability p, in the shape of a tensor."""
    from compiler.frontends.torch.converters.common import expand

    p = operand(site, site["p"], F32)
    return site.op(Bernoulli, expand(site, p, shape_of(site, site.value("self"))), to=site.element())


@converts("multinomial")
def multinomial(site: Site) -> Value:
    """Random indices by weights; without replacement the greatest of log(weight) + Gumbel noise."""
    x = site.value("self")
    if not x.tensor.element.is_float or rank_of(x) not in (1, 2):
        site.refuse(f"weights are {x.tensor}; expected floats of rank 1 or 2")
    x = cast(site, x, wide(x.tensor.element))
    if rank_of(x) == 1:
        x = reshape(site, x, [1, -1])
    samples = site.integer(site["num_samples"])
    if site["replacement"]:
        found = site.op(Multinomial, site.op(Log, x), samples=samples, to=I64)
    else:
        noise = site.op(Log, site.op(Neg, site.op(Log, _uniform(site, x, x.tensor.element))))
        keys = site.op(Sub, site.op(Log, x), noise)
        found = site.b.op(TopK, [keys, site.integers(samples)], axis=-1).results[1]
    return found if rank_of(site.value("self")) > 1 else reshape(site, found, [-1])


def _uniform(site: Site, like: Value, element: ElementType) -> Value:
    """Numbers above 0 and below 1, in the shape of a tensor."""
    return site.op(RandomUniform, shape_of(site, like), to=element, low=2.0**-24, high=1.0)


def _normal(site: Site, like: Value, element: ElementType) -> Value:
    return site.op(RandomNormal, shape_of(site, like), to=element)


@converts("uniform")
def uniform(site: Site) -> Value:
    """Between two numbers, in the shape of a tensor."""
    low, high = float(site["from"]), float(site["to"])
    if low > high:
        site.refuse(f"a range from {low:g} to {high:g}; expected ascending bounds")
    return site.op(RandomUniform, shape_of(site, site.value("self")), to=site.element(), low=low, high=high)


@converts("normal", "normal_functional", "log_normal")
def normal(site: Site) -> Value:
    """Of mean and deviation, in the shape of a tensor; the exponential of that."""
    x, element = site.value("self"), wide(site.element())
    drawn = site.op(RandomNormal, shape_of(site, x), to=element, mean=float(site["mean"]), scale=float(site["std"]))
    return cast(site, site.op(Exp, drawn) if "log_normal" in site.operator else drawn, site.element())


@converts("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "normal.float_float")
def normal_of_tensors(site: Site) -> Value:
    """Means and deviations, each a tensor or a number."""
    element = wide(site.element())
    mean, deviation = operand(site, site["mean"], element), operand(site, site["std"], element)
    if "size" in site.arguments:
        drawn = site.op(RandomNormal, vector(site, list(site["size"])), to=element)
    else:
        drawn = _normal(site, site.op(Add, mean, deviation), element)
    return cast(site, site.op(Add, mean, site.op(Mul, deviation, drawn)), site.element())


@converts("exponential", "cauchy", "geometric")
def by_inverse(site: Site) -> Value:
    """By the inverse of the distribution function at uniform numbers."""
    x = site.value("self")
    element = wide(site.element()) if site.element().is_float else F32
    drawn = _uniform(site, x, element)
    if "lambd" in site.arguments:
        found = site.op(Neg, site.op(Div, site.op(Log, drawn), number(site, site["lambd"], element)))
    elif "median" in site.arguments:
        turned = site.op(Mul, site.op(Sub, drawn, number(site, 0.5, element)), number(site, math.pi, element))
        found = site.op(Mul, site.op(Tan, turned), number(site, site["sigma"], element))
        found = site.op(Add, found, number(site, site["median"], element))
    else:
        found = site.op(Ceil, site.op(Div, site.op(Log, drawn), number(site, math.log1p(-site["p"]), element)))
    return cast(site, found, site.element())


@converts("random", "random.to", "random.from")
def random_integers(site: Site) -> Value:
    """Integers that the type holds exactly, or from a range."""
    element = site.element()
    high = site.get("to")
    if high is None:
        high = 2 if element is BOOL else 2.0 ** min(element.bits - 1, 24)
    low = float(site.get("from", 0))
    drawn = site.op(RandomUniform, shape_of(site, site.value("self")), to=F64, low=low, high=float(high))
    return cast(site, site.op(Floor, drawn), element)


@converts("dropout", "feature_dropout")
def dropout(site: Site) -> Value:
    """Nothing at inference; in training elements, or channels, are 0 with probability p and 1 / (1 - p) times else."""
    x, p = site.value("input"), float(site["p"])
    if not site["train"] or p == 0:
        return x
    mask = _kept(site, x, p, "feature" in site.operator)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return site.op(Mul, x, site.op(Mul, mask, number(site, scale, x.tensor.element)))


def _kept(site: Site, x: Value, p: float, channels: bool) -> Value:
    """1 where something stays, with probability 1 - p: by element, or by channel."""
    from compiler.frontends.torch.converters.common import expand

    rank = rank_of(x)
    shape = vector(site, [1] * rank) if channels else shape_of(site, x)
    if channels:
        from compiler.frontends.torch.converters.common import concat

        shape = (
            concat(site, [shape_of(site, x, 0, 2), site.integers(*[1] * (rank - 2))], 0)
            if rank > 2
            else (shape_of(site, x))
        )
    odds = expand(site, number(site, 1 - p, F32), shape)
    return site.op(Bernoulli, odds, to=x.tensor.element)


@converts("alpha_dropout", "feature_alpha_dropout")
def alpha_dropout(site: Site) -> Value:
    """Nothing at inference; in training what is dropped becomes SELU's limit, and mean and variance are kept."""
    x, p = site.value("input"), float(site["p"])
    if not site["train"] or p == 0:
        return x
    element = x.tensor.element
    if p == 1:
        return site.op(Mul, x, number(site, 0.0, element))
    limit = -1.7580993408473766
    a = 1 / math.sqrt((1 - p) * (1 + p * limit**2))
    mask = _kept(site, x, p, "feature" in site.operator)
    dropped = site.op(Mul, site.op(Sub, number(site, 1, element), mask), number(site, limit, element))
    kept = site.op(Add, site.op(Mul, x, mask), dropped)
    return site.op(Add, site.op(Mul, kept, number(site, a, element)), number(site, -a * limit * p, element))


@converts("native_dropout")
def native_dropout(site: Site) -> list[Value]:
    """The result and the mask of what stayed."""
    from compiler.ops.creation import Fill

    x, p = site.value("input"), float(site["p"])
    if site["train"] is False or p == 0:
        return [x, site.op(Fill, shape_of(site, x), site.constant(True, BOOL))]
    mask = _kept(site, x, p, channels=False)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return [
        site.op(Mul, x, site.op(Mul, mask, number(site, scale, x.tensor.element))),
        cast(site, mask, BOOL),
    ]
