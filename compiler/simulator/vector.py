"""The vector unit: scalar bodies over iteration spaces, reductions, running combinations, gather and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.ir import BOOL, element_of
from compiler.ops.work import Arg, Combiner
from compiler.program.addresses import all_values, written_extents
from compiler.program.instructions import Address, Region
from compiler.simulator.body import Body
from compiler.simulator.combine import EXTREMES, extreme_position, reduced, running
from compiler.simulator.convert import convert
from compiler.simulator.scatter import scatter
from compiler.simulator.transfer import CopyUnit
from compiler.simulator.unit import Unit
from compiler.simulator.views import Scattered, View, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Array
    from compiler.program.instructions import Vector
    from compiler.simulator.memory import Layout, Memories


class VectorUnit(Unit):
    """One vector instruction, compiled."""

    __slots__ = (
        "body",
        "direct",
        "each_point",
        "initial",
        "inputs",
        "instruction",
        "lead",
        "origins",
        "out",
        "previous",
    )

    def __init__(self, vector: Vector, counts: tuple[int, ...], layout: Layout, who: str) -> None:
        self.instruction = vector
        self.inputs = [readable(operand, vector.extents, counts, layout, who) for operand in vector.inputs]
        self.out: View | Scattered
        if vector.out.lookups:
            self.out = Scattered(vector.out, written_extents(vector), counts, layout, who, writes=True)
        else:
            self.out = View(vector.out.region, written_extents(vector), counts, layout, who, writes=True)
        self.body = Body(vector.body, len(self.inputs), who)
        self.origins = [all_values(origin, counts) for origin in vector.origin]
        self.lead = len(vector.extents) - vector.reduced
        accumulate = vector.accumulate or self.out.element
        self.initial = None if vector.initial is None else np.asarray(vector.initial).astype(accumulate.dtype)
        self.previous = self._before(counts, layout, who)
        element = self.out.element
        #: Whether every point is joined where it is scattered to, not over the reduced loops before.
        self.each_point = isinstance(self.out, Scattered) and (not vector.reduced or len(self.out.extents) > self.lead)
        self.direct = None
        if vector.combiner is None and isinstance(self.out, View) and not self.out.packed:
            self.direct = self.body.direct(element)
        super().__init__(self._sources(), [self.out])

    def _before(self, counts: tuple[int, ...], layout: Layout, who: str) -> View | None:
        vector = self.instruction
        if not vector.scan or vector.initial is not None:
            return None
        region = vector.out.region
        address = Address(region.address.base - region.strides[-1], region.address.terms, region.address.rotations)
        held = Region(region.memory, address, region.element, region.strides[:-1])
        return View(held, vector.extents[:-1], counts, layout, who)

    def _sources(self) -> list[View | Scattered]:
        sources: list[View | Scattered] = list(self.inputs)
        for operand in (*self.inputs, self.out):
            if isinstance(operand, Scattered):
                sources.extend(view for _, view in operand.lookups)
        if self.previous is not None:
            sources.append(self.previous)
        elif self.instruction.combiner is not None and self.initial is None:
            sources.append(self.out)
        return sources

    def perform(self, memories: Memories, k: int) -> None:
        if self.direct is None:
            self.prepare(memories, k)()
            return
        assert isinstance(self.out, View)
        target = self.out.bytes_view(memories, k)
        values = self._values(memories, k, target)
        if values is not target:
            np.copyto(target, convert(values, self.out.element))

    def prepare(self, memories: Memories, k: int) -> Callable[[], None]:
        values = self._values(memories, k, None)
        if self.instruction.combiner is not None:
            values = self._combined(memories, k, values)
        elif self.body.copies is not None:
            values = values.copy()
        out = self.out
        if isinstance(out, View):
            result = convert(values, out.element)
            return lambda: out.write(memories, k, result)
        joins = self.each_point or self.initial is None
        combiner = self.instruction.combiner if joins else None
        return scatter(out, memories, k, values, combiner, self.initial)

    def _values(self, memories: Memories, k: int, target: Array | None) -> Array:
        arguments = []
        for operand in self.inputs:
            values = operand.read(memories, k)
            arguments.append(values.view(np.uint8) != 0 if operand.element is BOOL else values)

        def position(loop: int) -> Array:
            start = self.origins[loop][k] if loop < len(self.origins) else 0
            extents = self.instruction.extents
            index = np.arange(start, start + extents[loop], dtype=np.int64)
            return index.reshape([-1 if other == loop else 1 for other in range(len(extents))])

        return self.body(arguments, position, target)

    def _combined(self, memories: Memories, k: int, values: Array) -> Array:
        vector = self.instruction
        combiner, lead = vector.combiner, self.lead
        assert combiner is not None
        element = vector.accumulate or self.out.element
        if self.each_point:
            return convert(values, element)
        shape = np.broadcast_shapes(values.shape, (1,) * len(vector.extents))
        # Only the loops that are joined need their full extent; the others may still broadcast.
        full = np.broadcast_to(values, (*shape[:lead], *vector.extents[lead:]))
        if combiner in EXTREMES:
            start = self.origins[lead][k] if lead < len(self.origins) else 0
            return extreme_position(combiner, full) + start
        if vector.scan:
            return running(combiner, full, element, self._start(memories, k))
        axes = tuple(range(lead, len(vector.extents)))
        if combiner is Combiner.ADD and element_of(full.dtype) is BOOL:
            full = convert(full, element)
        return reduced(combiner, full, axes, element, self._start(memories, k))

    def _start(self, memories: Memories, k: int) -> Array | None:
        if self.initial is not None:
            return self.initial
        if self.previous is not None:
            return self.previous.read(memories, k)
        if isinstance(self.out, Scattered):
            return None
        return self.out.read(memories, k)


def vector_unit(vector: Vector, counts: tuple[int, ...], layout: Layout, who: str) -> Unit:
    """The instruction compiled; one that only moves elements is a copy. Raises InvalidProgram."""
    body = vector.body
    if (
        isinstance(body, Arg)
        and vector.combiner is None
        and not vector.out.lookups
        and 0 <= body.index < len(vector.inputs)
    ):
        operand = vector.inputs[body.index]
        if not operand.lookups and operand.region.element is vector.out.region.element is body.element:
            return CopyUnit(operand.region, vector.out.region, (vector.extents, counts), layout, who)
    return VectorUnit(vector, counts, layout, who)
