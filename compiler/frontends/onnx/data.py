"""Weights: TensorProto to a constant, without copies where the file's bytes are already the array's bytes.

External data is memory-mapped and must stay inside the model's folder: neither an absolute path, nor ``..``, nor a
symbolic link may lead out of it.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import TensorProto, numpy_helper

from compiler.errors import InvalidModel
from compiler.ir import BOOL, STRING, U32, Array, Constant, ElementType, Kind
from compiler.onnx_types import element_from

if TYPE_CHECKING:
    import onnx

_EXTERNAL_KEYS: Final = {"location", "offset", "length", "checksum", "basepath"}
_TYPED_FIELDS: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_NATIVE_LITTLE: Final = np.dtype("<u2") == np.dtype("=u2")


def constant_from(proto: TensorProto, folder: Path | None, what: str) -> Constant:
    """The constant that the tensor holds.

    ``folder`` is the model's, for external data (None: the model came without a file); ``what`` names the tensor.
    Raises InvalidModel for sizes, names and places that do not fit.
    """
    element = element_from(proto.data_type, what)
    shape = tuple(int(size) for size in proto.dims)
    if any(size < 0 for size in shape):
        raise InvalidModel(f"{what} has shape {list(shape)}; expected sizes of at least 0")
    if proto.HasField("segment"):
        raise InvalidModel(f"{what} is a segment of a larger tensor; expected the whole tensor")
    if proto.HasField("raw_data") and _filled(proto):
        raise InvalidModel(f"{what} has raw_data and {_stored(proto)}; expected one of them")
    if proto.data_location == TensorProto.EXTERNAL:
        return Constant.of(_from_bytes(_external(proto, folder, element, shape, what), element, shape, what))
    if proto.HasField("raw_data"):
        if element is STRING:
            raise InvalidModel(f"{what} holds strings in raw_data; expected string_data")
        return Constant.of(_from_bytes(np.frombuffer(proto.raw_data, np.uint8), element, shape, what))
    if element is STRING:
        return Constant.of(_strings(proto, shape, what))
    _require_range(proto, element, what)
    try:
        array = numpy_helper.to_array(proto)
    except (ValueError, TypeError) as error:
        raise InvalidModel(f"{what} has {_stored(proto)} for shape {list(shape)} of {element}: {error}") from error
    if element.dtype.isbuiltin != 1 and array.dtype.itemsize == element.dtype.itemsize:
        array = array.view(element.dtype)  # releases before 1.19 give the bits of such types as integers
    if array.shape != shape or array.dtype != element.dtype:
        raise InvalidModel(f"{what} has {_stored(proto)}; expected shape {list(shape)} of {element}")
    return Constant.of(array)


def _filled(proto: TensorProto) -> dict[str, int]:
    """Typed field -> its number of entries, for those that have any."""
    return {field: len(getattr(proto, field)) for field in _TYPED_FIELDS if len(getattr(proto, field))}


def _stored(proto: TensorProto) -> str:
    return ", ".join(f"{count} entries of {field}" for field, count in _filled(proto).items()) or "no data"


def _require_range(proto: TensorProto, element: ElementType, what: str) -> None:
    """Check the entries of fields that are wider than the element, which to_array would cut short."""
    field = "uint64_data" if element is U32 else "int32_data"
    entries = np.asarray(getattr(proto, field))
    if element is BOOL or not entries.size:
        return
    if element.bits < 8:
        low, high = -128, 255
    elif element.is_float:
        low, high = 0, (1 << element.bits) - 1
    else:
        low, high = int(np.iinfo(element.dtype).min), int(np.iinfo(element.dtype).max)
    wrong = entries[(entries < low) | (entries > high)]
    if wrong.size:
        raise InvalidModel(f"{what} of {element} has {wrong[0]} in {field}; expected {low} to {high}")


def _strings(proto: TensorProto, shape: tuple[int, ...], what: str) -> Array:
    if len(proto.string_data) != _count(shape):
        raise InvalidModel(f"{what} has {len(proto.string_data)} strings; expected {_count(shape)}")
    array = np.empty(len(proto.string_data), dtype=object)
    try:
        array[:] = [item.decode() for item in proto.string_data]
    except UnicodeDecodeError as error:
        raise InvalidModel(f"{what} has a string that is not UTF-8: {error}") from error
    return array.reshape(shape)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _byte_count(element: ElementType, shape: tuple[int, ...]) -> int:
    """Bytes in a file: elements below 8 bits are packed into a run of bits, the lowest first."""
    return (_count(shape) * element.bits + 7) // 8


def _from_bytes(data: np.ndarray[Any, Any], element: ElementType, shape: tuple[int, ...], what: str) -> Array:
    needed = _byte_count(element, shape)
    if data.size != needed:
        raise InvalidModel(f"{what} has {data.size} bytes; expected {needed} for shape {list(shape)} of {element}")
    if element.bits >= 8:
        array = data.view(element.dtype).reshape(shape)
        return array if _NATIVE_LITTLE else array.byteswap()
    bits = np.unpackbits(data, count=_count(shape) * element.bits, bitorder="little")
    codes = np.packbits(bits.reshape(-1, element.bits), axis=1, bitorder="little").reshape(-1)
    return _decode(codes, element).reshape(shape)


def _decode(codes: np.ndarray[Any, Any], element: ElementType) -> Array:
    """Bit patterns in the low bits of bytes to elements; ml_dtypes keeps a signed one sign-extended."""
    if element.is_float:
        return codes.view(element.dtype)
    if element.kind is Kind.SIGNED:
        sign = np.uint8(1 << (element.bits - 1))
        codes = ((codes ^ sign) - sign).view(np.int8)
    return codes.astype(element.dtype)


def _external(
    proto: TensorProto, folder: Path | None, element: ElementType, shape: tuple[int, ...], what: str
) -> np.ndarray[Any, Any]:
    entries: dict[str, str] = {}
    for entry in proto.external_data:
        if entry.key in entries:
            raise InvalidModel(f"{what} gives '{entry.key}' of its external data twice")
        entries[entry.key] = entry.value
    path = _inside(entries.get("location", ""), folder, what)
    size = path.stat().st_size
    offset = _number(entries, "offset", 0, what)
    needed = _byte_count(element, shape)
    length = _number(entries, "length", needed, what)
    if element is STRING:
        raise InvalidModel(f"{what} holds strings in external data; expected them in the model")
    if length != needed:
        raise InvalidModel(
            f"{what} has {length} bytes of external data; expected {needed} for {list(shape)} of {element}"
        )
    if offset + length > size:
        raise InvalidModel(f"{what} needs bytes {offset} to {offset + length} of '{path.name}', which has {size}")
    if not length:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r", offset, (length,))


def _number(entries: dict[str, str], key: str, default: int, what: str) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidModel(f"{what} has external data {key} '{text}'; expected a count of bytes")
    return int(text)


def _inside(location: str, folder: Path | None, what: str) -> Path:
    """The file, which must be a regular one inside ``folder`` after all links are followed. Raises InvalidModel."""
    if not location:
        raise InvalidModel(f"{what} is external data without a location")
    if folder is None:
        raise InvalidModel(f"{what} is external data in '{location}', and the model came without a folder")
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive or location.startswith("\\"):
        raise InvalidModel(
            f"{what} is external data at the absolute path '{location}'; expected one relative to the model"
        )
    if ".." in PurePosixPath(location).parts or ".." in PureWindowsPath(location).parts:
        raise InvalidModel(f"{what} is external data in '{location}', which leaves the model's folder")
    if "\0" in location:
        raise InvalidModel(f"{what} is external data in a file whose name has a zero byte")
    root = folder.resolve()
    path = (root / location).resolve()
    if not path.is_relative_to(root):
        raise InvalidModel(f"{what} is external data in '{location}', a link that leaves the model's folder")
    if not path.is_file():
        state = "is no regular file" if path.exists() else "does not exist"
        raise InvalidModel(f"{what} is external data in '{location}', which {state}")
    return path


def sparse_constant(proto: onnx.SparseTensorProto, folder: Path | None, what: str) -> Constant:
    """The dense constant of a sparse tensor: zeros but for ``values`` at ``indices``. Raises InvalidModel."""
    values = constant_from(proto.values, folder, f"the values of {what}").array
    indices = constant_from(proto.indices, folder, f"the indices of {what}").array
    shape = tuple(int(size) for size in proto.dims)
    if any(size < 0 for size in shape) or not shape:
        raise InvalidModel(f"{what} has shape {list(shape)}; expected at least one dim and no negative size")
    if values.ndim != 1 or indices.dtype != np.int64:
        raise InvalidModel(
            f"{what} has values of rank {values.ndim} and {indices.dtype} indices; expected rank 1 and int64"
        )
    if indices.shape not in {(len(values),), (len(values), len(shape))}:
        raise InvalidModel(
            f"{what} has indices of shape {list(indices.shape)} for {len(values)} values of rank {len(shape)}"
        )
    dense = np.zeros(shape, values.dtype)
    limits = np.array(shape if indices.ndim == 2 else (dense.size,))
    if len(values) and ((indices < 0).any() or (indices.reshape(len(values), -1) >= limits).any()):
        raise InvalidModel(f"{what} has an index outside its shape {list(shape)}")
    if len(values):
        flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        dense.reshape(-1)[flat] = values
    return Constant.of(dense)
