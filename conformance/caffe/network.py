"""A whole network in float64, layer by layer from the definitions: the text is parsed, nothing else is shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from google.protobuf import text_format

from conformance.caffe.definitions import DEFINITIONS, Options

Array: TypeAlias = Any


def run(prototxt: str, weights: Mapping[str, Sequence[Array]], inputs: Mapping[str, Array]) -> list[Array]:
    """The blobs that no layer reads, by name. Raises KeyError for a layer without a definition."""
    from compiler.frontends.caffe.reader import PB

    net = text_format.Parse(prototxt, PB.NetParameter(), allow_unknown_field=True)
    values = {name: array.astype(np.float64) for name, array in inputs.items()}
    unread = set(values)
    for layer in net.layer:
        if layer.type == "Input":
            continue
        own = [array.astype(np.float64) for array in weights.get(layer.name, [])]
        options = Options(_fields(layer), len(layer.top), own)
        with np.errstate(all="ignore"):
            results = DEFINITIONS[layer.type](options, [values[name] for name in layer.bottom])
        unread.difference_update(layer.bottom)
        for name, value in zip(layer.top, results, strict=True):
            values[name] = np.asarray(value)
            unread.add(name)
    return [values[name] for name in sorted(unread)]


def _fields(layer: Any) -> dict[str, Any]:  # noqa: ANN401 - a protobuf message
    """The fields that are set in the layer's options, in the form that manifests give them."""
    found: dict[str, Any] = {}
    for descriptor, options in layer.ListFields():
        if descriptor.name.endswith("_param"):
            for field, value in options.ListFields():
                found[field.name] = _plain(field, value)
    return found


def _plain(field: Any, value: Any) -> Any:  # noqa: ANN401
    if field.message_type is not None:
        return f"{{ {text_format.MessageToString(value, as_one_line=True)} }}"
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value if isinstance(value, (bool, int, float, str)) else tuple(value)
