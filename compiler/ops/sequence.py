"""Sequences: lists of values, which live on the host. A negative position counts from the end.

Source: ONNX's Sequence operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import (
    I64,
    UNKNOWN,
    Dim,
    SequenceType,
    TensorType,
    Type,
    sequence_of,
    tensor,
)
from compiler.ops.compose import Evaluated
from compiler.ops.control import join
from compiler.ops.registry import ANY, FLAG, INTEGER, Attribute, Domain, Operand, Variable, integer, register
from compiler.ops.shapes import normalize_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call

_ANY: Final = Variable("T", ANY)
_SEQUENCE: Final = Operand("sequence", _ANY, other=True)
_POSITION: Final = Variable("I", INTEGER)
_TYPE: Final = Attribute(
    "type", Domain("a type", lambda value: isinstance(value, Type)), None, "type of the element, where none is given"
)


def _element(name: str, call: Call) -> Type:
    found = call.types[0]
    if not isinstance(found, SequenceType):
        msg = f"{name}: operand 0 is {found}; expected a sequence"
        raise TypeMismatch(msg)
    return found.element


def _tensor_element(name: str, call: Call) -> TensorType:
    found = _element(name, call)
    if not isinstance(found, TensorType):
        msg = f"{name}: operand 0 is a sequence of {found}; expected tensors"
        raise TypeMismatch(msg)
    return found


def _position(name: str, operand: Any, low: int, high: int) -> int:  # noqa: ANN401 - what an evaluator gets
    position = int(np.asarray(operand).reshape(-1)[0])
    if not low <= position <= high:
        msg = f"{name}: position {position}; expected {low} to {high}"
        raise EvaluationError(msg)
    return position


@register
class SequenceConstruct(Evaluated):
    """The operands as a sequence. ``type`` is the element's type where there are no operands."""

    name: ClassVar[str] = "sequence_construct"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("elements", _ANY, variadic=True, other=True),)
    attributes: ClassVar[tuple[Attribute, ...]] = (_TYPE,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A sequence of the type that covers all operands'. Raises TypeMismatch, InvalidAttribute."""
        given = [type_ for type_ in call.types if type_ is not None]
        element = call.get("type")
        if not given and not isinstance(element, Type):
            msg = "sequence_construct: neither operands nor a type are given; expected one of them"
            raise InvalidAttribute(msg)
        covering = given[0] if given else element
        for type_ in given[1:]:
            covering = join(self.name, covering, type_)  # type: ignore[arg-type]  # a type: checked above
        assert isinstance(covering, Type)
        return (sequence_of(covering),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """A list."""
        return (list(operands),)


@register
class SequenceAt(Evaluated):
    """The element at a position. Raises EvaluationError outside."""

    name: ClassVar[str] = "sequence_at"
    operands: ClassVar[tuple[Operand, ...]] = (_SEQUENCE, Operand("position", _POSITION))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The element's type."""
        return (_element(self.name, call),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """By index."""
        values = operands[0]
        return (values[_position(self.name, operands[1], -len(values), len(values) - 1)],)


@register
class SequenceInsert(Evaluated):
    """The sequence with an element put in before ``position``, by default at the end."""

    name: ClassVar[str] = "sequence_insert"
    operands: ClassVar[tuple[Operand, ...]] = (
        _SEQUENCE,
        Operand("element", _ANY, other=True),
        Operand("position", _POSITION, optional=True),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A sequence of the type that covers old and new elements."""
        new = call.types[1]
        assert new is not None
        return (sequence_of(join(self.name, _element(self.name, call), new)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """A new list."""
        values = list(operands[0])
        count = len(values)
        values.insert(_position(self.name, operands[2], -count, count) if call.has(2) else count, operands[1])
        return (values,)


@register
class SequenceErase(Evaluated):
    """The sequence without the element at ``position``, by default the last."""

    name: ClassVar[str] = "sequence_erase"
    operands: ClassVar[tuple[Operand, ...]] = (_SEQUENCE, Operand("position", _POSITION, optional=True))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The sequence's type."""
        return (sequence_of(_element(self.name, call)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """A new list."""
        values = list(operands[0])
        del values[_position(self.name, operands[1] if call.has(1) else -1, -len(values), len(values) - 1)]
        return (values,)


@register
class SequenceLength(Evaluated):
    """The number of elements, an int64 scalar."""

    name: ClassVar[str] = "sequence_length"
    operands: ClassVar[tuple[Operand, ...]] = (_SEQUENCE,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A scalar."""
        _element(self.name, call)
        return (tensor(I64),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ARG002
        """The length of the list."""
        return (np.asarray(len(operands[0]), np.int64),)


@register
class ConcatFromSequence(Evaluated):
    """The elements one after the other along ``axis``, or stacked along a new one. Raises EvaluationError for none."""

    name: ClassVar[str] = "concat_from_sequence"
    operands: ClassVar[tuple[Operand, ...]] = (_SEQUENCE,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), doc="the dim, negative from the end of the result"),
        Attribute("new_axis", FLAG, False, "whether elements get a dim of their own"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The element's dims with one unknown."""
        element = _tensor_element(self.name, call)
        if element.dims is None:
            return (element,)
        dims: list[Dim] = list(element.dims)
        axis = normalize_axis(self.name, call.integer("axis"), len(dims) + call.flag("new_axis"))
        if call.flag("new_axis"):
            dims.insert(axis, UNKNOWN)
        else:
            dims[axis] = UNKNOWN
        return (tensor(element.element, dims),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """numpy's concatenate or stack."""
        together = np.stack if call.flag("new_axis") else np.concatenate
        try:
            return (together(operands[0], call.integer("axis")),)
        except ValueError as error:
            shapes = [list(np.shape(value)) for value in operands[0]]
            msg = f"{self.name}: elements of shapes {shapes} do not go together along axis {call.integer('axis')}"
            raise EvaluationError(msg) from error


@register
class SplitToSequence(Evaluated):
    """X cut along ``axis`` into a sequence: into parts of ``sizes`` (a vector), of one size (a scalar), or of 1.

    Without sizes, and with ``keep_dims`` off, parts lose the dim. A last part may be smaller.
    """

    name: ClassVar[str] = "split_to_sequence"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _ANY), Operand("sizes", _POSITION, optional=True))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), 0, "the dim, negative from the end"),
        Attribute("keep_dims", FLAG, True, "whether parts of 1 keep the dim"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A sequence of tensors with one dim unknown, 1 or gone."""
        x = call.tensor(0)
        if x.dims is None:
            return (sequence_of(x),)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        dims: list[Dim] = list(x.dims)
        dims[axis] = UNKNOWN if call.has(1) else 1
        if not call.has(1) and not call.flag("keep_dims"):
            del dims[axis]
        return (sequence_of(tensor(x.element, dims)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """numpy's split. Raises EvaluationError for sizes that do not add up."""
        x, axis = operands[0], normalize_axis(self.name, call.integer("axis"), np.ndim(operands[0]))
        total = x.shape[axis]
        sizes = np.asarray(operands[1] if call.has(1) else 1).astype(np.int64)
        if (sizes < (1 if sizes.ndim == 0 else 0)).any() or (sizes.ndim == 1 and sizes.sum() != total):
            msg = f"{self.name}: sizes {sizes.tolist()} for a dim of {total}; expected sizes that add up"
            raise EvaluationError(msg)
        ends = np.arange(int(sizes), total, int(sizes)) if sizes.ndim == 0 else np.cumsum(sizes)[:-1]
        parts = np.split(x, ends, axis) if total or sizes.ndim else []
        squeezed = not call.has(1) and not call.flag("keep_dims")
        return ([part.squeeze(axis) if squeezed else part for part in parts],)
