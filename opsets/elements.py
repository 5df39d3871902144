"""Names of element types as manifests and case ids spell them, and the groups that tolerances speak of.

The names are those of numpy and ml_dtypes where these have the type, so ``bfloat16`` and not ``BFLOAT16``.
"""

from __future__ import annotations

import re

GROUPS: dict[str, tuple[str, ...]] = {
    "float": ("float32", "float64", "float16", "bfloat16"),
    "narrow": (
        "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float6e2m3", "float6e3m2",
        "float4e2m1",
    ),
    "int": (
        "int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64", "int4", "uint4", "int2", "uint2",
    ),
    "bool": ("bool",),
    "complex": ("complex64", "complex128"),
    "string": ("string",),
}  # fmt: skip
"""Element types by group. Within a group the most used come first: selection meets them in this order."""

ELEMENTS: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
GROUP_OF: dict[str, str] = {name: group for group, names in GROUPS.items() for name in names}

_ONNX_SPELLING = {"float": "float32", "double": "float64"}
_TENSOR = re.compile(r"tensor\((\w+)\)")
_NUMPY_SPELLING = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
}
_ML_DTYPES = frozenset({*_NUMPY_SPELLING, "bfloat16", "int4", "uint4", "int2", "uint2"})
_PROTO_SPELLING = {"float32": "FLOAT", "float64": "DOUBLE"}


def element_of(onnx_type: str) -> str | None:
    """Element name of an ONNX type string such as ``tensor(float)`` or ``seq(tensor(int64))``; None for a map."""
    found = _TENSOR.search(onnx_type)
    if found is None:
        return None
    return _ONNX_SPELLING.get(found[1], found[1])


def proto_name(element: str) -> str:
    """Name of the member of ``onnx.TensorProto.DataType`` for an element name."""
    return _PROTO_SPELLING.get(element, element.upper())


def numpy_source(element: str) -> str:
    """Python expression for the numpy dtype of an element name, as it stands in rendered source."""
    if element == "string":
        return "object"
    if element == "bool":
        return "np.bool_"
    if element in _ML_DTYPES:
        return f"ml_dtypes.{_NUMPY_SPELLING.get(element, element)}"
    return f"np.{element}"


def rank_of(element: str) -> int:
    """Position of an element in the order of :data:`ELEMENTS`; unknown ones come last."""
    return ELEMENTS.index(element) if element in ELEMENTS else len(ELEMENTS)
