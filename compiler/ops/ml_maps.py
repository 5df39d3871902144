"""Maps: dictionaries between tensors. At run time a map is a Python dict; these run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import F32, I64, STRING, UNKNOWN, Call, MapType, TensorType, Type, map_of, sequence_of, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import (
    ANY,
    DATA,
    ELEMENT,
    REAL,
    Attribute,
    Operand,
    Variable,
    integer,
    register,
)
from compiler.ops.strings import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Array, ElementType

_MAP: Final = Operand("map", Variable("M", ANY), other=True)


def _map_type(name: str, call: Call) -> tuple[MapType, TensorType]:
    found = call.types[0]
    if not isinstance(found, MapType) or not isinstance(found.value, TensorType):
        msg = f"{name}: operand 'map' is {found}; expected a map to tensors"
        raise TypeMismatch(msg)
    return found, found.value


def _vector(items: Iterable[Any], element: ElementType) -> Array:
    values = list(items)
    if element is STRING:
        return texts(map(_text, values), (len(values),))
    return np.array([np.asarray(value).reshape(()) for value in values], element.dtype).reshape(len(values))


def _text(value: Any) -> str:  # noqa: ANN401 - a string, or an array of one
    return str(np.asarray(value, object).reshape(()).item())


@register
class MapVectorize(Evaluated):
    """The values of a map in the order of ``vocabulary``, a vector [1, C] of keys; 0 or '' for a missing key.

    Source: ONNX ai.onnx.ml DictVectorizer-1.
    """

    name: ClassVar[str] = "map_vectorize"
    operands: ClassVar[tuple[Operand, ...]] = (_MAP,)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("vocabulary", DATA, doc="a vector of keys"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[1, C]. Raises TypeMismatch for a vocabulary of another type than the keys."""
        found, value = _map_type(self.name, call)
        vocabulary = call.constant("vocabulary").type
        if vocabulary.element is not found.key:
            msg = f"map_vectorize: a vocabulary of {vocabulary} for {found}; expected the keys' type"
            raise TypeMismatch(msg)
        return (tensor(value.element, (1, vocabulary.size)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        _, value = _map_type(self.name, call)
        missing: Any = "" if value.element is STRING else value.element.dtype.type(0)
        keys = call.constant("vocabulary").array.reshape(-1).tolist()
        return (_vector((operands[0].get(key, missing) for key in keys), value.element).reshape(1, -1),)


@register
class MapCast(Evaluated):
    """The values of a map with integer keys as a row, converted to ``to``: float32, int64 or strings.

    Without ``width`` in the order of the keys; with it, each at the column that its key says, [1, width], the others 0
    ('0.f' for strings). Floats become integers by rounding toward zero and strings with six decimals, as C++ does.
    Source: ONNX ai.onnx.ml CastMap-1. Raises EvaluationError for negative keys with a width, and for strings that are
    no numbers.
    """

    name: ClassVar[str] = "map_cast"
    operands: ClassVar[tuple[Operand, ...]] = (_MAP,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("to", ELEMENT, F32, "element type of the result"),
        Attribute("width", integer(1), None, "number of columns; absent: as many as the map has entries"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[1, width]. Raises TypeMismatch for keys that are no integers or another result type."""
        found, _ = _map_type(self.name, call)
        if not found.key.is_integer or call.element("to") not in _PADDING:
            msg = f"map_cast: {found} to {call.element('to')}; expected integer keys and float32, int64 or strings"
            raise TypeMismatch(msg)
        return (tensor(call.element("to"), (1, UNKNOWN if call.get("width") is None else call.integer("width"))),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        _, value = _map_type(self.name, call)
        element = call.element("to")
        convert = _CONVERSIONS[value.element is STRING, element]
        try:
            entries = {int(key): convert(item) for key, item in sorted(operands[0].items())}
        except (ValueError, OverflowError) as error:
            msg = f"map_cast: a value of the map is no number: {error}"
            raise EvaluationError(msg) from error
        if call.get("width") is None:
            return (_vector(entries.values(), element).reshape(1, -1),)
        if entries and min(entries) < 0:
            msg = f"map_cast: key {min(entries)} of a sparse map; expected at least 0"
            raise EvaluationError(msg)
        columns = range(call.integer("width"))
        return (_vector((entries.get(column, _PADDING[element]) for column in columns), element).reshape(1, -1),)


_PADDING: Final[dict[ElementType, Any]] = {F32: 0.0, I64: 0, STRING: "0.f"}
_CONVERSIONS: Final[dict[tuple[bool, ElementType], Any]] = {
    (False, F32): float,
    (False, I64): lambda item: int(float(item)),
    (False, STRING): lambda item: f"{float(item):f}",
    (True, F32): lambda item: float(_text(item)),
    (True, I64): lambda item: int(_text(item)),
    (True, STRING): _text,
}


@register
class ZipMap(Evaluated):
    """A map a row of x [N, C] (or one of x [C]) from ``labels``, a vector of C keys, to that row's elements.

    Source: ONNX ai.onnx.ml ZipMap-1. Raises EvaluationError for another number of columns.
    """

    name: ClassVar[str] = "zip_map"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("labels", DATA, doc="a vector of integers or strings"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        return (sequence_of(map_of(call.constant("labels").type.element, tensor(call.tensor(0).element))),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        labels = call.constant("labels").array.reshape(-1).tolist()
        x = np.asarray(operands[0])
        if x.ndim not in {1, 2} or x.shape[-1] != len(labels):
            msg = f"zip_map: operand 'x' has shape {list(x.shape)}; expected [N, {len(labels)}], a column a label"
            raise EvaluationError(msg)
        return ([dict(zip(labels, row, strict=True)) for row in np.atleast_2d(x)],)
