"""The text of a network: where each of its layers stands, which the protobuf library does not tell."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<skip>\#[^\n]*|[,;\s]) | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<open>[{<]) | (?P<close>[}>]) | (?P<word>[A-Za-z_]\w*) | (?P<other>.)""",
    re.VERBOSE,
)


def lines_of(text: str, field: str) -> list[int]:
    """The lines, from 1, at which the blocks of a repeated top-level message start, in order.

    The text is one that the protobuf library has parsed: brackets match.
    """
    found: list[int] = []
    depth, line, last = 0, 1, ("", 0)
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token.group()
        if kind == "open":
            if depth == 0 and last[0] == field:
                found.append(last[1])
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "word":
            last = (word, line)
        line += word.count("\n")
    return found
