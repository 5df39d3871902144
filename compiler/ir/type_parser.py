"""Reads types as :func:`compiler.ir.types.type_text` writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from compiler.errors import UnsupportedType
from compiler.ir.lexer import SPACE
from compiler.ir.literal import unquoted
from compiler.ir.types import (
    ELEMENT_TYPES,
    UNKNOWN,
    Dim,
    ElementType,
    Quantization,
    TensorType,
    Type,
    element_type,
    map_of,
    optional_of,
    sequence_of,
    tensor,
)

if TYPE_CHECKING:
    from compiler.ir.lexer import Cursor

_SIMPLE: Final = re.compile(r"tensor<[0-9?x]*[a-zA-Z][0-9A-Za-z]*>")
_ELEMENT_NAMES: Final = "|".join(sorted((re.escape(element.name) for element in ELEMENT_TYPES), key=len, reverse=True))
_ELEMENT: Final = re.compile(rf"{SPACE}({_ELEMENT_NAMES})(?![A-Za-z0-9_])")
_DIMS: Final = re.compile(rf"{SPACE}(\*x|(?:(?:[0-9]{{1,18}}|\?)x)*+)")
_NUMBER: Final = re.compile(rf"{SPACE}(-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|inf)|nan)")

_CACHE: dict[str, Type] = {}
"""Types by their text; types are interned for good, so this only holds their spellings."""


def parse_element(cursor: Cursor) -> ElementType | None:
    """The element type that comes next, if one does."""
    found = cursor.match(_ELEMENT)
    return element_type(found[1]) if found else None


def parse_type(cursor: Cursor) -> Type:
    """The type that comes next. Raises InvalidText."""
    cursor.skip()
    simple = _SIMPLE.match(cursor.text, cursor.position)
    if simple is not None:
        known = _CACHE.get(simple[0])
        if known is not None:
            cursor.position = simple.end()
            return known
    cursor.enter()
    start = cursor.position
    if cursor.take("tensor<"):
        found: Type = _tensor(cursor, start)
    elif cursor.take("!ir.sequence<"):
        found = sequence_of(parse_type(cursor))
    elif cursor.take("!ir.optional<"):
        found = optional_of(parse_type(cursor))
    elif cursor.take("!ir.map<"):
        found = _map(cursor, start)
    else:
        cursor.fail("a type")
    cursor.expect(">", " at the end of the type")
    cursor.leave()
    if simple is not None and simple.end() == cursor.position:
        _CACHE[simple[0]] = found
    return found


def _map(cursor: Cursor, start: int) -> Type:
    key = parse_element(cursor)
    if key is None:
        cursor.fail("an element type of the keys")
    cursor.expect(",", " after the type of the keys")
    try:
        return map_of(key, parse_type(cursor))
    except UnsupportedType as error:
        cursor.fail("a map type", start, error.message)


def _tensor(cursor: Cursor, start: int) -> TensorType:
    prefix = cursor.match(_DIMS)
    sizes = prefix[1] if prefix else ""
    element = parse_element(cursor)
    if element is None:
        cursor.fail("dims separated by 'x' and an element type")
    dims: list[Dim] | None = None
    if sizes != "*x":
        dims = [UNKNOWN if size == "?" else int(size) for size in sizes.split("x")[:-1]]
    quantization = None
    while cursor.take(","):
        if cursor.take("#ir.dims<["):
            dims = _symbols(cursor, dims)
        elif cursor.take("#ir.quant<"):
            quantization = _quantization(cursor)
        else:
            cursor.fail("'#ir.dims<' or '#ir.quant<'")
    try:
        return tensor(element, dims, quantization)
    except UnsupportedType as error:
        cursor.fail("a tensor type", start, error.message)


def _symbols(cursor: Cursor, sizes: list[Dim] | None) -> list[Dim]:
    start = cursor.position
    dims: list[Dim] = []
    while not cursor.take("]"):
        if dims:
            cursor.expect(",", " between dims")
        dims.append(unquoted(cursor.string("a symbol")) if cursor.sees('"') else cursor.integer("a size or a symbol"))
    cursor.expect(">", " at the end of the dims")
    shown = [UNKNOWN if isinstance(dim, str) else dim for dim in dims]
    if sizes is None or shown != sizes:
        cursor.fail(f"dims that agree with {sizes}", start, f"dims {dims}")
    return dims


def _quantization(cursor: Cursor) -> Quantization:
    scales: list[float] = []
    cursor.expect("[", " before the scales")
    while not cursor.take("]"):
        if scales:
            cursor.expect(",", " between scales")
        number = cursor.match(_NUMBER)
        if number is None:
            cursor.fail("a scale")
        scales.append(float(number[1]))
    cursor.expect(",")
    zeros: list[int] = []
    cursor.expect("[", " before the zero points")
    while not cursor.take("]"):
        if zeros:
            cursor.expect(",", " between zero points")
        zeros.append(cursor.integer("a zero point"))
    cursor.expect(",")
    axis = None if cursor.take("none") else cursor.integer("an axis or 'none'")
    cursor.expect(",")
    block = cursor.integer("a block size")
    cursor.expect(",")
    expressed = parse_element(cursor)
    if expressed is None:
        cursor.fail("an element type")
    cursor.expect(">", " at the end of the quantization")
    return Quantization(tuple(scales), tuple(zeros), axis, block, expressed)
