"""The table of forms: for each operator of the IR the ways to say it in ONNX, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from compiler.ir import Definition, ElementType
from compiler.onnx_types import DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.exporters.onnx.emit import Emit
    from compiler.ir import AttributeValue, Builder, Op, Value

Form: TypeAlias = "Callable[[Op, Emit], None]"
"""Writes the nodes of an operation. Raises NoForm where this form cannot say it."""

Rewrite: TypeAlias = "Callable[[Op, Builder], Sequence[Value]]"
"""Builds the same results from other operations of the IR. Raises NoForm where it cannot."""

_Function = TypeVar("_Function", bound="Callable[[Any, Any], Any]")

_FORMS: dict[Definition, list[Form]] = {}
_REWRITES: dict[Definition, list[Rewrite]] = {}


class NoForm(Exception):
    """A form that does not fit an operation or its operator set; the next one is tried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def exports(*definitions: type[Definition]) -> Callable[[_Function], _Function]:
    """Decorator: enter a form of these operators, to be tried after those that they have already."""

    def enter(function: _Function) -> _Function:
        for definition in definitions:
            _FORMS.setdefault(definition.instance(), []).append(function)
        return function

    return enter


def rewrites(*definitions: type[Definition]) -> Callable[[_Function], _Function]:
    """Decorator: enter other operations that mean the same, to be tried after all forms."""

    def enter(function: _Function) -> _Function:
        for definition in definitions:
            _REWRITES.setdefault(definition.instance(), []).append(function)
        return function

    return enter


def direct(definition: type[Definition], operator: str, *same: str, **renamed: str) -> None:
    """Enter the form of an operator that ONNX has with the same operands.

    ``same`` are attributes of the same name, ``renamed`` those with ONNX's name and the IR's.
    """
    names = {**dict.fromkeys(same), **renamed}

    def form(op: Op, e: Emit) -> None:
        call = op.call()
        e.op(op, operator, **{name: attribute(call.get(mine or name)) for name, mine in names.items()})

    exports(definition)(form)


def attribute(value: AttributeValue | None) -> Any:  # noqa: ANN401 - whatever onnx takes
    """ONNX's spelling of an attribute's value; None, which leaves it out, for an absent one and an empty tuple."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, ElementType):
        return DATA_TYPES[value]
    if isinstance(value, tuple):
        return [attribute(item) for item in value] or None
    return value


def forms_of(definition: Definition) -> Sequence[Form]:
    """The forms of an operator, best first."""
    return _FORMS.get(definition, ())


def rewrites_of(definition: Definition) -> Sequence[Rewrite]:
    """The operations that say the same as an operator, best first."""
    return _REWRITES.get(definition, ())


def exported_operators() -> tuple[str, ...]:
    """Names of the operators that have a form or a rewrite, sorted."""
    return tuple(sorted(definition.name for definition in {*_FORMS, *_REWRITES}))
