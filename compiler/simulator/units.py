"""Which unit performs which instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.program.addresses import check_strides, describe
from compiler.program.instructions import Matmul, Transfer, Vector
from compiler.simulator.matmul import MatmulUnit
from compiler.simulator.transfer import transfer_unit
from compiler.simulator.vector import vector_unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.program.addresses import Placed
    from compiler.simulator.memory import Layout
    from compiler.simulator.unit import Unit

_UNITS: Final[dict[type, Callable[[Any, tuple[int, ...], Layout, str], Unit]]] = {
    Transfer: transfer_unit,
    Matmul: MatmulUnit,
    Vector: vector_unit,
}


def compile_unit(item: Placed, layout: Layout) -> Unit:
    """The instruction compiled. Raises InvalidProgram, naming it, for addresses outside the memories."""
    instruction = item.instruction
    check_strides(instruction, layout.program.name)
    who = describe(instruction, layout.program.name)
    return _UNITS[type(instruction)](instruction, item.counts, layout, who)
