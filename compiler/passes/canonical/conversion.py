"""Exact rules of casts. A cast may go only where every value of the narrower type survives the wider one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import ml_dtypes
import numpy as np

from compiler.ir import C64, C128, F32, F64, ElementType, Kind
from compiler.ops.convert import BitCast, Cast
from compiler.rewrite import EXACT, Match, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Value
    from compiler.rewrite import Rule


@cache
def lossless(source: ElementType, wide: ElementType) -> bool:
    """Whether every value of ``source`` (NaN, infinities and -0.0 too) is a value of ``wide``."""
    if source is wide:
        return True
    if Kind.STRING in (source.kind, wide.kind):
        return False
    if source.kind is Kind.BOOL:
        return wide.kind is not Kind.BOOL and not (wide.is_float and wide.bits < 8) and _holds_zero(wide)
    if source.is_integer:
        return _integer_fits(source, wide)
    if source.kind is Kind.COMPLEX:
        return (source, wide) == (C64, C128)
    if not wide.is_float:
        return False
    return (source, wide) == (F32, F64) if source.bits > 16 else _every_float_fits(source, wide)


def _holds_zero(wide: ElementType) -> bool:
    return not wide.is_float or bool(np.zeros((), wide.dtype).astype(np.float64) == 0)


def _integer_fits(source: ElementType, wide: ElementType) -> bool:
    magnitude = source.bits - (source.kind is Kind.SIGNED)
    if wide.is_integer:
        return wide.bits - (wide.kind is Kind.SIGNED) >= magnitude and (
            wide.kind is Kind.SIGNED or source.kind is Kind.UNSIGNED
        )
    if wide.is_float and _holds_zero(wide):
        info = ml_dtypes.finfo(wide.dtype)  # type: ignore[no-untyped-call]
        return bool(magnitude <= info.nmant + 1 and 2.0**magnitude <= float(info.max))
    return False


def _every_float_fits(source: ElementType, wide: ElementType) -> bool:
    """Tries all values: there are at most 65,536."""
    bits = np.arange(1 << source.bits, dtype=f"u{source.dtype.itemsize}")
    values = bits.view(source.dtype)
    with np.errstate(all="ignore"):
        there = values.astype(wide.dtype)
        exact, found = values.astype(np.float64), there.astype(np.float64)
    same = (exact == found) & (np.signbit(exact) == np.signbit(found))
    return bool(np.all(same | (np.isnan(exact) & np.isnan(found))))


@rule(operation(Cast, anything("x")), EXACT)
def cast_to_same(match: Match) -> Value:
    """cast(x) to x's own type => x."""
    match.require(match.root.result.type is match["x"].type, "the type changes")
    return match["x"]


@rule(operation(Cast, operation(Cast, anything("x"), name="inner")), EXACT)
def cast_chain(match: Match) -> Value:
    """cast(cast(x, b), c) => cast(x, c), where b holds every value of x's type and c rounds floats and integers alike.

    A conversion from float to integer depends on the source outside the integer's range, so that only saturating ones
    are joined; strings never are.
    """
    source = match.tensor("x").element
    middle, to = match["inner"].tensor.element, match.root.result.tensor.element
    match.require(lossless(source, middle), f"{middle} does not hold every value of {source}")
    if to is source:
        return match["x"]
    match.require(Kind.STRING not in (source.kind, to.kind), "strings are written by type")
    alike = source.is_float == middle.is_float or lossless(source, to) or to.is_float
    match.require(alike, f"{source} and {middle} become {to} by different rules")
    # Conversions of wide integers to narrow floats go through float32 on some machines and round twice there.
    twice = source.is_integer and to.is_float and to.bits < F32.bits and not lossless(source, F32)
    match.require(not twice, f"{source} to {to} may round twice on the way")
    wraps = middle.is_float and to.is_integer and not match.root.attributes.get("saturate")
    match.require(not wraps or lossless(source, to), f"out of range, {source} and {middle} become {to} differently")
    return match.build(Cast, match["x"], **match.root.attributes)


@rule(operation(BitCast, anything("x")), EXACT)
def bitcast_to_same(match: Match) -> Value:
    """bitcast(x) to x's own type => x."""
    match.require(match.root.result.type is match["x"].type, "the type changes")
    return match["x"]


@rule(operation(BitCast, operation(BitCast, anything("x"), name="inner")), EXACT)
def bitcast_chain(match: Match) -> Value:
    """bitcast(bitcast(x, b), c) => bitcast(x, c), but for bools, whose bits are only two."""
    kinds = (match["inner"].tensor.element.kind, match.tensor("x").element.kind)
    match.require(Kind.BOOL not in kinds, "a bool keeps one bit")
    return match.build(BitCast, match["x"], **match.root.attributes)


RULES: Final[tuple[Rule, ...]] = (cast_to_same, cast_chain, bitcast_to_same, bitcast_chain)
