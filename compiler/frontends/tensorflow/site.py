"""What a converter sees of a node, and the table of converters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from compiler.errors import InvalidGraph, UnsupportedOperator, ValueNeeded
from compiler.frontends.assembly import Assembly, cast, dims_of
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.tensorflow.types import element_from
from compiler.ir import I64, Builder, Op, Value

if TYPE_CHECKING:
    from compiler.frontends.tensorflow.importer import Body
    from compiler.ir import Array, ElementType

_PACKAGES_OF_OTHERS: Final = ("tensorflow", "keras")
_DOORS: Final = ("/compiler/frontends/tensorflow/door.py", "/compiler/api.py")


@runtime_checkable
class Item(Protocol):
    """What stands for a tensor of TensorFlow that no tensor of the IR holds: a variable's handle, a tensor list."""

    @property
    def what(self) -> str:
        """What it is, for diagnoses."""
        ...


Results: TypeAlias = "Value | Op | Item | Sequence[Value | Item | None] | None"


def trace_of(operation: Any) -> str:  # noqa: ANN401 - a tf.Operation
    """``file:line`` of the user's source that made a node, or nothing where it is not known."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _PACKAGES_OF_OTHERS]
    folders = tuple(f"{Path(found).parent}/" for found in files if found)
    for frame in reversed(list(operation.traceback or ())):
        name = str(frame.filename)
        if not name.startswith(folders) and not name.endswith(_DOORS):
            return f"{name}:{frame.lineno}"
    return ""


@dataclass(frozen=True, slots=True)
class Site(Assembly):
    """One node: its inputs in order as values (or items), its attributes, and a builder."""

    operation: Any
    inputs: tuple[Value | Item | None, ...]
    b: Builder
    folder: Folder
    body: Body

    @property
    def operator(self) -> str:
        """Name of the raw operator."""
        return str(self.operation.type)

    def value(self, index: int) -> Value:
        """Input ``index``, a tensor. Raises UnsupportedOperator where it is something else."""
        found = self.inputs[index]
        if not isinstance(found, Value):
            what = "nothing that has a conversion" if found is None else found.what
            self.refuse(f"input {index} is {what}; expected a tensor")
        return found

    @property
    def values(self) -> list[Value]:
        """All inputs, tensors."""
        return [self.value(index) for index in range(len(self.inputs))]

    def attr(self, name: str) -> Any:  # noqa: ANN401 - the operator's definition says what it is
        """An attribute as Python has it: texts as str, shapes as lists."""
        found = self.operation.get_attr(name)
        return found.decode() if isinstance(found, bytes) else found

    def has(self, name: str) -> bool:
        """Whether the node has an attribute."""
        return name in self.operation.node_def.attr

    def numbers(self, name: str) -> list[int]:
        """An attribute that is a list of integers."""
        return [int(item) for item in self.operation.get_attr(name)]

    def element(self, output: int = 0) -> ElementType:
        """Element type of a result."""
        return element_from(self.operation.outputs[output].dtype, f"result {output} of node '{self.operation.name}'")

    @property
    def node(self) -> str:
        """Name of the node, and where the user's source made it."""
        place = trace_of(self.operation) if self.body.program.traced else ""
        return f"{self.operation.name} at {place}" if place else str(self.operation.name)

    def refuse(self, reason: str, attribute: str | None = None) -> NoReturn:
        """Refuse a form of the operator that has no conversion. Raises UnsupportedOperator."""
        raise UnsupportedOperator("tf", self.operator, None, reason, attribute=attribute, node=self.node)

    def undecided(self, reason: str, value: Value | None = None) -> NoReturn:
        """Refuse a form that the sizes or values of inputs may decide. Raises ValueNeeded."""
        needed = None if value is None else self.folder.undecided_input(value)
        name = "" if needed is None else needed.name
        raise ValueNeeded("tf", self.operator, None, reason, node=self.node, value=name)

    def data(self, index: int, what: str) -> Array:
        """The data of input ``index``, which must be known. Raises ValueNeeded."""
        value = self.value(index)
        found = self.known(value)
        if found is None:
            self.undecided(f"{what} decides what is computed, and is not known before it runs", value)
        return found

    def ints(self, index: int, what: str) -> list[int]:
        """The integers in input ``index``, which must be known. Raises ValueNeeded."""
        return [int(item) for item in self.data(index, what).reshape(-1)]

    def whole(self, index: int, what: str) -> int:
        """The integer in input ``index``, which must be known. Raises ValueNeeded."""
        return self.ints(index, what)[0]

    def shape(self, index: int) -> Value:
        """Input ``index`` as an int64 vector of sizes, axes or places; a constant where it is known."""
        return self.as_int64(self.value(index))

    def as_int64(self, value: Value) -> Value:
        """Integers as int64; a constant where they are known."""
        found = self.known(value)
        return cast(self, value, I64) if found is None else self.b.constant(found.astype(np.int64))

    def sizes(self, value: Value) -> tuple[int, ...]:
        """The sizes, which must be known. Raises ValueNeeded."""
        if not value.tensor.is_static:
            self.undecided(f"the sizes of {value.tensor} decide what is computed", value)
        return value.tensor.shape

    def size(self, value: Value, axis: int) -> int:
        """One size, which must be known. Raises ValueNeeded."""
        found = self.dims(value)[axis]
        if not isinstance(found, int):
            self.undecided(f"size {axis} of {value.tensor} decides what is computed", value)
        return found

    def dims(self, value: Value) -> tuple[int | str, ...]:
        """The dims; their number must be known. Raises ValueNeeded."""
        if value.tensor.dims is None:
            self.undecided("the rank of a value decides what is computed, and is not known", value)
        return dims_of(value)

    def rank(self, value: Value) -> int:
        """The rank, which must be known. Raises ValueNeeded."""
        return len(self.dims(value))


Converter: TypeAlias = Callable[[Site], Results]
_Function = TypeVar("_Function", bound=Callable[[Site], Results])
_TABLE: dict[str, Converter] = {}


def converts(*operators: str) -> Callable[[_Function], _Function]:
    """Decorator: enter a converter for raw operators. Raises InvalidGraph where two converters claim one."""

    def enter(function: _Function) -> _Function:
        for name in operators:
            if name in _TABLE:
                raise InvalidGraph(f"tf.{name} is claimed twice")
            _TABLE[name] = function
        return function

    return enter


def converter_for(name: str) -> Converter | None:
    """The converter of a raw operator, or None."""
    return _TABLE.get(name)


def covered_operators() -> frozenset[str]:
    """Every raw operator that has a converter."""
    return frozenset(_TABLE)


def result_items(results: Results) -> tuple[Value | Item | None, ...]:
    """A converter's answer as a tuple."""
    if results is None:
        return ()
    if isinstance(results, Op):
        return results.results
    if isinstance(results, (list, tuple)):
        return tuple(results)
    assert not isinstance(results, Sequence)
    return (results,)
