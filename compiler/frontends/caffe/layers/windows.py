"""Convolution, its transpose, and the columns that Caffe multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import AttributeValue, Value
from compiler.ops.contraction import Conv
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.elementwise import Add
from compiler.ops.movement import Concat, Slice
from compiler.ops.padding import Pad


@dataclass(frozen=True, slots=True)
class Windows:
    """One entry a spatial dim. Output sizes round down, as everywhere in Caffe but in pooling."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    def counts(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Windows along each dim; none or fewer where the kernel is larger than what there is."""
        parts = zip(sizes, self.kernel, self.strides, self.pads, self.dilations, strict=True)
        return tuple((size + 2 * pad - (d * (k - 1) + 1)) // stride + 1 for size, k, stride, pad, d in parts)


def read_windows(site: Site, rank: int) -> Windows:
    """The windows of a convolution_param for so many spatial dims. Raises InvalidModel."""
    found = site.parameters("convolution_param")

    def pair(field: str, plain: str) -> tuple[int, ...] | None:
        if not (found.HasField(f"{field}_h") or found.HasField(f"{field}_w")):
            return None
        if rank != 2 or getattr(found, plain):
            site.invalid(f"{field}_h and {field}_w go with two spatial dims and without {plain}; there are {rank}")
        return (getattr(found, f"{field}_h"), getattr(found, f"{field}_w"))

    def listed(name: str, default: int | None) -> tuple[int, ...]:
        given = [int(value) for value in getattr(found, name)] or ([] if default is None else [default])
        if len(given) not in {1, rank}:
            site.invalid(f"{len(given)} of {name}; expected 1, or {rank}, one a spatial dim")
        return tuple(given * rank) if len(given) == 1 else tuple(given)

    windows = Windows(
        pair("kernel", "kernel_size") or listed("kernel_size", None),
        pair("stride", "stride") or listed("stride", 1),
        pair("pad", "pad") or listed("pad", 0),
        listed("dilation", 1),
    )
    if min(*windows.kernel, *windows.strides, *windows.dilations) < 1:
        site.invalid("a kernel, stride or dilation is 0; expected positive ones")
    return windows


def _folded(site: Site, value: Value, axis: int) -> tuple[Value, tuple[int, ...]]:
    """The value with the dims before the channels as one batch, and those dims."""
    dims = site.sizes(value)
    if len(dims) - axis < 2:
        site.invalid(f"bottom {list(dims)} has no spatial dims after axis {axis}; expected at least one")
    batch = int(np.prod(dims[:axis], dtype=np.int64))
    return site.reshape(value, (batch, *dims[axis:])), dims[:axis]


def _convolved(site: Site, *, transposed: bool) -> Sequence[Value]:
    found = site.parameters("convolution_param")
    axis, outputs, groups = site.axis(found.axis, len(site.dims())), int(found.num_output), int(found.group)
    results = []
    for index, bottom in enumerate(site.inputs):
        x, lead = _folded(site, bottom, axis)
        _batch, channels, *sizes = site.sizes(x)
        if outputs < 1 or groups < 1 or channels % groups or outputs % groups:
            site.invalid(f"{channels} channels to num_output {outputs} in group {groups}; expected multiples of group")
        windows = read_windows(site, len(sizes))
        shape = (channels, outputs // groups) if transposed else (outputs, channels // groups)
        weights = site.weight(0, "weights", (*shape, *windows.kernel))
        attributes: dict[str, AttributeValue] = {
            "strides": windows.strides,
            "pads": windows.pads * 2,
            "dilations": windows.dilations,
            "groups": groups,
        }
        if not transposed and min(windows.counts(sizes)) < 1:
            site.invalid(f"bottom {index} of spatial sizes {sizes} is smaller than the kernel {list(windows.kernel)}")
        result = site.b(ConvTranspose if transposed else Conv, x, weights, **attributes)
        if found.bias_term:
            values = site.blob(1, "bias", (outputs,)).reshape((outputs,) + (1,) * len(sizes))
            result = site.b(Add, result, site.b.constant(values))
        results.append(site.reshape(result, (*lead, *site.sizes(result)[1:])))
    return results


@converts("Convolution", greatest=None)
def convolution(site: Site) -> Sequence[Value]:
    """Each bottom convolved with the same weights [num_output, channels / group, kernel...]."""
    return _convolved(site, transposed=False)


@converts("Deconvolution", greatest=None)
def deconvolution(site: Site) -> Sequence[Value]:
    """The transpose of a convolution: weights [channels, num_output / group, kernel...]."""
    return _convolved(site, transposed=True)


@converts("Im2col", greatest=None)
def im2col(site: Site) -> Sequence[Value]:
    """What a window sees, as channels: [N, C, *S] -> [N, C * kernel, *O], the kernel's positions fastest."""
    found = site.parameters("convolution_param")
    results = []
    for bottom in site.inputs:
        axis = site.axis(found.axis, len(site.sizes(bottom)))
        x, lead = _folded(site, bottom, axis)
        batch, channels, *sizes = site.sizes(x)
        windows = read_windows(site, len(sizes))
        counts = windows.counts(sizes)
        if min(counts) < 1:
            site.invalid(f"spatial sizes {sizes} are smaller than the kernel {list(windows.kernel)}")
        if any(windows.pads):
            pads = (0, 0, *windows.pads) * 2
            x = site.b(Pad, x, site.integers(*pads), site.number(0))
        axes = tuple(range(2, 2 + len(sizes)))
        parts = []
        for position in product(*(range(size) for size in windows.kernel)):
            starts = [at * step for at, step in zip(position, windows.dilations, strict=True)]
            parted = zip(starts, counts, windows.strides, strict=True)
            ends = [start + (count - 1) * stride + 1 for start, count, stride in parted]
            bounds = (starts, ends, axes, windows.strides)
            part = site.b(Slice, x, *(site.integers(*values) for values in bounds))
            parts.append(site.reshape(part, (batch, channels, 1, *counts)))
        columns = parts[0] if len(parts) == 1 else site.b(Concat, *parts, axis=2)
        results.append(site.reshape(columns, (*lead, channels * len(parts), *counts)))
    return results
