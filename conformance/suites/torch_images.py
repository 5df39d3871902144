"""Image networks as timm has them, written out at a small size, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_SEED = 5


def _seeded(module: Any) -> Any:  # noqa: ANN401
    """Norms off the identity and running statistics off their start, so that a lost one shows."""
    import torch

    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if not value.is_floating_point():
                continue
            noise = torch.randn(value.shape, generator=generator)
            if name.endswith("running_var") or (value.ndim == 1 and name.endswith("weight")):
                value.copy_(1 + 0.2 * noise.abs())
            elif value.ndim == 1:
                value.copy_(0.1 * noise)
            else:
                value.copy_(noise / max(value[0].numel(), 1) ** 0.5)
    return module.eval()


def _residual(body: Any) -> Any:  # noqa: ANN401
    from torch import nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            return x + self.body(x)

    return Residual()


def _squeeze_excite(channels: int, inner: int, gate: Any, activation: Any) -> Any:  # noqa: ANN401
    from torch import nn

    class SqueezeExcite(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reduce, self.expand = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)
            self.activation, self.gate = activation(), gate()

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            found = self.expand(self.activation(self.reduce(x.mean((2, 3), keepdim=True))))
            return x * self.gate(found)

    return SqueezeExcite()


def _conv(before: int, after: int, kernel: int = 1, stride: int = 1, groups: int = 1, activation: Any = None) -> Any:  # noqa: ANN401
    """A convolution, its norm, and an activation where there is one."""
    from torch import nn

    parts = [
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
    ]
    return nn.Sequential(*parts, *([] if activation is None else [activation()]))


def _inverted(width: int, expansion: int, kernel: int, activation: Any, gate: Any) -> Any:  # noqa: ANN401
    """An inverted residual: wide, by channel, squeezed and excited, narrow."""
    from torch import nn

    inner = width * expansion
    return _residual(
        nn.Sequential(
            _conv(width, inner, activation=activation),
            _conv(inner, inner, kernel, groups=inner, activation=activation),
            _squeeze_excite(inner, width, gate, nn.ReLU if gate is nn.Hardsigmoid else activation),
            _conv(inner, width),
        )
    )


def _classified(width: int, *body: Any) -> Any:  # noqa: ANN401
    from torch import nn

    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def mobilenet() -> Any:  # noqa: ANN401
    """MobileNetV3: hard swish, squeeze and excite by hard sigmoid."""
    from torch import nn

    blocks = [_inverted(16, 4, kernel, nn.Hardswish, nn.Hardsigmoid) for kernel in (3, 5, 5)]
    return _seeded(_classified(16, _conv(3, 16, 3, 2, activation=nn.Hardswish), *blocks))


def efficientnet() -> Any:  # noqa: ANN401
    """EfficientNet: the same with SiLU and sigmoid, and a step of stride 2."""
    from torch import nn

    stem, down = _conv(3, 16, 3, 2, activation=nn.SiLU), _conv(16, 24, 3, 2, activation=nn.SiLU)
    blocks = [_inverted(width, 6, kernel, nn.SiLU, nn.Sigmoid) for width, kernel in ((16, 3), (24, 5))]
    return _seeded(_classified(24, stem, blocks[0], down, blocks[1]))


def regnet() -> Any:  # noqa: ANN401
    """RegNetY: bottlenecks of grouped convolutions, squeezed and excited."""
    from torch import nn

    def bottleneck() -> Any:  # noqa: ANN401
        return _residual(
            nn.Sequential(
                _conv(32, 32, activation=nn.ReLU),
                _conv(32, 32, 3, groups=4, activation=nn.ReLU),
                _squeeze_excite(32, 8, nn.Sigmoid, nn.ReLU),
                _conv(32, 32),
            )
        )

    return _seeded(
        _classified(32, _conv(3, 32, 3, 2, activation=nn.ReLU), bottleneck(), nn.ReLU(), bottleneck(), nn.ReLU())
    )


def convnext() -> Any:  # noqa: ANN401
    """ConvNeXt: 7 x 7 by channel, layer norm over channels last, a layer scale."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width, eps=1e-6)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            found = self.norm(self.spatial(x).permute(0, 2, 3, 1))
            found = self.narrow(nn.functional.gelu(self.wide(found))) * self.scale
            return x + found.permute(0, 3, 1, 2)

    stem = nn.Sequential(nn.Conv2d(3, 24, 4, 4), nn.GroupNorm(1, 24))
    return _seeded(_classified(32, stem, Block(24), nn.Conv2d(24, 32, 2, 2), Block(32)))


def vit() -> Any:  # noqa: ANN401
    """ViT: patches of 8 x 8 and a class token through two pre-norm layers with fused attention."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(48, eps=1e-6), nn.LayerNorm(48, eps=1e-6)
            self.qkv, self.joined = nn.Linear(48, 144), nn.Linear(48, 48)
            self.wide, self.narrow = nn.Linear(48, 192), nn.Linear(192, 48)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            batch, tokens, _ = x.shape
            q, k, v = self.qkv(self.first(x)).reshape(batch, tokens, 3, 4, 12).permute(2, 0, 3, 1, 4).unbind(0)
            found = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.joined(found.transpose(1, 2).reshape(batch, tokens, 48))
            return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))

    class Vit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 48, 8, 8)
            self.token, self.places = nn.Parameter(torch.zeros(1, 1, 48)), nn.Parameter(torch.zeros(1, 17, 48))
            self.layers = nn.Sequential(Layer(), Layer())
            self.norm, self.head = nn.LayerNorm(48, eps=1e-6), nn.Linear(48, 10)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    return _seeded(Vit())


IMAGE_NETS: Mapping[str, Callable[[], Any]] = {
    "mobilenet-v3": mobilenet,
    "efficientnet": efficientnet,
    "regnet": regnet,
    "convnext": convnext,
    "vit": vit,
}
"""Name -> the network for images [1, 3, 32, 32]."""
