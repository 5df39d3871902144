"""A program run on data, in the order of its timeline.

An instance reads its operands when it starts and writes its results when it ends. Instances are done in the order in
which they end; one that is still under way when another writes what it reads is made to read before. So a missing
dependency, a wrong address or a bad tile is a wrong number, as it would be on hardware.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.simulator.memory import Layout
from compiler.simulator.units import compile_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array
    from compiler.simulator.memory import Memories
    from compiler.simulator.timing import Clock, Instance
    from compiler.simulator.unit import Unit


class ProgramRunner:
    """A program compiled for functional execution: instructions, memories and the order of events, once."""

    def __init__(self, clock: Clock, *, overlap: bool = True) -> None:
        self.layout = Layout(clock.program)
        self.units: list[Unit] = [compile_unit(item, self.layout) for item in clock.items]
        self.schedule, self.timeline = clock.timeline(overlap=overlap)
        order = [
            (instance.end, instance.start, instance.order, engine, index)
            for engine, queue in enumerate(self.timeline)
            for index, instance in enumerate(queue)
        ]
        self._order = [(engine, index) for _, _, _, engine, index in sorted(order)]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The arrays of the output buffers, given those of the input buffers. Raises EvaluationError, InvalidInput."""
        with np.errstate(all="ignore"):
            memories = self.layout.memories(inputs)
            self._execute(memories)
            return self.layout.outputs(memories)

    def _execute(self, memories: Memories) -> None:
        heads = [0] * len(self.timeline)
        prepared: dict[int, Callable[[], None]] = {}
        for engine, index in self._order:
            instance = self.timeline[engine][index]
            heads[engine] = index + 1
            self._read_first(instance, engine, heads, prepared, memories)
            commit = prepared.pop(engine, None)
            if commit is not None:
                commit()
            else:
                self.units[instance.item].perform(memories, instance.k)

    def _read_first(
        self,
        writer: Instance,
        engine: int,
        heads: list[int],
        prepared: dict[int, Callable[[], None]],
        memories: Memories,
    ) -> None:
        """Let instances under way that read what ``writer`` is about to write read it now."""
        sinks: list[tuple[int, int, int]] | None = None
        for other, queue in enumerate(self.timeline):
            if other == engine or heads[other] >= len(queue) or other in prepared:
                continue
            reader = queue[heads[other]]
            if reader.start >= writer.end:
                continue
            if sinks is None:
                sinks = [sink.touched(writer.k) for sink in self.units[writer.item].sinks]
            unit = self.units[reader.item]
            if unit.reads_from(sinks, reader.k):
                prepared[other] = unit.prepare(memories, reader.k)
