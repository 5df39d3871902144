"""Python syntax as a carrier: typed access to a parsed text, with refusals that name line and column."""

from __future__ import annotations

import ast
import math
import warnings
from typing import TYPE_CHECKING, Any, Final, NoReturn

from compiler.errors import InvalidText, OpatlasError
from compiler.ir import ElementType, Location, TensorType, Type, element_type
from compiler.ir.attribute_parser import parse_location
from compiler.ir.lexer import Cursor
from compiler.ir.literal import float_of
from compiler.ir.type_parser import parse_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def parse_statements(text: str) -> list[ast.stmt]:
    """The statements of the text. Raises InvalidText."""
    try:
        with warnings.catch_warnings():
            # Python warns of a number that runs into a name, before it refuses it.
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        msg = f"{line}:{column}: {reason}; expected the text of a program"
        raise InvalidText(msg) from error


def fail(node: ast.AST, expected: str) -> NoReturn:
    """Refuse what stands at ``node``. Raises InvalidText."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    found = ast.unparse(node).splitlines()[0][:60]
    msg = f"{line}:{column}: found '{found}'; expected {expected}"
    raise InvalidText(msg)


class Arguments:
    """The arguments of a call, taken in order or by name; what is left over is refused."""

    def __init__(self, call: ast.Call) -> None:
        self.call = call
        self._positional = list(call.args)
        self._named: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in self._named:
                fail(keyword.value, "each argument once")
            self._named[keyword.arg] = keyword.value

    def next(self, what: str) -> ast.expr:
        """The next positional argument. Raises InvalidText."""
        if not self._positional:
            fail(self.call, f"another argument, {what}")
        return self._positional.pop(0)

    def named(self, name: str) -> ast.expr | None:
        """The argument of that name, if given."""
        return self._named.pop(name, None)

    def required(self, name: str) -> ast.expr:
        """The argument of that name. Raises InvalidText."""
        found = self.named(name)
        if found is None:
            fail(self.call, f"an argument '{name}'")
        return found

    def end(self) -> None:
        """Nothing may be left. Raises InvalidText."""
        for left in (*self._positional, *self._named.values()):
            fail(left, "no further argument")


def call_of(node: ast.AST) -> ast.Call:
    """The call that a statement or an expression is. Raises InvalidText."""
    if isinstance(node, ast.Expr):
        node = node.value
    if not isinstance(node, ast.Call):
        fail(node, "name(arguments)")
    return node


def name_of(call: ast.Call) -> str:
    """What is called. Raises InvalidText."""
    if not isinstance(call.func, ast.Name):
        fail(call, "a name before '('")
    return call.func.id


def integer(node: ast.AST) -> int:
    """A whole number. Raises InvalidText."""
    value = number(node)
    if not isinstance(value, int) or isinstance(value, bool):
        fail(node, "a whole number")
    return value


def flag(node: ast.AST) -> bool:
    """True or False. Raises InvalidText."""
    value = number(node)
    if not isinstance(value, bool):
        fail(node, "True or False")
    return value


_NAMED_NUMBERS: Final = {"inf": math.inf, "nan": math.nan}


def number(node: ast.AST) -> Any:  # noqa: ANN401 - bool, int, float or complex
    """A bool, int, float or complex. Raises InvalidText."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in _NAMED_NUMBERS:
        return _NAMED_NUMBERS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        if not isinstance(value, bool):
            return -value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        arguments = Arguments(node)
        if node.func.id == "complex":
            parts = number(arguments.next("the real part")), number(arguments.next("the imaginary part"))
            arguments.end()
            return complex(*parts)
        if node.func.id == "float":
            return float_of(string(arguments.next("its bits")))
    fail(node, "a number")


def string(node: ast.AST) -> str:
    """A quoted text. Raises InvalidText."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        fail(node, "a quoted text")
    return node.value


def items(node: ast.AST) -> Sequence[ast.expr]:
    """The items of a list. Raises InvalidText."""
    if not isinstance(node, ast.List):
        fail(node, "a list in brackets")
    return node.elts


def integers(node: ast.AST) -> tuple[int, ...]:
    """A list of whole numbers. Raises InvalidText."""
    return tuple(integer(item) for item in items(node))


def optional_integer(node: ast.AST) -> int | None:
    """A whole number or None. Raises InvalidText."""
    return None if isinstance(node, ast.Constant) and node.value is None else integer(node)


def element(node: ast.AST) -> ElementType:
    """An element type's name. Raises InvalidText."""
    name = node.id if isinstance(node, ast.Name) else string(node)
    try:
        return element_type(name)
    except OpatlasError:
        fail(node, "an element type")


def _inner(node: ast.AST, read: Callable[[Cursor], Any], expected: str) -> Any:  # noqa: ANN401 - as the reader
    cursor = Cursor(string(node))
    try:
        found = read(cursor)
    except OpatlasError:
        fail(node, expected)
    cursor.skip()
    if cursor.position != len(cursor.text):
        fail(node, f"nothing after {expected}")
    return found


def type_(node: ast.AST) -> Type:
    """A type. Raises InvalidText."""
    found = _inner(node, parse_type, "a type")
    assert isinstance(found, Type)
    return found


def tensor_type(node: ast.AST) -> TensorType:
    """A tensor type. Raises InvalidText."""
    found = type_(node)
    if not isinstance(found, TensorType):
        fail(node, "a tensor type")
    return found


def location(node: ast.AST) -> Location:
    """A location. Raises InvalidText."""
    found = _inner(node, parse_location, "a location")
    assert isinstance(found, Location)
    return found
