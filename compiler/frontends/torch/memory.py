"""Views and writes in place as values: every tensor is a place, a piece of some storage whose value may be replaced.

torch.export keeps writes in place and the views through which they go. A view is read by the steps that lead to it from
its storage; a write through it computes the storage's next value, from which all its other views are read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compiler.frontends.torch.converters.common import expand_like, flat, reshape_to, shape_of, unsqueeze
from compiler.ir import I64, Value
from compiler.ops.creation import Range
from compiler.ops.indexing import ScatterNd
from compiler.ops.shape import SizeOf

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.frontends.torch.site import Site

Step: TypeAlias = "Callable[[Value], Value]"
"""What a view operator makes of a tensor."""


@dataclass(slots=True, eq=False)
class Storage:
    """What a tensor and its views share: the current value of the whole, and how often it was replaced."""

    value: Value
    version: int = 0
    buffer: str = ""
    """Name of the buffer that it is, which a write would change beyond the run."""


@dataclass(slots=True, eq=False)
class Place:
    """A tensor of the program: a storage and the steps of views that lead to it."""

    storage: Storage
    steps: tuple[Step, ...] = ()
    _value: Value | None = field(default=None)
    _version: int = -1

    @classmethod
    def of(cls, value: Value, buffer: str = "") -> Place:
        """A tensor of its own."""
        return cls(Storage(value, 0, buffer))

    def view(self, step: Step, value: Value | None = None) -> Place:
        """What a view operator makes of it; ``value`` where that was computed already."""
        return Place(self.storage, (*self.steps, step), value, self.storage.version if value is not None else -1)

    def extend(self, step: Step) -> None:
        """Let the tensor itself be a view of what it was."""
        self.steps = (*self.steps, step)
        self._value = None

    def read(self) -> Value:
        """The current value."""
        if not self.steps:
            return self.storage.value
        if self._value is None or self._version != self.storage.version:
            value = self.storage.value
            for step in self.steps:
                value = step(value)
            self._value, self._version = value, self.storage.version
        return self._value

    def write(self, site: Site, value: Value) -> None:
        """Let it have another value, of its element type and, but for repetition, its shape."""
        value = expand_like(site, value, self.read())
        if self.steps:
            whole = self.storage.value
            # What each element of the view is within the whole: the steps themselves say it.
            places = reshape_to(site, _numbered(site, whole), shape_of(site, whole))
            for step in self.steps:
                places = step(places)
            index = unsqueeze(site, flat(site, places), (1,))
            changed = site.op(ScatterNd, flat(site, whole), index, flat(site, value))
            self.storage.value = reshape_to(site, changed, shape_of(site, whole))
        else:
            self.storage.value = value
        self.storage.version += 1
        if self.steps:
            self._value, self._version = value, self.storage.version


def _numbered(site: Site, whole: Value) -> Value:
    """0, 1, 2, ... for every element of a tensor, as a vector."""
    static = whole.tensor.is_static
    count = site.constant(whole.tensor.size, I64) if static else site.op(SizeOf, whole)
    return site.op(Range, site.constant(0, I64), count, site.constant(1, I64))
