"""Conversions between element types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import ml_dtypes
import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute
from compiler.ir import F8E8M0FNU, STRING, Array, ElementType, Kind, Type, element_of
from compiler.ops.elementwise import Elementwise, unary
from compiler.ops.registry import ANY, ELEMENT, FLAG, Attribute, Operand, choice, register
from compiler.ops.scalars import compute_dtype, finite_limits, limits, widen
from compiler.ops.work import Apply, Arg, Expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work


@register
class Cast(Elementwise):
    """Each element as the nearest one of type ``to``.

    To floats: rounds to nearest even; overflow gives infinity, NaN where the type has no infinity (or its greatest
    value, where it has no NaN either). To integers: floats truncate towards zero, integers wrap. ``saturate`` clips to
    the finite range of ``to`` instead (infinities too), and NaN becomes 0 in an integer. A float outside an integer's
    range without ``saturate`` gives what x86 and onnxruntime give (see SCALAR_FUNCTIONS). To bool: everything but
    zero, NaN too, is true. ``round_mode`` matters for f8E8M0FNU alone, whose values are powers of two: the table of
    ONNX Cast-24 holds, negative numbers lose their sign.

    Strings: numbers are read as Python reads them ("INF", "NaN" in any case) and written with eight significant
    digits as onnxruntime does. Raises EvaluationError for a string that is no number.
    """

    name: ClassVar[str] = "cast"
    operands: ClassVar[tuple[Operand, ...]] = unary(ANY)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("to", ELEMENT, doc="element type of the result"),
        Attribute("saturate", FLAG, False, "clip to the range of the result type"),
        Attribute("round_mode", choice("nearest", "up", "down"), "nearest", "rounding to powers of two (f8E8M0FNU)"),
    )

    def result_element(self, call: Call) -> ElementType:
        """``to``."""
        return call.element("to")

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The converted elements. Raises EvaluationError for a string that is no number."""
        array = np.asarray(operands[0])
        return (convert(array, call.element("to"), call.flag("saturate"), call.text("round_mode")),)

    def scalar(self, call: Call, operands: tuple[Arg, ...]) -> Expression:
        """The conversion."""
        to = call.element("to")
        if to is operands[0].element and not (call.flag("saturate") and to.is_float):
            return operands[0]
        return Apply("cast_saturate" if call.flag("saturate") else "cast", operands, to)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops; None for strings and for powers of two, which no vector unit makes."""
        source, to = call.tensor(0).element, call.element("to")
        if to is STRING or (to is F8E8M0FNU and source is not to):
            return None
        return super().work(call, results)


@register
class BitCast(Elementwise):
    """The same bits read as another type of the same width (ONNX BitCast)."""

    name: ClassVar[str] = "bitcast"
    operands: ClassVar[tuple[Operand, ...]] = unary(ANY - {STRING})
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("to", ELEMENT, doc="element type of the result"),)
    alias: ClassVar[bool] = True

    def result_element(self, call: Call) -> ElementType:
        """``to``. Raises InvalidAttribute where the widths differ."""
        source, to = call.tensor(0).element, call.element("to")
        if source.bits != to.bits or to is STRING:
            msg = f"bitcast: to is {to} of {to.bits} bits; expected a type of {source.bits} bits, as {source} has"
            raise InvalidAttribute(msg)
        return to

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """A view of the bytes; sub-byte elements keep their low bits."""
        array, to = np.asarray(operands[0]), call.element("to")
        if to.kind is Kind.BOOL:
            return (array.view(np.uint8) != 0,)
        if to.bits < 8:
            unsigned = array.view(np.uint8) & np.uint8((1 << to.bits) - 1)
            if to.is_integer:
                return (unsigned.astype(to.dtype),)
            return (unsigned.view(to.dtype),)
        return (array.view(to.dtype),)


def convert(array: Array, to: ElementType, saturate: bool = False, round_mode: str = "nearest") -> Array:
    """The array as ``to``, by the rules of :class:`Cast`. Raises EvaluationError for a string that is no number."""
    if to is STRING:
        return _to_strings(array)
    if array.dtype.kind in "OUS":
        array = _from_strings(array, to)
    source = element_of(array.dtype)
    if source is to and not (saturate and to.is_float):
        return array
    with np.errstate(all="ignore"):
        if source.kind is Kind.COMPLEX and to.kind is not Kind.COMPLEX:
            array = array.real
        if to.kind is Kind.BOOL:
            return np.asarray(widen(array) != 0)
        if to.is_integer:
            return _to_integers(array, source, to, saturate)
        if to is F8E8M0FNU:
            return _to_powers_of_two(widen(array).astype(np.float64), saturate, round_mode)
        if saturate and to.is_float:
            low, high = finite_limits(to)
            array = np.clip(array.astype(np.result_type(widen(array), compute_dtype(to))), low, high)
        elif source.is_float or (source.bits < 8 and source.is_integer):
            # Not every pair of narrow types has a conversion of its own; the wide step is exact.
            array = widen(array)
        return array.astype(to.dtype)


def _to_integers(array: Array, source: ElementType, to: ElementType, saturate: bool) -> Array:
    if source.is_float or source.kind is Kind.COMPLEX:
        return _truncate(widen(array).astype(np.float64), to, saturate)
    whole = widen(array)
    if saturate:
        low, high = limits(to)
        least, greatest = limits(source)
        whole = np.clip(whole, max(low, least), min(high, greatest))
    if to.bits < 8:
        whole = (whole.astype(np.int64) & ((1 << to.bits) - 1)).astype(np.uint8)
        return _sub_byte(whole, to)
    return whole.astype(to.dtype)


def _sub_byte(low_bits: Array, to: ElementType) -> Array:
    unsigned = low_bits.astype(np.int8)
    if to.kind is Kind.SIGNED:
        half = 1 << (to.bits - 1)
        unsigned = ((unsigned ^ half) - half).astype(np.int8)
    return unsigned.astype(to.dtype)


def _truncate(x: Array, to: ElementType, saturate: bool) -> Array:
    """Floats, as float64, to integers: towards zero, then clipped or as x86's conversion instructions do."""
    whole = np.trunc(x)
    if saturate:
        return _clip(whole, to)
    width = 64 if to.bits == 64 else 32
    half = 2.0 ** (width - 1)
    upper = (whole >= half) & (to.kind is Kind.UNSIGNED and to.bits == width)
    shifted = np.where(upper, whole - half, whole)
    inside = (shifted >= -half) & (shifted < half)
    signed = np.where(inside, shifted, -half).astype(np.int64)
    bits = signed.view(np.uint64) ^ np.where(upper, np.uint64(1 << (width - 1)), np.uint64(0))
    if to.bits < 8:
        return _sub_byte((bits & np.uint64((1 << to.bits) - 1)).astype(np.uint8), to)
    return bits.astype(to.dtype)


def _clip(whole: Array, to: ElementType) -> Array:
    """Whole float64 numbers clipped to the range of ``to``, whose 64-bit ends no float64 hits exactly."""
    low, high = limits(to)
    known = np.where(np.isnan(whole), 0.0, whole)
    inside = np.where((known >= float(high)) | (known <= float(low)), 0.0, known)
    wide = inside.astype(np.uint64 if to.kind is Kind.UNSIGNED else np.int64)
    clipped = np.where(known >= float(high), np.array(high, wide.dtype), wide)
    return np.where(known <= float(low), np.array(low, wide.dtype), clipped).astype(to.dtype)


_E8M0_BIAS: Final = 127
_E8M0_GREATEST: Final = 254
_E8M0_NAN: Final = 255


def _to_powers_of_two(x: Array, saturate: bool, round_mode: str) -> Array:
    """The exponent of |x|, biased by 127, in a byte; 255 is NaN (OCP Microscaling 1.0; table of ONNX Cast-24)."""
    fraction, exponent = np.frexp(np.abs(x))
    above = {"up": fraction > 0.5, "down": np.zeros(x.shape, np.bool_), "nearest": fraction >= 0.75}[round_mode]
    biased = exponent.astype(np.int64) - 1 + above + _E8M0_BIAS
    biased = np.where(x == 0, -1, np.where(np.isinf(x), _E8M0_GREATEST + 1, biased))
    if saturate:
        biased = np.clip(biased, 0, _E8M0_GREATEST)
    else:
        biased = np.where((biased < 0) | (biased > _E8M0_GREATEST), _E8M0_NAN, biased)
    return np.where(np.isnan(x), _E8M0_NAN, biased).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def _to_strings(array: Array) -> Array:
    if array.dtype.kind in "OUS":
        return array.astype(object)
    element = element_of(array.dtype)
    if element.kind is Kind.BOOL:
        texts = ["1" if item else "0" for item in array.ravel().tolist()]
    elif element.is_float:
        texts = [_float_text(item) for item in widen(array).ravel().tolist()]
    else:
        texts = [str(item) for item in widen(array).ravel().tolist()]
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(array.shape)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return f"{value:.8g}"


def _from_strings(array: Array, to: ElementType) -> Array:
    """The numbers that strings stand for: Python integers for integers, else float64 (complex128 for complex)."""
    texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
    parse = _number if to.kind is not Kind.COMPLEX else complex
    try:
        numbers = [cast("Any", parse)(text.strip()) for text in texts]
        if to.is_integer and all(isinstance(number, int) for number in numbers):
            dtype: Any = np.uint64 if to.kind is Kind.UNSIGNED else np.int64
        else:
            dtype = np.complex128 if to.kind is Kind.COMPLEX else np.float64
        return np.array(numbers, dtype).reshape(array.shape)
    except (ValueError, OverflowError) as error:
        msg = f"cast: a string is no number that {to} holds: {error}"
        raise EvaluationError(msg) from error


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
