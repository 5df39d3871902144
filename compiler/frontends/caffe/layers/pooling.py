"""Pooling with Caffe's rounding, and the pyramid of pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.frontends.caffe.reader import PB
from compiler.frontends.caffe.site import Site, converts
from compiler.ir import F32, I64, Value
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Div, Mod
from compiler.ops.movement import Concat
from compiler.ops.padding import Pad
from compiler.ops.pooling import AvgPool, MaxPool, MaxPoolIndices, SumPool
from compiler.ops.reduce import ReduceMax, ReduceMean

_LOWEST = float(np.finfo(np.float32).min)
"""What Caffe starts a maximum from."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Windows along one spatial dim, ``count`` of them, as Caffe's PoolingLayer::Reshape counts."""

    size: int
    kernel: int
    stride: int
    pad: int
    count: int

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, pad: int, *, floor: bool, clip: bool) -> Axis:
        """Round up (or down); where any dim has padding (``clip``), none starts in the padding after the data."""
        room = size + 2 * pad - kernel
        count = (room // stride if floor else -(-room // stride)) + 1
        if clip and (count - 1) * stride >= size + pad:
            count -= 1
        return cls(size, kernel, stride, pad, count)

    @property
    def high(self) -> int:
        """Padding after the data that the last window reaches."""
        return max(0, (self.count - 1) * self.stride + self.kernel - self.size - self.pad)

    @property
    def has_empty(self) -> bool:
        """Whether a window lies wholly behind the data: the stride is larger than the kernel."""
        return (self.count - 1) * self.stride - self.pad >= self.size

    @property
    def lengths(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """What each window counts in a mean: what it covers up to ``size + pad``; 0 or less where it starts behind."""
        starts = np.arange(self.count) * self.stride - self.pad
        return np.asarray(np.minimum(starts + self.kernel, self.size + self.pad) - starts, np.float64)


def _axes(site: Site, sizes: Sequence[int]) -> tuple[Axis, Axis]:
    """The windows of a pooling_param. Raises InvalidModel."""
    found = site.parameters("pooling_param")
    if found.global_pooling:
        if any(found.HasField(name) for name in ("kernel_size", "kernel_h", "kernel_w")):
            site.invalid("global_pooling with a kernel size; expected one of them")
        kernel = (sizes[0], sizes[1])
    elif found.HasField("kernel_size"):
        kernel = (found.kernel_size, found.kernel_size)
    else:
        kernel = (found.kernel_h, found.kernel_w)
    pads = (found.pad_h, found.pad_w) if found.HasField("pad_h") or found.HasField("pad_w") else (found.pad,) * 2
    strides = (found.stride,) * 2
    if found.HasField("stride_h") or found.HasField("stride_w"):
        strides = (found.stride_h, found.stride_w)
    if min(*kernel, *strides) < 1:
        site.invalid(f"kernel {list(kernel)} and stride {list(strides)}; expected positive ones")
    if pads[0] >= kernel[0] or pads[1] >= kernel[1]:
        site.invalid(f"padding {list(pads)} is not smaller than the kernel {list(kernel)}")
    if found.global_pooling and (any(pads) or strides != (1, 1)):
        site.invalid("global_pooling with padding or a stride; expected neither")
    return _made(site, sizes, kernel, strides, pads, floor=found.round_mode == PB.PoolingParameter.FLOOR)


def _made(
    site: Site,
    sizes: Sequence[int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int],
    *,
    floor: bool,
) -> tuple[Axis, Axis]:
    high, wide = (Axis.of(sizes[i], kernel[i], strides[i], pads[i], floor=floor, clip=any(pads)) for i in range(2))
    if min(high.count, wide.count) < 1:
        site.invalid(f"bottom of spatial sizes {list(sizes)} is smaller than the kernel {list(kernel)}")
    return high, wide


def _spatial(site: Site) -> tuple[int, int]:
    dims = site.dims()
    if len(dims) != 4:
        site.invalid(f"bottom {list(dims)} has {len(dims)} dims; expected 4")
    return dims[2], dims[3]


def _placed(site: Site, x: Value, axes: Sequence[Axis], filling: float) -> tuple[Value, tuple[int, ...]]:
    """x, and the padding that the pool is to do; padded by itself where a window has nothing but padding."""
    pads = (*(axis.pad for axis in axes), *(axis.high for axis in axes))
    if not any(axis.has_empty for axis in axes):
        return x, pads
    around = (0, 0, *pads[:2], 0, 0, *pads[2:])
    return site.b(Pad, x, site.integers(*around), site.number(filling)), (0, 0, 0, 0)


def _shape(axes: Sequence[Axis]) -> dict[str, tuple[int, ...]]:
    return {"kernel": tuple(axis.kernel for axis in axes), "strides": tuple(axis.stride for axis in axes)}


def _max(site: Site, axes: Sequence[Axis]) -> Value:
    x, pads = _placed(site, site.inputs[0], axes, _LOWEST)
    return site.b(MaxPool, x, pads=pads, **_shape(axes))


def _mean(site: Site, axes: Sequence[Axis]) -> Value:
    """Sums over what each window counts: data and padding, but nothing beyond the padding."""
    x, pads = _placed(site, site.inputs[0], axes, 0.0)
    counts = np.outer(axes[0].lengths, axes[1].lengths).astype(np.float32)
    if (counts == axes[0].kernel * axes[1].kernel).all():
        return site.b(AvgPool, x, pads=pads, count_include_pad=True, **_shape(axes))
    return site.b(Div, site.b(SumPool, x, pads=pads, **_shape(axes)), site.b.constant(counts))


_POOLS = {PB.PoolingParameter.MAX: _max, PB.PoolingParameter.AVE: _mean}
_GLOBAL = {PB.PoolingParameter.MAX: ReduceMax, PB.PoolingParameter.AVE: ReduceMean}


@converts("Pooling")
def pooling(site: Site) -> Value | Sequence[Value]:
    """Maximum or mean of windows; a second top of a maximum has its position in the channel, as float32."""
    found, sizes = site.parameters("pooling_param"), _spatial(site)
    axes = _axes(site, sizes)
    if found.pool not in _POOLS:
        site.refuse("stochastic pooling draws random numbers", "pool")
    if len(site.layer.tops) == 2 and found.pool == PB.PoolingParameter.MAX:
        if any(axis.has_empty for axis in axes):
            site.refuse("a window has no element, and so no position")
        pads = (*(axis.pad for axis in axes), *(axis.high for axis in axes))
        shape = _shape(axes)
        kernel, strides = shape["kernel"], shape["strides"]
        pooled = site.b.op(MaxPoolIndices, (site.inputs[0],), kernel=kernel, strides=strides, pads=pads)
        place = site.b(Mod, pooled.results[1], site.b.constant(np.array(sizes[0] * sizes[1], I64.dtype)))
        return pooled.results[0], site.b(Cast, place, to=F32)
    if found.global_pooling:
        return site.b(_GLOBAL[found.pool], site.inputs[0], axes=(2, 3), keep_dims=True)
    return _POOLS[found.pool](site, axes)


_PYRAMID = {PB.SPPParameter.MAX: _max, PB.SPPParameter.AVE: _mean}


@converts("SPP")
def pyramid(site: Site) -> Value:
    """Pools of 1, 2 x 2, 4 x 4 ... bins, flattened and joined: [N, C, H, W] -> [N, C * (1 + 4 + 16 ...)].

    A pyramid of one level is one pool that stays [N, C, 1, 1], as Caffe's SPPLayer has it.
    """
    found, sizes = site.parameters("spp_param"), _spatial(site)
    if found.pyramid_height < 1:
        site.invalid("pyramid_height is missing; expected a positive number")
    if found.pool not in _PYRAMID:
        site.refuse("stochastic pooling draws random numbers", "pool")
    batch, channels = site.dims()[:2]
    levels = []
    for level in range(found.pyramid_height):
        bins = 2**level
        kernel = (-(-sizes[0] // bins), -(-sizes[1] // bins))
        pads = ((kernel[0] * bins - sizes[0] + 1) // 2, (kernel[1] * bins - sizes[1] + 1) // 2)
        if pads[0] >= kernel[0] or pads[1] >= kernel[1]:
            site.invalid(f"bottom of spatial sizes {list(sizes)} is too small for {bins} x {bins} bins")
        axes = _made(site, sizes, kernel, kernel, pads, floor=False)
        levels.append(_PYRAMID[found.pool](site, axes))
    if len(levels) == 1:
        return levels[0]
    flat = [site.reshape(level, (batch, channels * int(np.prod(site.sizes(level)[2:])))) for level in levels]
    return site.b(Concat, *flat, axis=1)
