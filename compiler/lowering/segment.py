"""One uninterrupted run of the accelerator: operations -> nests -> kernels -> program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import LoweringError
from compiler.ir import Constant, Value
from compiler.lowering.fusion import fuse
from compiler.lowering.kernel import KernelEmitter
from compiler.lowering.memory import Space
from compiler.lowering.placement import on_matrix
from compiler.lowering.plan import Plan, Searches, Stay, Uses, plan_kernels
from compiler.lowering.stream import Stream
from compiler.lowering.tiling import product, tabled_reads
from compiler.program.executable import Program, Role
from compiler.program.instructions import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.lowering.nests import Nest


class Segment:
    """Builds the program of a sequence of nests.

    ``roots`` maps a value to the one whose bytes it is; ``kept`` are roots that must be in DRAM when the program ends.
    After :meth:`build`, ``inputs`` and ``outputs`` are the values of the input and output buffers, in their order.
    """

    def __init__(
        self,
        nests: Sequence[Nest],
        roots: Mapping[Value, Value],
        kept: Iterable[Value],
        searches: Searches,
        *,
        joined: bool,
    ) -> None:
        machine = searches.machine
        self.stream = Stream(Space(machine.target.dram.bytes))
        self.machine = machine
        self._roots = roots
        self._kept = tuple(dict.fromkeys(kept))
        outside = {value for value, root in roots.items() if root in self._kept or value is not root}
        shared = {*self._kept, *outside, *(root for value, root in roots.items() if value is not root)}
        self._nests = list(nests)
        if joined:
            most_inputs = machine.target.limits.inputs
            self._nests = fuse(nests, shared, lambda nest: on_matrix(nest, machine) is not None, most_inputs)
        self._uses = Uses(self._nests, self.root)
        self._plan: Plan = plan_kernels(self._nests, self.root, frozenset(self._kept), searches)
        self._here: dict[Value, Stay] = {}
        self._dirty: set[Value] = set()
        self._counted: set[Value] = set()
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []

    # ---- where tensors are (the emitters' Homes)

    def root(self, value: Value) -> Value:
        """The value whose bytes ``value`` is."""
        return self._roots.get(value, value)

    def resident(self, root: Value) -> int | None:
        """SRAM address of the tensor, if the current kernel finds all of it there."""
        stay = self._here.get(root)
        return None if stay is None else stay.address

    def in_dram(self, value: Value) -> int:
        """DRAM address of the content of a value; what only SRAM has is written there first."""
        root = self.root(value)
        if root in self._dirty:
            self._spill(self._here[root])
        if root not in self.stream.buffers:
            msg = f"{root} is read before any kernel has written it"
            raise LoweringError(msg)
        return self.stream.buffers[root].address

    def dram_result(self, value: Value) -> int:
        """DRAM address for the result that a kernel stores."""
        root = self.root(value)
        return self.stream.buffer(root, Role.TEMPORARY).address

    def _spill(self, stay: Stay) -> None:
        home = self.stream.buffer(stay.root, Role.TEMPORARY).address
        self.stream.copy_whole(stay.root.tensor, Memory.SRAM, stay.address, home)
        self._dirty.discard(stay.root)

    # ---- building

    def build(self, name: str) -> Program:
        """Emit every kernel. Raises LoweringError when a kernel does not fit at any budget."""
        self._declare()
        for number, nest in enumerate(self._nests):
            self.stream.begin_kernel(nest.ops, self._product(nest))
            self._count_compulsory(nest)
            self._emit(number, nest)
            self._end_kernel(number, nest)
        return Program(
            name,
            self.machine.target.name,
            tuple(self.stream.buffers.values()),
            self.stream.kernels(),
            tuple(self.stream.steps),
            self.stream.dram.peak,
            self._plan.packing.peak,
            self._plan.packing.bound,
        )

    def _declare(self) -> None:
        produced = set(self._uses.last_write)
        for root in self._uses.reads:
            if root in produced:
                continue
            if not root.tensor.size:
                # Perhaps no step made it: there was nothing to make. Nothing of it is read either.
                if root not in self._kept:
                    self.stream.buffer(root, Role.TEMPORARY)
                continue
            constant = None if root.op is None else root.op.attributes.get("value")
            if isinstance(constant, Constant) and root.op is not None and root.op.definition.holds_constant:
                self.stream.buffer(root, Role.CONSTANT, constant)
            else:
                self.stream.buffer(root, Role.INPUT)
                self.inputs.append(root)
        for root in self._kept:
            self.stream.buffer(root, Role.OUTPUT)
            self.outputs.append(root)

    def _product(self, nest: Nest) -> tuple[int, ...]:
        roles = on_matrix(nest, self.machine)
        if roles is None:
            return ()
        return tuple(
            product(nest.extents[loop] for loop in loops) for loops in (roles.batch, roles.m, roles.n, roles.k)
        )

    def _emit(self, number: int, nest: Nest) -> None:
        plan = self._plan.kernels[number]
        if plan is None:
            return
        for stay in plan.leaves:
            if stay.root in self._dirty:
                self._spill(stay)
        self._here = plan.stays
        for stay in plan.loads:
            address = self.in_dram(stay.root)
            self.stream.copy_whole(stay.root.tensor, Memory.DRAM, address, stay.address)
        KernelEmitter(nest, plan, on_matrix(nest, self.machine), self).emit()
        if plan.setting.keeps:
            self._dirty.add(self.root(nest.result))

    def _count_compulsory(self, nest: Nest) -> None:
        for read in tabled_reads(nest):
            buffer = self.stream.buffers.get(self.root(read.value))
            if (
                buffer is not None
                and buffer.role in (Role.INPUT, Role.CONSTANT)
                and self.root(read.value) not in self._counted
            ):
                self._counted.add(self.root(read.value))
                self.stream.count(compulsory=buffer.type.nbytes)

    def _end_kernel(self, number: int, nest: Nest) -> None:
        root = self.root(nest.result)
        if self._uses.last_write[root] == number and root in self._kept:
            self.stream.count(compulsory=root.tensor.nbytes)
            if root in self._dirty:
                self._spill(self._here[root])
