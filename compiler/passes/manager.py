"""Passes, their manager, and what one reaches for when a pass misbehaves: dumps, checks, reproducers, bisection."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.errors import NumericChange, OpatlasError
from compiler.ir import Graph, clone_graph, parse_graph, print_graph, resources, verify
from compiler.passes.roundings import roundings
from compiler.rewrite import EXACT, Numerics, RewriteCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array, Definition


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass did: whether it changed the graph, and how often each of its rewrites was done."""

    modified: bool
    hits: Counter[str] = field(default_factory=Counter)


class Pass(ABC):
    """A pass changes a valid graph in place and leaves a valid one.

    Subclasses are frozen dataclasses: their fields are their options.

    ``numerics`` is the most that the pass may do to the numbers. Each change goes through the counter.
    """

    name: ClassVar[str]
    numerics: ClassVar[Numerics] = EXACT

    @abstractmethod
    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Change the graph; do nothing more once the counter's limit is reached."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """What the manager does around passes.

    ``dump_dir``: a file of IR text after each pass that changed something. ``verify_each``: the verifier after each.
    ``evaluate``: gives the graph's outputs for some inputs; outputs are compared after each pass that changed something
    and held to its numeric class. ``reproducer_dir``: where a failing pass leaves its input and name.
    """

    dump_dir: Path | None = None
    verify_each: bool = False
    evaluate: Callable[[Graph], Sequence[Any]] | None = None
    reproducer_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """One pass of a run: wall milliseconds, operations before and after, rewrites done."""

    name: str
    milliseconds: float
    operations_before: int
    operations_after: int
    modified: bool
    hits: dict[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of the manager did, pass by pass."""

    timings: tuple[Timing, ...]

    @property
    def modified(self) -> bool:
        """Whether any pass changed the graph."""
        return any(timing.modified for timing in self.timings)

    @property
    def hits(self) -> Counter[str]:
        """How often each rewrite was done."""
        total: Counter[str] = Counter()
        for timing in self.timings:
            total.update(timing.hits)
        return total

    def to_json(self) -> str:
        """The timings as JSON, one object a pass in order."""
        entries = [
            {
                "pass": timing.name,
                "ms": round(timing.milliseconds, 3),
                "operations_before": timing.operations_before,
                "operations_after": timing.operations_after,
                "modified": timing.modified,
                "hits": timing.hits,
            }
            for timing in self.timings
        ]
        return json.dumps(entries, indent=2)


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    instruments: Instruments | None = None,
    counter: RewriteCounter | None = None,
) -> Report:
    """Run the passes in order on ``graph``, in place.

    Raises what a pass raises, with its name in the message; InvalidGraph or NumericChange from the checks asked for.
    """
    instruments = instruments or Instruments()
    counter = counter or RewriteCounter()
    timings = []
    dumps = _Dumps(instruments.dump_dir)
    dumps.write("input", graph)
    reference = None if instruments.evaluate is None else list(instruments.evaluate(graph))
    for each in passes:
        before = clone_graph(graph) if instruments.reproducer_dir is not None else None
        try:
            timing = _run(each, graph, counter)
            if timing.modified:
                dumps.write(each.name, graph)
            if instruments.verify_each:
                verify(graph)
            if instruments.evaluate is not None and reference is not None and timing.modified:
                reference = _check_numbers(each, reference, instruments.evaluate(graph), roundings(graph))
        except Exception as error:
            if before is not None and instruments.reproducer_dir is not None:
                write_reproducer(instruments.reproducer_dir, before, [each], str(error))
            if isinstance(error, OpatlasError):
                error.message = f"{error.message} (pass '{each.name}')"
                error.args = (error.message,)
            raise
        timings.append(timing)
    return Report(tuple(timings))


def _run(each: Pass, graph: Graph, counter: RewriteCounter) -> Timing:
    before = sum(1 for _ in graph.walk())
    start = time.perf_counter()
    result = each.run(graph, counter)
    elapsed = 1e3 * (time.perf_counter() - start)
    after = sum(1 for _ in graph.walk())
    return Timing(each.name, elapsed, before, after, result.modified, dict(sorted(result.hits.items())))


def _check_numbers(each: Pass, before: Sequence[Any], after: Sequence[Any], steps: int) -> list[Any]:
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        both = isinstance(old, np.ndarray) and isinstance(new, np.ndarray)
        if both and not each.numerics.holds(old, new, roundings=steps):
            msg = f"output {index} changed by more than '{each.numerics}' allows; expected the values before"
            raise NumericChange(msg)
    return list(after)


class _Dumps:
    """Numbered IR files in a folder, which is made when the first is written."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.count = 0

    def write(self, name: str, graph: Graph) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.count:02d}-{name}.mlir").write_text(print_graph(graph), encoding="utf-8")
        self.count += 1


def write_reproducer(folder: Path, graph: Graph, passes: Sequence[Pass], error: str) -> Path:
    """Write the graph, the data of its large constants and the passes to ``folder``; returns the text's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{passes[0].name if passes else 'graph'}.mlir"
    reason = error.replace("\n", " ")
    lines = [f"// error: {reason}", f"// passes: {', '.join(map(repr, passes))}"]
    path.write_text("\n".join([*lines, print_graph(graph)]), encoding="utf-8")
    data = {key: np.ascontiguousarray(array).reshape(-1).view(np.uint8) for key, array in _plain(graph).items()}
    if data:
        np.savez(path.with_suffix(".npz"), allow_pickle=False, **data)
    return path


def _plain(graph: Graph) -> dict[str, Array]:
    return {key: array for key, array in resources(graph).items() if not array.dtype.hasobject}


def read_reproducer(path: Path, lookup: Callable[[str], Definition]) -> Graph:
    """The graph of a reproducer. Raises InvalidText."""
    data: dict[str, Array] = {}
    if path.with_suffix(".npz").exists():
        with np.load(path.with_suffix(".npz")) as stored:
            data = {key: stored[key] for key in stored.files}
    return parse_graph(path.read_text(encoding="utf-8"), lookup, data)


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first rewrite, counted from 1 over all passes, after which the result is bad."""

    number: int
    description: str


def bisect(graph: Graph, passes: Sequence[Pass], is_good: Callable[[Graph], bool]) -> Culprit | None:
    """The first rewrite that makes ``is_good`` false, by binary search; None where the whole pipeline is good.

    ``graph`` is left as it was. A rewrite that raises counts as bad.
    """

    def outcome(limit: int | None) -> tuple[bool, RewriteCounter]:
        copy, counter = clone_graph(graph), RewriteCounter(limit)
        try:
            run_passes(copy, passes, counter=counter)
            return is_good(copy), counter
        except OpatlasError:
            return False, counter

    good, whole = outcome(None)
    if good:
        return None
    low, high, description = 0, whole.count, whole.last
    while high - low > 1:
        middle = (low + high) // 2
        good, counter = outcome(middle)
        if good:
            low = middle
        else:
            high, description = middle, counter.last
    return Culprit(high, description)
