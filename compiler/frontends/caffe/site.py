"""What a converter sees of a layer, and the table of converters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from compiler.errors import InvalidGraph, InvalidModel, UnsupportedOperator
from compiler.frontends.caffe.reader import PB
from compiler.ir import Builder, Value
from compiler.ops.movement import Slice
from compiler.ops.reshape import Reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.frontends.caffe.reader import Blob, Layer

Results: TypeAlias = "Value | Sequence[Value]"


@dataclass(frozen=True, slots=True)
class Site:
    """One layer being converted: its bottoms as values, its parameters as stored, and a builder."""

    layer: Layer
    inputs: tuple[Value, ...]
    blobs: tuple[Blob, ...]
    b: Builder

    def parameters(self, name: str) -> Any:  # noqa: ANN401 - a protobuf message, whose fields have defaults
        """The layer's parameter message, with defaults where it is absent, as many are from the first format."""
        message = self.layer.message
        return getattr(message if hasattr(message, name) else PB.LayerParameter(), name)

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """The sizes of a bottom. Raises UnsupportedOperator where only data decides them."""
        return self.sizes(self.inputs[index])

    def sizes(self, value: Value) -> tuple[int, ...]:
        """The sizes of a value. Raises UnsupportedOperator where only data decides them."""
        dims = value.tensor.dims
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            self.refuse("its bottom has a size that only data decides")
        return tuple(int(dim) for dim in dims)

    def axis(self, axis: int, rank: int) -> int:
        """The axis counted from the front. Raises InvalidModel outside -rank..rank-1."""
        if not -rank <= axis < rank:
            self.invalid(f"axis is {axis}; expected {-rank} to {rank - 1}")
        return axis % rank

    def blob(self, index: int, what: str, shape: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A parameter, checked against the shape it must have. Raises InvalidModel naming layer and blob."""
        if index >= len(self.blobs):
            self.invalid(
                f"blob {index} ({what}) is missing, expected shape {list(shape)}: no weights for the layer of that name"
                if not self.blobs
                else f"blob {index} ({what}) is missing, expected shape {list(shape)}; {len(self.blobs)} given"
            )
        found, wanted = self.blobs[index], tuple(shape)
        if found.legacy and len(wanted) <= 4:
            wanted = (1,) * (4 - len(wanted)) + wanted
        if found.data.shape != wanted:
            self.invalid(f"blob {index} ({what}) has shape {list(found.data.shape)}; expected {list(shape)}")
        return found.data.reshape(tuple(shape))

    def weight(self, index: int, what: str, shape: Sequence[int]) -> Value:
        """A parameter as a constant."""
        return self.b.constant(self.blob(index, what, shape))

    def number(self, value: float) -> Value:
        """A float32 scalar."""
        return self.b.constant(np.array(value, np.float32))

    def integers(self, *values: int) -> Value:
        """An int64 vector."""
        return self.b.constant(np.array(values, np.int64))

    def reshape(self, value: Value, dims: Sequence[int]) -> Value:
        """The value with these sizes; itself where it has them."""
        return value if value.tensor.dims == tuple(dims) else self.b(Reshape, value, self.integers(*dims))

    def cut(self, value: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
        """``start:end:step`` along one axis."""
        parts = (self.integers(part) for part in (start, end, axis, step))
        return self.b(Slice, value, *parts)

    def invalid(self, reason: str) -> NoReturn:
        """Refuse a layer that breaks the format. Raises InvalidModel."""
        raise InvalidModel(f"{self.layer}: {reason}")

    def refuse(self, reason: str, attribute: str | None = None) -> NoReturn:
        """Refuse a layer, or a form of it, that has no conversion. Raises UnsupportedOperator."""
        node = f"{self.layer.name}, line {self.layer.line}" if self.layer.line else self.layer.name
        raise UnsupportedOperator("caffe", self.layer.type, None, reason, attribute=attribute, node=node)


@dataclass(frozen=True, slots=True)
class Converter:
    """How a layer type is converted; the least and the greatest number of its bottoms (None: any)."""

    convert: Callable[[Site], Results]
    least: int
    greatest: int | None


_Function = TypeVar("_Function", bound="Callable[[Site], Results]")
_TABLE: dict[str, Converter] = {}


def converts(layer: str, least: int = 1, greatest: int | None = 1) -> Callable[[_Function], _Function]:
    """Decorator: enter a converter for a layer type with so many bottoms. Raises InvalidGraph for one taken."""

    def enter(function: _Function) -> _Function:
        if layer in _TABLE:
            raise InvalidGraph(f"caffe.{layer} is claimed twice")
        _TABLE[layer] = Converter(function, least, greatest)
        return function

    return enter


def converter_for(layer: str) -> Converter | None:
    """The converter of a layer type, or None."""
    return _TABLE.get(layer)


def converted_layers() -> tuple[str, ...]:
    """Every layer type that has a converter, sorted."""
    return tuple(sorted(_TABLE))
