"""Which cases can see a fault: those that run its lines, as different from each other as possible first."""

from __future__ import annotations

from conformance.mutation.edits import Fault
from conformance.mutation.pool import Pool, spread

MOST_CASES = 250
"""Cases tried at most against one fault."""


def select_cases(fault: Fault, pool: Pool) -> list[int]:
    """Return places in the pool: cases of the operators that a fault names first, then those that run its lines.

    A fault that no case's lines reach is tried with cases that run its surroundings.
    """
    if fault.path.startswith("conformance/"):
        return [place for place, case in enumerate(pool.cases) if case.damaged]
    lines = pool.lines.get(fault.path, {})
    reached = {place for line in fault.lines for place in lines.get(line, ())}
    named = {place for place, case in enumerate(pool.cases) if case.operator in fault.operators}
    if not reached:
        reached = _around(fault, lines) or named or set(range(len(pool.cases)))
    return [*_spread_out(named, fault, pool), *_spread_out(reached - named, fault, pool)][:MOST_CASES]


def is_reached(fault: Fault, pool: Pool) -> bool:
    """Whether some case of the pool runs a fault's lines; the comparator's are run by every case."""
    lines = pool.lines.get(fault.path, {})
    return fault.path.startswith("conformance/") or any(line in lines for line in fault.lines)


def _spread_out(places: set[int], fault: Fault, pool: Pool) -> list[int]:
    """Order cases so that those differ that come first; graphs, in which more than one thing happens, lead."""
    chosen = sorted(places)
    cases = [pool.cases[place] for place in chosen]
    order = spread([(case.operator, case.dtype, case.data_class, case.target) for case in cases], fault.id)
    return sorted((chosen[at] for at in order), key=lambda place: not pool.cases[place].is_graph)


def _around(fault: Fault, lines: dict[int, list[int]]) -> set[int]:
    """Return the cases that run the innermost function or class around the fault, or else its module."""
    for first, last in (*fault.scopes, (1, 1 << 30)):
        found = {place for line, places in lines.items() if first <= line <= last for place in places}
        if found:
            return found
    return set()
