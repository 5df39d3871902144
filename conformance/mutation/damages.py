"""What is done to right results, to see the comparator object: each damage is one that compilers really cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Outputs = Sequence[Any]
Damage = Callable[[Outputs], Outputs]


def is_float(value: object) -> bool:
    """Return whether a value is a tensor of a real float type."""
    return isinstance(value, np.ndarray) and value.dtype.name.startswith(("float", "bfloat"))


def _mantissa_bits(array: Array) -> int:
    return int(ml_dtypes.finfo(array.dtype).nmant)  # type: ignore[no-untyped-call]


def _on_floats(change: Callable[[Array], Array]) -> Damage:
    def damaged(outputs: Outputs) -> Outputs:
        with np.errstate(all="ignore"):
            return [_changed(value, change) for value in outputs]

    return damaged


def _changed(value: object, change: Callable[[Array], Array]) -> object:
    """Change a float tensor, or the parts of a complex one; anything else stays as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        parts = np.ascontiguousarray(value).reshape(-1).view(f"f{value.dtype.itemsize // 2}")
        return change(parts).view(value.dtype).reshape(value.shape)
    return change(value) if isinstance(value, np.ndarray) and is_float(value) else value


def scaled(array: Array, units: float = 8.0) -> Array:
    """Return the array times 1 + units * 2^-p, p the mantissa bits of its type; 8 makes it 1 + 2^(3-p)."""
    factor = 1.0 + units * 2.0 ** -_mantissa_bits(array)
    return (array.astype(np.float64) * factor).astype(array.dtype)


def shortened(array: Array, bits: int = 3) -> Array:
    """Return the array with `bits` mantissa bits rounded away, ties to even."""
    kept = max(_mantissa_bits(array) - bits, 0)
    wide = array.astype(np.float64)
    mantissa, exponent = np.frexp(wide)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, kept + 1)), exponent - kept - 1)
    return np.where(np.isfinite(wide), rounded, wide).astype(array.dtype)


def _at_end(change: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Change the last element alone: damage at an edge."""

    def changed(array: Array) -> Array:
        copy = array.copy()
        if copy.size:
            copy.reshape(-1)[-1] = change(copy.reshape(-1)[-1])
        return copy

    return changed


def _negated_zeros(array: Array) -> Array:
    return np.where(array == 0, np.negative(array), array).astype(array.dtype)


def _other_infinities(array: Array) -> Array:
    return np.where(np.isinf(array.astype(np.float64)), np.negative(array), array).astype(array.dtype)


def _saturated(array: Array) -> Array:
    wide = array.astype(np.float64)
    largest = float(ml_dtypes.finfo(array.dtype).max)  # type: ignore[no-untyped-call]
    return np.where(np.isinf(wide), np.sign(wide) * largest, wide).astype(array.dtype)


def _last(value: object) -> object:
    """Return an integer one larger, a boolean the other way, a text longer; anything else as it is."""
    if not isinstance(value, np.ndarray) or not value.size or is_float(value):
        return value
    copy = value.copy().reshape(-1)
    last = copy[-1]
    if value.dtype.kind == "b":
        copy[-1] = not last
    elif value.dtype.kind in "iu" or value.dtype.name.startswith(("int", "uint")):
        high = int(ml_dtypes.iinfo(value.dtype).max)  # type: ignore[no-untyped-call]
        copy[-1] = int(last) - 1 if int(last) == high else int(last) + 1
    elif value.dtype.kind == "O":
        copy[-1] = f"{last}~"
    return copy.reshape(value.shape)


def _other_type(value: object) -> object:
    wider = {"float32": np.float64, "float16": np.float32, "int64": np.int32, "int32": np.int64, "bool": np.uint8}
    name = value.dtype.name if isinstance(value, np.ndarray) else ""
    return value.astype(wider[name]) if isinstance(value, np.ndarray) and name in wider else value


def _longer(value: object) -> object:
    if isinstance(value, list):
        return value[:-1]
    return value[None] if isinstance(value, np.ndarray) else value


DAMAGES: Mapping[str, Damage] = {
    **{f"scaled by {units} units": _on_floats(partial(scaled, units=units)) for units in (1, 2, 8, 24, 96)},
    "scaled down by 8 units": _on_floats(partial(scaled, units=-8.0)),
    **{f"{bits} bits short": _on_floats(partial(shortened, bits=bits)) for bits in (1, 3, 6)},
    "last element NaN": _on_floats(_at_end(lambda x: x * np.nan)),
    "last element infinite": _on_floats(_at_end(lambda _: np.inf)),
    "last element wrong": _on_floats(_at_end(lambda x: x * 2 + x.dtype.type(1))),
    "NaN made 0": _on_floats(lambda a: np.where(np.isnan(a.astype(np.float64)), a.dtype.type(0), a).astype(a.dtype)),
    "zeros of the other sign": _on_floats(_negated_zeros),
    "infinities of the other sign": _on_floats(_other_infinities),
    "infinities saturated": _on_floats(_saturated),
    "last integer, boolean or text wrong": lambda outputs: [_last(value) for value in outputs],
    "another type": lambda outputs: [_other_type(value) for value in outputs],
    "another shape": lambda outputs: [_longer(value) for value in outputs],
    "an output missing": lambda outputs: outputs[:-1],
    "an output more": lambda outputs: [*outputs, outputs[0]],
    "the last output absent": lambda outputs: [*outputs[:-1], None],
    "the last output a list": lambda outputs: [*outputs[:-1], [outputs[-1]]],
}
"""Every damage by name: outputs to outputs; it leaves alone what it can't be done to."""
