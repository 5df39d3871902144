"""What a converter sees of a node, and the table of converters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from compiler.errors import InvalidAttribute, InvalidGraph, InvalidModel, TypeMismatch, UnsupportedOperator, ValueNeeded
from compiler.ir import Builder, Graph, Op, TensorType, Type, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onnx import GraphProto

    from compiler.frontends.onnx.fold import Folder
    from compiler.ir import Array, ElementType

Results: TypeAlias = "Value | Op | Sequence[Value | None]"


@dataclass(frozen=True, slots=True)
class Site:
    """One node being converted: its inputs as values, its attributes with defaults, and a builder.

    ``outputs`` has the names of the outputs, empty for those that are not wanted.
    """

    domain: str
    operator: str
    version: int
    node: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    b: Builder
    folder: Folder
    inline: Callable[[GraphProto, Sequence[Value], Builder, str], list[Value]]
    """Imports a subgraph's nodes with a builder, its inputs standing for given values; its outputs."""

    def has(self, index: int) -> bool:
        """Whether input ``index`` is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def optional(self, index: int) -> Value | None:
        """Input ``index`` or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def input(self, index: int) -> Value:
        """Input ``index``. Raises InvalidModel where it is omitted."""
        found = self.optional(index)
        if found is None:
            raise InvalidModel(f"node '{self.node}' ({self.operator}) omits input {index}, which is required here")
        return found

    @property
    def given(self) -> tuple[Value, ...]:
        """All inputs, of which none may be omitted."""
        return tuple(self.input(index) for index in range(len(self.inputs)))

    def wants(self, index: int) -> bool:
        """Whether output ``index`` is named."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def tensor(self, index: int) -> TensorType:
        """The type of input ``index``, which must be a tensor."""
        return self.input(index).tensor

    def rank(self, value: Value) -> int:
        """The rank, which must be known. Raises ValueNeeded."""
        if value.tensor.dims is None:
            self.undecided("the rank of an input is unknown")
        return value.tensor.rank

    def axis(self, axis: int, rank: int) -> int:
        """The axis counted from the front. Raises InvalidAttribute outside -rank..rank-1."""
        if not -rank <= axis < rank:
            raise InvalidAttribute(
                f"node '{self.node}' ({self.operator}) has axis {axis}; expected {-rank} to {rank - 1}"
            )
        return axis % rank

    def axis_of(self, value: Value, axis: int) -> int:
        """The axis of a tensor counted from the front; as it is where the tensor's rank is unknown."""
        dims = value.tensor.dims
        return axis if dims is None else self.axis(axis, len(dims))

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes counted from the front, in the order given. Raises InvalidAttribute for one outside or given twice."""
        found = tuple(self.axis(axis, rank) for axis in axes)
        if len(set(found)) != len(found):
            raise InvalidAttribute(f"node '{self.node}' ({self.operator}) names an axis twice in {list(axes)}")
        return found

    def attribute(self, name: str) -> Any:  # noqa: ANN401 - the schema has checked the type
        """An attribute, its default, or None."""
        return self.attributes.get(name)

    def invalid(self, reason: str) -> NoReturn:
        """Refuse a node that breaks its operator's specification. Raises InvalidModel."""
        raise InvalidModel(f"node '{self.node}' ({self.operator}-{self.version}): {reason}")

    def bad_attribute(self, reason: str) -> NoReturn:
        """Refuse a node with an attribute outside its domain. Raises InvalidAttribute."""
        raise InvalidAttribute(f"node '{self.node}' ({self.operator}-{self.version}): {reason}")

    def bad_shape(self, reason: str) -> NoReturn:
        """Refuse a node whose inputs have a rank or a size that its operator does not take. Raises TypeMismatch."""
        raise TypeMismatch(f"node '{self.node}' ({self.operator}-{self.version}): {reason}")

    def refuse(self, reason: str, attribute: str | None = None) -> NoReturn:
        """Refuse a form of the operator that has no conversion. Raises UnsupportedOperator."""
        raise UnsupportedOperator(self.domain, self.operator, self.version, reason, attribute=attribute, node=self.node)

    def undecided(self, reason: str) -> NoReturn:
        """Refuse a form that the sizes of the model's inputs may decide. Raises ValueNeeded without a value's name."""
        raise ValueNeeded(self.domain, self.operator, self.version, reason, node=self.node)

    def known(self, value: Value | None) -> Array | None:
        """The value's data where constants decide it, else None."""
        return None if value is None else self.folder.known(value)

    def needed(self, index: int) -> Array:
        """The data of input ``index``, on which the form of the conversion depends. Raises ValueNeeded."""
        found = self.known(self.input(index))
        if found is None:
            source = self.folder.undecided_input(self.input(index))
            name = (source or self.input(index)).name or f"input {index}"
            reason = f"the value of '{name}' decides what is computed, and it is not known when the model is read"
            raise ValueNeeded(self.domain, self.operator, self.version, reason, node=self.node, value=name)
        return found

    def needed_integers(self, index: int) -> tuple[int, ...]:
        """The data of an integer vector or scalar input. Raises ValueNeeded."""
        return tuple(int(item) for item in self.needed(index).reshape(-1))

    def needed_integer(self, index: int) -> int:
        """The data of an input of one element. Raises ValueNeeded, InvalidModel for another number of elements."""
        found = self.needed(index)
        if found.size != 1:
            self.invalid(f"input {index} has {found.size} elements; expected one")
        return int(found.reshape(()))

    def folded(self, value: Value) -> Value:
        """A value operand as a constant where its data is known, else itself."""
        if value.op is not None and value.op.definition.holds_constant:
            return value
        found = self.folder.known(value)
        return value if found is None else self.b.constant(found)

    def integers(self, *values: int) -> Value:
        """An int64 vector."""
        return self.b.constant(np.array(values, np.int64))

    def scalar(self, value: float, element: ElementType) -> Value:
        """A constant of rank 0. Integers and floats are converted to the element type."""
        return self.b.constant(np.array(value).astype(element.dtype))

    def scalar_like(self, value: float, like: Value) -> Value:
        """A constant of rank 0 of the element type of another value."""
        return self.scalar(value, like.tensor.element)

    def region(self, name: str, input_types: Sequence[Type]) -> Graph:
        """The subgraph in attribute ``name`` as a region whose inputs have these types."""
        proto = self.attributes[name]
        if len(proto.input) != len(input_types):
            self.invalid(f"subgraph '{name}' has {len(proto.input)} inputs; expected {len(input_types)}")
        graph = Graph(proto.name or name, input_types, [info.name for info in proto.input])
        builder = Builder(graph)
        builder.output(*self.inline(proto, graph.inputs, builder, name))
        graph.output_names = tuple(info.name for info in proto.output)
        return graph


Converter: TypeAlias = "Callable[[Site], Results]"
_Function = TypeVar("_Function", bound="Callable[[Site], Results]")


@dataclass(frozen=True, slots=True)
class _Entry:
    since: int
    until: int | None
    convert: Converter


_TABLE: dict[tuple[str, str], list[_Entry]] = {}


def converts(
    *operators: str, since: int = 1, until: int | None = None, domain: str = ""
) -> Callable[[_Function], _Function]:
    """Decorator: enter a converter for versions ``since`` to ``until`` (inclusive; None: to the newest) of operators.

    Raises InvalidGraph where two converters claim one version.
    """

    def enter(function: _Function) -> _Function:
        for operator in operators:
            entries = _TABLE.setdefault((domain, operator), [])
            for entry in entries:
                apart = (until is not None and until < entry.since) or (entry.until is not None and entry.until < since)
                if not apart:
                    raise InvalidGraph(f"versions {since} to {until} of {operator} are claimed twice")
            entries.append(_Entry(since, until, function))
        return function

    return enter


def converter_for(domain: str, operator: str, version: int) -> Converter | None:
    """The converter of that operator version, or None."""
    for entry in _TABLE.get((domain, operator), ()):
        if entry.since <= version and (entry.until is None or version <= entry.until):
            return entry.convert
    return None


def converted_operators() -> tuple[tuple[str, str], ...]:
    """Domain and name of every operator that has a converter, sorted."""
    return tuple(sorted(_TABLE))


def result_values(results: Results) -> tuple[Value | None, ...]:
    """A converter's answer as a tuple."""
    if isinstance(results, Value):
        return (results,)
    if isinstance(results, Op):
        return results.results
    return tuple(results)
