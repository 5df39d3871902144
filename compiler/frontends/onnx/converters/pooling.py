"""Pooling over windows and over whole channels."""

from __future__ import annotations

from compiler.frontends.onnx.converters.common import as_int64
from compiler.frontends.onnx.converters.windows import per_dim, pool_attributes
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import Value
from compiler.ops.elementwise import Abs, Pow
from compiler.ops.pooling import AvgPool, LpPool, MaxPool, MaxPoolIndices, MaxUnpool
from compiler.ops.reduce import ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceSum


@converts("MaxPool")
def max_pool(site: Site) -> Results:
    """With the second output, positions too; ``storage_order`` 1 counts them column by column."""
    attributes = pool_attributes(site)
    if not site.wants(1):
        return site.b(MaxPool, site.input(0), **attributes)
    order = bool(site.attribute("storage_order"))
    return site.b.op(MaxPoolIndices, [site.input(0)], column_major=order, **attributes)


@converts("AveragePool")
def average_pool(site: Site) -> Value:
    """Padding counts as elements where ``count_include_pad`` says so."""
    include = bool(site.attribute("count_include_pad"))
    return site.b(AvgPool, site.input(0), count_include_pad=include, **pool_attributes(site))


@converts("LpPool")
def lp_pool(site: Site) -> Value:
    """The power is a float in the first version."""
    p = site.attribute("p")
    if p != int(p):
        site.refuse(f"a power of {p}", "p")
    return site.b(LpPool, site.input(0), p=int(p), **pool_attributes(site))


def _spatial(site: Site) -> tuple[int, ...]:
    return tuple(range(2, site.rank(site.input(0))))


@converts("GlobalAveragePool")
def global_average_pool(site: Site) -> Value:
    """Mean over all spatial dims."""
    return site.b(ReduceMean, site.input(0), axes=_spatial(site), keep_dims=True)


@converts("GlobalMaxPool")
def global_max_pool(site: Site) -> Value:
    """Maximum over all spatial dims."""
    return site.b(ReduceMax, site.input(0), axes=_spatial(site), keep_dims=True)


@converts("GlobalLpPool")
def global_lp_pool(site: Site) -> Value:
    """Norm over all spatial dims."""
    p, axes, x = site.attribute("p"), _spatial(site), site.input(0)
    norms = {1: ReduceL1, 2: ReduceL2}
    if p in norms:
        return site.b(norms[p], x, axes=axes, keep_dims=True)
    powers = site.b(Pow, site.b(Abs, x), site.scalar_like(p, x))
    total = site.b(ReduceSum, powers, axes=axes, keep_dims=True)
    return site.b(Pow, total, site.scalar_like(1 / p, x))


@converts("MaxUnpool")
def max_unpool(site: Site) -> Value:
    """The inverse of max pooling, zeros elsewhere; the size of the result may be given."""
    kernel = tuple(site.attribute("kernel_shape"))
    spatial = len(kernel)
    shape = as_int64(site, site.input(2)) if site.has(2) else None
    return site.b(
        MaxUnpool,
        site.input(0),
        site.input(1),
        shape,
        kernel=kernel,
        strides=per_dim(site, "strides", spatial, 1),
        pads=per_dim(site, "pads", 2 * spatial, 0),
    )
