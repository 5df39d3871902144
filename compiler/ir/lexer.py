"""A cursor over text with compiled patterns, and diagnoses with line and column."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from compiler.errors import InvalidText

SPACE: Final = r"(?:[ \t\r\n]|//[^\n]*)*+"
STRING: Final = r'"(?:[^"\\\n]|\\.)*+"'
NAME: Final = r"[A-Za-z0-9_.$\-]++"

_SKIP: Final = re.compile(SPACE)
_FOUND: Final = re.compile(rf"{STRING}|[%^#!]?{NAME}|.", re.DOTALL)
_STRING: Final = re.compile(rf"{SPACE}({STRING})")
_WORD: Final = re.compile(rf"{SPACE}({NAME})")

MAX_DEPTH: Final = 100
"""Deeper nesting of attributes, types or regions is refused: no graph has it, and a parser must not overflow."""


class Cursor:
    """A position in ``text``. Every method skips white space and ``//`` comments first."""

    __slots__ = ("depth", "position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def fail(self, expected: str, position: int | None = None, found: str | None = None) -> NoReturn:
        """Raise InvalidText: line:column, what stands there, what was expected."""
        at = self.position if position is None else position
        match = _SKIP.match(self.text, at)
        at = match.end() if match else at
        if found is None:
            token = _FOUND.match(self.text, at)
            found = f"'{token[0][:60]}'" if token else "the end of the text"
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        msg = f"{line}:{column}: found {found}; expected {expected}"
        raise InvalidText(msg)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match ``pattern`` here and step over it, or stay."""
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def skip(self) -> None:
        """Step over white space and comments."""
        self.match(_SKIP)

    def sees(self, symbol: str) -> bool:
        """Whether ``symbol`` comes next."""
        self.skip()
        return self.text.startswith(symbol, self.position)

    def take(self, symbol: str) -> bool:
        """Step over ``symbol`` if it comes next."""
        if self.sees(symbol):
            self.position += len(symbol)
            return True
        return False

    def expect(self, symbol: str, context: str = "") -> None:
        """Step over ``symbol``. Raises InvalidText where something else comes next."""
        if not self.take(symbol):
            self.fail(f"'{symbol}'{context}")

    def string(self, what: str) -> str:
        """The text between the quotes of a string literal, escapes as written. Raises InvalidText."""
        found = self.match(_STRING)
        if found is None:
            self.fail(f"{what} in quotes")
        return found[1][1:-1]

    def word(self, what: str) -> str:
        """An identifier or number. Raises InvalidText."""
        found = self.match(_WORD)
        if found is None:
            self.fail(what)
        return found[1]

    def integer(self, what: str) -> int:
        """An integer. Raises InvalidText."""
        start = self.position
        word = self.word(what)
        if not re.fullmatch(r"-?[0-9]{1,40}", word):
            self.fail(what, start)
        return int(word)

    def enter(self) -> None:
        """Go one level deeper. Raises InvalidText beyond the limit."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"at most {MAX_DEPTH} levels of nesting")

    def leave(self) -> None:
        """Come back one level."""
        self.depth -= 1
