"""Complex numbers from their parts and back, and Fourier transforms. No target has complex types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import C64, C128, F32, F64, Call, ElementType, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import COMPLEX, NUMBER, REQUIRED, Attribute, Operand, Variable, integer, integers, register

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPLEX_OF: Final[dict[ElementType, ElementType]] = {F32: C64, F64: C128}
"""Type of a part -> type of the number."""

PART_OF: Final[dict[ElementType, ElementType]] = {whole: part for part, whole in COMPLEX_OF.items()}
"""Type of a number -> type of its parts."""

_PARTS: Final = frozenset(COMPLEX_OF)


@register
class ComplexOf(Evaluated):
    """The numbers with these real and imaginary parts: two tensors of one shape to one of complex numbers."""

    name: ClassVar[str] = "complex_of"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("real", Variable("T", _PARTS)),
        Operand("imaginary", Variable("T", _PARTS)),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The dims of the parts. Raises TypeMismatch where these have two shapes."""
        real, imaginary = call.tensor(0), call.tensor(1)
        if real.is_static and imaginary.is_static and real.shape != imaginary.shape:
            msg = f"complex_of: parts are {real} and {imaginary}; expected one shape"
            raise TypeMismatch(msg)
        return (tensor(COMPLEX_OF[real.element], real.dims),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        whole = np.empty(np.shape(operands[0]), COMPLEX_OF[call.tensor(0).element].dtype)
        whole.real, whole.imag = operands[0], operands[1]
        return (whole,)


class _Part(Evaluated):
    """One part of complex numbers."""

    operands: ClassVar[tuple[Operand, ...]] = (Operand("z", Variable("C", COMPLEX)),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        z = call.tensor(0)
        return (tensor(PART_OF[z.element], z.dims),)


@register
class RealPart(_Part):
    """The real parts."""

    name: ClassVar[str] = "real_part"

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        del call
        return (np.array(np.real(operands[0])),)


@register
class ImaginaryPart(_Part):
    """The imaginary parts."""

    name: ClassVar[str] = "imaginary_part"

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        del call
        return (np.array(np.imag(operands[0])),)


_TRANSFORM: Final = (
    Attribute("axes", integers(0), REQUIRED, "Dims that are transformed."),
    Attribute("factor", NUMBER, 1.0, "What the sums are multiplied with: 1/n for the usual inverse."),
)


def _check_axes(name: str, call: Call) -> None:
    rank = call.tensor(0).rank
    axes: Any = call.attributes["axes"]
    if not axes or len(set(axes)) != len(axes) or any(axis >= rank for axis in axes):
        msg = f"{name}: attribute 'axes' is {list(axes)}; expected different dims below {rank}"
        raise InvalidAttribute(msg)


@register
class FourierTransform(Evaluated):
    """The discrete Fourier transform of complex numbers over ``axes``: sum over t of z[t] exp(-+ 2 pi i t k / n).

    The sign is + for ``direction`` 1 and - for -1. Computed in complex128 and rounded once.
    """

    name: ClassVar[str] = "fourier_transform"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("z", Variable("C", COMPLEX)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *_TRANSFORM,
        Attribute("direction", integer(-1, 1), -1, "Sign of the exponent."),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The type of z. Raises InvalidAttribute for axes that it lacks."""
        _check_axes(self.name, call)
        return (call.tensor(0),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        z = np.asarray(operands[0])
        axes: Any = call.attributes["axes"]
        factor: Any = call.attributes["factor"]
        forward = call.attributes["direction"] == -1
        wide = z.astype(np.complex128)
        found = np.fft.fftn(wide, axes=axes) if forward else np.fft.ifftn(wide, axes=axes, norm="forward")
        return (np.asarray(found * factor).astype(z.dtype),)


@register
class RealFourierInverse(Evaluated):
    """Real numbers whose spectrum's half is given: over ``axes``, of which the last has n // 2 + 1 of n entries.

    Those of negative frequency are the conjugates of the given ones; the imaginary parts of the first and, for even n,
    the middle one count for nothing. Computed in complex128 and rounded once.
    """

    name: ClassVar[str] = "real_fourier_inverse"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("z", Variable("C", COMPLEX)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *_TRANSFORM,
        Attribute("size", integer(1), REQUIRED, "Size n of the last axis in the result."),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Real numbers; the last axis has ``size``. Raises InvalidAttribute for axes that z lacks."""
        _check_axes(self.name, call)
        z = call.tensor(0)
        axes: Any = call.attributes["axes"]
        size: Any = call.attributes["size"]
        dims = list(z.known_dims)
        dims[axes[-1]] = size
        return (tensor(PART_OF[z.element], dims),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        z = np.asarray(operands[0]).astype(np.complex128)
        axes: Any = call.attributes["axes"]
        size: Any = call.attributes["size"]
        factor: Any = call.attributes["factor"]
        if axes[:-1]:
            z = np.fft.ifftn(z, axes=axes[:-1], norm="forward")
        found = np.fft.irfft(z, n=size, axis=axes[-1], norm="forward") * factor
        return (np.asarray(found).astype(PART_OF[call.tensor(0).element].dtype),)
