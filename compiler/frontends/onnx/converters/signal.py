"""Signals: Fourier transforms as products with their matrices, frames, mel weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from compiler.frontends.onnx.converters.common import cast, concat, reshape, unsqueeze
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import F32, F64, I64, Array, Value
from compiler.onnx_types import element_from
from compiler.ops.compare import Eq, Ge, Le, Lt, Select
from compiler.ops.contraction import MatMul
from compiler.ops.elementwise import Add, Div, Exp, Floor, Log, Mul, Sub
from compiler.ops.indexing import Gather
from compiler.ops.logic import And
from compiler.ops.movement import Transpose

_GREATEST: Final = 2**20
"""Weights are made while the model is read; no spectrum has that many bins."""


@dataclass(frozen=True, slots=True)
class _Transform:
    """A discrete Fourier transform: its length, direction, and whether only half of the spectrum is there."""

    length: int
    inverse: bool
    onesided: bool

    def matrices(self, size: int) -> tuple[Array, Array]:
        """Cosines and sines [size, results] of the angles 2 pi t k / length.

        Elements beyond the length count for nothing. The half of a spectrum that a real inverse takes stands for both
        halves: all of its elements but the first, and the middle one of an even length, count twice.
        """
        half = self.length // 2 + 1
        results = half if self.onesided and not self.inverse else self.length
        angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(results)) % self.length) / self.length
        weights = (np.arange(size) < (half if self.onesided and self.inverse else self.length)).astype(np.float64)
        if self.inverse:
            weights /= self.length
        if self.inverse and self.onesided:
            weights[1 : (self.length + 1) // 2] *= 2
        return np.cos(angles) * weights[:, None], np.sin(angles) * weights[:, None]


def _transformed(site: Site, x: Value, axis: int, transform: _Transform) -> Value:
    """The transform of x [..., 1 or 2] along ``axis``, the last dim being real and imaginary part.

    Floats below 32 bits are transformed in float32.
    """
    rank, element = site.rank(x), x.tensor.element
    wide = F32 if element.bits < F32.bits else element
    size, parts = x.tensor.known_dims[axis], x.tensor.known_dims[-1]
    if not isinstance(size, int) or not isinstance(parts, int):
        site.undecided("the size of the transformed axis is unknown")
    if parts not in {1, 2} or (transform.onesided and (parts == 2) != transform.inverse):
        site.invalid(f"x has {parts} parts, and attribute 'onesided' is {int(transform.onesided)}")
    cosines, sines = (site.b.constant(matrix.astype(wide.dtype)) for matrix in transform.matrices(size))
    order = [d for d in range(rank - 1) if d != axis] + [axis]
    back = [order.index(d) for d in range(rank - 1)]

    def component(part: int) -> Value:
        taken = cast(site, site.b(Gather, x, site.scalar(part, I64), axis=rank - 1), wide)
        return site.b(Transpose, taken, permutation=tuple(order))

    def placed(value: Value) -> Value:
        return unsqueeze(site, cast(site, site.b(Transpose, value, permutation=tuple(back)), element), (rank - 1,))

    real = component(0)
    re, im = site.b(MatMul, real, cosines), site.b(MatMul, real, sines)
    if not transform.inverse:
        im = site.b(Sub, site.scalar_like(0, im), im)
    if parts == 2:
        imaginary = component(1)
        turned = site.b(MatMul, imaginary, sines)
        re = site.b(Sub if transform.inverse else Add, re, turned)
        im = site.b(Add, site.b(MatMul, imaginary, cosines), im)
    if transform.inverse and transform.onesided:
        return placed(re)
    return concat(site, [placed(re), placed(im)], axis=rank - 1)


def _fourier(site: Site, axis: int) -> Value:
    x = site.input(0)
    rank = site.rank(x)
    axis = site.axis(axis, rank)
    if axis == rank - 1:
        site.invalid("the axis is the last dim, which holds real and imaginary part")
    inverse, onesided = bool(site.attribute("inverse")), bool(site.attribute("onesided"))
    size = x.tensor.known_dims[axis]
    if site.has(1):
        length = site.needed_integer(1)
    elif isinstance(size, int):
        length = 2 * (size - 1) if inverse and onesided else size
    else:
        site.undecided("the size of the transformed axis is unknown")
    if length < 1:
        site.invalid(f"the length is {length}; expected at least 1")
    return _transformed(site, x, axis, _Transform(length, inverse, onesided))


@converts("DFT", until=17)
def dft_by_attribute(site: Site) -> Value:
    """The axis is an attribute, by default that after the batch."""
    return _fourier(site, site.attribute("axis"))


@converts("DFT", since=20)
def dft(site: Site) -> Value:
    """The axis is an input, by default the last of the signal."""
    return _fourier(site, site.needed_integer(2) if site.has(2) else -2)


@converts("STFT")
def stft(site: Site) -> Value:
    """Frames of the signal, each times the window and transformed."""
    signal = site.input(0)
    if site.rank(signal) != 3:
        site.bad_shape(f"signal is {signal.type}; expected rank 3")
    size = signal.tensor.known_dims[1]
    if not isinstance(size, int):
        site.undecided("the length of the signal is unknown")
    step = site.needed_integer(1)
    window = site.optional(2)
    width = None if window is None else window.tensor.known_dims[0]
    length = site.needed_integer(3) if site.has(3) else size if width is None else width
    if not isinstance(length, int):
        site.undecided("the length of the window is unknown")
    if step < 1 or not 1 <= length <= size or (isinstance(width, int) and width != length):
        site.invalid(f"step {step}, frames of {length}, a window of {width} and a signal of {size} do not fit")
    places = np.arange((size - length) // step + 1)[:, None] * step + np.arange(length)
    frames = site.b(Gather, signal, site.b.constant(places.astype(np.int64)), axis=1)
    if window is not None:
        frames = site.b(Mul, frames, unsqueeze(site, window, (1,)))
    return _transformed(site, frames, 2, _Transform(length, inverse=False, onesided=bool(site.attribute("onesided"))))


@converts("MelWeightMatrix")
def mel_weight_matrix(site: Site) -> Value:
    """Triangles over the bins of a spectrum, evenly spread on the mel scale, as ONNX's reference spreads them.

    The counts of bands and bins decide the size; the rate and the edges of the band may come while running.
    """
    bands, length = site.needed_integer(0), site.needed_integer(1)
    if bands < 1 or length < 1 or max(bands, length) > _GREATEST:
        site.invalid(f"{bands} bands of a transform of length {length}; expected moderate numbers")
    rate, low, high = (cast(site, reshape(site, site.input(index), ()), F64) for index in (2, 3, 4))
    places = _band_places(site, bands, length, _Band(rate, low, high))
    lower, centre, upper = (site.b(Gather, places, site.integers(*range(at, at + bands)), axis=0) for at in range(3))
    bins = site.b.constant(np.arange(length // 2 + 1, dtype=np.float64)[:, None])
    zero, one = site.scalar(0.0, F64), site.scalar(1.0, F64)
    slope = site.b(Div, site.b(Sub, bins, lower), site.b(Sub, centre, lower))
    rising = site.b(Select, site.b(Eq, centre, lower), one, slope)
    falling = site.b(Div, site.b(Sub, upper, bins), site.b(Sub, upper, centre))
    before = site.b(And, site.b(Ge, bins, lower), site.b(Le, bins, centre))
    behind = site.b(And, site.b(Ge, bins, centre), site.b(Lt, bins, upper))
    weights = site.b(Select, behind, falling, site.b(Select, before, rising, zero))
    return cast(site, weights, element_from(site.attribute("output_datatype"), f"node '{site.node}'"))


@dataclass(frozen=True, slots=True)
class _Band:
    """Sample rate and edges of a frequency band in Hz, each a float64 of rank 0."""

    rate: Value
    low: Value
    high: Value


def _band_places(site: Site, bands: int, length: int, band: _Band) -> Value:
    """The bin, a whole float64, of each of the ``bands`` + 2 corners: those of even distance on the mel scale."""
    scale, hertz, one = (site.scalar(number, F64) for number in (2595 / math.log(10), 700.0, 1.0))

    def mel(frequency: Value) -> Value:
        return site.b(Mul, scale, site.b(Log, site.b(Add, one, site.b(Div, frequency, hertz))))

    low, high = mel(band.low), mel(band.high)
    step = site.b(Div, site.b(Sub, high, low), site.scalar(float(bands + 2), F64))
    steps = site.b.constant(np.arange(bands + 2, dtype=np.float64))
    mels = site.b(Add, low, site.b(Mul, steps, step))
    power = site.b(Exp, site.b(Div, mels, scale))
    frequencies = site.b(Mul, hertz, site.b(Sub, power, one))
    return site.b(Floor, site.b(Div, site.b(Mul, site.scalar(float(length + 1), F64), frequencies), band.rate))
