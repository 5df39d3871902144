r"""Literals of the text form: strings, identifiers and numbers, written and read back to the bit.

The notation is MLIR's: strings with ``\\XX`` hexadecimal escapes, floats as decimals where finite, else as the bits in
hexadecimal, so that NaN payloads survive.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidGraph
from compiler.ir.types import ElementType, Kind, quoted

if TYPE_CHECKING:
    from compiler.ir.constant import Array

_ESCAPE: Final = re.compile(r'\\(["\\nt]|[0-9A-Fa-f]{2})')
_ESCAPED: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_.\-][A-Za-z0-9_.\-]*\Z")
_NAME_ESCAPE: Final = re.compile(r"(?:\$[0-9A-F]{2})+")
_COPY_SUFFIX: Final = re.compile(r"\$_[0-9]+\Z")


def unquoted(body: str) -> str:
    """The string whose text between the quotes is ``body``."""
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or chr(int(match[1], 16)), body)


def identifier(name: str) -> str:
    """The name as an MLIR identifier: any other character becomes ``$XX``, one a byte of its UTF-8 form."""
    if _PLAIN_NAME.match(name):
        return name
    pieces = []
    for position, character in enumerate(name):
        if (
            character.isascii()
            and (character.isalnum() or character in "_.-")
            and not (position == 0 and character.isdigit())
        ):
            pieces.append(character)
        else:
            pieces.extend(f"${byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
    return "".join(pieces)


def name_of(text: str) -> str:
    """The name that :func:`identifier` wrote; empty for a number. A copy's suffix ``$_n`` is dropped."""
    if text.isdigit():
        return ""
    if "$" not in text:
        return text
    return _NAME_ESCAPE.sub(
        lambda match: bytes.fromhex(match[0].replace("$", "")).decode("utf-8", "surrogatepass"),
        _COPY_SUFFIX.sub("", text),
    )


def float_text(value: float) -> str:
    """The shortest decimal that reads back to the same double; ``0x`` and the bits for NaN and infinities."""
    if value - value != 0.0:  # NaN or infinite
        return f"0x{struct.pack('>d', value).hex().upper()}"
    shown = repr(value)
    if "." not in shown:
        mantissa, _, exponent = shown.partition("e")
        shown = f"{mantissa}.0e{exponent}"
    return shown


def float_of(text: str) -> float:
    """The double that :func:`float_text` wrote."""
    if text.startswith("0x"):
        return float(struct.unpack(">d", bytes.fromhex(text[2:].zfill(16)))[0])
    return float(text)


def _real_text(scalar: Any) -> str:  # noqa: ANN401 - a numpy scalar of any float type
    value = float(scalar)
    if value - value != 0.0:
        return f"0x{np.asarray(scalar).view(f'u{scalar.dtype.itemsize}').item():0{2 * scalar.dtype.itemsize}X}"
    return float_text(value)


def element_text(scalar: Any, element: ElementType) -> str:  # noqa: ANN401 - a numpy scalar of any type
    """One element of a constant. Raises InvalidGraph for a string element that is no ``str``."""
    if element.kind is Kind.BOOL:
        return "true" if scalar else "false"
    if element.is_float:
        return _real_text(scalar)
    if element.kind is Kind.COMPLEX:
        return f"({_real_text(scalar.real)}, {_real_text(scalar.imag)})"
    if element.kind is Kind.STRING:
        if not isinstance(scalar, str):
            msg = f"string constant has an element of {type(scalar).__name__}; expected str"
            raise InvalidGraph(msg)
        return quoted(scalar)
    return str(int(scalar))


def real_element(text: str, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - a numpy scalar of any float type
    """The float element that :func:`element_text` wrote. Raises ValueError where the text is none."""
    if text.startswith("0x"):
        bits = np.array(int(text, 16), dtype=f"u{dtype.itemsize}")
        return bits.view(dtype)[()]
    return np.array(float(text), dtype=np.float64).astype(dtype)[()]


def dense_text(array: Array, element: ElementType) -> str:
    """All elements, nested by dim; nothing for an array without elements."""
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return element_text(array[()], element)
    return (
        f"[{', '.join([dense_text(part, element) for part in array])}]" if array.ndim > 1 else _row_text(array, element)
    )


def _row_text(row: Array, element: ElementType) -> str:
    return f"[{', '.join([element_text(scalar, element) for scalar in row])}]"
