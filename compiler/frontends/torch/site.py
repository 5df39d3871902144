"""What a converter sees of a call, and the table of converters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from compiler.errors import InvalidGraph, UnsupportedOperator, ValueNeeded
from compiler.frontends.assembly import Assembly
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.torch.types import element_from
from compiler.ir import BOOL, F32, F64, I64, Builder, Op, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compiler.ir import ElementType

Results: TypeAlias = "Value | Op | Sequence[Value | None] | None"


@dataclass(frozen=True, slots=True)
class Site(Assembly):
    """One call of an ATen operator: arguments by their names in its schema, defaults filled in, and a builder.

    Tensors and symbolic numbers among the arguments are values (the latter of rank 0, int64, float64 or bool); all else
    is as Python has it. ``fakes`` has the same arguments as torch saw them while it traced, ``result`` what it gave.
    """

    operator: str
    node: str
    arguments: Mapping[str, Any]
    fakes: Mapping[str, Any]
    result: Any
    b: Builder
    folder: Folder

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - the schema says what it is
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """The argument, or ``default`` where this overload lacks it or it is None."""
        found = self.arguments.get(name)
        return default if found is None else found

    def value(self, name: str) -> Value:
        """A tensor argument. Raises UnsupportedOperator where it is something else."""
        found = self.arguments[name]
        if not isinstance(found, Value):
            self.refuse(f"argument '{name}' is {found!r}; expected a tensor")
        return found

    def refuse(self, reason: str, argument: str | None = None) -> NoReturn:
        """Refuse a form of the operator that has no conversion. Raises UnsupportedOperator."""
        namespace, _, name = self.operator.partition(".")
        raise UnsupportedOperator(namespace, name, None, reason, attribute=argument, node=self.node)

    def undecided(self, reason: str) -> NoReturn:
        """Refuse a form that the sizes of the inputs may decide. Raises ValueNeeded."""
        namespace, _, name = self.operator.partition(".")
        raise ValueNeeded(namespace, name, None, reason, node=self.node)

    def element(self, index: int | None = None) -> ElementType:
        """Element type of the result, or of result ``index``, as torch's promotion has it."""
        return element_from((self.result if index is None else self.result[index]).dtype)

    def sizes(self, value: Value) -> tuple[int, ...]:
        """The sizes, which must be known. Raises ValueNeeded."""
        if not value.tensor.is_static:
            self.undecided(f"the sizes of {value.tensor} decide what is computed")
        return value.tensor.shape

    def size(self, value: Value, axis: int) -> int:
        """One size, which must be known. Raises ValueNeeded."""
        found = value.tensor.known_dims[axis]
        if not isinstance(found, int):
            self.undecided(f"size {axis} of {value.tensor} decides what is computed")
        return found

    def axis(self, axis: int, rank: int) -> int:
        """The axis counted from the front; torch takes 0 and -1 for a tensor of rank 0."""
        return axis % max(rank, 1)

    def axes(self, axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
        """Axes counted from the front, ascending; all of them where none is given."""
        if isinstance(axes, int):
            axes = (axes,)
        if not axes:
            return tuple(range(rank))
        return tuple(sorted({self.axis(axis, rank) for axis in axes})) if rank else ()

    def integer(self, found: Any) -> int:  # noqa: ANN401 - an int, or a symbolic one
        """A number that must be known. Raises ValueNeeded."""
        if isinstance(found, Value):
            data = self.known(found)
            if data is None:
                self.undecided("a number that depends on input sizes decides what is computed")
            return int(data.reshape(()))
        return int(found)


_TYPES_OF_NUMBERS = {bool: BOOL, int: I64, float: F64}


def element_of_number(number: Any) -> ElementType:  # noqa: ANN401 - a Python number
    """The element type that holds a Python number: int64, float64 or bool; float32 is torch's default for tensors."""
    return _TYPES_OF_NUMBERS.get(type(number), F32)


def is_negative_zero(number: float) -> bool:
    """Whether it is -0.0."""
    return number == 0 and math.copysign(1, number) < 0


Converter: TypeAlias = "Callable[[Site], Results]"
_Function = TypeVar("_Function", bound="Callable[[Site], Results]")
_TABLE: dict[str, Converter] = {}


def converts(*operators: str) -> Callable[[_Function], _Function]:
    """Decorator: enter a converter for overloads: ``add.Tensor``, ``relu`` (its default overload).

    Raises InvalidGraph where two converters claim one.
    """

    def enter(function: _Function) -> _Function:
        for operator in operators:
            name = operator if "." in operator else f"{operator}.default"
            if name in _TABLE:
                raise InvalidGraph(f"aten.{name} is claimed twice")
            _TABLE[name] = function
        return function

    return enter


def converter_for(name: str) -> Converter | None:
    """The converter of an overload, ``add.Tensor``, or None."""
    return _TABLE.get(name)


def converted_operators() -> tuple[str, ...]:
    """Every overload that has a converter, sorted."""
    return tuple(sorted(_TABLE))


def result_values(results: Results) -> tuple[Value | None, ...]:
    """A converter's answer as a tuple."""
    if results is None:
        return ()
    if isinstance(results, Value):
        return (results,)
    if isinstance(results, Op):
        return results.results
    return tuple(results)
