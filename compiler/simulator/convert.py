"""Conversion between element types, with the target's rounding: to nearest even for floats, wrapping for integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from compiler.ir import BOOL, Kind, element_of

if TYPE_CHECKING:
    from compiler.ir import Array, ElementType

_LONG, _WORD = 64, 32


def is_plain(element: ElementType) -> bool:
    """Whether numpy itself knows the type (not one of ml_dtypes)."""
    return element.dtype.kind != "V" and element.dtype.isbuiltin == 1


def storage_int(element: ElementType) -> np.dtype[Any]:
    """The numpy integer type that computes for an integer type: itself, or int8 / uint8 for a narrower one."""
    if element.bits >= 8:
        return element.dtype
    return np.dtype(np.int8 if element.kind is Kind.SIGNED else np.uint8)


def _wrap_narrow(values: Array, element: ElementType) -> Array:
    mask = (1 << element.bits) - 1
    low = values.astype(np.int64) & mask
    if element.kind is Kind.SIGNED:
        low = (low ^ (1 << (element.bits - 1))) - (1 << (element.bits - 1))
    return low.astype(storage_int(element)).astype(element.dtype)


def convert(values: Array, element: ElementType) -> Array:
    """The values as ``element``: floats round to nearest even, integers wrap, floats to integers truncate."""
    if values.dtype == element.dtype:
        return values
    if element is BOOL:
        return np.asarray(values != 0) if values.dtype.kind != "V" else np.asarray(values.astype(np.float32) != 0)
    source = element_of(values.dtype)
    if element.is_integer and source.is_float:
        return _truncate(values.astype(np.float64), element)
    if element.is_integer and element.bits < 8:
        return _wrap_narrow(values, element)
    if source.is_integer and source.bits < 8:
        values = values.astype(storage_int(source))
    return values.astype(element.dtype)


def _truncate(values: Array, element: ElementType) -> Array:
    """Float64 numbers to integers as x86 converts them, whatever numpy's build does (see SCALAR_FUNCTIONS)."""
    width = _LONG if element.bits == _LONG else _WORD
    half = float(1 << (width - 1))
    whole = np.trunc(values)
    upper = (whole >= half) & (element.kind is Kind.UNSIGNED and element.bits == width)
    lowered = np.where(upper, whole - half, whole)
    inside = (lowered >= -half) & (lowered < half)
    signed = np.where(inside, lowered, -half).astype(np.int64)
    bits = signed.view(np.uint64) ^ np.where(upper, np.uint64(1 << (width - 1)), np.uint64(0))
    return _wrap_narrow(bits, element) if element.bits < 8 else bits.astype(element.dtype)


def saturate(values: Array, element: ElementType, source: ElementType) -> Array:
    """The values clipped to the range of ``element`` and converted; NaN becomes 0 in an integer."""
    if element is BOOL or source is BOOL:
        return convert(values, element)
    if element.is_float:
        limit = float(ml_dtypes.finfo(element.dtype).max)  # type: ignore[no-untyped-call]
        exact = source.is_integer or _LONG in (source.bits, element.bits)
        wide = values.astype(np.float64 if exact else np.float32)
        return convert(np.clip(wide, -limit, limit), element)
    low, high = integer_range(element)
    if source.is_integer:
        own_low, own_high = integer_range(source)
        wide = values.astype(storage_int(source))
        return convert(np.clip(wide, max(low, own_low), min(high, own_high)), element)
    real = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    top, bottom = real >= float(high), real <= float(low)
    inside = np.where(top | bottom, 0.0, real)
    work = np.dtype(np.uint64 if element.kind is Kind.UNSIGNED else np.int64)
    clipped = np.where(top, work.type(high), np.where(bottom, work.type(low), inside.astype(work)))
    return convert(clipped, element)


def integer_range(element: ElementType) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    if element.kind is Kind.UNSIGNED:
        return 0, (1 << element.bits) - 1
    return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1


def unpack(packed: Array, count: int, element: ElementType) -> Array:
    """Elements narrower than a byte out of bytes: ``packed`` has shape (..., bytes), the result (..., count).

    The first element lies in the lowest bits, as in ONNX's and MLIR's storage of 4-bit types.
    """
    per_byte = 8 // element.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * element.bits
    fields = (packed[..., None] >> shifts) & np.uint8((1 << element.bits) - 1)
    flat = fields.reshape((*packed.shape[:-1], packed.shape[-1] * per_byte))[..., :count]
    if element.is_integer:
        return _wrap_narrow(flat, element)
    return np.ascontiguousarray(flat).view(element.dtype)


def pack(values: Array, element: ElementType) -> Array:
    """Bytes that hold (..., count) elements narrower than a byte, each row padded with zero bits."""
    per_byte = 8 // element.bits
    mask = np.uint8((1 << element.bits) - 1)
    if element.is_integer:
        codes = values.astype(storage_int(element)).view(np.uint8) & mask
    else:
        codes = np.ascontiguousarray(values).view(np.uint8) & mask
    count = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], -(-count // per_byte) * per_byte), np.uint8)
    padded[..., :count] = codes
    fields = padded.reshape((*values.shape[:-1], -1, per_byte)) << (np.arange(per_byte, dtype=np.uint8) * element.bits)
    return np.asarray(np.bitwise_or.reduce(fields, axis=-1)).astype(np.uint8)
