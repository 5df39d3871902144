"""A random graph in the making: values that stay exact in every format, and what steps take from them and add.

All numbers are small integers, whatever the element type, and every value carries a bound of its magnitude: a result
that could leave the integers that the type holds exactly is clipped first. So any order of sums gives the same result,
and a difference is a wrong address, size or value, never rounding. Functions that round end a path: what they give is
only moved about.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]
LARGEST_SIZE = 3000
"""Elements of the largest value."""
HELD: Mapping[int, int] = {
    TensorProto.FLOAT: 1 << 20,
    TensorProto.FLOAT16: 1 << 10,
    TensorProto.INT64: 1 << 20,
    TensorProto.INT32: 1 << 20,
    TensorProto.INT8: 100,
}
"""Largest magnitude to let grow, by element type: below what the type holds exactly."""
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)


@dataclass(frozen=True, slots=True)
class Made:
    """A value of the graph: its name, element type, sizes, largest magnitude, and whether it is exact."""

    name: str
    element: int
    shape: tuple[int, ...]
    bound: int = 1
    exact: bool = True

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


class Mismatch(Exception):
    """A step that has no fitting operands here."""


@dataclass(slots=True)
class Drawing:
    """A graph in the making: the source of chance, the nodes and constants so far, and the values to take from."""

    chance: random.Random
    element: int
    rounds: bool
    prefix: str = "v"
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    values: list[Made] = field(default_factory=list)

    def pick(self, fits: Callable[[Made], bool] = lambda _: True) -> Made:
        """Return a value that fits, recent ones more often. Raises `Mismatch`."""
        found = [value for value in self.values if fits(value)]
        if not found:
            raise Mismatch
        return self.chance.choice(found[-4:] if self.chance.random() < 0.6 else found)

    def number(self, rank: int | None = None, least_rank: int = 0) -> Made:
        """Return an exact value of the graph's element type."""
        return self.pick(
            lambda v: (
                v.exact and v.element == self.element and len(v.shape) >= least_rank and rank in (None, len(v.shape))
            )
        )

    def any(self, least_rank: int = 0) -> Made:
        """Return a value of any type to move about."""
        return self.pick(lambda v: len(v.shape) >= least_rank)

    def name(self) -> str:
        """Return a fresh name."""
        return f"{self.prefix}{len(self.nodes)}_{len(self.constants)}"

    def constant(self, array: Any) -> str:  # noqa: ANN401 - whatever numpy takes
        """Add an initializer; return its name, or that of an equal one."""
        tensor = numpy_helper.from_array(np.asarray(array))
        for known in self.constants:
            if (known.dims, known.data_type, known.raw_data) == (tensor.dims, tensor.data_type, tensor.raw_data):
                return known.name
        tensor.name = "c" + self.name()
        self.constants.append(tensor)
        return tensor.name

    def number_constant(self, shape: Sequence[int], low: int = -3, high: int = 3) -> Made:
        """Add an initializer of the graph's element type with small integers."""
        array = np.random.default_rng(self.chance.getrandbits(32)).integers(low, high + 1, tuple(shape))
        dtype = helper.tensor_dtype_to_np_dtype(self.element)
        return Made(self.constant(array.astype(dtype)), self.element, tuple(shape), max(abs(low), abs(high)))

    def add(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:  # noqa: ANN401
        """Add a node; return the names of its outputs."""
        base = self.name()
        names = [f"{base}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def keep(self, name: str, like: Made, shape: Sequence[int] | None = None, **changes: Any) -> Made:  # noqa: ANN401
        """Take a result in, clipped if it could leave the exact integers."""
        made = Made(
            name,
            changes.get("element", like.element),
            like.shape if shape is None else tuple(shape),
            changes.get("bound", like.bound),
            changes.get("exact", like.exact),
        )
        if made.size > LARGEST_SIZE:
            self.nodes.pop()
            raise Mismatch
        if made.exact and made.bound > HELD.get(made.element, 1):
            dtype = helper.tensor_dtype_to_np_dtype(made.element)
            limits = [self.constant(np.array(limit, dtype)) for limit in (-4, 5)]
            made = Made(self.add("Clip", [made.name, *limits])[0], made.element, made.shape, 5)
        self.values.append(made)
        return made

    def flip(self, share: float = 0.5) -> bool:
        """Return True in that share of the draws."""
        return self.chance.random() < share


def joined(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that these broadcast to, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


Step = Callable[[Drawing], None]
"""Adds a node or a few whose sizes fit. Raises `Mismatch` where there is nothing to take."""
