"""Conversions between element types."""

from __future__ import annotations

from typing import Final

from onnx import TensorProto

from compiler.frontends.onnx.site import Site, converts
from compiler.ir import F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, ElementType, Value
from compiler.onnx_types import element_from
from compiler.ops.convert import BitCast, Cast

_SATURATING: Final = frozenset({F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU})
"""Only for 8-bit floats does ``saturate`` have a meaning."""


def _converted(site: Site, to: ElementType) -> Value:
    x = site.input(0)
    if x.tensor.element is to:
        return x
    saturate = to in _SATURATING and bool(site.attribute("saturate"))
    if to is not F8E8M0FNU:
        return site.b(Cast, x, to=to, saturate=saturate)
    mode = site.attribute("round_mode")
    if mode not in {"nearest", "up", "down"}:
        site.bad_attribute(f"attribute 'round_mode' is '{mode}'; expected nearest, up or down")
    return site.b(Cast, x, to=to, saturate=saturate, round_mode=mode)


@converts("Cast", until=5)
def cast_by_name(site: Site) -> Value:
    """The first version names the type by a string."""
    name = site.attribute("to")
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - a protobuf wrapper, not a mapping
        site.bad_attribute(f"attribute 'to' is '{name}'; expected the name of a data type")
    return _converted(site, element_from(TensorProto.DataType.Value(name), f"node '{site.node}'"))


@converts("Cast", since=6)
def cast(site: Site) -> Value:
    """The type is a number of ONNX's list."""
    return _converted(site, element_from(site.attribute("to"), f"attribute 'to' of node '{site.node}'"))


@converts("CastLike")
def cast_like(site: Site) -> Value:
    """The type of the second input."""
    return _converted(site, site.tensor(1).element)


@converts("BitCast")
def bit_cast(site: Site) -> Value:
    """The same bits as another type of the same width."""
    to = element_from(site.attribute("to"), f"attribute 'to' of node '{site.node}'")
    return site.b(BitCast, site.input(0), to=to)
