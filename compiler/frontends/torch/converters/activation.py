"""Activations, softmax and what dropout leaves of itself at inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.torch.converters.common import cast, cut, number, rank_of, unsqueeze
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.activation import Celu, Elu, Gelu, HardSigmoid, HardSwish, LeakyRelu, Mish, Silu
from compiler.ops.compare import Gt, Le, Select
from compiler.ops.elementwise import Abs, Add, Div, Exp, Expm1, Log1p, Logistic, Mul, Sub, Tanh
from compiler.ops.softmax import LogSoftmax, Softmax

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Converter
    from compiler.ir import Definition

_PLAIN: Final[dict[str, type[Definition]]] = {"silu": Silu, "mish": Mish, "hardswish": HardSwish}


def _plain(definition: type[Definition]) -> Converter:
    return lambda site: site.op(definition, site.value("self"))


for _name, _definition in _PLAIN.items():
    converts(_name)(_plain(_definition))


@converts("hardsigmoid")
def hardsigmoid(site: Site) -> Value:
    """clamp(x / 6 + 1/2, 0, 1)."""
    return site.op(HardSigmoid, site.value("self"), alpha=1 / 6, beta=0.5)


@converts("leaky_relu")
def leaky_relu(site: Site) -> Value:
    """x, times the slope where it is negative."""
    return site.op(LeakyRelu, site.value("self"), alpha=float(site["negative_slope"]))


@converts("rrelu")
def rrelu(site: Site) -> Value:
    """At inference the slope is the mean of its bounds."""
    if site["training"]:
        site.refuse("training: its slopes are random", "training")
    return site.op(LeakyRelu, site.value("self"), alpha=(float(site["lower"]) + float(site["upper"])) / 2)


@converts("prelu")
def prelu(site: Site) -> Value:
    """The slopes belong to dim 1."""
    x, slope = site.value("self"), site.value("weight")
    if rank_of(slope) == 1 and rank_of(x) > 2:
        slope = unsqueeze(site, slope, tuple(range(1, rank_of(x) - 1)))
    if rank_of(x) == 0:
        from compiler.frontends.torch.converters.common import reshape

        slope = reshape(site, slope, [])
    return _sloped(site, x, slope)


def _sloped(site: Site, x: Value, slope: Value) -> Value:
    """x where it is above 0, else slope * x: 0 times an infinite slope is NaN."""
    above = site.op(Gt, x, number(site, 0, x.tensor.element))
    return site.op(Select, above, x, site.op(Mul, slope, x))


@converts("_prelu_kernel")
def prelu_kernel(site: Site) -> Value:
    """The slopes broadcast already."""
    return _sloped(site, site.value("self"), site.value("weight"))


@converts("elu")
def elu(site: Site) -> Value:
    """scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below."""
    alpha, scale, inner_scale = (float(site.get(name, 1)) for name in ("alpha", "scale", "input_scale"))
    x = site.value("self")
    if scale == 1 and inner_scale == 1:
        return site.op(Elu, x, alpha=alpha)
    element = wide(x.tensor.element)
    own = cast(site, x, element)
    below = site.op(Expm1, site.op(Mul, own, number(site, inner_scale, element)))
    below = site.op(Mul, below, number(site, alpha * scale, element))
    above = site.op(Mul, own, number(site, scale, element))
    positive = site.op(Gt, own, number(site, 0, element))
    return cast(site, site.op(Select, positive, above, below), x.tensor.element)


@converts("selu")
def selu(site: Site) -> Value:
    """Its two constants are those of the paper (Klambauer et al. 2017)."""
    from compiler.ops.activation import Selu

    # In double precision, as torch has them; the IR's defaults are those of ONNX, in float32.
    return site.op(Selu, site.value("self"), alpha=1.6732632423543772, gamma=1.0507009873554805)


@converts("celu")
def celu(site: Site) -> Value:
    """max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""
    return site.op(Celu, site.value("self"), alpha=float(site["alpha"]))


@converts("gelu")
def gelu(site: Site) -> Value:
    """Exact, or by tanh."""
    return site.op(Gelu, site.value("self"), approximate=site["approximate"])


@converts("softplus")
def softplus(site: Site) -> Value:
    """log1p(exp(beta x)) / beta; x where beta x is above the threshold."""
    x = site.value("self")
    element = wide(x.tensor.element)
    own, beta = cast(site, x, element), number(site, site["beta"], element)
    scaled = site.op(Mul, own, beta)
    linear = site.op(Gt, scaled, number(site, site["threshold"], element))
    soft = site.op(Div, site.op(Log1p, site.op(Exp, scaled)), beta)
    return cast(site, site.op(Select, linear, own, soft), x.tensor.element)


@converts("hardshrink")
def hardshrink(site: Site) -> Value:
    """0 where |x| <= lambda, else x; NaN stays."""
    x = site.value("self")
    element = x.tensor.element
    inside = site.op(Le, site.op(Abs, x), number(site, site["lambd"], element))
    return site.op(Select, inside, number(site, 0, element), x)


@converts("softshrink")
def softshrink(site: Site) -> Value:
    """x brought lambda nearer to 0, and 0 within lambda; NaN stays."""
    x = site.value("self")
    element = x.tensor.element
    lambd = number(site, site["lambd"], element)
    inside = site.op(Le, site.op(Abs, x), lambd)
    above = site.op(Gt, x, lambd)
    moved = site.op(Select, above, site.op(Sub, x, lambd), site.op(Add, x, lambd))
    return site.op(Select, inside, number(site, 0, element), moved)


@converts("tanhshrink")
def tanhshrink(site: Site) -> Value:
    """x - tanh(x)."""
    x = site.value("self")
    return site.op(Sub, x, site.op(Tanh, x))


@converts("softsign")
def softsign(site: Site) -> Value:
    """x / (1 + |x|)."""
    x = site.value("self")
    return site.op(Div, x, site.op(Add, site.op(Abs, x), number(site, 1, x.tensor.element)))


@converts("glu")
def glu(site: Site) -> Value:
    """The first half of a dim times the sigmoid of the second."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    half = site.size(x, axis) // 2
    element = wide(x.tensor.element)
    a, b = (cast(site, cut(site, x, axis, start, start + half), element) for start in (0, half))
    return cast(site, site.op(Mul, a, site.op(Logistic, b)), x.tensor.element)


def _softmax(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value("self")
        element = site.element()
        if site.get("half_to_float") or site.get("dtype") is not None:
            x = cast(site, x, element)
        if rank_of(x) == 0:
            # A tensor of rank 0 is a vector of one element.
            own = unsqueeze(site, cast(site, x, element), (0,))
            from compiler.frontends.torch.converters.common import squeeze

            return squeeze(site, site.op(definition, own, axis=0), (0,))
        return site.op(definition, cast(site, x, element), axis=site.axis(site["dim"], rank_of(x)))

    return convert


converts("softmax.int", "_softmax", "special_softmax")(_softmax(Softmax))
converts("log_softmax.int", "_log_softmax", "special_log_softmax")(_softmax(LogSoftmax))


@converts("_safe_softmax")
def safe_softmax(site: Site) -> Value:
    """Softmax, 0 along a line that is -inf throughout."""
    import math

    from compiler.ops.compare import Eq
    from compiler.ops.reduce import ReduceAnd

    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    element = site.element()
    masked = site.op(Eq, x, number(site, -math.inf, x.tensor.element))
    none = site.op(ReduceAnd, masked, axes=(axis,), keep_dims=True)
    whole = site.op(Softmax, cast(site, x, element), axis=axis)
    return site.op(Select, none, number(site, 0, element), whole)
