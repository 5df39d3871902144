"""Control flow: a branch and a loop, with regions that may use the values around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, InvalidGraph, TypeMismatch
from compiler.ir import (
    BOOL,
    I64,
    UNKNOWN,
    Call,
    Graph,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    known_value,
    optional_of,
    sequence_of,
    tensor,
)
from compiler.ops.registry import ANY, BOOLEAN, Operand, Operator, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Dim, RunRegion

_FIXED: Final = 2


def join(name: str, a: Type, b: Type) -> Type:
    """The most precise type that covers both: dims that differ become unknown, ranks that differ an unknown rank.

    An optional covers what it may hold: a full one is the value itself.
    Raises TypeMismatch, naming operator ``name``, where element types or kinds of type differ.
    """
    if a is b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.element is b.element:
        if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
            return tensor(a.element, None)
        quantization = a.quantization if a.quantization == b.quantization else None
        return tensor(a.element, [x if x == y else UNKNOWN for x, y in zip(a.dims, b.dims, strict=True)], quantization)
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return sequence_of(join(name, a.element, b.element))
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        return optional_of(join(name, a.element, b.element))
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        held = [type_.element if isinstance(type_, OptionalType) else type_ for type_ in (a, b)]
        return optional_of(join(name, *held))
    msg = f"{name}: types {a} and {b} have nothing in common"
    raise TypeMismatch(msg)


def _truth(name: str, condition: object) -> bool:
    array = np.asarray(condition)
    if array.size != 1:
        msg = f"{name}: the condition has {array.size} elements; expected one"
        raise EvaluationError(msg)
    return bool(array.reshape(-1)[0])


@register
class If(Operator):
    """Runs the region 'then' or 'else'. Neither has inputs; both have the same number of outputs, the results.

    A result's type covers the types of both branches. Raises TypeMismatch where they have nothing in common.
    """

    name: ClassVar[str] = "if"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("condition", Variable("B", BOOLEAN)),)
    regions: ClassVar[tuple[str, ...]] = ("then", "else")

    def check(self, call: Call) -> None:
        """Raises InvalidGraph where a region has inputs or the numbers of outputs differ."""
        super().check(call)
        counts = [len(region.outputs) for region in call.regions]
        if any(region.inputs for region in call.regions) or counts[0] != counts[1]:
            msg = f"if: branches with {counts} outputs; expected equal numbers and no region inputs"
            raise InvalidGraph(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        then, other = call.regions
        return tuple(join("if", a.type, b.type) for a, b in zip(then.outputs, other.outputs, strict=True))

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:
        """The outputs of the branch taken; the other is not run."""
        return tuple(run_region(call.regions[0 if _truth("if", operands[0]) else 1], []))


@register
class Loop(Operator):
    """ONNX's Loop: operands trip count (int64, optional), condition (bool, optional), then N carried values.

    The region 'body' has inputs iteration number (int64 scalar), condition (bool scalar) and the carried values, and
    outputs condition, the carried values, and K values to scan. Results: the final carried values, then each scanned
    value stacked along a new first dim. It runs while the iteration number is below the trip count and the condition
    holds. With no iteration a scanned result has first dim 0 and unknown dims are 0.
    """

    name: ClassVar[str] = "loop"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("trip_count", Variable("I", frozenset({I64})), optional=True, value=True),
        Operand("condition", Variable("B", BOOLEAN), optional=True, value=True),
        Operand("carried", Variable("V", ANY), variadic=True, other=True),
    )
    regions: ClassVar[tuple[str, ...]] = ("body",)

    def check(self, call: Call) -> None:
        """Raises InvalidGraph where the body's inputs or outputs do not fit the operands."""
        super().check(call)
        body, carried = call.regions[0], len(call.types) - _FIXED
        if carried < 0 or len(body.inputs) != _FIXED + carried or len(body.outputs) < 1 + carried:
            msg = (
                f"loop: {len(call.types)} operands, body of {len(body.inputs)} inputs and {len(body.outputs)} outputs; "
                "expected 2 + N operands, 2 + N inputs and at least 1 + N outputs"
            )
            raise InvalidGraph(msg)
        for place, wanted in enumerate((I64, BOOL)):
            found = body.inputs[place].type
            if not isinstance(found, TensorType) or found.element is not wanted:
                msg = f"loop: input {place} of the body is {found}; expected element type {wanted}"
                raise TypeMismatch(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Carried: covers the initial value and the body's. Scanned: a first dim more, known where the trips are."""
        outputs = [value.type for value in call.regions[0].outputs[1:]]
        initial = call.types[_FIXED:]
        results: list[Type] = []
        for before, after in zip(initial, outputs[: len(initial)], strict=True):
            if before is None:
                msg = "loop: a carried value is omitted; it is required"
                raise TypeMismatch(msg)
            results.append(join("loop", before, after))
        trips = static_trips(call)
        for scanned in outputs[len(initial) :]:
            if not isinstance(scanned, TensorType):
                msg = f"loop: a scanned value is {scanned}; expected a tensor"
                raise TypeMismatch(msg)
            first: Dim = UNKNOWN if trips is None else trips
            results.append(scanned.with_dims(None if scanned.dims is None else (first, *scanned.dims)))
        return tuple(results)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:
        """Iterates. Raises EvaluationError for scanned values whose shapes differ."""
        body = call.regions[0]
        limit = None if operands[0] is None else int(np.asarray(operands[0]).reshape(-1)[0])
        going = operands[1] is None or _truth("loop", operands[1])
        state = list(operands[_FIXED:])
        scans: list[list[Any]] = [[] for _ in body.outputs[1 + len(state) :]]
        trip = 0
        while going and (limit is None or trip < limit):
            outputs = run_region(body, [np.asarray(trip, np.int64), np.asarray(going), *state])
            going = _truth("loop", outputs[0])
            state, scanned = outputs[1 : 1 + len(state)], outputs[1 + len(state) :]
            for collected, value in zip(scans, scanned, strict=True):
                collected.append(value)
            trip += 1
        types = [value.type for value in body.outputs[1 + len(state) :]]
        return (*state, *(_stacked(values, type_) for values, type_ in zip(scans, types, strict=True)))


def _stacked(values: list[Any], type_: Type) -> Any:  # noqa: ANN401 - an array
    if not values:
        assert isinstance(type_, TensorType)
        return np.zeros((0, *(dim if isinstance(dim, int) else 0 for dim in type_.dims or ())), type_.element.dtype)
    shapes = {np.shape(value) for value in values}
    if len(shapes) > 1:
        msg = f"loop: scanned values have shapes {sorted(shapes)}; expected one shape"
        raise EvaluationError(msg)
    return np.stack(values)


def static_trips(call: Call) -> int | None:
    """The number of iterations of a loop's call where it is known beforehand, else None.

    It is where the trip count is a constant and no condition can end the loop: the body returns its own condition input
    or a constant true, and the first condition is omitted or a constant true.
    """
    limit = call.value(0)
    if limit is None:
        return None
    first = call.value(1)
    if call.has(1) and first is None:
        return None
    if first is not None and not _truth("loop", first):
        return 0
    trips = max(int(np.asarray(limit).reshape(-1)[0]), 0)
    return trips if trips <= 1 or _stays_true(call.regions[0]) else None


def _stays_true(body: Graph) -> bool:
    condition = body.outputs[0]
    if condition is body.inputs[1]:
        return True
    known = known_value(condition)
    return known is not None and bool(np.all(known))
