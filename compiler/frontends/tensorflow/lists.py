"""Tensor lists: a list whose elements have one shape is a tensor with the elements along its first dim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from compiler.ir import UNKNOWN, ElementType, TensorType, Value, tensor

if TYPE_CHECKING:
    from compiler.frontends.tensorflow.site import Site
    from compiler.ir import Dim


@dataclass(frozen=True, slots=True)
class TensorList:
    """Elements in a tensor [count, *element shape]; ``value`` is None while nothing says what shape they have.

    ``dims`` has what is known of it, ``count`` the number of elements. ``seen`` is shared by all that a list without
    elements turns into, and collects the types of elements that are put in.
    """

    element: ElementType
    dims: tuple[Dim, ...] | None
    value: Value | None = None
    count: int = 0
    seen: list[TensorType] = field(default_factory=list)

    @property
    def what(self) -> str:
        """For diagnoses."""
        return "a list of tensors"

    def stacked(self, site: Site) -> Value:
        """The elements as one tensor; those never set are zeros. Raises ValueNeeded where their shape is not known."""
        if self.value is not None:
            return self.value
        dims = self.dims
        if self.seen:
            dims = merged(dims, self.seen[-1].dims)
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            site.undecided("the shape of a list's elements depends on sizes that are not known before it runs")
        shape = (self.count, *(int(dim) for dim in dims))
        return site.b.constant(np.zeros(shape, self.element.dtype))

    def of(self, value: Value) -> TensorList:
        """A list of the same kind with these elements."""
        return TensorList(self.element, value.tensor.known_dims[1:], value, self.count, self.seen)

    @property
    def type(self) -> TensorType:
        """The type of an element, as far as it is known."""
        return tensor(self.element, self.dims)


def merged(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """What both say of a shape."""
    if a is None or b is None or len(a) != len(b):
        return b if a is None else a
    return tuple(y if isinstance(y, int) or x == UNKNOWN else x for x, y in zip(a, b, strict=True))
