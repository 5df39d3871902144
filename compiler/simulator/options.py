"""What a simulation may be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """``overlap`` False: each instruction starts when the one before it has ended.

    ``infinite_bandwidth``: DMA transfers take no time. ``trips`` and ``branches`` answer, by the name of the framework
    node, what timing without data cannot know: how often a loop runs and whether an if takes its first branch.
    """

    overlap: bool = True
    infinite_bandwidth: bool = False
    trips: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, bool] = field(default_factory=dict)
