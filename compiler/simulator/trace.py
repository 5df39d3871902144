"""A timeline as a Chrome trace, which Perfetto opens: one track an engine, one slice an instance."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from compiler.simulator.timing import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.program.executable import Program
    from compiler.simulator.timing import Clock, Instance


def trace_events(clock: Clock, timeline: Sequence[Sequence[Instance]], process: int = 0) -> Iterator[dict[str, Any]]:
    """Events of the trace format; a cycle is shown as a microsecond, the format's unit."""
    program = clock.program
    yield _name("process_name", program.name, process, 0)
    for track, engine in enumerate(ENGINES):
        yield _name("thread_name", engine.value, process, track)
    for track, queue in enumerate(timeline):
        for instance in queue:
            yield _slice(program, clock, instance, process, track)


def _slice(program: Program, clock: Clock, instance: Instance, process: int, track: int) -> dict[str, Any]:
    instruction = clock.items[instance.item].instruction
    kernel = program.kernels[instruction.kernel]
    return {
        "ph": "X",
        "name": f"{type(instruction).__name__.lower()} {kernel.name}",
        "cat": "+".join(kernel.operators),
        "ts": instance.start,
        "dur": instance.end - instance.start,
        "pid": process,
        "tid": track,
        "args": {"instruction": instruction.id, "instance": instance.k, "location": str(kernel.location)},
    }


def _name(kind: str, name: str, process: int, track: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}


def trace_json(events: Sequence[dict[str, Any]]) -> str:
    """The trace file's text."""
    return json.dumps({"traceEvents": list(events), "displayTimeUnit": "ns"}, separators=(",", ":"))
