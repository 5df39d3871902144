"""Values rounded to what a quantized type holds, in floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import reshape
from compiler.frontends.tensorflow.converters.common import computed
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ir import F32, Value
from compiler.ops.compose import Emit

if TYPE_CHECKING:
    from collections.abc import Sequence


def _fake(site: Site, x: Value, low: Value, high: Value) -> Value:
    """The nudged grid of tensorflow/core/kernels/fake_quant_ops_functor.h: 0 is one of its values."""
    e = Emit(site.b)
    least = 1.0 if site.attr("narrow_range") else 0.0
    greatest = float(2 ** int(site.attr("num_bits")) - 1)
    scale = e("div", e("sub", high, low), greatest - least)
    zero = e("sub", least, e("div", low, scale))
    # Halves away from zero, as C's round; numbers below `least` are cut, so that all are positive.
    nudged = e("clamp", e("floor", e("add", zero, 0.5)), least, greatest)
    nudged = e("select", e("lt", zero, least), least, e("select", e("gt", zero, greatest), greatest, nudged))
    bottom, top = e("mul", e("sub", least, nudged), scale), e("mul", e("sub", greatest, nudged), scale)
    inside = e("clamp", x, bottom, top)
    steps = e("floor", e("add", e("mul", e("sub", inside, bottom), e("reciprocal", scale)), 0.5))
    found = e("add", e("mul", steps, scale), bottom)
    empty = e("and", e("eq", low, 0), e("eq", high, 0))
    return e("select", empty, 0, found)


@converts("FakeQuantWithMinMaxArgs")
def fake_quant_by_attributes(site: Site) -> Value:
    """The range is known."""
    low, high = (site.constant(np.float32(site.attr(name)), F32) for name in ("min", "max"))
    return _fake(site, site.value(0), low, high)


@converts("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(site: Site) -> Value:
    """The range is data, for all or one a channel (the last dim)."""
    return _fake(site, *site.values)


@converts("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(site: Site) -> Value:
    """Scaled symmetrically so that the range fits, rounded, and scaled back."""
    bits = site.whole(3, "the number of bits") if site.operator.endswith("V3") else int(site.attr("num_bits"))
    axis = int(site.attr("axis")) if site.has("axis") else -1
    x, rank = site.value(0), site.rank(site.value(0))
    others = tuple(d for d in range(rank) if d != axis)
    shape = [site.size(x, axis) if d == axis else 1 for d in range(rank)] if axis >= 0 else []

    def formula(e: Emit, value: Value, *limits: Value) -> Value:
        if site.attr("range_given"):
            low, high = (reshape(site, limit, shape) for limit in limits)
        else:
            low, high = (e(name, value, axes=others) if rank else value for name in ("reduce_min", "reduce_max"))
        return _scaled(site, e, value, (low, high), bits)

    return computed(site, formula, *site.values[:3])


def _scaled(site: Site, e: Emit, x: Value, limits: Sequence[Value], bits: int) -> Value:
    """The rule of tensorflow/core/kernels/quantize_and_dequantize_op.h."""
    signed = bool(site.attr("signed_input"))
    # Of unsigned numbers the kernel leaves the range as it is.
    narrow = bool(site.attr("narrow_range")) if site.has("narrow_range") else False
    least = float(-(2 ** (bits - 1)) + narrow) if signed else 0.0
    greatest = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
    low, high = limits
    huge = float(np.finfo(np.float32).max)
    bounds = [
        e("select", e("gt", e("mul", limit, end), 0), e("div", e.scalar(end, x.tensor.element), limit), huge)
        for limit, end in ((low, least), (high, greatest))
    ]
    by_low = e("lt", bounds[0], bounds[1])
    scale = e("select", by_low, bounds[0], bounds[1])
    back = e("select", by_low, e("div", low, least or 1.0), e("div", high, greatest))
    bottom = e("select", by_low, low, e("mul", back, least))
    top = e("select", by_low, e("mul", back, greatest), high)
    own = e("clamp", x, bottom, top) if site.attr("range_given") else x
    scaled = e("mul", own, scale)
    half_up = site.has("round_mode") and site.attr("round_mode") == "HALF_UP"
    rounded = e("floor", e("add", scaled, 0.5)) if half_up else e("round", scaled)
    return e("mul", rounded, back)
