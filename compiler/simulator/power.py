"""Power over time: each instance spends its energy evenly while it runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.simulator.timing import Clock, Instance


def peak_picojoules_a_cycle(clock: Clock, timeline: Sequence[Sequence[Instance]]) -> float:
    """The most energy that a cycle takes, static energy left out. Instances without duration spend nothing here."""
    changes: dict[int, list[float]] = {}
    for one in (one for queue in timeline for one in queue):
        if one.end > one.start:
            rate = math.fsum(clock.charges[one.item].energy) / (one.end - one.start)
            changes.setdefault(one.start, []).append(rate)
            changes.setdefault(one.end, []).append(-rate)
    now = peak = 0.0
    for cycle in sorted(changes):
        now += math.fsum(changes[cycle])
        peak = max(peak, now)
    return peak
