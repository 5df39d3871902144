"""Which generated faults are taken: a seeded draw with a share for each package, and within it for each module."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.mutation.edits import ROOT, Fault, scopes_around
from conformance.mutation.sites import faults_in, is_fault

SHARES: Mapping[str, int] = {
    "compiler/ops": 70,
    "compiler/frontends/onnx/converters": 35,
    "compiler/passes": 30,
    "compiler/lowering": 25,
    "compiler/simulator": 25,
    "conformance": 15,
}
"""Faults a package: 200."""

_COMPARISON = ("comparison.py", "numerics.py", "tolerance.py", "tolerance_scales.py", "vote.py")
_WITHOUT_RESULTS = frozenset({"compiler/ops/document.py", "compiler/simulator/trace.py"})
"""Modules that write documentation and traces: no result of a model passes through them."""


def modules_of(package: str) -> list[str]:
    """Return the paths of a package's modules, tests left out."""
    if package == "conformance":
        return [f"conformance/{name}" for name in _COMPARISON]
    found = (str(path.relative_to(ROOT)) for path in sorted((ROOT / package).rglob("*.py")))
    return [path for path in found if not path.endswith("_test.py") and path not in _WITHOUT_RESULTS]


def generated_faults(shares: Mapping[str, int] = SHARES, seed: int = 1) -> list[Fault]:
    """Return the draw: `shares` faults a package, in an order that only the seed and the faults' ids decide."""
    return [fault for package, share in shares.items() for fault in _draw(package, share, seed)]


def _draw(package: str, share: int, seed: int) -> list[Fault]:
    """Take modules in turn, each as often as the root of its number of places, and in each kinds in turn."""
    queues = {path: _by_turns(faults_in(path), seed) for path in modules_of(package)}
    weights = {path: len(queue) ** 0.5 for path, queue in queues.items() if queue}
    taken: dict[str, int] = dict.fromkeys(weights, 0)
    chosen: list[Fault] = []
    while len(chosen) < share and weights:
        path = min(weights, key=lambda name: ((taken[name] + 0.5) / weights[name], name))
        fault = queues[path][taken[path]]
        taken[path] += 1
        if is_fault(fault):
            chosen.append(replace(fault, scopes=scopes_around(path, fault.lines[0])))
        if taken[path] == len(queues[path]):
            del weights[path]
    return chosen


def _by_turns(faults: Sequence[Fault], seed: int) -> list[Fault]:
    """Order faults by a hash, then take their kinds in turn, so that frequent kinds crowd out no rare one."""
    ranks: dict[str, int] = {}
    keyed = []
    for fault in sorted(faults, key=lambda fault: (_hash(_text_of(fault), seed), fault.id)):
        kind = fault.kind
        ranks[kind] = ranks.get(kind, -1) + 1
        keyed.append((ranks[kind], _hash(kind + fault.path, seed), fault))
    return [fault for _, _, fault in sorted(keyed, key=lambda entry: entry[:2])]


def _text_of(fault: Fault) -> str:
    """Return what a fault is without the number of its line: lines move with every change above them."""
    data = (ROOT / fault.path).read_bytes()
    (edit,) = fault.edits
    start, end = data.rfind(b"\n", 0, edit.start) + 1, data.find(b"\n", edit.end)
    line = data[start:end].decode().strip()
    return f"{fault.path}:{fault.kind}:{line}:{edit.start - start}:{edit.text}"


def _hash(text: str, seed: int) -> str:
    return hashlib.blake2b(f"{seed}:{text}".encode(), digest_size=8).hexdigest()
