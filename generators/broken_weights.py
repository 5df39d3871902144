"""Initializers whose data does not fit what they say of it, for every element type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from onnx import ModelProto, TensorProto, helper

from generators.broken_graphs import BrokenGraph

_BITS: Mapping[str, int] = {
    "FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "INT64": 64, "INT32": 32, "INT16": 16, "INT8": 8,
    "UINT64": 64, "UINT32": 32, "UINT16": 16, "UINT8": 8, "BOOL": 8, "COMPLEX64": 64, "COMPLEX128": 128, "INT4": 4,
    "UINT4": 4, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8,
}  # fmt: skip
_SHAPE = (2, 4)


def _raw(element: str) -> TensorProto:
    tensor = TensorProto(name="w", dims=_SHAPE, data_type=TensorProto.DataType.Value(element))
    tensor.raw_data = b"\0" * (8 * _BITS[element] // 8)
    return tensor


def _shorten(tensor: TensorProto) -> None:
    tensor.raw_data = tensor.raw_data[:-1]


def _lengthen(tensor: TensorProto) -> None:
    tensor.raw_data += b"\0" * 16


def _empty(tensor: TensorProto) -> None:
    tensor.raw_data = b""


def _negative(tensor: TensorProto) -> None:
    tensor.dims[0] = -2


def _text(tensor: TensorProto) -> None:
    tensor.ClearField("raw_data")
    tensor.string_data.extend([b"text"] * 8)


_CHANGES: Mapping[str, tuple[str, Callable[[TensorProto], None]]] = {
    "short": ("raw data has the bytes that the shape needs, and no fewer", _shorten),
    "long": ("raw data has the bytes that the shape needs, and no more", _lengthen),
    "absent": ("an initializer has data", _empty),
    "negative": ("a size of an initializer is not negative", _negative),
    "text": ("only strings stand in string_data", _text),
}


def _build(element: str, change: Callable[[TensorProto], None]) -> ModelProto:
    tensor = _raw(element)
    change(tensor)
    output = helper.make_tensor_value_info("y", tensor.data_type, None)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "broken", [], [output], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _all() -> Iterator[tuple[str, BrokenGraph]]:
    for element in _BITS:
        for name, (statement, change) in _CHANGES.items():
            yield (
                f"weights-{name}-{element.lower()}",
                BrokenGraph(
                    f"weights-{name}", statement, "InvalidModel", "Identity",
                    partial(_build, element, change),
                ),
            )  # fmt: skip


WEIGHTS: Mapping[str, BrokenGraph] = dict(_all())
"""Id -> model with a broken initializer."""
