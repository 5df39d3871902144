"""Complex numbers, and Fourier transforms as products with their matrices."""

from __future__ import annotations

import numpy as np

from compiler.frontends.assembly import cast, cut, number, swap
from compiler.frontends.tensorflow.site import Converter, Site, converts
from compiler.ir import C64, C128, F32, F64, ElementType, Kind, Value
from compiler.ops.compose import Emit
from compiler.ops.contraction import MatMul
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Add, Atan2, Mul
from compiler.ops.padding import Pad


def _real_of(element: ElementType) -> ElementType:
    return {C64: F32, C128: F64}.get(element, element)


def _complex_of(element: ElementType) -> ElementType:
    return {F32: C64, F64: C128}.get(element, element)


def real_part(site: Site, x: Value) -> Value:
    """The real parts; real numbers themselves."""
    if x.tensor.element.kind is not Kind.COMPLEX:
        return x
    return site.op(Cast, x, to=_real_of(x.tensor.element))


def imaginary_part(site: Site, x: Value) -> Value:
    """The imaginary parts; of real numbers 0."""
    element = x.tensor.element
    if element.kind is not Kind.COMPLEX:
        return site.op(Mul, x, number(site, 0, element))
    return site.op(Cast, site.op(Mul, x, site.constant(-1j, element)), to=_real_of(element))


def joined(site: Site, real: Value, imaginary: Value) -> Value:
    """Complex numbers of their parts."""
    element = _complex_of(real.tensor.element)
    turned = site.op(Mul, cast(site, imaginary, element), site.constant(1j, element))
    return site.op(Add, cast(site, real, element), turned)


@converts("Real")
def real(site: Site) -> Value:
    """Real parts."""
    return real_part(site, site.value(0))


@converts("Imag")
def imaginary(site: Site) -> Value:
    """Imaginary parts."""
    return imaginary_part(site, site.value(0))


@converts("Complex")
def complex_number(site: Site) -> Value:
    """Numbers of their parts."""
    return joined(site, *site.values)


@converts("Conj")
def conjugate(site: Site) -> Value:
    """Imaginary parts with the other sign."""
    return conjugated(site, site.value(0))


def conjugated(site: Site, x: Value) -> Value:
    """The conjugate; real numbers themselves."""
    if x.tensor.element.kind is not Kind.COMPLEX:
        return x
    return joined(site, real_part(site, x), Emit(site.b)("neg", imaginary_part(site, x)))


@converts("ComplexAbs")
def magnitude(site: Site) -> Value:
    """sqrt(re^2 + im^2), scaled by the greater part so that squares do not overflow."""
    x = site.value(0)
    e = Emit(site.b)
    a, b = e("abs", real_part(site, x)), e("abs", imaginary_part(site, x))
    top, low = e("max", a, b), e("min", a, b)
    ratio = e("select", e("eq", top, 0), 0, e("div", low, top))
    return e("mul", top, e("sqrt", e("add", e("mul", ratio, ratio), 1.0)))


@converts("Angle")
def angle(site: Site) -> Value:
    """The angle to the real axis."""
    x = site.value(0)
    return site.op(Atan2, imaginary_part(site, x), real_part(site, x))


def _transformed(site: Site, x: Value, axis: int, *, inverse: bool) -> Value:
    size = site.size(x, axis)
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(size)) % max(size, 1)) / max(size, 1)
    matrix = np.exp((1j if inverse else -1j) * angles) / (size if inverse and size else 1)
    last = site.rank(x) - 1
    product = site.op(MatMul, swap(site, x, axis, last), site.constant(matrix, x.tensor.element))
    return swap(site, product, axis, last)


def _complex_transform(dims: int, *, inverse: bool) -> Converter:
    def convert(site: Site) -> Value:
        x = site.value(0)
        rank = site.rank(x)
        for axis in range(rank - dims, rank):
            x = _transformed(site, x, axis, inverse=inverse)
        return x

    return convert


def _fitted(site: Site, x: Value, axis: int, size: int) -> Value:
    """Cut, or filled up with zeros, to a size."""
    own = site.size(x, axis)
    if own > size:
        return cut(site, x, axis, 0, size)
    if own == size:
        return x
    rank = site.rank(x)
    pads = [0] * (2 * rank)
    pads[rank + axis] = size - own
    return site.op(Pad, x, site.integers(*pads), None, None)


def _to_spectrum(dims: int) -> Converter:
    def convert(site: Site) -> Value:
        x, lengths = site.value(0), site.ints(1, "the length")
        rank = site.rank(x)
        for axis, length in zip(range(rank - dims, rank), lengths, strict=True):
            x = _fitted(site, x, axis, length)
        x = cast(site, x, site.element())
        for axis in range(rank - dims, rank):
            x = _transformed(site, x, axis, inverse=False)
        return cut(site, x, rank - 1, 0, lengths[-1] // 2 + 1)

    return convert


def _from_spectrum(dims: int) -> Converter:
    def convert(site: Site) -> Value:
        x, lengths = site.value(0), site.ints(1, "the length")
        rank, length = site.rank(x), lengths[-1]
        half = length // 2 + 1
        for axis, size in zip(range(rank - dims, rank), [*lengths[:-1], half], strict=True):
            x = _fitted(site, x, axis, size)
        for axis in range(rank - dims, rank - 1):
            x = _transformed(site, x, axis, inverse=True)
        return _half_inverse(site, x, length, half)

    return convert


def _half_inverse(site: Site, x: Value, length: int, half: int) -> Value:
    """Of half a spectrum along the last dim: what is left out is the conjugate of what is there."""
    angles = 2 * np.pi * (np.outer(np.arange(half), np.arange(length)) % length) / length
    weights = np.full((half, 1), 2.0 / length)
    weights[0] = 1.0 / length
    if length % 2 == 0:
        weights[-1] = 1.0 / length
    element = _real_of(x.tensor.element)
    e = Emit(site.b)
    cosines = e("matmul", real_part(site, x), site.constant(np.cos(angles) * weights, element))
    sines = e("matmul", imaginary_part(site, x), site.constant(np.sin(angles) * weights, element))
    return e("sub", cosines, sines)


for _dims, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    converts(f"FFT{_suffix}")(_complex_transform(_dims, inverse=False))
    converts(f"IFFT{_suffix}")(_complex_transform(_dims, inverse=True))
    converts(f"RFFT{_suffix}")(_to_spectrum(_dims))
    converts(f"IRFFT{_suffix}")(_from_spectrum(_dims))
