"""Layers that normalize."""

from __future__ import annotations

import numpy as np

from compiler.frontends.caffe.reader import PB
from compiler.frontends.caffe.site import Site, converts
from compiler.ir import Value
from compiler.ops.elementwise import Add, Div, Mul, Pow, Sqrt, Sub
from compiler.ops.normalization import BatchNorm, Lrn
from compiler.ops.pooling import AvgPool
from compiler.ops.reduce import ReduceMean, ReduceSum
from compiler.ops.softmax import Softmax


@converts("Softmax")
def softmax(site: Site) -> Value:
    """exp(x) over its sum along ``axis``."""
    axis = site.axis(site.parameters("softmax_param").axis, len(site.dims()))
    return site.b(Softmax, site.inputs[0], axis=axis)


@converts("LRN")
def lrn(site: Site) -> Value:
    """x / (k + alpha / n * sum of squares) ** beta over n channels, or n x n places of the channel (there k is 1)."""
    found, dims = site.parameters("lrn_param"), site.dims()
    size = int(found.local_size)
    if size % 2 == 0:
        site.invalid(f"local_size is {size}; expected an odd number")
    if len(dims) != 4:
        site.invalid(f"bottom {list(dims)} has {len(dims)} dims; expected 4")
    x = site.inputs[0]
    if found.norm_region == PB.LRNParameter.ACROSS_CHANNELS:
        return site.b(Lrn, x, size=size, alpha=found.alpha, beta=found.beta, bias=found.k)
    squares = site.b(Mul, x, x)
    pads = (size // 2,) * 4
    mean = site.b(AvgPool, squares, kernel=(size, size), strides=(1, 1), pads=pads, count_include_pad=True)
    inner = site.b(Add, site.b(Mul, mean, site.number(found.alpha)), site.number(1))
    return site.b(Mul, x, site.b(Pow, inner, site.number(-found.beta)))


@converts("BatchNorm")
def batch_norm(site: Site) -> Value:
    """(x - mean) / sqrt(variance + eps) a channel; stored statistics are sums over what blob 2 counts, 0 giving 0."""
    found, dims = site.parameters("batch_norm_param"), site.dims()
    channels = dims[1] if len(dims) > 1 else 1
    x = site.inputs[0] if len(dims) > 1 else site.reshape(site.inputs[0], (*dims, 1))
    if found.HasField("use_global_stats") and not found.use_global_stats:
        axes = tuple(axis for axis in range(max(len(dims), 2)) if axis != 1)
        centred = site.b(Sub, x, site.b(ReduceMean, x, axes=axes, keep_dims=True))
        variance = site.b(ReduceMean, site.b(Mul, centred, centred), axes=axes, keep_dims=True)
        deviation = site.b(Sqrt, site.b(Add, variance, site.number(found.eps)))
        return site.reshape(site.b(Div, centred, deviation), dims)
    count = float(site.blob(2, "scale factor", (1,))[0])
    factor = np.float32(0 if count == 0 else 1 / count)
    mean = site.b.constant(site.blob(0, "mean", (channels,)) * factor)
    variance = site.b.constant(site.blob(1, "variance", (channels,)) * factor)
    one, zero = (site.b.constant(np.full((channels,), value, np.float32)) for value in (1, 0))
    return site.reshape(site.b(BatchNorm, x, one, zero, mean, variance, epsilon=found.eps), dims)


@converts("MVN")
def mean_variance(site: Site) -> Value:
    """Mean taken off a sample's channel (or whole sample), then divided by its deviation + eps if asked for."""
    found, rank = site.parameters("mvn_param"), len(site.dims())
    axes = tuple(range(1 if found.across_channels else 2, rank))
    if not axes:
        site.invalid(f"bottom has {rank} dims; expected more than 2, or 1 across channels")
    x = site.inputs[0]
    centred = site.b(Sub, x, site.b(ReduceMean, x, axes=axes, keep_dims=True))
    if not found.normalize_variance:
        return centred
    variance = site.b(ReduceMean, site.b(Mul, centred, centred), axes=axes, keep_dims=True)
    return site.b(Div, centred, site.b(Add, site.b(Sqrt, variance), site.number(found.eps)))


@converts("Normalize")
def normalize(site: Site) -> Value:
    """x over its Euclidean norm of the sample, or of each place over channels, times one or more scales (SSD)."""
    found, dims = site.parameters("norm_param"), site.dims()
    if len(dims) < 2:
        site.invalid(f"bottom has {len(dims)} dims; expected at least 2")
    axes = tuple(range(1, len(dims))) if found.across_spatial else (1,)
    x = site.inputs[0]
    squares = site.b(ReduceSum, site.b(Mul, x, x), axes=axes, keep_dims=True)
    normal = site.b(Div, x, site.b(Sqrt, site.b(Add, squares, site.number(found.eps))))
    # A shared scale is stored as a scalar or, by converters, as one value.
    one = (1,) if site.blobs and site.blobs[0].data.shape == (1,) else ()
    scale = site.blob(0, "scale", one if found.channel_shared else (dims[1],))
    return site.b(Mul, normal, site.b.constant(scale.reshape((-1,) + (1,) * (len(dims) - 2))))
