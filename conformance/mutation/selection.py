"""Which cases can see a fault: those that run its lines, as different from each other as possible first."""

from __future__ import annotations

from conformance.mutation.edits import Fault
from conformance.mutation.pool import Pool, spread

MOST_CASES = 200
"""Cases tried at most against one fault."""


def select_cases(fault: Fault, pool: Pool) -> list[int]:
    """Return places in the pool. A fault that no case's lines reach is tried with cases that run its surroundings."""
    if fault.path.startswith("conformance/"):
        return [place for place, case in enumerate(pool.cases) if case.damaged]
    lines = pool.lines.get(fault.path, {})
    reached: set[int] = set()
    for line in fault.lines:
        reached.update(lines.get(line, ()))
    named = {place for place, case in enumerate(pool.cases) if case.operator in fault.operators}
    if not reached:
        reached = _around(fault, lines) or named or set(range(len(pool.cases)))
    chosen = sorted(reached & named) or sorted(reached)
    cases = [pool.cases[place] for place in chosen]
    order = spread([(case.operator, case.dtype, case.data_class) for case in cases], fault.id)
    return [chosen[at] for at in order[:MOST_CASES]]


def _around(fault: Fault, lines: dict[int, list[int]]) -> set[int]:
    """Return the cases that run the innermost function or class around the fault, or else its module."""
    for first, last in (*fault.scopes, (1, 1 << 30)):
        found = {place for line, places in lines.items() if first <= line <= last for place in places}
        if found:
            return found
    return set()
