"""Layers that work on each element alone."""

from __future__ import annotations

import math

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import F32, Value
from compiler.ops.activation import Elu, LeakyRelu, PRelu, Relu, Silu, Softplus
from compiler.ops.compare import Gt
from compiler.ops.convert import Cast
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Abs, Add, Clamp, Exp, Log, Logistic, Mul, Pow, Tanh


@converts("ReLU")
def relu(site: Site) -> Value:
    """max(x, 0) + negative_slope * min(x, 0)."""
    slope = site.parameters("relu_param").negative_slope
    return site.b(LeakyRelu, site.inputs[0], alpha=slope) if slope else site.b(Relu, site.inputs[0])


@converts("PReLU")
def prelu(site: Site) -> Value:
    """One slope a channel (dim 1), or one for all."""
    dims = site.dims()
    if len(dims) < 2:
        site.invalid(f"bottom has {len(dims)} dims; expected at least 2")
    shared = site.parameters("prelu_param").channel_shared
    slope = site.blob(0, "slope", () if shared else (dims[1],))
    return site.b(PRelu, site.inputs[0], site.b.constant(slope.reshape((-1,) + (1,) * (len(dims) - 2))))


@converts("ELU")
def elu(site: Site) -> Value:
    """x where positive, else alpha * (exp(x) - 1)."""
    return site.b(Elu, site.inputs[0], alpha=site.parameters("elu_param").alpha)


@converts("Sigmoid")
def sigmoid(site: Site) -> Value:
    """1 / (1 + exp(-x))."""
    return site.b(Logistic, site.inputs[0])


@converts("TanH")
def tanh(site: Site) -> Value:
    """Hyperbolic tangent."""
    return site.b(Tanh, site.inputs[0])


@converts("AbsVal")
def absolute(site: Site) -> Value:
    """|x|."""
    return site.b(Abs, site.inputs[0])


@converts("BNLL")
def bnll(site: Site) -> Value:
    """log(1 + exp(x)), the binomial normal log likelihood."""
    return site.b(Softplus, site.inputs[0])


@converts("Swish")
def swish(site: Site) -> Value:
    """x * sigmoid(beta * x)."""
    return site.b(Silu, site.inputs[0], alpha=site.parameters("swish_param").beta)


@converts("Clip")
def clip(site: Site) -> Value:
    """Between min and max, which the format requires."""
    found = site.parameters("clip_param")
    if not (found.HasField("min") and found.HasField("max")):
        site.invalid("clip_param lacks min or max; expected both")
    return site.b(Clamp, site.inputs[0], site.number(found.min), site.number(found.max))


@converts("Threshold")
def threshold(site: Site) -> Value:
    """1 where x is above the threshold, else 0."""
    above = site.b(Gt, site.inputs[0], site.number(site.parameters("threshold_param").threshold))
    return site.b(Cast, above, to=F32)


@converts("Dropout")
def dropout(site: Site) -> Value:
    """x as it is in phase TEST, unless a net of a fork scales there and not while it trains."""
    found = site.parameters("dropout_param")
    if found.scale_train:
        return site.inputs[0]
    return site.b(Mul, site.inputs[0], site.number(1 - found.dropout_ratio))


def _affine(site: Site, scale: float, shift: float) -> Value:
    """shift + scale * x."""
    x = site.inputs[0]
    scaled = x if scale == 1 else site.b(Mul, x, site.number(scale))
    return scaled if shift == 0 else site.b(Add, scaled, site.number(shift))


@converts("Power")
def power(site: Site) -> Value:
    """(shift + scale * x) ** power; a constant where scale or power is 0."""
    found = site.parameters("power_param")
    if found.power * found.scale == 0:
        with np.errstate(all="ignore"):
            value = np.float32(1) if found.power == 0 else np.power(np.float32(found.shift), np.float32(found.power))
        return site.b(Fill, site.integers(*site.dims()), site.number(float(value)))
    inner = _affine(site, found.scale, found.shift)
    return inner if found.power == 1 else site.b(Pow, inner, site.number(found.power))


def _log_of_base(site: Site, base: float) -> float:
    if base != -1 and base <= 0:
        site.invalid(f"base is {base:g}; expected -1 (for e) or a positive number")
    return 1.0 if base == -1 else math.log(base)


@converts("Exp")
def exponential(site: Site) -> Value:
    """base ** (shift + scale * x), computed as Caffe does: base ** shift * exp(scale * log(base) * x)."""
    found = site.parameters("exp_param")
    log_base = _log_of_base(site, found.base)
    x, inner = site.inputs[0], log_base * found.scale
    grown = site.b(Exp, x if inner == 1 else site.b(Mul, x, site.number(inner)))
    if found.shift == 0:
        return grown
    with np.errstate(over="ignore"):
        factor = float(np.exp(np.float64(log_base * found.shift)))
    return site.b(Mul, grown, site.number(factor))


@converts("Log")
def logarithm(site: Site) -> Value:
    """Logarithm to a base of shift + scale * x."""
    found = site.parameters("log_param")
    log_base = _log_of_base(site, found.base)
    if log_base == 0:
        site.invalid("base is 1; expected another one")
    result = site.b(Log, _affine(site, found.scale, found.shift))
    return result if log_base == 1 else site.b(Mul, result, site.number(1 / log_base))
