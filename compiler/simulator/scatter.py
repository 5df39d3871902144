"""Writes to data-dependent addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.simulator.combine import UFUNCS, work_type
from compiler.simulator.convert import convert

if TYPE_CHECKING:
    from compiler.ir import Array
    from compiler.ops.work import Combiner
    from compiler.simulator.memory import Memories
    from compiler.simulator.views import Scattered


def store(
    out: Scattered,
    memories: Memories,
    places: tuple[Array, Array | None],
    values: Array,
    combiner: Combiner | None,
    start: Array | None = None,
) -> None:
    """Write ``values`` to ``places`` in row-major order: later points win, or are joined by ``combiner``.

    With ``start`` the elements written begin from it, else from what is there. Raises InvalidProgram for addresses
    that are not whole elements.
    """
    addresses, kept = places
    shape = np.broadcast_shapes(addresses.shape, values.shape, out.extents if kept is None else kept.shape, out.extents)
    flat_addresses = np.broadcast_to(addresses, shape).ravel()
    flat_values = np.broadcast_to(convert(values, out.element), shape).ravel()
    if kept is not None:
        mask = np.broadcast_to(kept, shape).ravel()
        flat_addresses, flat_values = flat_addresses[mask], flat_values[mask]
    out.check_aligned(flat_addresses)
    memory, slots = out.flat(memories), out.slots(flat_addresses)
    if combiner is None:
        memory[slots] = flat_values
        return
    unique, inverse = np.unique(slots, return_inverse=True)
    work = work_type(out.element)
    held = memory[unique].astype(work) if start is None else np.full(unique.shape, start.astype(work))
    UFUNCS[combiner].at(held, inverse.ravel(), flat_values.astype(work))
    memory[unique] = convert(held, out.element)
