"""Graph and target -> executable: the tree of accelerator programs, host steps and control flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.errors import LoweringError
from compiler.ir import Constant, Graph, Op, TensorType, Type, Value
from compiler.lowering.machine import Machine
from compiler.lowering.nests import Nest, Read
from compiler.lowering.placement import Placed, place_all, prepared
from compiler.lowering.plan import Searches
from compiler.lowering.segment import Segment
from compiler.ops.control import If as IfOperator
from compiler.ops.control import Loop as LoopOperator
from compiler.ops.work import Arg, Index, parallel
from compiler.program.executable import Alias, Block, Executable, ExecutableStep, Host, If, Loop, Run, Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from compiler.targets.schema import Target


@dataclass(frozen=True, slots=True)
class LoweringOptions:
    """``fuse``: join nests into kernels; without it every nest is a kernel of its own.

    ``overlap``: tiles are chosen for engines that work at the same time; else for one after the other.
    """

    fuse: bool = True
    overlap: bool = True


def lower(graph: Graph, target: Target, options: LoweringOptions = LoweringOptions()) -> Executable:
    """The executable of a graph with static inputs. Raises LoweringError."""
    lowering = _Lowering(Machine(target, options.overlap), options)
    block = lowering.block(graph, is_main=True)
    return Executable(
        target.name,
        block,
        lowering.constants,
        lowering.types,
        tuple(value.name or f"input{value.index}" for value in graph.inputs),
        graph.output_names or tuple(f"output{index}" for index in range(len(graph.terminator.operands))),
    )


class _Lowering:
    def __init__(self, machine: Machine, options: LoweringOptions) -> None:
        self._machine = machine
        self._searches = Searches(machine)
        self._options = options
        self._slots: dict[Value, Slot] = {}
        self._programs = 0
        self.constants: dict[Slot, Constant] = {}
        self.types: dict[Slot, Type] = {}

    def slot(self, value: Value) -> Slot:
        """The slot of a value; that of a constant is filled from the start."""
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = len(self._slots)
            self.types[found] = value.type
            if value.op is not None and value.op.definition.holds_constant:
                self.constants[found] = value.op.call().constant("value")
        return found

    def block(self, graph: Graph, *, is_main: bool = False) -> Block:
        """The block of a graph or region."""
        inputs = tuple(self.slot(value) for value in graph.inputs)
        steps: list[ExecutableStep] = []
        for is_accelerated, ops, placed in _groups(graph, self._machine):
            if is_accelerated:
                steps += self._accelerated(ops, placed)
            else:
                steps += [self._host(op, placed) for op in ops]
        outputs = list(graph.outputs)
        if is_main:
            steps += self._copied_outputs(graph, outputs)
        return Block(inputs, tuple(steps), tuple(self.slot(value) for value in outputs))

    # ---- host and control

    def _host(self, op: Op, placed: Mapping[Op, Placed]) -> ExecutableStep:
        build = _CONTROL.get(type(op.definition))
        if build is not None:
            return build(self, op)
        reason = placed[op].reason
        operands = tuple(None if value is None else self.slot(value) for value in op.operands)
        if reason is None:
            msg = f"'{op.name}' (at {op.location}) was placed on the accelerator and reached the host"
            raise LoweringError(msg)
        return Host(op, operands, tuple(self.slot(value) for value in op.results), reason)

    def _if(self, op: Op) -> ExecutableStep:
        then_block, else_block = (self.block(region) for region in op.regions)
        results = tuple(self.slot(value) for value in op.results)
        return If(self.slot(op.operand(0)), then_block, else_block, results, op.location)

    def _loop(self, op: Op) -> ExecutableStep:
        trip, condition, *carried = op.operands
        return Loop(
            None if trip is None else self.slot(trip),
            None if condition is None else self.slot(condition),
            tuple(self.slot(value) for value in carried if value is not None),
            self.block(op.regions[0]),
            tuple(self.slot(value) for value in op.results),
            op.location,
        )

    # ---- accelerator

    def _accelerated(self, ops: Sequence[Op], placed: Mapping[Op, Placed]) -> list[ExecutableStep]:
        inside = set(ops)
        roots: dict[Value, Value] = {}
        nests: list[Nest] = []
        for op in ops:
            if placed[op].alias:
                source = op.operand(0)
                roots[op.result] = roots.get(source, source)
            nests += placed[op].nests
        leaving = [value for op in ops for value in op.results if any(user not in inside for user in value.users)]
        aliases = [
            Alias(self.slot(roots[value]), self.slot(value), value.tensor) for value in leaving if value in roots
        ]
        made = {result for op in ops if not placed[op].alias for result in op.results}
        kept = [root for root in (roots.get(value, value) for value in leaving) if root in made]
        steps: list[ExecutableStep] = []
        if nests or kept:
            steps.append(self._run(nests, roots, kept))
        return [*steps, *aliases]

    def _run(self, nests: Sequence[Nest], roots: Mapping[Value, Value], kept: Iterable[Value]) -> Run:
        segment = Segment(nests, roots, kept, self._searches, joined=self._options.fuse)
        program = segment.build(f"program{self._programs}")
        self._programs += 1
        return Run(
            program,
            tuple(self.slot(value) for value in segment.inputs),
            tuple(self.slot(value) for value in segment.outputs),
        )

    def _copied_outputs(self, graph: Graph, outputs: list[Value]) -> list[ExecutableStep]:
        """An output that is an input's data is a copy, made by DMA; ``outputs`` gets the copies in place."""
        nests = []
        for position, value in enumerate(outputs):
            root = _source(value)
            if root.op is not None or root.graph is not graph or not _is_movable(value.type):
                continue
            copy = Value(value.type, None, position, None, value.name)
            outputs[position] = copy
            nests.append(prepared(_copy_nest(value, copy, graph.terminator), self._machine))
        if not nests:
            return []
        aliases = {nest.reads[0].value: _source(nest.reads[0].value) for nest in nests}
        return [self._run(nests, aliases, [nest.result for nest in nests])]


_CONTROL: dict[type, Callable[[_Lowering, Op], ExecutableStep]] = {
    IfOperator: _Lowering._if,  # noqa: SLF001 - a table of this module's own methods
    LoopOperator: _Lowering._loop,  # noqa: SLF001
}


def _is_movable(type_: Type) -> bool:
    return (
        isinstance(type_, TensorType)
        and type_.is_static
        and type_.element.bits % 8 == 0
        and not type_.element.dtype.hasobject
    )


def _source(value: Value) -> Value:
    """The value whose bytes ``value`` is, through aliases."""
    while value.op is not None and getattr(value.op.definition, "alias", False):
        value = value.op.operand(0)
    return value


def _copy_nest(value: Value, copy: Value, op: Op) -> Nest:
    shape = value.tensor.shape
    every = tuple(Index(((loop, 1),)) for loop in range(len(shape)))
    return Nest(parallel(shape), (Read(value, every),), Arg(0, value.tensor.element), copy, every, (op,))


def _groups(graph: Graph, machine: Machine) -> Iterable[tuple[bool, list[Op], dict[Op, Placed]]]:
    """The operations in as few alternations between accelerator and host as their dependencies allow."""
    placed = place_all(graph, machine)
    pending = [op for op in graph.ops if not op.definition.holds_constant and not op.definition.terminator]
    needs = {op: _needed(op, set(pending)) for op in pending}
    done: set[Op] = set()
    is_accelerated = True
    while pending:
        group: list[Op] = []
        waiting: list[Op] = []
        for op in pending:
            on_accelerator = op in placed and placed[op].reason is None
            if on_accelerator is is_accelerated and needs[op] <= done:
                group.append(op)
                done.add(op)
            else:
                waiting.append(op)
        if group:
            yield is_accelerated, group, placed
        pending = waiting
        is_accelerated = not is_accelerated


def _needed(op: Op, within: set[Op]) -> set[Op]:
    """Operations of the same graph that must be done first, for the operation and all in its regions."""
    return {
        operand.op
        for inner in op.walk()
        for operand in inner.operands
        if operand is not None and operand.op is not None and operand.op in within
    }
