"""Every green case with its oracles' answers and the lines that it runs; recorded once for a state of the sources.

What is kept is plain data: a child that is about to import a faulty module must not have loaded it before.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import MutationError
from conformance.mutation.children import Died, Limits, run_children
from conformance.mutation.edits import ROOT

SUITES = ("graphs", "operators", "onnx-official", "invalid")
_SOURCES = ("compiler", "conformance", "generators", "opsets")
CASES_A_LINE = 200


@dataclass(frozen=True, slots=True)
class PoolCase:
    """A case that passes, ready to be judged again: the answers and the evidence do not change with the compiler.

    `answers` are (oracle, outputs, why, exact); `evidence` the fields of a comparison's `Evidence`. `outputs` and
    `damaged` (damage -> outcome) are kept for the cases that try the comparator. `figures`: placement, cycles, traffic.
    """

    id: str
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
    answers: tuple[tuple[str, Any, str, bool], ...]
    evidence: Mapping[str, Any]
    outcome: str
    figures: tuple[object, ...] = ()
    outputs: Sequence[Any] | None = None
    damaged: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Pool:
    """Cases, and which of them run a line: path -> line -> places in `cases`.

    `import_lines` run while modules are imported; `red` are the ids of cases that do not pass.
    """

    cases: list[PoolCase] = field(default_factory=list)
    lines: dict[str, dict[int, list[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    red: list[str] = field(default_factory=list)
    import_lines: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, other: Pool) -> None:
        """Take in what another process recorded."""
        first = len(self.cases)
        self.cases += other.cases
        self.red += other.red
        for path, imported in other.import_lines.items():
            self.import_lines[path] |= imported
        for path, lines in other.lines.items():
            for line, places in lines.items():
                self.lines[path][line] += [first + place for place in places]


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
    """Return the pool for the present sources, recorded now if it is not there; one case in `share` of the suite.

    Raises `MutationError` if a recording process dies.
    """
    file = folder / f"pool-{sources_hash()}-{share}.pickle"
    if not file.exists():
        pool = Pool()
        tasks = [(part, _recorder(part, jobs, share)) for part in range(jobs)]
        for _, recorded in run_children(tasks, jobs, Limits(), folder / "recording.log"):
            if isinstance(recorded, Died):
                raise MutationError(f"recording the cases failed: {recorded.cause}; see {folder / 'recording.log'}")
            pool.add(pickle.loads(recorded))  # noqa: S301 - our own child's
        for old in folder.glob(f"pool-*-{share}.pickle"):
            old.unlink()
        file.write_bytes(_packed(pool))
    pool = Pool()
    pool.add(pickle.loads(file.read_bytes()))  # noqa: S301 - written above
    return pool


def _packed(pool: Pool) -> bytes:
    lines: Any = {path: dict(lines) for path, lines in pool.lines.items()}
    return pickle.dumps(Pool(pool.cases, lines, pool.red, dict(pool.import_lines)))


def _recorder(part: int, parts: int, share: int) -> Any:  # noqa: ANN401 - a closure for a child
    def record() -> bytes:
        from conformance.mutation.recording import record_cases

        return _packed(record_cases(part, parts, share))

    return record


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
