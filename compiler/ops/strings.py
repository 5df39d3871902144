"""Operators on text. Strings have no loops, so these run on the host."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import BOOL, I64, STRING, UNKNOWN, Call, Dim, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import FLAG, STRINGS, TEXT, TEXTS, Attribute, Operand, Variable, choice, integer, register
from compiler.ops.shapes import broadcast_dims

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Array

_TEXT: Final = Variable("S", STRINGS)
X: Final = Operand("x", _TEXT)


def texts(items: Iterable[str], shape: Sequence[int]) -> Array:
    """The strings as an array of objects with this shape."""
    found = list(items)
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(tuple(shape))


def flat(x: Any) -> list[str]:  # noqa: ANN401 - what an evaluator gets
    """The elements in row-major order as Python strings."""
    return [item.decode() if isinstance(item, bytes) else str(item) for item in np.asarray(x).reshape(-1).tolist()]


@register
class StringConcat(Evaluated):
    """The strings of a, each followed by that of b, broadcast. Source: ONNX StringConcat-20."""

    name: ClassVar[str] = "string_concat"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("a", _TEXT), Operand("b", _TEXT))

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (tensor(STRING, broadcast_dims(self.name, [call.tensor(0), call.tensor(1)])),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        a, b = np.broadcast_arrays(*(np.asarray(operand, object) for operand in operands))
        return (texts((x + y for x, y in zip(flat(a), flat(b), strict=True)), a.shape),)


@register
class StringSplit(Evaluated):
    """The substrings of each string along a new last dim, padded with empty ones, and int64 counts of them.

    They lie between occurrences of ``delimiter``; where that is empty, between runs of whitespace. At most
    ``limit`` splits are made, from the left. Source: ONNX StringSplit-20.
    """

    name: ClassVar[str] = "string_split"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("delimiter", TEXT, "", "what stands between the substrings; empty: whitespace"),
        Attribute("limit", integer(0), None, "greatest number of splits; absent: any number"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """One dim more, of unknown size."""
        dims = call.tensor(0).dims
        return (tensor(STRING, None if dims is None else (*dims, UNKNOWN)), tensor(I64, dims))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0])
        limit = -1 if call.get("limit") is None else call.integer("limit")
        parts = [item.split(call.text("delimiter") or None, limit) for item in flat(x)]
        counts = np.array([len(found) for found in parts], np.int64).reshape(x.shape)
        width = int(counts.max(initial=0))
        padded = (item for found in parts for item in (*found, *[""] * (width - len(found))))
        return (texts(padded, (*x.shape, width)), counts)


def _cased(text: str, action: str) -> str:
    """One character stays one: 'ß' has no capital."""
    if action == "none":
        return text
    changed = (char.upper() if action == "upper" else char.lower() for char in text)
    return "".join(new if len(new) == 1 else old for old, new in zip(text, changed, strict=True))


@register
class StringNormalize(Evaluated):
    """The strings of x [C] or [1, C] that are no stop words, in the wanted case.

    Where all are stop words, one empty string is left. Case follows Unicode's simple mapping in every locale. Source:
    ONNX StringNormalizer-10.
    """

    name: ClassVar[str] = "string_normalize"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("case", choice("none", "lower", "upper"), "none", "the case of the result"),
        Attribute("case_sensitive", FLAG, False, "whether stop words must agree in case"),
        Attribute("stopwords", TEXTS, (), "strings to leave out"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's type, of unknown size where there are stop words. Raises TypeMismatch for another shape."""
        x = call.tensor(0)
        if x.dims is None:
            return (tensor(STRING, None),)
        if len(x.dims) not in {1, 2} or (len(x.dims) == 2 and x.dims[0] not in {1, *_symbols(x.dims)}):
            msg = f"string_normalize: operand 'x' is {x}; expected dims [C] or [1, C]"
            raise TypeMismatch(msg)
        return (tensor(STRING, (UNKNOWN,) if len(x.dims) == 1 else (1, UNKNOWN)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0])
        if x.ndim == 2 and x.shape[0] != 1:
            msg = f"string_normalize: operand 'x' has shape {list(x.shape)}; expected [C] or [1, C]"
            raise EvaluationError(msg)
        words = call.attributes["stopwords"]
        assert isinstance(words, tuple)
        compared = "none" if call.flag("case_sensitive") else "lower"
        stops = {_cased(str(word), compared) for word in words}
        kept = [_cased(item, call.text("case")) for item in flat(x) if _cased(item, compared) not in stops] or [""]
        return (texts(kept, (len(kept),) if x.ndim == 1 else (1, len(kept))),)


def _symbols(dims: Sequence[Dim]) -> list[str]:
    return [dim for dim in dims if isinstance(dim, str)]


@lru_cache(maxsize=64)
def _expression(pattern: str) -> Any:  # noqa: ANN401 - the package has no annotations
    """The compiled expression. Raises InvalidAttribute for a pattern that RE2 does not take."""
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError as error:
        msg = "regex_full_match: RE2 is not installed; it comes with the extra 'regex' (pip install opatlas[regex])"
        raise EvaluationError(msg) from error
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, re.error) as error:
        msg = f"regex_full_match: attribute 'pattern' is {pattern!r}; expected an expression of RE2: {error}"
        raise InvalidAttribute(msg) from error


@register
class RegexFullMatch(Evaluated):
    """Whether each string as a whole matches an expression in RE2's syntax. Source: ONNX RegexFullMatch-20."""

    name: ClassVar[str] = "regex_full_match"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("pattern", TEXT, doc="the expression"),)

    def check(self, call: Call) -> None:
        """Raises InvalidAttribute for a pattern that RE2 does not take."""
        super().check(call)
        _expression(call.text("pattern"))

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (tensor(BOOL, call.tensor(0).dims),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0])
        expression = _expression(call.text("pattern"))
        found = [expression.fullmatch(item) is not None for item in flat(x)]
        return (np.array(found, np.bool_).reshape(x.shape),)
