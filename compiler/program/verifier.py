"""The static verifier of programs: structure, types, bounds, and the order of every two instructions that share bytes.

It needs no data: an address that data decides counts as the whole buffer. See :mod:`compiler.program.ordering` for how
order is proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidProgram
from compiler.ops.work import SCALAR_FUNCTIONS, Apply, Arg, Position
from compiler.program.addresses import address_bounds, check_strides, describe, placed, reach, touches
from compiler.program.executable import Alias, Host, If, Loop, Role, Run
from compiler.program.instructions import Matmul, Memory, Repeat, Transfer, Vector
from compiler.program.ordering import check_order
from compiler.program.printer import executable_steps
from compiler.program.segments import Segments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from compiler.ops.work import Expression
    from compiler.program.addresses import Placed
    from compiler.program.executable import Block, Executable, Program, Slot
    from compiler.program.instructions import Address, Operand, Region, Step
    from compiler.targets import Target


def verify_program(program: Program, target: Target) -> None:
    """Prove that the program stays inside its memories and that no two instructions race on ``target``.

    Raises InvalidProgram: both instructions and the bytes, for two that are not ordered; else the instruction, what was
    found and what was expected.
    """
    _check_sizes(program, target)
    _check_counts(program.body, program.name)
    items = list(placed(program.body))
    _check_ids(program, items)
    for item in items:
        who = describe(item.instruction, program.name)
        _check_numbers(item, target, who)
        check_strides(item.instruction, program.name)
        _CHECKS[type(item.instruction)](item.instruction, target, who)
    segments = Segments(program)
    for item in items:
        check_bounds(item, segments)
    check_order(program, segments)


def verify_executable(executable: Executable, target: Target) -> None:
    """Verify every program of the executable, those of branches and loop bodies too, and that slots are filled.

    Raises InvalidProgram.
    """
    _check_slots(executable.block, {*executable.constants})
    runs = [step for step in executable_steps(executable.block) if isinstance(step, Run)]
    for program in {id(step.program): step.program for step in runs}.values():
        verify_program(program, target)


def _check_slots(block: Block, filled: set[Slot]) -> None:
    """Each slot that is read is one that an earlier step of the block, or one around it, has filled."""
    filled = {*filled, *block.inputs}
    for step in block.steps:
        reads, results, blocks = _SLOTS[type(step)](step)
        kind = type(step).__name__.lower()
        _require_filled(reads, filled, kind)
        for inner in blocks:
            _check_slots(inner, filled)
        filled.update(results)
        if isinstance(step, Run):
            _check_arity(step)
    _require_filled(block.outputs, filled, "block's end")


def _require_filled(reads: Iterable[Slot | None], filled: set[Slot], kind: str) -> None:
    for slot in reads:
        if slot is not None and slot not in filled:
            msg = f"a {kind} reads slot {slot}, which nothing before it fills; expected one of {sorted(filled)}"
            raise InvalidProgram(msg)


def _check_arity(step: Run) -> None:
    for role, slots in ((Role.INPUT, step.inputs), (Role.OUTPUT, step.outputs)):
        buffers = sum(buffer.role is role for buffer in step.program.buffers)
        if buffers != len(slots):
            msg = f"program '{step.program.name}' has {buffers} {role.value} buffers; a run gives it {len(slots)} slots"
            raise InvalidProgram(msg)


_SLOTS: dict[type, Callable[[Any], tuple[tuple[Slot | None, ...], tuple[Slot, ...], tuple[Block, ...]]]] = {
    Run: lambda step: (step.inputs, step.outputs, ()),
    Host: lambda step: (step.operands, step.results, ()),
    Alias: lambda step: ((step.operand,), (step.result,), ()),
    If: lambda step: ((step.condition,), step.results, (step.then_block, step.else_block)),
    Loop: lambda step: ((step.trip_count, step.condition, *step.carried), step.results, (step.body,)),
}
"""Kind of step -> the slots that it reads, those that it fills, and the blocks inside it."""


def _check_sizes(program: Program, target: Target) -> None:
    sizes = (("SRAM", program.sram_bytes, target.sram.bytes), ("DRAM", program.dram_bytes, target.dram.bytes))
    for memory, needed, there in sizes:
        if needed > there:
            msg = f"program '{program.name}': {needed} bytes of {memory}; target '{target.name}' has {there}"
            raise InvalidProgram(msg)
    for buffer in program.buffers:
        end = buffer.address + buffer.type.nbytes
        if buffer.address < 0 or end > program.dram_bytes:
            msg = (
                f"program '{program.name}': buffer '{buffer.name}' lies at {buffer.address}..{end - 1}; "
                f"expected within 0..{program.dram_bytes - 1}"
            )
            raise InvalidProgram(msg)


def _check_counts(body: Sequence[Step], name: str) -> None:
    for step in body:
        if isinstance(step, Repeat):
            if step.count < 1:
                msg = f"program '{name}': a repeat of {step.count} iterations; expected at least 1"
                raise InvalidProgram(msg)
            _check_counts(step.body, name)


def _check_ids(program: Program, items: Sequence[Placed]) -> None:
    known: set[int] = set()
    for item in items:
        who = describe(item.instruction, program.name)
        if item.instruction.id in known:
            msg = f"{who}: its id is taken; expected a different one for each instruction"
            raise InvalidProgram(msg)
        known.add(item.instruction.id)
        if not 0 <= item.instruction.kernel < len(program.kernels):
            msg = f"{who}: kernel {item.instruction.kernel}; expected one of 0..{len(program.kernels) - 1}"
            raise InvalidProgram(msg)
    for item in items:
        for wait in item.instruction.waits:
            if wait.on not in known or wait.lag < 0:
                who = describe(item.instruction, program.name)
                msg = f"{who}: waits for instruction {wait.on}, lag {wait.lag}; expected an id of the program, lag >= 0"
                raise InvalidProgram(msg)


def _addresses(item: Placed) -> Iterator[Address]:
    for touch in touches(item.instruction):
        yield touch.region.address
    if isinstance(item.instruction, Vector):
        yield from item.instruction.origin


def _check_numbers(item: Placed, target: Target, who: str) -> None:
    for touch in touches(item.instruction):
        if any(extent < 1 for extent in touch.extents):
            msg = f"{who}: extents {list(touch.extents)}; expected all at least 1"
            raise InvalidProgram(msg)
        if len(touch.extents) > target.limits.loops:
            msg = f"{who}: {len(touch.extents)} loops; target '{target.name}' takes {target.limits.loops}"
            raise InvalidProgram(msg)
    for address in _addresses(item):
        levels = [level for level, _ in address.terms] + [rotation.level for rotation in address.rotations]
        if any(not 0 <= level < len(item.counts) for level in levels):
            msg = f"{who}: an address uses loop indices {sorted(set(levels))}; {len(item.counts)} loops are around it"
            raise InvalidProgram(msg)
        if any(rotation.count < 1 for rotation in address.rotations):
            msg = f"{who}: a rotation over fewer than one buffer"
            raise InvalidProgram(msg)


def check_bounds(item: Placed, segments: Segments) -> None:
    """Every byte that any instance touches must be in SRAM or in one buffer. Raises InvalidProgram."""
    who = describe(item.instruction, segments.program.name)
    for touch in touches(item.instruction):
        low, high = address_bounds(touch.region.address, item.counts)
        first, last = reach(touch.region, touch.extents)
        segments.locate(touch.region.memory, low + first, high + last, who, writes=touch.writes)


def _check_operand(operand: Operand, who: str, memory: Memory) -> None:
    if operand.region.memory is not memory:
        msg = f"{who}: a region in {operand.region.memory.value}; expected {memory.value}"
        raise InvalidProgram(msg)
    for lookup in operand.lookups:
        if lookup.index.memory is not Memory.SRAM or not lookup.index.element.is_integer:
            msg = f"{who}: an index of {lookup.index.element} in {lookup.index.memory.value}; expected integers in sram"
            raise InvalidProgram(msg)
        if lookup.extent < 1:
            msg = f"{who}: a lookup among {lookup.extent} places; expected at least 1"
            raise InvalidProgram(msg)


def _check_transfer(step: Transfer, target: Target, who: str) -> None:  # noqa: ARG001 - one signature a kind
    source, destination = step.source.region, step.destination.region
    if source.element is not destination.element:
        msg = f"{who}: from {source.element} to {destination.element}; expected one element type"
        raise InvalidProgram(msg)
    inward = source.memory is Memory.DRAM
    _check_operand(step.source, who, Memory.DRAM if inward else Memory.SRAM)
    _check_operand(step.destination, who, Memory.SRAM if inward else Memory.DRAM)


def _in_sram(region: Region, who: str) -> None:
    if region.memory is not Memory.SRAM:
        msg = f"{who}: a region in {region.memory.value}; expected sram"
        raise InvalidProgram(msg)


def _check_matmul(step: Matmul, target: Target, who: str) -> None:
    for region in (step.a, step.b, step.out):
        _in_sram(region, who)
    product = target.matrix.product(step.a.element, step.b.element)
    if product is None or product.accumulator is not step.out.element:
        expected = "another pair" if product is None else f"a result of {product.accumulator}"
        found = f"{step.a.element} x {step.b.element} into {step.out.element}"
        msg = f"{who}: {found}; expected {expected} on target '{target.name}'"
        raise InvalidProgram(msg)
    if step.dataflow is not None and step.dataflow not in target.matrix.dataflows:
        offered = ", ".join(flow.value for flow in target.matrix.dataflows)
        msg = f"{who}: dataflow {step.dataflow.value}; expected one of target '{target.name}', {offered}"
        raise InvalidProgram(msg)


def _check_vector(step: Vector, target: Target, who: str) -> None:
    if len(step.inputs) > target.limits.inputs:
        msg = f"{who}: {len(step.inputs)} inputs; target '{target.name}' takes {target.limits.inputs}"
        raise InvalidProgram(msg)
    if not 0 <= step.reduced <= len(step.extents) or (step.scan and step.reduced != 1):
        found = f"{step.reduced} reduced loops of {len(step.extents)}, scan {step.scan}"
        msg = f"{who}: {found}; expected no more than there are, and one in a scan"
        raise InvalidProgram(msg)
    if step.reduced and step.combiner is None:
        msg = f"{who}: {step.reduced} reduced loops and no combiner"
        raise InvalidProgram(msg)
    for operand in (*step.inputs, step.out):
        _check_operand(operand, who, Memory.SRAM)
        if operand.region.element not in target.vector.allowed:
            msg = f"{who}: {operand.region.element}, which the vector unit of target '{target.name}' lacks"
            raise InvalidProgram(msg)
    _check_body(step, who)


def _check_body(step: Vector, who: str) -> None:
    stack: list[Expression] = [step.body]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Apply):
            if SCALAR_FUNCTIONS.get(node.function) != len(node.operands):
                msg = f"{who}: function '{node.function}' of {len(node.operands)} operands; expected a scalar function"
                raise InvalidProgram(msg)
            stack.extend(node.operands)
        elif isinstance(node, Arg):
            if not 0 <= node.index < len(step.inputs) or node.element is not step.inputs[node.index].region.element:
                msg = f"{who}: the body reads input {node.index} as {node.element}; expected an input and its type"
                raise InvalidProgram(msg)
        elif isinstance(node, Position) and not 0 <= node.iterator < len(step.extents):
            msg = f"{who}: the body uses the index of loop {node.iterator}; there are {len(step.extents)}"
            raise InvalidProgram(msg)


_CHECKS: Final[dict[type, Callable[[Any, Target, str], None]]] = {
    Transfer: _check_transfer,
    Matmul: _check_matmul,
    Vector: _check_vector,
}
