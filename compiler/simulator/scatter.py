"""Writes to data-dependent addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.simulator.combine import UFUNCS, work_type
from compiler.simulator.convert import convert

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.ir import Array
    from compiler.ops.work import Combiner
    from compiler.simulator.memory import Memories
    from compiler.simulator.views import Scattered


def scatter(
    out: Scattered,
    memories: Memories,
    k: int,
    values: Array,
    combiner: Combiner | None = None,
    start: Array | None = None,
) -> Callable[[], None]:
    """Prepare a write of ``values`` to where the lookups of instance ``k`` say; the function returned does it.

    Points are taken in row-major order: later ones win, or are joined by ``combiner``, from ``start`` where given, else
    from what is there now. Raises InvalidProgram for addresses that are not whole elements, EvaluationError for an
    index out of range.
    """
    addresses, kept = out.places(memories, k)
    shape = np.broadcast_shapes(addresses.shape, values.shape, out.extents)
    flat_addresses = np.broadcast_to(addresses, shape).ravel()
    flat_values = np.broadcast_to(convert(values, out.element), shape).ravel()
    if kept is not None:
        mask = np.broadcast_to(kept, shape).ravel()
        flat_addresses, flat_values = flat_addresses[mask], flat_values[mask]
    out.check_aligned(flat_addresses)
    memory, slots = out.flat(memories), out.slots(flat_addresses)
    if combiner is None:
        return _assignment(memory, slots, flat_values)
    unique, inverse = np.unique(slots, return_inverse=True)
    work = work_type(out.element)
    held = memory[unique].astype(work) if start is None else np.full(unique.shape, start.astype(work))
    UFUNCS[combiner].at(held, inverse.ravel(), flat_values.astype(work))
    return _assignment(memory, unique, convert(held, out.element))


def _assignment(memory: Array, slots: Array, values: Array) -> Callable[[], None]:
    def assign() -> None:
        memory[slots] = values

    return assign
