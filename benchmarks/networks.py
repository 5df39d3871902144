"""The networks that the benchmarks compile, at their published sizes or narrower ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from onnx import ModelProto

from benchmarks.network import Network, Tensor

Build = Callable[[Network, int], ModelProto]
"""Makes a network whose widths are divided by a number: 1 for the published size."""


def _image(net: Network, side: int) -> Tensor:
    return net.input("image", (1, 3, side, side), net.real if not net.is_quantized else "int8")


def resnet50(net: Network, narrower: int = 1) -> ModelProto:
    """He et al., "Deep Residual Learning for Image Recognition", 2015, with batch norms folded; stride in the 3x3."""
    x = net.relu(net.conv(_image(net, 224), 64 // narrower, 7, stride=2))
    x = net.max_pool(x, 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage // narrower
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = net.relu(net.conv(x, width, 1))
            y = net.relu(net.conv(y, width, 3, stride=stride))
            y = net.conv(y, 4 * width, 1, gain=0.3)
            side = x if block else net.conv(x, 4 * width, 1, stride=stride, gain=0.7)
            x = net.relu(net.add(y, side))
    return net.model(net.linear(net.global_average(x), 1000))


_MOBILENET: Final = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks, stride of the first; table 2 of the paper."""


def mobilenet_v2(net: Network, narrower: int = 1) -> ModelProto:
    """Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018."""
    x = net.relu6(net.conv(_image(net, 224), 32 // narrower, 3, stride=2))
    for expansion, channels, blocks, first_stride in _MOBILENET:
        for block in range(blocks):
            width, filters, stride = x.shape[1] * expansion, channels // narrower, 1 if block else first_stride
            y = net.relu6(net.conv(x, width, 1)) if expansion > 1 else x
            y = net.relu6(net.conv(y, width, 3, stride=stride, groups=width))
            y = net.conv(y, filters, 1, gain=0.7)
            x = net.add(x, y) if stride == 1 and x.shape == y.shape else y
    x = net.relu6(net.conv(x, 1280 // narrower, 1))
    return net.model(net.linear(net.global_average(x), 1000))


def bert_base(net: Network, narrower: int = 1) -> ModelProto:
    """The 12 encoder layers of BERT-base (Devlin et al., 2018) on 128 embedded tokens."""
    width, count = 768 // narrower, 12 // narrower
    x = net.input("embedded", (1, 128, width), net.real)
    for _ in range(12):
        q, k, v = (net.heads(net.linear(x, width), count) for _ in range(3))
        attended = net.linear(net.joined_heads(net.attention(q, k, v)), width)
        x = net.layer_norm(net.add(x, attended))
        inner = net.gelu(net.linear(x, 4 * width))
        x = net.layer_norm(net.add(x, net.linear(inner, width)))
    return net.model(x)


def _rotated(net: Network, x: Tensor) -> Tensor:
    """Rotary position embedding, halves exchanged (Su et al., 2021)."""
    _, _, length, width = x.shape
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(width // 2) / (width // 2))
    cosine, sine = (np.tile(table, (1, 2)) for table in (np.cos(angles), np.sin(angles)))
    bounds = [net.constant([value], "int64") for value in (0, width // 2, width, 3)]
    half = (*x.shape[:-1], width // 2)
    low = net.op("Slice", [x.name, bounds[0], bounds[1], bounds[3]], half, x.dtype)
    high = net.op("Slice", [x.name, bounds[1], bounds[2], bounds[3]], half, x.dtype)
    turned = net.concat([net.op("Neg", [high.name], half, x.dtype), low], 3)
    straight = net.op("Mul", [x.name, net.constant(cosine, x.dtype)], x.shape, x.dtype)
    crossed = net.op("Mul", [turned.name, net.constant(sine, x.dtype)], x.shape, x.dtype)
    return net.add(straight, crossed)


def llama_layer(net: Network, narrower: int = 1, *, length: int = 512, layers: int = 1) -> ModelProto:
    """Decoder layers of Llama-7B (Touvron et al., 2023): prefill of ``length`` tokens, causal, SwiGLU, no biases."""
    width, count, inner = 4096 // narrower, 32 // narrower, 11008 // narrower
    x = net.input("hidden", (1, length, width), net.real)
    mask = net.constant(np.triu(np.full((length, length), -1e4), 1), net.real)
    for _ in range(layers):
        normed = net.rms_norm(x)
        q, k, v = (net.heads(net.linear(normed, width, bias=False), count) for _ in range(3))
        attended = net.joined_heads(net.attention(_rotated(net, q), _rotated(net, k), v, mask))
        x = net.add(x, net.linear(attended, width, bias=False, gain=0.5))
        normed = net.rms_norm(x)
        gate = net.silu(net.linear(normed, inner, bias=False))
        up = net.linear(normed, inner, bias=False)
        x = net.add(x, net.linear(net.times(gate, up), width, bias=False, gain=0.5))
    return net.model(x)


def u_net(net: Network, narrower: int = 1) -> ModelProto:
    """Ronneberger et al., "U-Net", 2015: four levels of 3x3 convolutions with padding, 256 x 256, half the width."""

    def twice(x: Tensor, filters: int) -> Tensor:
        return net.relu(net.conv(net.relu(net.conv(x, filters, 3)), filters, 3))

    width = 32 // narrower
    x, kept = _image(net, 256), []
    for level in range(4):
        x = twice(x, width << level)
        kept.append(x)
        x = net.max_pool(x, 2, 2, 0)
    x = twice(x, width << 4)
    for level in reversed(range(4)):
        x = net.relu(net.conv(net.upsample(x), width << level, 3))
        x = twice(net.concat([kept[level], x], 1), width << level)
    return net.model(net.conv(x, 2, 1))


NETWORKS: Final[Mapping[str, Build]] = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "bert_base": bert_base,
    "llama_layer": llama_layer,
    "u_net": u_net,
}
