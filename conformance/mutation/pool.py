"""Every green case with its oracles' answers and the lines that it runs; recorded once for a state of the sources.

What is kept is plain data: a child that is about to import a faulty module must not have loaded it before.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from conformance.errors import MutationError
from conformance.mutation.children import Died, Limits, run_children
from conformance.mutation.edits import ROOT

DEFAULT_TARGET = "reference-npu"
SMALL_TARGET = "small"
"""The default target with little memory and a small array: there even small tensors are cut into tiles."""

SUITES = {
    DEFAULT_TARGET: ("graphs", "operators", "random", "onnx-official", "invalid"),
    SMALL_TARGET: ("graphs", "operators", "random"),
}
_SOURCES = ("compiler", "conformance", "generators", "opsets")
CASES_A_LINE = 300


@dataclass(frozen=True, slots=True)
class PoolCase:
    """A case that passes, ready to be judged again: the answers and the evidence do not change with the compiler.

    `answers` are (oracle, outputs, why, exact); `evidence` the fields of a comparison's `Evidence`. `outputs` and
    `damaged` (damage -> outcome) are kept for the cases that try the comparator. `figures` are what it cost.
    """

    id: str
    target: str
    operator: str
    dtype: str
    data_class: str
    since_version: int
    input_mode: str
    model: bytes
    inputs: Sequence[Any]
    tolerance: str
    ruling: str | None
    must_fail: bool
    diagnosis: str | None
    answers: tuple[tuple[str, Any, str, bool], ...]
    evidence: Mapping[str, Any]
    outcome: str
    figures: tuple[object, ...] = ()
    outputs: Sequence[Any] | None = None
    damaged: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_graph(self) -> bool:
        """Whether it is one of the suite of small graphs."""
        return self.id.startswith("graphs/")


@dataclass(slots=True)
class Pool:
    """Cases, and which of them run a line: path -> line -> places in `cases`; `red`: ids of cases that do not pass."""

    cases: list[PoolCase] = field(default_factory=list)
    lines: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    red: list[str] = field(default_factory=list)

    def add(self, other: Pool) -> None:
        """Take in what another process recorded."""
        first = len(self.cases)
        self.cases += other.cases
        self.red += other.red
        for path, lines in other.lines.items():
            for line, places in lines.items():
                known = self.lines.setdefault(path, {}).setdefault(line, [])
                known += [first + place for place in places]


def sources_hash() -> str:
    """Return a hash over every source that a pool depends on; tests and this check itself left out."""
    digest = hashlib.blake2b(digest_size=8)
    for package in _SOURCES:
        for path in sorted((ROOT / package).rglob("*")):
            kept = path.suffix in (".py", ".yaml", ".jinja") and not path.name.endswith("_test.py")
            if kept and "mutation" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def load_pool(folder: Path, jobs: int, share: int = 1) -> Pool:
    """Return the pool for the present sources, recorded now if it is not there; one case in `share` of large suites.

    Raises `MutationError` if a recording process dies.
    """
    pool, state = Pool(), sources_hash()
    for target in (DEFAULT_TARGET, SMALL_TARGET):
        file = folder / f"pool-{state}-{share}-{target}.pickle"
        if not file.exists():
            recorded = _recorded_by_children(folder / "recording.log", jobs, share, target)
            for old in folder.glob(f"pool-*-{share}-{target}.pickle"):
                old.unlink()
            file.write_bytes(pickle.dumps(recorded))
        pool.add(pickle.loads(file.read_bytes()))  # noqa: S301 - written above
    return pool


def _recorded_by_children(log: Path, jobs: int, share: int, target: str) -> Pool:
    pool = Pool()
    tasks = [(part, partial(_record, part, jobs, share, target)) for part in range(jobs)]
    for _, recorded in run_children(tasks, jobs, Limits(), log):
        if isinstance(recorded, Died):
            raise MutationError(f"recording the cases failed: {recorded.cause}; see {log}")
        pool.add(recorded)
    return pool


def _record(part: int, parts: int, share: int, target: str) -> Pool:
    from conformance.mutation.recording import record_cases

    return record_cases(part, parts, share, target)


def spread(keys: Sequence[tuple[object, ...]], seed: str) -> list[int]:
    """Return the order of 0..n-1 in which each distinct key comes once before any comes again; a hash decides ties."""
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    ranked: list[tuple[int, int, int]] = []
    for place in sorted(range(len(keys)), key=lambda place: _hash(f"{seed}:{place}")):
        ranked.append((seen[keys[place]], len(ranked), place))
        seen[keys[place]] += 1
    return [place for _, _, place in sorted(ranked)]


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
