"""Running a model in onnxruntime with every element type that it has, in one thread.

Its `run` refuses the types of ml_dtypes, and its arrays have none for bfloat16 and 8-bit floats, so tensors go in and
out as `OrtValue` and are read from memory by their declared type. Inputs of fewer than 8 bits are put into the model:
there is no way to hand over packed elements.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from compiler.onnx_types import data_type_of, numpy_type
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.numerics import Kind, kind_of

_PACKED = frozenset(
    getattr(TensorProto, name)
    for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")
    if hasattr(TensorProto, name)
)
"""ONNX element types of fewer than 8 bits."""


def open_session(model: ModelProto | Path, *, optimize: bool) -> Any:  # noqa: ANN401 - onnxruntime ships no annotations
    """Return an `InferenceSession` on the CPU with one thread. Errors of onnxruntime pass through."""
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def graph_inputs(model: ModelProto) -> list[str]:
    """Return the names of the inputs that a caller must give, in order: those without an initializer."""
    given = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in given]


def run_model(model: ModelProto, inputs: Sequence[Output], *, optimize: bool = False) -> list[Output]:
    """Return the outputs of one run. Raises `Unavailable` with onnxruntime's own reason."""
    names = graph_inputs(model)
    if len(names) != len(inputs):
        raise Unavailable(f"the model has {len(names)} inputs, the case {len(inputs)}")
    feeds = dict(zip(names, inputs, strict=True))
    packed = {name for name, value in feeds.items() if isinstance(value, np.ndarray) and _is_packed(value)}
    if packed:
        model = _with_constants(model, {name: feeds.pop(name) for name in packed})
    try:
        return run_session(open_session(model, optimize=optimize), feeds)
    except Exception as error:  # onnxruntime's classes share no base of their own
        raise Unavailable(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without onnxruntime's prefix of status and code."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text.rsplit("[ONNXRuntimeError] : ", maxsplit=1)[-1][:300]


def run_session(session: Any, feeds: dict[str, Output]) -> list[Output]:  # noqa: ANN401
    """Run a session on inputs by name; tensors go through `OrtValue`, other values and runs that give maps plainly."""
    fed = {name: _to_ort(value) for name, value in feeds.items()}
    maps = any("map(" in output.type for output in session.get_outputs())
    if not maps and all(isinstance(value, onnxruntime.OrtValue) for value in fed.values()):
        return [_from_ort(value) for value in session.run_with_ort_values(None, fed)]
    return [_plain(value) for value in session.run(None, feeds)]


def _is_packed(array: NDArray[np.generic]) -> bool:
    return array.dtype.kind not in "OUSTc" and data_type_of(array.dtype) in _PACKED


def _with_constants(model: ModelProto, constants: dict[str, Output]) -> ModelProto:
    changed = ModelProto()
    changed.CopyFrom(model)
    kept = [value for value in changed.graph.input if value.name not in constants]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    changed.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    return changed


def _to_ort(value: Output) -> object:
    if not isinstance(value, np.ndarray) or kind_of(value.dtype) is Kind.TEXT:
        return value
    array = np.ascontiguousarray(value).reshape(value.shape)
    element = data_type_of(array.dtype)
    if array.dtype.isbuiltin == 1:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, element)


def _from_ort(value: Any) -> Output:  # noqa: ANN401
    if not value.has_value():
        return None
    if not value.is_tensor():
        return _plain(value.to_numpy() if hasattr(value, "to_numpy") else value.numpy())
    element = value.element_type()
    dtype = numpy_type(element)
    if dtype.isbuiltin == 1:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()), np.uint8)
    if element not in _PACKED:
        return raw.view(dtype).reshape(shape)
    return _unpacked(raw, element, dtype, shape)


def _unpacked(
    raw: NDArray[np.uint8], element: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> NDArray[np.generic]:
    """ONNX keeps packed elements lowest bits first too, so its own reader takes onnxruntime's bytes as they are."""
    tensor = TensorProto(data_type=element, dims=shape, raw_data=raw.tobytes())
    return np.asarray(numpy_helper.to_array(tensor)).astype(dtype)


def _plain(value: object) -> Output:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, dict):
        return value
    return np.asarray(value)
