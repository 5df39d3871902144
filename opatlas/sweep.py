"""A model over a grid of targets: every point timed once, on all cores or on machines of a Dask cluster, and kept.

The model is imported and optimized once an element type; points get its skeleton, without data. Each point that is done
is a line of `points.jsonl`; a run that was interrupted takes up where it was.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opatlas.work import BadOption

if TYPE_CHECKING:
    from compiler.api import CompiledModel
    from compiler.simulator import SimulationReport
    from compiler.skeleton import Skeleton
    from compiler.targets import Target

SCHEMA: Final = "opatlas.sweep"
VERSION: Final = 1
POINTS: Final = "points.jsonl"
DTYPE: Final = "dtype"
TARGET: Final = "target"
MOST_POINTS: Final = 1_000_000
Point = dict[str, str]
"""A value for each axis, as it was given."""


def axes_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the axes of `name=value,value,name=value`. Raises `BadOption`."""
    axes: dict[str, list[str]] = {}
    name = ""
    for part in (part.strip() for text in texts for part in text.split(",")):
        key, equals, value = part.rpartition("=")
        if equals:
            name = key
            if not name or name in axes:
                raise BadOption(f"--over: found axis {name!r} {'twice' if name else 'without a name'} in {part!r}")
            axes[name] = []
        if not (name and value):
            raise BadOption(f"--over: found {part!r}, expected name=value,value,...")
        if value in axes[name]:
            raise BadOption(f"--over: found {name}={value} twice")
        axes[name].append(value)
    if not axes:
        raise BadOption("--over: found no axis, expected name=value,value,...")
    if math.prod(len(values) for values in axes.values()) > MOST_POINTS:
        raise BadOption(f"--over: found more than {MOST_POINTS:,} points")
    return axes


def grid(axes: Mapping[str, Sequence[str]]) -> list[Point]:
    """Return every point, the last axis running fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def target_of(point: Point, base: Target) -> Target:
    """Return the target of a point. Raises InvalidTarget."""
    from compiler.targets import load_target
    from compiler.targets.vary import vary

    changes = {name: value for name, value in point.items() if name not in {DTYPE, TARGET}}
    return vary(load_target(point[TARGET]) if TARGET in point else base, changes)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What every point needs: the model's skeletons by element type and composites that a target keeps whole."""

    base: Target
    skeletons: Mapping[tuple[str, tuple[str, ...]], Skeleton]

    @classmethod
    def of(cls, compiled: CompiledModel, sizes: Mapping[str, int], base: Target, points: Sequence[Point]) -> Study:
        """Optimize the model for all points. Raises an OpatlasError for a target or type that there is not."""
        from compiler.skeleton import Skeleton

        found: dict[tuple[str, tuple[str, ...]], Skeleton] = {}
        for point in points:
            target = target_of(point, base)
            key = (point.get(DTYPE, ""), target.composites)
            if key not in found:
                found[key] = Skeleton.of(compiled.optimized(sizes, target=target, dtype=key[0] or None))
        return cls(base, found)

    @property
    def digest(self) -> str:
        """Hash of all that decides the figures of a point."""
        parts = [str(self.base), *(f"{key} {skeleton.digest}" for key, skeleton in sorted(self.skeletons.items()))]
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    def run(self, point: Point) -> dict[str, Any]:
        """Return the figures of a point, or why it has none."""
        from compiler.errors import OpatlasError

        target = target_of(point, self.base)
        try:
            report = self.skeletons[point.get(DTYPE, ""), target.composites].time(target)
        except OpatlasError as error:
            return {"point": point, "refused": str(error)}
        return {"point": point, **_figures(report, target)}


def _figures(report: SimulationReport, target: Target) -> dict[str, Any]:
    joules, seconds = report.energy_pj * 1e-12, report.seconds
    return {
        "cycles": report.cycles,
        "seconds": seconds,
        "energy_pj": report.energy_pj,
        "energy_delay_joule_seconds": joules * seconds,
        "average_watts": joules / seconds if seconds else 0.0,
        "traffic_bytes": report.traffic_bytes,
        "peak_sram_bytes": report.peak_sram_bytes,
        "macs_utilization": report.utilization["macs"],
        "host_cycles": report.host_cycles,
        "target_sram_bytes": target.sram.bytes,
        "target_cells": target.matrix.rows * target.matrix.columns,
    }


_here: Study | None = None


def _install(study: Study) -> None:
    """Give a worker process its study."""
    global _here  # noqa: PLW0603 - what a pool's initializer is for
    _here = study


def _run_here(point: Point) -> dict[str, Any]:
    assert _here is not None
    return _here.run(point)


def _run_there(study: Study, point: Point) -> dict[str, Any]:
    return study.run(point)


@contextmanager
def _workers(study: Study, jobs: int | None, scheduler: str | None) -> Iterator[Any]:
    """Yield a function that starts a point and returns its future. Raises `BadOption` without Dask."""
    if scheduler is not None:
        with _cluster(scheduler) as (client, executor):
            sent = client.scatter(study, broadcast=True, hash=False)
            yield lambda point: executor.submit(_run_there, sent, point)
        return
    import multiprocessing

    context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of ours hold
    pool: Executor = ProcessPoolExecutor(jobs or len(os.sched_getaffinity(0)), context, _install, (study,))
    try:
        yield lambda point: pool.submit(_run_here, point)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _cluster(scheduler: str) -> Iterator[tuple[Any, Any]]:
    try:
        from dask import distributed
    except ImportError as error:
        raise BadOption("--scheduler needs Dask: pip install 'opatlas[sweep]'") from error
    connect: Any = distributed.Client
    try:
        client = connect(scheduler, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        raise BadOption(f"--scheduler: found no Dask scheduler at {scheduler} ({error})") from error
    with client, client.get_executor(pure=False, retries=2) as executor:
        yield client, executor


def kept_points(path: Path, digest: str) -> dict[str, dict[str, Any]]:
    """Read the points that are done, by their key. Raises `BadOption` for those of another study.

    A last line that was cut off is left out.
    """
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [record for line in lines if (record := _json(line)) is not None]
    if not records or records[0].get("schema") != SCHEMA or records[0].get("version") != VERSION:
        raise BadOption(f"{path} is no file of points of this version: give another folder, or --restart")
    if records[0]["study"] != digest:
        raise BadOption(f"{path} holds points of another model or target: give another folder, or --restart")
    return {_key(record["point"]): record for record in records[1:]}


def _json(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _key(point: Point) -> str:
    return json.dumps(point, sort_keys=True)


def run_points(
    study: Study, points: Sequence[Point], path: Path, *, jobs: int | None = None, scheduler: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the record of each point as it is done, those kept in `path` first; new ones are added there."""
    digest = study.digest
    kept = kept_points(path, digest)
    yield from (kept[_key(point)] for point in points if _key(point) in kept)
    missing = [point for point in points if _key(point) not in kept]
    if not missing:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"schema": SCHEMA, "version": VERSION, "study": digest}
    # Written anew: an interrupted run may have left half a line.
    path.write_text("".join(json.dumps(record) + "\n" for record in (head, *kept.values())), encoding="utf-8")
    with path.open("a", encoding="utf-8") as stream, _workers(study, jobs, scheduler) as start:
        futures: list[Future[dict[str, Any]]] = [start(point) for point in missing]
        for future in as_completed(futures):
            record = future.result()
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            yield record


def front(records: Sequence[Mapping[str, Any]], objectives: Sequence[str]) -> list[bool]:
    """Tell for each record whether no other is at least as good in all objectives and better in one; less is better."""
    values = [None if "refused" in record else [record[name] for name in objectives] for record in records]
    return [mine is not None and not any(_beats(other, mine) for other in values) for mine in values]


def _beats(other: list[float] | None, mine: list[float]) -> bool:
    return other is not None and other != mine and all(one <= two for one, two in zip(other, mine, strict=True))


def summary(
    model: str,
    study: Study,
    axes: Mapping[str, Sequence[str]],
    records: Sequence[dict[str, Any]],
    objectives: Sequence[str],
) -> dict[str, Any]:
    """Return a sweep as plain data, in the order of the grid, whatever order the points came in."""
    by_key = {_key(record["point"]): record for record in records}
    ordered = [by_key[_key(point)] for point in grid(axes)]
    on_front = front(ordered, objectives)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "model": model,
        "target": study.base.name,
        "study": study.digest,
        "axes": {name: list(values) for name, values in axes.items()},
        "objectives": list(objectives),
        "points": [{**record, "on_front": best} for record, best in zip(ordered, on_front, strict=True)],
    }
