"""Layers of well-known networks by their published sizes, as systolic-array simulators list them.

A convolution is the size of its (padded) input, kernel, channels, filters and stride; windows that begin inside the
input and end outside of it count, as SCALE-Sim's topology files have it: ceil((size - kernel + stride) / stride) a
side.
A product m x n x k is a convolution of 1 x 1 over m places of k channels with n filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; ``times`` of the same, such as the channels of a depthwise convolution or the heads of attention."""

    height: int
    width: int
    kernel: int
    channels: int
    filters: int
    stride: int = 1
    times: int = 1

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        rows, columns = (
            math.ceil((size - self.kernel + self.stride) / self.stride) for size in (self.height, self.width)
        )
        return rows, columns

    @property
    def product(self) -> tuple[int, int, int]:
        """The matrix product m x n x k that one of it is."""
        return self.out[0] * self.out[1], self.filters, self.kernel**2 * self.channels

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all of it."""
        return self.times * math.prod(self.product)

    def question(self, ratio: tuple[int, int] = (1, 1)) -> dict[str, Any]:
        """Return the layer as the driver of SCALE-Sim takes it."""
        names = ("height", "width", "filter", "channels", "filters", "stride")
        sizes = (self.height, self.width, self.kernel, self.channels, self.filters, self.stride)
        return {**dict(zip(names, sizes, strict=True)), "ratio": list(ratio)}


def conv(size: int, kernel: int, channels: int, filters: int, stride: int = 1, times: int = 1) -> Layer:
    """Return a convolution of a square image."""
    return Layer(size, size, kernel, channels, filters, stride, times)


def matmul(m: int, n: int, k: int, times: int = 1) -> Layer:
    """Return a product m x n x k."""
    return Layer(m, 1, 1, k, n, 1, times)


def resnet18() -> Iterator[Layer]:
    """He et al. 2016, table 1; inputs of 3x3 kernels as SCALE-Sim's file has them, without padding."""
    yield conv(224, 7, 3, 64, 2)
    for _ in range(4):
        yield conv(56, 3, 64, 64)
    for channels, filters, size in ((64, 128, 56), (128, 256, 28), (256, 512, 14)):
        yield conv(size, 3, channels, filters, 2)
        yield conv(size // 2, 3, filters, filters)
        yield conv(size, 1, channels, filters, 2)
        yield conv(size // 2, 3, filters, filters)
        yield conv(size // 2, 3, filters, filters)
    yield matmul(1, 1000, 512)


def resnet50() -> Iterator[Layer]:
    """He et al. 2016, table 1."""
    yield conv(230, 7, 3, 64, 2)
    channels = 64
    for width, size, blocks in ((64, 56, 3), (128, 28, 4), (256, 14, 6), (512, 7, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            yield conv(size * stride, 1, channels, width)
            yield conv(size * stride + 2, 3, width, width, stride)
            yield conv(size, 1, width, 4 * width)
            if block == 0:
                yield conv(size * stride, 1, channels, 4 * width, stride)
            channels = 4 * width
    yield matmul(1, 1000, 2048)


def mobilenet() -> Iterator[Layer]:
    """Howard et al. 2017, table 1. A depthwise convolution is one of a single channel, once for each."""
    yield conv(226, 3, 3, 32, 2)
    plan = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
    channels, size = 32, 112
    for filters, stride in plan:
        yield conv(size + 2, 3, 1, 1, stride, times=channels)
        size //= stride
        yield conv(size, 1, channels, filters)
        channels = filters
    yield matmul(1, 1000, 1024)


def transformer(tokens: int, width: int, heads: int, hidden: int) -> Iterator[Layer]:
    """Return the products of one block of attention and feed-forward layers."""
    yield matmul(tokens, width, width, times=4)
    yield matmul(tokens, tokens, width // heads, times=heads)
    yield matmul(tokens, width // heads, tokens, times=heads)
    yield matmul(tokens, hidden, width)
    yield matmul(tokens, width, hidden)


def vit() -> Iterator[Layer]:
    """ViT-B/16 (Dosovitskiy et al. 2021): the patches, a block, the head."""
    yield conv(224, 16, 3, 768, 16)
    yield from transformer(197, 768, 12, 3072)
    yield matmul(1, 1000, 768)


NETWORKS: Final[Mapping[str, Callable[[], Iterator[Layer]]]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet": mobilenet,
    "bert-base": lambda: transformer(128, 768, 12, 3072),
    "gpt2": lambda: transformer(1024, 768, 12, 3072),
    "vit-b16": vit,
}
