"""Reads attribute values and locations as :mod:`compiler.ir.printer` writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.ir.constant import Array, Constant
from compiler.ir.lexer import NAME, SPACE, STRING
from compiler.ir.literal import float_of, real_element, unquoted
from compiler.ir.location import UNKNOWN_LOCATION, Location, Node
from compiler.ir.type_parser import parse_element, parse_type
from compiler.ir.types import Kind, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.ir.definition import AttributeValue
    from compiler.ir.lexer import Cursor

_INTEGER: Final = r"-?[0-9]{1,40}"
_DECIMAL: Final = r"-?[0-9]{1,40}\.[0-9]{1,400}(?:e[+-]?[0-9]{1,4})?"
_FLOAT: Final = re.compile(rf"{SPACE}({_DECIMAL}|0x[0-9A-Fa-f]{{1,16}})(?:{SPACE}:{SPACE}f64\b)?")
_INT: Final = re.compile(rf"{SPACE}({_INTEGER})(?![0-9.xA-Za-z])")
_SCALAR: Final = re.compile(rf"{SPACE}({STRING}|true\b|false\b|{_DECIMAL}|0x[0-9A-Fa-f]{{1,16}}|{_INTEGER})")
_KEY: Final = re.compile(rf"{SPACE}(?:({STRING})|({NAME}))")
_NODE_TEXT: Final = rf"({STRING})(?:\(({STRING})(?:\(({STRING})\))?\))?"
_NODE: Final = re.compile(rf"{SPACE}{_NODE_TEXT}")
_LOCATION: Final = re.compile(rf"{SPACE}loc\({_NODE_TEXT}\)")
_BOOLS: Final = ("true", "false")
_FLAGS: Final = re.compile(rf"{SPACE}array<i32:((?:{SPACE}[01]{SPACE},?)*)>")


def parse_location(cursor: Cursor) -> Location:
    """The location that comes next, unknown where there is none. Raises InvalidText."""
    simple = cursor.match(_LOCATION)
    if simple is not None:
        return Location((_node(simple),))
    if not cursor.take("loc("):
        return UNKNOWN_LOCATION
    nodes: list[Node] = []
    if cursor.take("fused["):
        while not cursor.take("]"):
            if nodes:
                cursor.expect(",", " between locations")
            found = cursor.match(_NODE)
            if found is None:
                cursor.fail("a node's name in quotes")
            nodes.append(_node(found))
    elif not cursor.take("unknown"):
        cursor.fail("a node's name in quotes, 'fused[' or 'unknown'")
    cursor.expect(")", " at the end of the location")
    return Location(tuple(nodes)) if nodes else UNKNOWN_LOCATION


def _node(found: re.Match[str]) -> Node:
    name, operator, source = found.groups('""')
    return Node(unquoted(name[1:-1]), unquoted(operator[1:-1]), unquoted(source[1:-1]))


def parse_key(cursor: Cursor) -> str:
    """An attribute's name. Raises InvalidText."""
    found = cursor.match(_KEY)
    if found is None:
        cursor.fail("an attribute's name")
    return found[2] or unquoted(found[1][1:-1])


def parse_flags(cursor: Cursor) -> list[bool]:
    """``array<i32: 1, 0>``: which operands are given. Raises InvalidText."""
    found = cursor.match(_FLAGS)
    if found is None:
        cursor.fail("array<i32: ...> of ones and zeros")
    return [flag == "1" for flag in found[1] if flag in "01"]


def parse_attribute(cursor: Cursor, resources: Mapping[str, Array]) -> AttributeValue:
    """The attribute value that comes next. Raises InvalidText."""
    number = cursor.match(_INT)
    if number is not None:
        return int(number[1])
    number = cursor.match(_FLOAT)
    if number is not None:
        return float_of(number[1])
    if cursor.sees('"'):
        return unquoted(cursor.string("a string"))
    if cursor.take("["):
        return _tuple(cursor, resources)
    if cursor.sees("dense") or cursor.sees("#ir.abstract"):
        return _constant(cursor, resources)
    element = parse_element(cursor)
    if element is not None:
        return element
    if cursor.sees("tensor<") or cursor.sees("!ir."):
        return parse_type(cursor)
    for word in _BOOLS:
        if cursor.take(word):
            return word == "true"
    cursor.fail("an attribute value: number, string, true, false, type, list or dense<...>")
    return None


def _tuple(cursor: Cursor, resources: Mapping[str, Array]) -> AttributeValue:
    cursor.enter()
    items: list[AttributeValue] = []
    while not cursor.take("]"):
        if items:
            cursor.expect(",", " or ']' in the list")
        items.append(parse_attribute(cursor, resources))
    cursor.leave()
    return tuple(items)


def _constant(cursor: Cursor, resources: Mapping[str, Array]) -> Constant:
    start = cursor.position
    if cursor.take("#ir.abstract<"):
        seed = cursor.integer("a seed")
        cursor.expect(">")
        return Constant.abstract(_typed(cursor), seed)
    if cursor.take("dense_resource<"):
        key = cursor.word("the name of a resource")
        cursor.expect(">")
        return _from_resource(cursor, start, key, resources)
    cursor.expect("dense<")
    scalars: list[Any] = []
    shape: list[int] | None = None
    if not cursor.take(">"):
        shape = _elements(cursor, scalars)
        cursor.expect(">", " at the end of the constant")
    return _dense(cursor, start, scalars, shape)


def _typed(cursor: Cursor) -> TensorType:
    cursor.expect(":", " and a type after the constant")
    start = cursor.position
    type_ = parse_type(cursor)
    if not isinstance(type_, TensorType) or not type_.is_static:
        cursor.fail("a tensor type with static dims", start)
    return type_


def _elements(cursor: Cursor, scalars: list[Any]) -> list[int]:
    """Read nested lists into ``scalars`` and return their shape. Raises InvalidText for ragged ones."""
    if not cursor.take("["):
        scalars.append(_scalar(cursor))
        return []
    cursor.enter()
    count, inner = 0, None
    while not cursor.take("]"):
        if count:
            cursor.expect(",", " or ']' in the constant")
        start = cursor.position
        shape = _elements(cursor, scalars)
        if inner is not None and shape != inner:
            cursor.fail(f"a row of shape {inner}", start, f"a row of shape {shape}")
        inner = shape
        count += 1
    cursor.leave()
    return [count, *(inner or [])]


def _scalar(cursor: Cursor) -> str | tuple[str, str]:
    if cursor.take("("):
        real = _plain_scalar(cursor)
        cursor.expect(",", " between real and imaginary part")
        imaginary = _plain_scalar(cursor)
        cursor.expect(")", " after the imaginary part")
        return real, imaginary
    return _plain_scalar(cursor)


def _plain_scalar(cursor: Cursor) -> str:
    found = cursor.match(_SCALAR)
    if found is None:
        cursor.fail("an element: number, string, true, false or (real, imaginary)")
    return found[1]


def _dense(cursor: Cursor, start: int, scalars: list[Any], shape: list[int] | None) -> Constant:
    type_ = _typed(cursor)
    fits = type_.size == 0 if shape is None else shape == [] or tuple(shape) == type_.shape
    if not fits:
        cursor.fail(f"elements of shape {list(type_.shape)}", start, f"elements of shape {shape}")
    dtype = type_.element.dtype
    array = np.empty(len(scalars), dtype)
    read = _READERS[type_.element.kind]
    for index, scalar in enumerate(scalars):
        try:
            array[index] = read(scalar, dtype)
        except (ValueError, TypeError, OverflowError):
            cursor.fail(f"elements of type {type_.element}", start, f"element {scalar}")
    if shape == [] and type_.shape != ():
        return Constant(_frozen(np.full(type_.shape, array[0] if len(array) else 0, dtype)), type_)
    return Constant(_frozen(array.reshape(type_.shape)), type_)


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _read_bool(text: Any, dtype: np.dtype[Any]) -> bool:  # noqa: ANN401, ARG001 - the readers' common signature
    _must(text in _BOOLS)
    return bool(text == "true")


def _must(condition: bool) -> None:
    if not condition:
        raise ValueError


def _read_integer(text: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    value = int(text)
    stored = np.array(value, dtype) if dtype.kind in "iu" else np.array(value, np.int64).astype(dtype)
    _must(int(stored[()]) == value)
    return stored[()]


def _read_complex(parts: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    part = np.dtype(f"f{dtype.itemsize // 2}")
    halves = np.array([real_element(parts[0], part), real_element(parts[1], part)], part)
    return halves.view(dtype)[0]


def _read_string(text: Any, dtype: np.dtype[Any]) -> str:  # noqa: ANN401, ARG001
    _must(text.startswith('"'))
    return unquoted(text[1:-1])


_READERS: Final = {
    Kind.BOOL: _read_bool,
    Kind.FLOAT: real_element,
    Kind.SIGNED: _read_integer,
    Kind.UNSIGNED: _read_integer,
    Kind.COMPLEX: _read_complex,
    Kind.STRING: _read_string,
}


def _from_resource(cursor: Cursor, start: int, key: str, resources: Mapping[str, Array]) -> Constant:
    type_ = _typed(cursor)
    data = resources.get(key)
    if data is None:
        cursor.fail(f"one of the {len(resources)} resources given", start, f"resource '{key}'")
    if data.dtype != type_.element.dtype or data.shape != type_.shape:
        if data.dtype.hasobject or data.nbytes != type_.size * type_.element.dtype.itemsize:
            cursor.fail(f"data for {type_}", start, f"resource '{key}' of {data.dtype}{list(data.shape)}")
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).view(type_.element.dtype).reshape(type_.shape)
    view = data.view()
    view.flags.writeable = False
    return Constant(view, type_)
