"""Tables from keys to values. The keys are data, strings even, so these run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import Call, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import BOOLEAN, DATA, REAL, STRINGS, Attribute, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEYS: Final = Variable("K", REAL | STRINGS | BOOLEAN)


def plain_items(array: Any) -> list[Any]:  # noqa: ANN401 - an array
    """The elements in row-major order as Python objects that hash and compare; every NaN is None."""
    items = np.asarray(array).reshape(-1).tolist()
    return [None if isinstance(item, float) and item != item else item for item in items]  # noqa: PLR0124 - NaN


@register
class TableLookup(Evaluated):
    """For each element of x the value whose key it equals; ``default``, of one element, where no key does.

    Of equal keys the last counts; a NaN key equals every NaN. Source: ONNX ai.onnx.ml LabelEncoder-4.
    """

    name: ClassVar[str] = "table_lookup"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _KEYS),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("keys", DATA, doc="a vector of x's element type"),
        Attribute("values", DATA, doc="a vector as long"),
        Attribute("default", DATA, doc="one element of the values' type"),
    )

    def check(self, call: Call) -> None:
        """Raises TypeMismatch, InvalidAttribute for constants that do not fit each other."""
        super().check(call)
        keys, values, default = (call.constant(name).type for name in ("keys", "values", "default"))
        if keys.element is not call.tensor(0).element or values.element is not default.element:
            msg = f"table_lookup: x {call.tensor(0)}, keys {keys}, values {values}, default {default}; they do not fit"
            raise TypeMismatch(msg)
        if len(keys.shape) != 1 or keys.shape != values.shape or default.size != 1:
            msg = f"table_lookup: keys {keys}, values {values}, default {default}; expected two vectors and one element"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's dims."""
        return (tensor(call.constant("values").type.element, call.tensor(0).dims),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0])
        keys, values, default = (call.constant(name).array for name in ("keys", "values", "default"))
        places = {key: place for place, key in enumerate(plain_items(keys))}
        table = np.concatenate([values, default.reshape(1)])
        found = [places.get(item, -1) for item in plain_items(x)]
        return (table[np.array(found, np.int64)].reshape(x.shape),)
