"""Sliding windows, as convolution and pooling share them: sizes, padding, loops' indices, numpy views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Call, Dim
from compiler.ops.registry import FLAG, Attribute, choice, integer, integers
from compiler.ops.work import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

KERNEL: Final = Attribute("kernel", integers(1), doc="Window size, one a spatial dim.")
STRIDES: Final = Attribute("strides", integers(1), (), "Step between windows, one a spatial dim; empty: 1.")
DILATIONS: Final = Attribute("dilations", integers(1), (), "Step inside a window, one a spatial dim; empty: 1.")
PADS: Final = Attribute("pads", integers(0), (), "Padding before each spatial dim, then after each; empty: 0.")
AUTO_PAD: Final = Attribute(
    "auto_pad",
    choice("explicit", "same_upper", "same_lower"),
    "explicit",
    "'same_*' ignores `pads` and pads for ceil(size / stride) windows, an odd element after or before.",
)
CEIL_MODE: Final = Attribute(
    "ceil_mode", FLAG, False, "Round the number of windows up; none starts in the padding after."
)
GROUPS: Final = Attribute("groups", integer(1), 1, "Groups of channels; one sees only its own.")
WINDOW: Final = (STRIDES, DILATIONS, PADS, AUTO_PAD)


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over one spatial dim: ``count`` of them; window i covers padded positions i * stride + j * dilation."""

    size: int
    kernel: int
    stride: int
    dilation: int
    low: int
    high: int
    count: int

    @property
    def reach(self) -> int:
        """Extent of one window."""
        return (self.kernel - 1) * self.dilation + 1

    def index(self, window: int, position: int) -> Index:
        """Index of the tensor dim, for loops ``window`` over windows and ``position`` inside one."""
        return Index(((window, self.stride), (position, self.dilation)), -self.low)


def _per_dim(name: str, attribute: str, values: tuple[int, ...], rank: int, default: int) -> tuple[int, ...]:
    if not values:
        return (default,) * rank
    if len(values) != rank:
        msg = f"{name}: attribute '{attribute}' has {len(values)} entries; expected {rank} for {rank} spatial dims"
        raise InvalidAttribute(msg)
    return values


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The window attributes of a call, completed to one entry a spatial dim."""

    name: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    auto_pad: str
    ceil_mode: bool

    @classmethod
    def of(cls, name: str, call: Call, kernel: Sequence[int]) -> WindowPlan:
        """The plan of a call whose window has size ``kernel``. Raises InvalidAttribute for wrong lengths."""
        rank = len(kernel)
        pads = _per_dim(name, "pads", call.integers("pads"), 2 * rank, 0)
        return cls(
            name,
            tuple(kernel),
            _per_dim(name, "strides", call.integers("strides"), rank, 1),
            _per_dim(name, "dilations", call.integers("dilations"), rank, 1),
            pads[:rank],
            pads[rank:],
            call.text("auto_pad"),
            call.get("ceil_mode") is True,
        )

    def windows(self, sizes: Sequence[int]) -> tuple[Windows, ...]:
        """The windows over spatial dims of these sizes. Raises TypeMismatch where a window is larger than its dim."""
        return tuple(self._windows(axis, size) for axis, size in enumerate(sizes))

    def dims(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """Number of windows a spatial dim; symbolic dims stay where the number equals the size."""
        return tuple(self._dim(axis, dim) for axis, dim in enumerate(dims))

    def _reach(self, axis: int) -> int:
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def _dim(self, axis: int, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return self._windows(axis, dim).count
        padding = self.low[axis] + self.high[axis]
        keeps = self.auto_pad != "explicit" or padding == self._reach(axis) - 1
        return dim if keeps and self.strides[axis] == 1 else UNKNOWN

    def _windows(self, axis: int, size: int) -> Windows:
        kernel, stride, dilation = self.kernel[axis], self.strides[axis], self.dilations[axis]
        low, high, reach = self.low[axis], self.high[axis], self._reach(axis)
        if self.auto_pad != "explicit":
            count = -(-size // stride)
            total = max((count - 1) * stride + reach - size, 0)
            less, more = total // 2, total - total // 2
            low, high = (less, more) if self.auto_pad == "same_upper" else (more, less)
            return Windows(size, kernel, stride, dilation, low, high, count)
        room = size + low + high - reach
        count = (-(-room // stride) if self.ceil_mode else room // stride) + 1
        if self.ceil_mode and (count - 1) * stride >= size + low:
            count -= 1
        if count < 0 or (room < 0 < size and not self.ceil_mode):
            shown = f"spatial dim {axis} of size {size} with padding {low} + {high}"
            msg = f"{self.name}: a window of extent {reach} over {shown}; expected it to fit"
            raise TypeMismatch(msg)
        return Windows(size, kernel, stride, dilation, low, high, count)


def window_view(x: Array, windows: Sequence[Windows], fill: object) -> Array:
    """A view [..., windows of each dim, positions inside each] of the last dims of ``x``, padded with ``fill``."""
    spatial = len(windows)
    lead = x.ndim - spatial
    pads = [(0, 0)] * lead + [(w.low, max((w.count - 1) * w.stride + w.reach - w.size - w.low, 0)) for w in windows]
    padded = np.full([size + sum(pad) for size, pad in zip(x.shape, pads, strict=True)], fill, x.dtype)
    inner = tuple(slice(low, low + size) for (low, _), size in zip(pads, x.shape, strict=True))
    padded[inner] = x
    shape = (*x.shape[:lead], *(w.count for w in windows), *(w.kernel for w in windows))
    steps = padded.strides[lead:]
    strides = (
        *padded.strides[:lead],
        *(step * w.stride for step, w in zip(steps, windows, strict=True)),
        *(step * w.dilation for step, w in zip(steps, windows, strict=True)),
    )
    return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
