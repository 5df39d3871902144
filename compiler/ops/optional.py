"""Optionals: a value or nothing. At run time a full one is the value itself and an empty one is None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import BOOL, Call, OptionalType, SequenceType, TensorType, Type, optional_of, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import ANY, Attribute, Domain, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANYTHING: Final = Variable("V", ANY)
_TYPE: Final = Domain("a tensor or sequence type", lambda value: isinstance(value, (TensorType, SequenceType)))


@register
class OptionalEmpty(Evaluated):
    """An optional of type ``type`` that is empty. Source: ONNX Optional-15 without an input."""

    name: ClassVar[str] = "optional_empty"
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("type", _TYPE, doc="type of what it could hold"),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """An optional of the type."""
        held = call.get("type")
        assert isinstance(held, Type)
        return (optional_of(held),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """None."""
        return (None,)


@register
class OptionalOf(Evaluated):
    """An optional that holds its operand, a tensor or a sequence. Source: ONNX Optional-15."""

    name: ClassVar[str] = "optional_of"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _ANYTHING, other=True),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch for an operand that is an optional itself."""
        held = call.types[0]
        if not isinstance(held, (TensorType, SequenceType)):
            msg = f"optional_of: operand 'x' is {held}; expected a tensor or a sequence"
            raise TypeMismatch(msg)
        return (optional_of(held),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """The operand."""
        return (operands[0],)


@register
class OptionalHas(Evaluated):
    """Whether an optional holds a value: a bool scalar. Source: ONNX OptionalHasElement-15."""

    name: ClassVar[str] = "optional_has"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _ANYTHING, other=True),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch for an operand that is no optional."""
        _held(self.name, call)
        return (tensor(BOOL),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """Not None."""
        return (np.array(operands[0] is not None),)


@register
class OptionalGet(Evaluated):
    """The value in an optional. Source: ONNX OptionalGetElement-15. Raises EvaluationError for an empty one."""

    name: ClassVar[str] = "optional_get"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _ANYTHING, other=True),)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch for an operand that is no optional."""
        return (_held(self.name, call),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """The value."""
        if operands[0] is None:
            msg = "optional_get: the optional is empty; expected one that holds a value"
            raise EvaluationError(msg)
        return (operands[0],)


def _held(name: str, call: Call) -> Type:
    found = call.types[0]
    if not isinstance(found, OptionalType):
        msg = f"{name}: operand 'x' is {found}; expected an optional"
        raise TypeMismatch(msg)
    return found.element
