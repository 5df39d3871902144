"""Accelerator or host, with a reason for each operation that stays on the host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from compiler.ir import Op, TensorType, Type, Value
from compiler.lowering.contraction import contraction_of, factor_elements, with_wide_products
from compiler.lowering.fusion import with_immediates
from compiler.lowering.machine import Machine, elements_of
from compiler.lowering.nests import LookupIndex, Nest, nests_of, rewrite_expression
from compiler.lowering.search import Tiler
from compiler.lowering.tiling import scatters, tabled_reads
from compiler.ops.registry import Operator
from compiler.ops.work import Index, Literal

if TYPE_CHECKING:
    from compiler.ir import ElementType, Graph
    from compiler.lowering.contraction import Contraction

_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an operation goes: its nests on the accelerator, or the reason why it stays on the host.

    An alias has neither: it costs nothing.
    """

    nests: tuple[Nest, ...] = ()
    reason: str | None = None
    alias: bool = False


def place_all(graph: Graph, machine: Machine) -> dict[Op, Placed]:
    """The placement of every operation of a graph that has no regions, constants and terminator left out."""
    placed = {
        op: place(op, machine)
        for op in graph.ops
        if not op.regions and not op.definition.holds_constant and not op.definition.terminator
    }
    _keep_internal_types_inside(placed, machine)
    return placed


def place(op: Op, machine: Machine) -> Placed:
    """The placement of one operation by itself."""
    reason = _type_reason(op)
    if reason is not None:
        return Placed(reason=reason)
    definition = op.definition
    assert isinstance(definition, Operator)
    reason = _unknown_operand(op, definition)
    if reason is not None:
        return Placed(reason=reason)
    if definition.alias:
        return Placed(alias=True)
    work = definition.work(op.call(), tuple(result.type for result in op.results))
    if work is None:
        return Placed(reason=f"'{op.name}' has no loop form")
    nests = tuple(prepared(nest, machine) for nest in nests_of(op, work))
    for nest in nests:
        reason = _nest_reason(nest, machine)
        if reason is not None:
            return Placed(reason=reason)
    return Placed(nests=nests)


def _type_reason(op: Op) -> str | None:
    values = [value for value in (*op.operands, *op.results) if value is not None]
    for value in values:
        if not isinstance(value.type, TensorType):
            return f"{value.type} lives on the host"
        if not value.type.is_static:
            return f"a size in {value.type} depends on data"
        if value.type.element.dtype.hasobject:
            return "strings live on the host"
        if value.type.element.bits < _BYTE:
            return f"{value.type.element} is packed, which the accelerator does not read"
    return None


def _unknown_operand(op: Op, definition: Operator) -> str | None:
    call = op.call()
    for index, operand in enumerate(op.operands):
        spec = definition.signature_operand(index)
        if spec.value and operand is not None and call.value(index) is None:
            return f"operand '{spec.name}' is known only at run time"
    return None


def prepared(nest: Nest, machine: Machine) -> Nest:
    """The nest with scalar constants in its body, without empty reductions, its products as wide as its sums."""
    nest = with_immediates(nest)
    if nest.combiner is not None and any(nest.extents[loop] == 0 for loop in nest.folded):
        nest = _without_empty_reduction(nest)
    if contraction_of(nest) is not None and on_matrix(nest, machine) is None:
        nest = with_wide_products(nest)
    return nest


def _without_empty_reduction(nest: Nest) -> Nest:
    """Nothing to combine: the initial value, finished."""
    assert nest.finish is not None
    assert nest.initial is not None
    start = Literal(nest.initial, nest.combined_element)
    body = rewrite_expression(nest.finish, {0: start}, {})
    assert body is not None
    return replace(
        nest,
        iterators=tuple(nest.iterators[loop] for loop in nest.parallel),
        reads=(),
        body=body,
        combiner=None,
        initial=None,
        accumulate=None,
        finish=None,
        finish_reads=(),
    )


def on_matrix(nest: Nest, machine: Machine) -> Contraction | None:
    """The roles of the loops if the matrix array takes the nest and is not slower than the vector unit, else None."""
    found = contraction_of(nest)
    if found is None or machine.accumulator(*factor_elements(nest, found)) is not nest.accumulate:
        return None
    if not machine.target.vector.shares_products:
        return found
    sizes = [1, 1, 1, 1]
    for place, loops in enumerate((found.batch, found.m, found.n, found.k)):
        for loop in loops:
            sizes[place] *= nest.extents[loop]
    batch, m, n, k = sizes
    on_array = machine.matrix_cycles(factor_elements(nest, found), batch, m, n, k)
    elements = (nest.accumulate, *(read.value.tensor.element for read in nest.reads))
    if not all(element is not None and machine.may_compute(element) for element in elements):
        return found
    on_vector = machine.body_cycles(with_wide_products(nest).body, combines=True)
    return found if on_array <= machine.vector_cycles(nest.points, on_vector) else None


def _nest_reason(nest: Nest, machine: Machine) -> str | None:
    elements: set[ElementType] = set()
    contraction = on_matrix(nest, machine)
    if nest.combiner is not None and nest.finish is not None:
        elements.update(elements_of(nest.finish))
    if contraction is None and not (nest.moves_only and not scatters(nest)):
        elements.update(elements_of(nest.body))
    if any(read.fill is not None for read in nest.reads):
        elements.update(read.value.tensor.element for read in nest.reads if read.fill is not None)
    for element in sorted(elements, key=str):
        if not machine.may_compute(element):
            return f"{element.dtype.name} is not a type of {machine.target.name}"
    reason = _limit_reason(nest, contraction, machine)
    if reason is not None:
        return reason
    lookups = [dim for dims in (nest.write, *(read.dims for read in tabled_reads(nest))) for dim in dims]
    if any(isinstance(dim, LookupIndex) and dim.extent == 0 for dim in lookups):
        return "it looks up a dim without elements"
    if nest.continues and nest.combiner is not None and all(isinstance(dim, Index) for dim in nest.write):
        return "it combines onto elements written before, at places known ahead"
    if nest.points and not Tiler(nest, contraction, machine, machine.sram_bytes).is_possible():
        return f"its smallest tile does not fit the {machine.sram_bytes} bytes of SRAM"
    return None


def _limit_reason(nest: Nest, contraction: Contraction | None, machine: Machine) -> str | None:
    """What of a nest no instruction of the target holds. A tensor is loaded with a loop for each of its dims."""
    limits = machine.target.limits
    loops = max(len(nest.iterators), *(read.value.tensor.rank for read in tabled_reads(nest)), 0)
    if loops > limits.loops:
        return f"it takes {loops} loops; an instruction of {machine.target.name} has {limits.loops}"
    if contraction is None and len(nest.reads) > limits.inputs:
        return f"it reads {len(nest.reads)} operands; an instruction of {machine.target.name} takes {limits.inputs}"
    return None


def _keep_internal_types_inside(placed: dict[Op, Placed], machine: Machine) -> None:
    """Tensors of a type that exists only inside programs must be made and used on the accelerator alone."""
    changed = True
    while changed:
        changed = False
        for op, where in placed.items():
            if where.reason is not None:
                continue
            value = _leaves_program(op, placed, machine)
            if value is not None:
                element = value.tensor.element.dtype.name
                placed[op] = Placed(reason=f"{element} exists only inside programs of {machine.target.name}")
                changed = True


def _leaves_program(op: Op, placed: dict[Op, Placed], machine: Machine) -> Value | None:
    def inside(other: Op | None) -> bool:
        return other is not None and other in placed and placed[other].reason is None

    if placed[op].alias or all(nest.moves_only for nest in placed[op].nests):
        return None
    for value in (*op.operands, *op.results):
        if value is None or not _is_internal(value.type, machine):
            continue
        if value.op is not None and value.op.definition.holds_constant:
            continue  # it is laid out with the program, which is made for the target
        if not inside(value.op) or not all(inside(user) for user in value.users):
            return value
    return None


def _is_internal(type_: Type, machine: Machine) -> bool:
    return isinstance(type_, TensorType) and machine.may_compute(type_.element) and not machine.computes(type_.element)
