"""Element types, tensor types with symbolic dims, sequences, optionals and quantization encodings. All interned.

Interning makes equality identity: two types are equal exactly when they are the same object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from compiler.errors import UnsupportedType

if TYPE_CHECKING:
    from collections.abc import Sequence

Dim: TypeAlias = int | str
"""A size, the name of a symbol, or ``UNKNOWN``."""

UNKNOWN: Final = "?"
"""A dim of which nothing is known; unlike a named symbol it does not equal another ``?``."""


class Kind(Enum):
    """What an element type's values are."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOL = "bool"
    COMPLEX = "complex"
    STRING = "string"


@dataclass(frozen=True, slots=True, eq=False)
class ElementType:
    """An element type. ``bits`` is the storage size, ``dtype`` the numpy type that holds one element a slot."""

    name: str
    bits: int
    kind: Kind
    dtype: np.dtype[Any]

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers (not complex)."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether values are signed or unsigned integers (not bool)."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined: float, integer or complex."""
        return self.kind not in (Kind.BOOL, Kind.STRING)

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (element_type, (self.name,))


_BY_NAME: dict[str, ElementType] = {}
_BY_DTYPE: dict[np.dtype[Any], ElementType] = {}


def _define(name: str, bits: int, kind: Kind, dtype: Any) -> ElementType:  # noqa: ANN401 - whatever np.dtype takes
    element = ElementType(name, bits, kind, np.dtype(dtype))
    _BY_NAME[name] = element
    _BY_DTYPE[element.dtype] = element
    return element


F64 = _define("f64", 64, Kind.FLOAT, np.float64)
F32 = _define("f32", 32, Kind.FLOAT, np.float32)
F16 = _define("f16", 16, Kind.FLOAT, np.float16)
BF16 = _define("bf16", 16, Kind.FLOAT, ml_dtypes.bfloat16)
F8E4M3FN = _define("f8E4M3FN", 8, Kind.FLOAT, ml_dtypes.float8_e4m3fn)
F8E4M3FNUZ = _define("f8E4M3FNUZ", 8, Kind.FLOAT, ml_dtypes.float8_e4m3fnuz)
F8E5M2 = _define("f8E5M2", 8, Kind.FLOAT, ml_dtypes.float8_e5m2)
F8E5M2FNUZ = _define("f8E5M2FNUZ", 8, Kind.FLOAT, ml_dtypes.float8_e5m2fnuz)
F8E8M0FNU = _define("f8E8M0FNU", 8, Kind.FLOAT, ml_dtypes.float8_e8m0fnu)
F6E2M3FN = _define("f6E2M3FN", 6, Kind.FLOAT, ml_dtypes.float6_e2m3fn)
F6E3M2FN = _define("f6E3M2FN", 6, Kind.FLOAT, ml_dtypes.float6_e3m2fn)
F4E2M1FN = _define("f4E2M1FN", 4, Kind.FLOAT, ml_dtypes.float4_e2m1fn)
I64 = _define("i64", 64, Kind.SIGNED, np.int64)
I32 = _define("i32", 32, Kind.SIGNED, np.int32)
I16 = _define("i16", 16, Kind.SIGNED, np.int16)
I8 = _define("i8", 8, Kind.SIGNED, np.int8)
I4 = _define("i4", 4, Kind.SIGNED, ml_dtypes.int4)
I2 = _define("i2", 2, Kind.SIGNED, ml_dtypes.int2)
U64 = _define("ui64", 64, Kind.UNSIGNED, np.uint64)
U32 = _define("ui32", 32, Kind.UNSIGNED, np.uint32)
U16 = _define("ui16", 16, Kind.UNSIGNED, np.uint16)
U8 = _define("ui8", 8, Kind.UNSIGNED, np.uint8)
U4 = _define("ui4", 4, Kind.UNSIGNED, ml_dtypes.uint4)
U2 = _define("ui2", 2, Kind.UNSIGNED, ml_dtypes.uint2)
BOOL = _define("i1", 8, Kind.BOOL, np.bool_)
C64 = _define("complex<f32>", 64, Kind.COMPLEX, np.complex64)
C128 = _define("complex<f64>", 128, Kind.COMPLEX, np.complex128)
STRING = _define("!ir.string", 64, Kind.STRING, np.object_)

ELEMENT_TYPES: Final[tuple[ElementType, ...]] = tuple(_BY_NAME.values())


def element_type(name: str) -> ElementType:
    """The element type of that name in the text form. Raises UnsupportedType."""
    found = _BY_NAME.get(name)
    if found is None:
        msg = f"element type '{name}' is unknown; expected one of {', '.join(_BY_NAME)}"
        raise UnsupportedType(msg)
    return found


def element_of(dtype: np.dtype[Any]) -> ElementType:
    """The element type whose elements numpy holds as ``dtype``. Raises UnsupportedType."""
    found = _BY_DTYPE.get(dtype)
    if found is None:
        if dtype.kind in "US":
            return STRING
        msg = f"numpy type '{dtype}' has no element type"
        raise UnsupportedType(msg)
    return found


@dataclass(frozen=True, slots=True)
class Quantization:
    """How stored integers (or narrow floats) stand for real numbers: real = (stored - zero_point) * scale.

    ``scales`` and ``zero_points`` hold one entry for the whole tensor, one a slice of ``axis``, or, with ``block`` > 0,
    one a run of ``block`` elements along ``axis`` (row-major over the other dims).
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None
    block: int = 0
    expressed: ElementType = F32


class Type:
    """Base of the types a value can have."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class TensorType(Type):
    """A tensor: element type, dims (``None``: the rank is unknown) and an optional quantization.

    Make one with :func:`tensor`; it is interned, so ``is`` and ``==`` agree.
    """

    element: ElementType
    dims: tuple[Dim, ...] | None
    quantization: Quantization | None = None

    @property
    def rank(self) -> int:
        """Number of dims. Raises UnsupportedType for a tensor of unknown rank."""
        return len(self.known_dims)

    @property
    def known_dims(self) -> tuple[Dim, ...]:
        """The dims. Raises UnsupportedType for a tensor of unknown rank."""
        if self.dims is None:
            msg = f"the rank of {self} is needed and unknown"
            raise UnsupportedType(msg)
        return self.dims

    @property
    def is_static(self) -> bool:
        """Whether every dim is a number."""
        return self.dims is not None and all(isinstance(dim, int) for dim in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims as numbers. Raises UnsupportedType where one is symbolic."""
        sizes = tuple(dim for dim in self.known_dims if isinstance(dim, int))
        if len(sizes) != len(self.known_dims):
            msg = f"the sizes of {self} are needed and symbolic"
            raise UnsupportedType(msg)
        return sizes

    @property
    def size(self) -> int:
        """Number of elements of a static tensor."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of a static tensor, each row of sub-byte elements padded to a whole byte."""
        shape = self.shape
        if not shape:
            return (self.element.bits + 7) // 8
        row = (shape[-1] * self.element.bits + 7) // 8
        return row * (self.size // shape[-1] if shape[-1] else 0)

    def with_dims(self, dims: Sequence[Dim] | None) -> TensorType:
        """The same element type and quantization with other dims."""
        return tensor(self.element, dims, self.quantization)

    def with_element(self, element: ElementType) -> TensorType:
        """The same dims with another element type, not quantized."""
        return tensor(element, self.dims)

    def __str__(self) -> str:
        return type_text(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (tensor, (self.element, self.dims, self.quantization))


@dataclass(frozen=True, slots=True, eq=False)
class SequenceType(Type):
    """A list of values of one type. Make one with :func:`sequence_of`."""

    element: Type

    def __str__(self) -> str:
        return type_text(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (sequence_of, (self.element,))


@dataclass(frozen=True, slots=True, eq=False)
class OptionalType(Type):
    """A value or nothing. Make one with :func:`optional_of`."""

    element: Type

    def __str__(self) -> str:
        return type_text(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (optional_of, (self.element,))


@dataclass(frozen=True, slots=True, eq=False)
class MapType(Type):
    """A dictionary: integers or strings to values of one type. Make one with :func:`map_of`."""

    key: ElementType
    value: Type

    def __str__(self) -> str:
        return type_text(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (map_of, (self.key, self.value))


_TENSORS: dict[tuple[ElementType, tuple[Dim, ...] | None, Quantization | None], TensorType] = {}
_SEQUENCES: dict[Type, SequenceType] = {}
_OPTIONALS: dict[Type, OptionalType] = {}
_MAPS: dict[tuple[ElementType, Type], MapType] = {}


def tensor(
    element: ElementType, dims: Sequence[Dim] | None = (), quantization: Quantization | None = None
) -> TensorType:
    """The interned tensor type. ``dims`` None is an unknown rank; the empty tuple a scalar."""
    key = (element, None if dims is None else tuple(dims), quantization)
    found = _TENSORS.get(key)
    if found is None:
        for dim in key[1] or ():
            if isinstance(dim, int) and dim < 0:
                msg = f"tensor dim {dim} in {list(key[1] or ())} is negative; expected a size or a symbol"
                raise UnsupportedType(msg)
        found = _TENSORS.setdefault(key, TensorType(*key))
    return found


def sequence_of(element: Type) -> SequenceType:
    """The interned sequence type."""
    return _SEQUENCES.setdefault(element, SequenceType(element))


def optional_of(element: Type) -> OptionalType:
    """The interned optional type."""
    return _OPTIONALS.setdefault(element, OptionalType(element))


def map_of(key: ElementType, value: Type) -> MapType:
    """The interned map type. Raises UnsupportedType for keys that are neither integers nor strings."""
    if not key.is_integer and key is not STRING:
        msg = f"map keys of type {key}; expected integers or strings"
        raise UnsupportedType(msg)
    return _MAPS.setdefault((key, value), MapType(key, value))


def type_of(array: np.ndarray[Any, Any]) -> TensorType:
    """The static tensor type of a numpy array."""
    return tensor(element_of(array.dtype), tuple(int(size) for size in array.shape))


def _quantization_text(quantization: Quantization) -> str:
    scales = ", ".join(repr(scale) for scale in quantization.scales)
    zeros = ", ".join(str(zero) for zero in quantization.zero_points)
    axis = "none" if quantization.axis is None else str(quantization.axis)
    return f"#ir.quant<[{scales}], [{zeros}], {axis}, {quantization.block}, {quantization.expressed}>"


def type_text(type_: Type) -> str:
    """The type in MLIR's notation. Symbols and quantization stand in the encoding, where MLIR has room for them.

    ``tensor<2x?xf32>``, ``tensor<*xf32>``, ``tensor<?x4xf32, #ir.dims<["N", 4]>>``.
    """
    if isinstance(type_, SequenceType):
        return f"!ir.sequence<{type_text(type_.element)}>"
    if isinstance(type_, OptionalType):
        return f"!ir.optional<{type_text(type_.element)}>"
    if isinstance(type_, MapType):
        return f"!ir.map<{type_.key}, {type_text(type_.value)}>"
    if not isinstance(type_, TensorType):
        msg = f"{type_!r} has no text form"
        raise UnsupportedType(msg)
    if type_.dims is None:
        body = f"*x{type_.element}"
    else:
        body = "x".join([*(str(dim) if isinstance(dim, int) else "?" for dim in type_.dims), str(type_.element)])
    notes = []
    if any(isinstance(dim, str) and dim != UNKNOWN for dim in type_.dims or ()):
        shown = ", ".join(_dim_text(dim) for dim in type_.dims or ())
        notes.append(f"#ir.dims<[{shown}]>")
    if type_.quantization is not None:
        notes.append(_quantization_text(type_.quantization))
    return f"tensor<{', '.join([body, *notes])}>"


def _dim_text(dim: Dim) -> str:
    return str(dim) if isinstance(dim, int) else quoted(dim)


_UNPRINTABLE: Final = re.compile(r'["\\\x00-\x1f\x7f]')


def quoted(text: str) -> str:
    r"""The text as MLIR's string literal, control characters as ``\\XX``."""
    if not _UNPRINTABLE.search(text):
        return f'"{text}"'
    return f'"{_UNPRINTABLE.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if found in '"\\':
        return f"\\{found}"
    return f"\\{ord(found):02X}"
