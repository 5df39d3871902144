"""Files that are no models, and models whose external data is missing, outside their folder or too short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

MODEL_FILE = "model.onnx"
Files = dict[str, bytes]


def _valid() -> ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in ("x", "y")]
    weights = numpy_helper.from_array(np.ones(64, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _bytes(data: bytes) -> Files:
    return {MODEL_FILE: data}


def _truncated(share: float) -> Files:
    data = _valid().SerializeToString()
    return {MODEL_FILE: data[: int(len(data) * share)]}


def _flipped() -> Files:
    """Every byte of the first third inverted."""
    data = _valid().SerializeToString()
    third = len(data) // 3
    return {MODEL_FILE: bytes(byte ^ 0xFF for byte in data[:third]) + data[third:]}


def _external(location: str | None, others: Files | None = None, **entries: str) -> Files:
    model = _valid()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in ({} if location is None else {"location": location} | entries).items():
        tensor.external_data.add(key=key, value=value)
    return {MODEL_FILE: model.SerializeToString(), **(others or {})}


_WEIGHTS = np.ones(64, np.float32).tobytes()

BROKEN_FILES: Mapping[str, Callable[[], Files]] = {
    "empty": partial(_bytes, b""),
    "text": partial(_bytes, b"this is no model\n"),
    "random-bytes": partial(_bytes, np.random.default_rng(1).bytes(400)),
    "zeros": partial(_bytes, b"\0" * 400),
    "truncated-in-the-weights": partial(_truncated, 0.6),
    "truncated-at-the-end": partial(_truncated, 0.97),
    "truncated-at-the-start": partial(_truncated, 0.05),
    "inverted-start": _flipped,
    "external-data-missing": partial(_external, "weights.bin"),
    "external-data-absolute": partial(_external, "/etc/hostname"),
    "external-data-outside": partial(_external, "../weights.bin"),
    "external-data-outside-by-detour": partial(_external, "sub/../../weights.bin"),
    "external-data-without-location": partial(_external, None),
    "external-data-is-a-folder": partial(_external, "."),
    "external-data-too-short": partial(_external, "weights.bin", {"weights.bin": _WEIGHTS[:-4]}),
    "external-data-beyond-the-end": partial(
        _external, "weights.bin", {"weights.bin": _WEIGHTS}, offset="4096", length="256"
    ),
    "external-data-wrong-length": partial(_external, "weights.bin", {"weights.bin": _WEIGHTS}, length="128"),
    "external-data-negative-offset": partial(
        _external, "weights.bin", {"weights.bin": _WEIGHTS}, offset="-8", length="256"
    ),
    "external-data-offset-no-number": partial(_external, "weights.bin", {"weights.bin": _WEIGHTS}, offset="many"),
}
"""Name -> a function that gives the files of a folder; `model.onnx` is the one to open."""
