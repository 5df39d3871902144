"""Strides, dilations and padding as TensorFlow's convolutions and poolings give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.frontends.tensorflow.converters.common import is_channels_first, spatial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.tensorflow.site import Site


@dataclass(frozen=True, slots=True)
class Windows:
    """One entry a spatial dim; ``pads`` is None for SAME, which depends on the sizes."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...] | None

    @classmethod
    def of(cls, site: Site, strides: Sequence[int] | None = None) -> Windows:
        """Of a node's attributes. Raises UnsupportedOperator for windows over batch or channels."""
        first = is_channels_first(site)
        steps = spatial(site, site.numbers("strides") if strides is None else strides, "strides", first=first)
        dilations = site.numbers("dilations") if site.has("dilations") else []
        spread = spatial(site, dilations, "dilations", first=first) or (1,) * len(steps)
        return cls(steps, spread, _pads(site, len(steps), first=first))

    def attributes(self) -> dict[str, Any]:
        """As attributes of the IR's operators."""
        if self.pads is None:
            return {"strides": self.strides, "dilations": self.dilations, "auto_pad": "same_upper"}
        flat = tuple(pair[0] for pair in self.pads) + tuple(pair[1] for pair in self.pads)
        return {"strides": self.strides, "dilations": self.dilations, "pads": flat}

    def around(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The padding before and after each dim. SAME puts an odd element after."""
        if self.pads is not None:
            return self.pads
        found = []
        for size, taps, stride, dilation in zip(sizes, kernel, self.strides, self.dilations, strict=True):
            count = -(-size // stride)
            total = max((count - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
            found.append((total // 2, total - total // 2))
        return tuple(found)


def _pads(site: Site, count: int, *, first: bool) -> tuple[tuple[int, int], ...] | None:
    padding = site.attr("padding")
    if padding == "SAME":
        return None
    if padding == "VALID":
        return ((0, 0),) * count
    numbers = site.numbers("explicit_paddings")
    pairs = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
    outer = [*pairs[:2], *pairs[2 + count :]] if first else [pairs[0], pairs[-1]]
    if any(pair != (0, 0) for pair in outer):
        site.refuse(f"padding of batch or channels in {numbers}", "explicit_paddings")
    return tuple(pairs[2 : 2 + count] if first else pairs[1 : 1 + count])


def static_sizes(site: Site, index: int) -> list[int | None]:
    """Input ``index``, the sizes of the node's result, as far as data or TensorFlow's inference has them."""
    known = site.known(site.value(index))
    if known is not None:
        return [int(size) for size in known.reshape(-1)]
    shape = site.operation.outputs[0].shape
    return [] if shape.rank is None else list(shape.as_list())
