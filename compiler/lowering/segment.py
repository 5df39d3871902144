"""One uninterrupted run of the accelerator: operations -> nests -> kernels -> program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import LoweringError
from compiler.ir import Constant, Value
from compiler.lowering.fusion import fuse
from compiler.lowering.kernel import KernelEmitter
from compiler.lowering.memory import Space
from compiler.lowering.placement import on_matrix
from compiler.lowering.sram import Resident, Scratchpad
from compiler.lowering.stream import Stream
from compiler.lowering.tiling import Tiler, tabled_reads
from compiler.program.executable import Program, Role
from compiler.program.instructions import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.ir import ElementType
    from compiler.lowering.machine import Machine
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
        machine: Machine,
        *,
        joined: bool,
    ) -> None:
        self.stream = Stream(Space(machine.target.dram.bytes))
        self._machine = machine
        self._roots = roots
        self._kept = tuple(dict.fromkeys(kept))
        outside = {value for value, root in roots.items() if root in self._kept or value is not root}
        shared = {*self._kept, *outside, *(root for value, root in roots.items() if value is not root)}
        self._nests = list(nests)
        if joined:
            most_inputs = machine.target.limits.inputs
            self._nests = fuse(nests, shared, lambda nest: on_matrix(nest, machine) is not None, most_inputs)
        self._current = -1
        self._readers: dict[Value, list[int]] = {}
        for number, nest in enumerate(self._nests):
            for read in tabled_reads(nest):
                self._readers.setdefault(self.root(read.value), []).append(number)
        self._last_write = {self.root(nest.result): number for number, nest in enumerate(self._nests)}
        self._written: set[Value] = set()
        self._counted: set[Value] = set()
        self.scratchpad = Scratchpad(machine.sram_bytes, self._next_use, self._spill)
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []

    # ---- where tensors are (the emitters' Homes)

    def root(self, value: Value) -> Value:
        """The value whose bytes ``value`` is."""
        return self._roots.get(value, value)

    def computes(self, element: ElementType) -> bool:
        """Whether the vector unit takes elements of this type."""
        return self._machine.may_compute(element)

    def stays(self, value: Value) -> bool:
        """Whether a later kernel reads the value."""
        return any(number > self._current for number in self._readers.get(self.root(value), ()))

    def _next_use(self, root: Value) -> int | None:
        """The first kernel not yet over that reads the value or writes a part of it, else None."""
        later = [number for number in self._readers.get(root, ()) if number >= self._current]
        if later:
            return later[0]
        return self._last_write[root] if self._last_write.get(root, -1) >= self._current else None

    def in_dram(self, value: Value) -> int:
        """DRAM address of the content of a value; a dirty resident is written there first."""
        root = self.root(value)
        resident = self.scratchpad.resident(root)
        if resident is not None and resident.dirty:
            self._spill(resident)
        if root not in self.stream.buffers:
            msg = f"{root} is read before any kernel has written it"
            raise LoweringError(msg)
        return self.stream.buffers[root].address

    def dram_result(self, value: Value) -> int:
        """DRAM address for the result that a kernel stores."""
        root = self.root(value)
        return self.stream.buffer(root, Role.TEMPORARY).address

    def _spill(self, resident: Resident) -> None:
        if self._next_use(resident.value) is None and resident.value not in self._kept:
            return
        home = self.stream.buffer(resident.value, Role.TEMPORARY).address
        self.stream.copy_whole(resident.value.tensor, Memory.SRAM, resident.address, home)
        resident.dirty = False

    # ---- building

    def build(self, name: str) -> Program:
        """Emit every kernel. Raises LoweringError when a kernel does not fit at any budget."""
        self._declare()
        for number, nest in enumerate(self._nests):
            self._current = number
            self.stream.begin_kernel(nest.ops)
            self._count_compulsory(nest)
            if nest.points:
                self._emit(nest)
            self._end_kernel(number, nest)
        return Program(
            name,
            self._machine.target.name,
            tuple(self.stream.buffers.values()),
            self.stream.kernels(),
            tuple(self.stream.steps),
            self.stream.dram.peak,
            self.scratchpad.peak,
        )

    def _declare(self) -> None:
        produced = set(self._last_write)
        for root in self._readers:
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

    def _emit(self, nest: Nest) -> None:
        contraction = on_matrix(nest, self._machine)
        budget = self._machine.sram_bytes // 2
        while True:
            tiling = Tiler(nest, contraction, self._machine, budget).choose()
            if tiling is None and budget < self._machine.sram_bytes:
                budget = self._machine.sram_bytes
                continue
            if tiling is None:
                msg = f"no tile of {'+'.join(op.name for op in nest.ops)} fits {budget} bytes of SRAM"
                raise LoweringError(msg)
            KernelEmitter(nest, tiling, contraction, self).emit()
            return

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
        if self._last_write[root] == number and root in self._kept:
            self.stream.count(compulsory=root.tensor.nbytes)
            resident = self.scratchpad.resident(root)
            if resident is not None and resident.dirty:
                self._spill(resident)
        self._current = number + 1
        self.scratchpad.end_kernel()
