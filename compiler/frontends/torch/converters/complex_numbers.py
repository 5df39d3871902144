"""Complex numbers and Fourier transforms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from compiler.frontends.torch.converters.common import cast, concat, cut, pick, rank_of, unsqueeze
from compiler.frontends.torch.site import Site, converts
from compiler.ir import F32, Value
from compiler.ops.complex_numbers import (
    COMPLEX_OF,
    ComplexOf,
    FourierTransform,
    ImaginaryPart,
    RealFourierInverse,
    RealPart,
)
from compiler.ops.elementwise import Abs, Atan2, Cos, Mul, Neg, Sin

if TYPE_CHECKING:
    from compiler.ir import ElementType


@converts("complex")
def complex_of(site: Site) -> Value:
    """Numbers of real and imaginary parts."""
    from compiler.frontends.torch.converters.movement import broadcast_together

    real, imaginary = site.value("real"), site.value("imag")
    _check(site, real.tensor.element)
    return site.op(ComplexOf, *broadcast_together(site, [real, imaginary]))


def _check(site: Site, element: ElementType) -> None:
    if element not in COMPLEX_OF:
        site.refuse(f"complex numbers with parts of type {element}")


@converts("polar")
def polar(site: Site) -> Value:
    """Numbers of absolute value and angle."""
    from compiler.frontends.torch.converters.movement import broadcast_together

    size, angle = broadcast_together(site, [site.value("abs"), site.value("angle")])
    _check(site, size.tensor.element)
    return site.op(ComplexOf, site.op(Mul, size, site.op(Cos, angle)), site.op(Mul, size, site.op(Sin, angle)))


@converts("view_as_real", "view_as_real_copy")
def view_as_real(site: Site) -> Value:
    """The parts along a new last dim."""
    z = site.value("self")
    axis = (rank_of(z),)
    parts = [unsqueeze(site, site.op(part, z), axis) for part in (RealPart, ImaginaryPart)]
    return concat(site, parts, rank_of(z))


@converts("view_as_complex", "view_as_complex_copy")
def view_as_complex(site: Site) -> Value:
    """Numbers whose parts lie along the last dim."""
    x = site.value("self")
    _check(site, x.tensor.element)
    return site.op(ComplexOf, *(pick(site, x, rank_of(x) - 1, part) for part in (0, 1)))


@converts("conj", "_conj", "conj_physical", "_conj_physical")
def conjugate(site: Site) -> Value:
    """The conjugate; a real tensor itself."""
    z = site.value("self")
    if z.tensor.element.kind.value != "complex":
        return z
    return site.op(ComplexOf, site.op(RealPart, z), site.op(Neg, site.op(ImaginaryPart, z)))


@converts("resolve_conj", "resolve_neg")
def resolved(site: Site) -> Value:
    """The tensor itself: nothing is kept lazily here."""
    return site.value("self")


@converts("_neg_view")
def negated(site: Site) -> Value:
    """-x."""
    return site.op(Neg, site.value("self"))


@converts("real", "imag")
def part(site: Site) -> Value:
    """The real or the imaginary part."""
    z = site.value("self")
    if z.tensor.element.kind.value != "complex":
        return z
    return site.op(RealPart if site.operator.startswith("aten.real") else ImaginaryPart, z)


def absolute(site: Site, z: Value) -> Value:
    """Distances from 0, scaled so that squares neither overflow nor vanish."""
    from compiler.frontends.torch.converters.binary import hypotenuse

    return hypotenuse(site, site.op(Abs, site.op(RealPart, z)), site.op(Abs, site.op(ImaginaryPart, z)))


def angle(site: Site, z: Value) -> Value:
    """Angles from the positive real axis."""
    return site.op(Atan2, site.op(ImaginaryPart, z), site.op(RealPart, z))


def _factor(site: Site, z: Value, axes: list[int], sizes: list[int] | None = None) -> float:
    """Of the modes of torch's transforms: 0 as the sums are, 1 by the root of the number of terms, 2 by the number."""
    count = math.prod(sizes if sizes is not None else [site.size(z, axis) for axis in axes])
    mode = site.get("normalization", 0)
    return 1.0 if mode == 0 else 1 / count if mode == 2 else 1 / math.sqrt(count)


def _axes(site: Site, z: Value) -> list[int]:
    return [site.axis(axis, rank_of(z)) for axis in site["dim"]]


@converts("_fft_c2c", "fft_c2c")
def transform(site: Site) -> Value:
    """Complex to complex."""
    z = site.value("self")
    axes = _axes(site, z)
    if not axes:
        return z
    direction = -1 if site["forward"] else 1
    return site.op(FourierTransform, z, axes=tuple(axes), factor=_factor(site, z, axes), direction=direction)


@converts("_fft_r2c", "fft_r2c")
def transform_of_real(site: Site) -> Value:
    """Real to complex; the half of the last axis that is not the other's conjugate where ``onesided``."""
    x = site.value("self")
    axes = _axes(site, x)
    element = x.tensor.element if x.tensor.element in COMPLEX_OF else F32
    z = cast(site, cast(site, x, element), COMPLEX_OF[element])
    found = site.op(FourierTransform, z, axes=tuple(axes), factor=_factor(site, x, axes), direction=-1)
    return cut(site, found, axes[-1], 0, site.size(x, axes[-1]) // 2 + 1) if site["onesided"] else found


@converts("_fft_c2r", "fft_c2r")
def real_inverse(site: Site) -> Value:
    """Complex to real, from half of the last axis."""
    z = site.value("self")
    axes = _axes(site, z)
    size = site.integer(site["last_dim_size"])
    sizes = [site.size(z, axis) for axis in axes[:-1]] + [size]
    return site.op(RealFourierInverse, z, axes=tuple(axes), size=size, factor=_factor(site, z, axes, sizes))
