"""Tensors made from a shape and a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import BOOL, I32, STRING, UNKNOWN, ElementType, TensorType, Type, tensor
from compiler.ops.convert import convert
from compiler.ops.movement import T, integer_list, result_tensor, value_operand
from compiler.ops.registry import (
    ELEMENT,
    REAL,
    Attribute,
    Operand,
    Operator,
    Variable,
    integer,
    register,
)
from compiler.ops.scalars import python_number
from compiler.ops.shapes import known_integers, normalize_axis, range_length, vector_length
from compiler.ops.work import (
    Access,
    Apply,
    Arg,
    Index,
    Literal,
    Loops,
    Position,
    identity_access,
    nests,
    parallel,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work

TO: Final = Attribute("to", ELEMENT, doc="element type of the result")


def shaped(call: Call, index: int, element: ElementType) -> TensorType:
    """The type with the sizes that value operand ``index`` holds. Raises UnsupportedType for a negative size."""
    sizes = known_integers(call, index)
    if sizes is not None:
        return tensor(element, sizes)
    length = vector_length(call, index)
    return tensor(element, None if length is None else (UNKNOWN,) * length)


def sizes_of(name: str, value: Any) -> tuple[int, ...]:  # noqa: ANN401 - what an evaluator gets
    """The sizes in a shape operand. Raises EvaluationError for a negative one."""
    sizes = integer_list(value)
    if any(size < 0 for size in sizes):
        msg = f"{name}: shape {list(sizes)}; expected sizes of at least 0"
        raise EvaluationError(msg)
    return sizes


@register
class Iota(Operator):
    """Each element's own index along ``axis``, as a number of type ``to``; the sizes are ``shape``."""

    name: ClassVar[str] = "iota"
    operands: ClassVar[tuple[Operand, ...]] = (value_operand("shape"),)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("axis", integer(), 0, "the dim that is counted"), TO)
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The shape's sizes. Raises InvalidAttribute for an axis outside the rank."""
        found = shaped(call, 0, call.element("to"))
        if found.dims is not None:
            normalize_axis(self.name, call.integer("axis"), found.rank)
        return (found,)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Counted in int64, then converted."""
        shape = sizes_of(self.name, operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), len(shape))
        counted = np.arange(shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
        return (convert(np.broadcast_to(counted, shape).copy(), call.element("to")),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """The position along one loop."""
        result = result_tensor(results)
        axis = normalize_axis(self.name, call.integer("axis"), result.rank)
        body = Position(axis, result.element)
        return nests(Loops(parallel(result.shape), (), body, identity_access(0, result.rank)))


@register
class Range(Operator):
    """start + i delta for i = 0, 1, ... before limit: max(ceil((limit - start) / delta), 0) elements (ONNX Range).

    Raises InvalidAttribute for a delta of 0.
    """

    name: ClassVar[str] = "range"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("start", Variable("T", REAL), value=True),
        Operand("limit", Variable("T", REAL), value=True),
        Operand("delta", Variable("T", REAL), value=True),
    )
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """A vector, of known length where all three are known."""
        element = call.tensor(0).element
        known = [call.value(index) for index in range(3)]
        length = UNKNOWN if any(value is None for value in known) else range_length(*map(_number, known))
        return (tensor(element, (length,)),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Computed in int64 or float64 and rounded once."""
        start, limit, delta = map(_number, operands)
        counted = start + np.arange(range_length(start, limit, delta)) * delta
        return (convert(np.asarray(counted), call.tensor(0).element),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """The position, scaled and offset; None where start or delta is not known."""
        result, start, delta = result_tensor(results), call.value(0), call.value(2)
        if start is None or delta is None:
            return None
        body = Position(0, result.element, _number(delta), _number(start))
        return nests(Loops(parallel(result.shape), (), body, identity_access(0, 1)))


def _number(value: Any) -> int | float:  # noqa: ANN401 - an array of one element
    found: int | float = np.asarray(value).reshape(-1)[0].item()
    return found


@register
class Fill(Operator):
    """Every element is the scalar ``value``; the sizes are ``shape`` (ONNX ConstantOfShape)."""

    name: ClassVar[str] = "fill"
    operands: ClassVar[tuple[Operand, ...]] = (value_operand("shape"), Operand("value", T))
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The shape's sizes. Raises TypeMismatch for a value that is known to be no single element."""
        value = call.tensor(1)
        if value.is_static and value.size != 1:
            msg = f"fill: operand 'value' is {value}; expected one element"
            raise TypeMismatch(msg)
        return (shaped(call, 0, value.element),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's full."""
        value = np.asarray(operands[1])
        filled = np.empty(sizes_of(self.name, operands[0]), value.dtype)
        filled[...] = value.reshape(())
        return (filled,)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """A literal where the value is known, else one element read everywhere. None for strings."""
        result, value = result_tensor(results), call.value(1)
        if result.element is STRING:
            return None
        write = identity_access(0, result.rank)
        if value is not None:
            body = Literal(python_number(value), result.element)
            return nests(Loops(parallel(result.shape), (), body, write))
        read = Access(1, (Index(),) * call.tensor(1).rank)
        return nests(Loops(parallel(result.shape), (read,), Arg(0, result.element), write))


@register
class EyeLike(Operator):
    """1 on diagonal ``k`` (counted to the right), else 0, in the sizes of matrix x, whose elements do not matter."""

    name: ClassVar[str] = "eye_like"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", T),)
    attributes: ClassVar[tuple[Attribute, ...]] = (Attribute("k", integer(), 0, "the diagonal"), TO)
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's dims. Raises TypeMismatch for another rank than 2."""
        x = call.tensor(0)
        if x.dims is not None and x.rank != 2:
            msg = f"eye_like: operand 'x' is {x}; expected two dims"
            raise TypeMismatch(msg)
        return (tensor(call.element("to"), x.dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's eye."""
        rows, columns = np.shape(operands[0])
        k = max(-rows, min(call.integer("k"), columns))
        return (np.eye(rows, columns, k, np.int8).astype(call.element("to").dtype),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """A choice by the positions of row and column."""
        result = result_tensor(results)
        rows, columns = result.shape
        k = max(-rows, min(call.integer("k"), columns))
        hit = Apply("eq", (Position(1, I32), Position(0, I32, 1, k)), BOOL)
        element = result.element
        body = Apply("select", (hit, Literal(1, element), Literal(0, element)), element)
        return nests(Loops(parallel(result.shape), (), body, identity_access(0, 2)))
