"""From the name of a tolerance class in a manifest, such as ``ulp(2)``, to the class."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from conformance.errors import UnknownToleranceClass
from conformance.measured import MeasuredUlp
from conformance.tolerance import (
    AbsoluteError,
    DotProduct,
    Exact,
    ExactSignedZero,
    OnnxDefault,
    ReduceProduct,
    ReduceSum,
    ShapeOnly,
    SpecialValues,
    Steps,
    ToleranceClass,
    Ulp,
    WholeGraph,
)
from conformance.tolerance_scales import ExpRelative, InputScaled, LogSum, MaxRelative, Relative, RowRelative


def _no_arguments(kind: type[ToleranceClass]) -> Callable[[Sequence[str]], ToleranceClass]:
    def make(arguments: Sequence[str]) -> ToleranceClass:
        if arguments:
            raise UnknownToleranceClass(f"{kind.name} takes no argument, found ({', '.join(arguments)})")
        return kind()

    return make


def _numbers(kind: Callable[..., ToleranceClass], name: str, count: int) -> Callable[[Sequence[str]], ToleranceClass]:
    def make(arguments: Sequence[str]) -> ToleranceClass:
        try:
            numbers = [float(argument) for argument in arguments]
        except ValueError:
            numbers = []
        if len(numbers) != count or any(not math.isfinite(number) or number < 0 for number in numbers):
            raise UnknownToleranceClass(f"{name} takes {count} non-negative number(s), found ({', '.join(arguments)})")
        return kind(*numbers)

    return make


def _with_bias(kind: Callable[..., ToleranceClass], name: str) -> Callable[[Sequence[str]], ToleranceClass]:
    def make(arguments: Sequence[str]) -> ToleranceClass:
        if list(arguments) not in ([], ["bias"]):
            raise UnknownToleranceClass(f"{name} takes nothing or 'bias', found ({', '.join(arguments)})")
        return kind(bias=bool(arguments))

    return make


def _function(arguments: Sequence[str]) -> ToleranceClass:
    return AbsoluteError(", ".join(arguments))


def _row(arguments: Sequence[str]) -> ToleranceClass:
    try:
        n, axis = arguments
        first = int(axis)
    except ValueError:
        raise UnknownToleranceClass(
            f"row_relative takes a number and the first axis of a row, found ({', '.join(arguments)})"
        ) from None
    return _numbers(lambda units: RowRelative(units, first), RowRelative.name, 1)([n])


def _steps(arguments: Sequence[str]) -> ToleranceClass:
    if len(arguments) != 1 or not arguments[0].isdigit():
        raise UnknownToleranceClass(f"steps takes one whole number, found ({', '.join(arguments)})")
    return Steps(integer_steps=int(arguments[0]))


_CLASSES: Mapping[str, Callable[[Sequence[str]], ToleranceClass]] = {
    Exact.name: _no_arguments(Exact),
    ExactSignedZero.name: _no_arguments(ExactSignedZero),
    Ulp.name: _numbers(Ulp, Ulp.name, 1),
    AbsoluteError.name: _function,
    InputScaled.name: _numbers(InputScaled, InputScaled.name, 1),
    DotProduct.name: _with_bias(DotProduct, DotProduct.name),
    ReduceSum.name: _with_bias(ReduceSum, ReduceSum.name),
    ReduceProduct.name: _no_arguments(ReduceProduct),
    Relative.name: _numbers(Relative, Relative.name, 1),
    ExpRelative.name: _numbers(ExpRelative, ExpRelative.name, 1),
    LogSum.name: _numbers(LogSum, LogSum.name, 1),
    RowRelative.name: _row,
    MaxRelative.name: _numbers(MaxRelative, MaxRelative.name, 1),
    Steps.name: _steps,
    SpecialValues.name: _no_arguments(SpecialValues),
    ShapeOnly.name: _no_arguments(ShapeOnly),
    WholeGraph.name: _no_arguments(WholeGraph),
    MeasuredUlp.name: _no_arguments(MeasuredUlp),
    OnnxDefault.name: _numbers(OnnxDefault, OnnxDefault.name, 2),
}

_FORM = re.compile(r"^\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*$")


def parse_tolerance(text: str) -> ToleranceClass:
    """Return the class that `text` names, such as ``ulp(2)``. Raises `UnknownToleranceClass`."""
    form = _FORM.match(text)
    if form is None or form[1] not in _CLASSES:
        raise UnknownToleranceClass(f"tolerance class {text!r}: expected one of {', '.join(sorted(_CLASSES))}")
    arguments = [part.strip() for part in (form[2] or "").split(",") if part.strip()]
    return _CLASSES[form[1]](arguments)
