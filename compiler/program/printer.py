"""Prints programs and executables as text that :mod:`compiler.program.parser` reads back exactly.

The text has Python's syntax, one instruction a line and ``for i0 in range(n):`` for a repeat, so that an address reads
as what it is: ``4096 + 128*i0 + 2048*(i1 % 2)``. A node of a scalar body that is used again is named where it first
stands, ``(t0 := f32.mul(x0, x0))``. Constants show as digests; :func:`constant_data` gives their bytes.
"""

from __future__ import annotations

import json
import math
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidProgram
from compiler.ir import RETURN, ElementType, Graph, Op, Value
from compiler.ir.literal import float_text
from compiler.ir.printer import location_text, print_graph, resource_key, resources
from compiler.ir.traversal import clone_op, operands_with_captures
from compiler.ir.types import type_text
from compiler.ops.work import Apply, Arg, Literal, Position
from compiler.program.executable import Alias, Block, Host, If, Loop, Run
from compiler.program.instructions import Matmul, Repeat, Transfer, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from compiler.ir import Array, Constant
    from compiler.ops.work import Expression
    from compiler.program.executable import Executable, ExecutableStep, Program
    from compiler.program.instructions import Address, Instruction, Lookup, Operand, Region, Step, Wait

_INDENT: Final = "    "


def print_program(program: Program) -> str:
    """The program as text. Raises InvalidProgram for a value that has no text form."""
    return "\n".join(_program_lines(program)) + "\n"


def print_executable(executable: Executable) -> str:
    """Every program, host operation and step of the executable as text. Raises InvalidProgram."""
    return _ExecutablePrinter(executable).print()


def constant_key(constant: Constant) -> str:
    """The name of a constant's data beside the text."""
    return resource_key(constant)


def constant_bytes(constant: Constant) -> Array:
    """The content as bytes, an element a slot; strings as a JSON list in UTF-8."""
    array = constant.array
    if array.dtype.hasobject:
        return np.frombuffer(json.dumps([str(item) for item in array.ravel()]).encode(), np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def program_constants(program: Program) -> Iterator[Constant]:
    """The constants whose data the program needs."""
    for buffer in program.buffers:
        if buffer.constant is not None and not buffer.constant.is_abstract:
            yield buffer.constant


def constant_data(executable: Executable) -> dict[str, Array]:
    """The bytes of every constant that the text of the executable shows as a digest."""
    found: dict[str, Array] = {}
    for constant in executable.constants.values():
        if not constant.is_abstract:
            found[constant_key(constant)] = constant_bytes(constant)
    for step in executable_steps(executable.block):
        if isinstance(step, Run):
            for constant in program_constants(step.program):
                found.setdefault(constant_key(constant), constant_bytes(constant))
        elif isinstance(step, Host):
            for key, array in resources(op_graph(step.op)).items():
                found.setdefault(key, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return found


def executable_steps(block: Block) -> Iterator[ExecutableStep]:
    """Every step of a block and of the blocks inside, in order."""
    for step in block.steps:
        yield step
        if isinstance(step, If):
            yield from executable_steps(step.then_block)
            yield from executable_steps(step.else_block)
        elif isinstance(step, Loop):
            yield from executable_steps(step.body)


def op_graph(op: Op) -> Graph:
    """A graph of this one operation: what it uses are the inputs, its results the outputs."""
    used = list(dict.fromkeys(operands_with_captures(op)))
    graph = Graph("host", [value.type for value in used])
    values: dict[Value, Value] = dict(zip(used, graph.inputs, strict=True))
    copy = graph.append(clone_op(op, values))
    graph.append(Op(RETURN, copy.results, ()))
    return graph


def _call(name: str, arguments: Iterable[str], **named: str | None) -> str:
    shown = [*arguments, *(f"{key}={value}" for key, value in named.items() if value is not None)]
    return f"{name}({', '.join(shown)})"


def _list(items: Iterable[Any]) -> str:
    return f"[{', '.join([str(item) for item in items])}]"


def number(value: Any) -> str:  # noqa: ANN401 - whatever a scalar literal may be
    """A bool, int, float or complex so that it reads back as the same. Raises InvalidProgram."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, float):
        if math.isnan(value):
            bits = float_text(value)
            return "nan" if bits == float_text(math.nan) else f'float("{bits}")'
        return repr(value)
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    msg = f"value {value!r} of {type(value).__name__} has no text form in a program"
    raise InvalidProgram(msg)


def _element(element: ElementType) -> str:
    return element.name if element.name.isidentifier() else repr(element.name)


def _address(address: Address) -> str:
    parts = [str(address.base)]
    parts.extend(f"{coefficient}*i{level}" for level, coefficient in address.terms)
    parts.extend(f"{turn.stride}*(i{turn.level} % {turn.count})" for turn in address.rotations)
    return " + ".join(parts)


def _region(region: Region) -> str:
    return _call(region.memory.value, [_element(region.element), _address(region.address), _list(region.strides)])


def _lookup(lookup: Lookup) -> str:
    shown = [_region(lookup.index), str(lookup.stride), str(lookup.extent), f'"{lookup.rule.value}"']
    return _call("lookup", shown)


def _operand(operand: Operand) -> str:
    if not operand.lookups and operand.fill is None:
        return _region(operand.region)
    fill = None if operand.fill is None else number(operand.fill)
    return _call("at", [_region(operand.region), _list(map(_lookup, operand.lookups))], fill=fill)


def _waits(waits: Sequence[Wait]) -> str | None:
    if not waits:
        return None
    return _list(f"wait({wait.on}, {wait.lag})" if wait.lag else f"wait({wait.on})" for wait in waits)


def _transfer(step: Transfer) -> str:
    shown = [str(step.id), str(step.kernel), _list(step.extents), _operand(step.source), _operand(step.destination)]
    return _call("transfer", shown, waits=_waits(step.waits))


def _matmul(step: Matmul) -> str:
    shown = [str(step.id), str(step.kernel), *map(_list, (step.batch, step.m, step.n, step.k))]
    shown.extend(map(_region, (step.a, step.b, step.out)))
    return _call(
        "matmul",
        shown,
        accumulate="True" if step.accumulate else None,
        dataflow=None if step.dataflow is None else f'"{step.dataflow.value}"',
        waits=_waits(step.waits),
    )


def _vector(step: Vector) -> str:
    shown = [str(step.id), str(step.kernel), _list(step.extents), _list(map(_operand, step.inputs))]
    return _call(
        "vector",
        [*shown, _Bodies().text(step.body), _operand(step.out)],
        reduced=str(step.reduced) if step.reduced else None,
        combiner=None if step.combiner is None else f'"{step.combiner.value}"',
        initial=None if step.initial is None else number(step.initial),
        accumulate=None if step.accumulate is None else _element(step.accumulate),
        scan="True" if step.scan else None,
        origin=_list(map(_address, step.origin)) if step.origin else None,
        waits=_waits(step.waits),
    )


class _Bodies:
    """Prints one body: a node met again is named where it first stands."""

    def __init__(self) -> None:
        self._uses: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def text(self, root: Expression) -> str:
        stack = [root]
        while stack:
            node = stack.pop()
            count = self._uses[id(node)] = self._uses.get(id(node), 0) + 1
            if count == 1 and isinstance(node, Apply):
                stack.extend(node.operands)
        return self._node(root)

    def _node(self, node: Expression) -> str:
        if not isinstance(node, Apply):
            return _LEAVES[type(node)](node)
        known = self._names.get(id(node))
        if known is not None:
            return known
        function = f"{node.function}_" if iskeyword(node.function) else node.function
        operands = [self._node(operand) for operand in node.operands]
        shown = _call("apply", [_element(node.element), repr(node.function), *operands])
        if node.element.name.isidentifier():
            shown = _call(f"{node.element.name}.{function}", operands)
        if self._uses[id(node)] == 1:
            return shown
        name = self._names[id(node)] = f"t{len(self._names)}"
        return f"({name} := {shown})"


def _arg(node: Arg) -> str:
    return f"x{node.index}({_element(node.element)})"


def _literal(node: Literal) -> str:
    return _call("literal", [_element(node.element), number(node.value)])


def _position(node: Position) -> str:
    return _call("position", [_element(node.element), str(node.iterator), number(node.scale), number(node.offset)])


_LEAVES: Final[dict[type, Callable[[Any], str]]] = {Arg: _arg, Literal: _literal, Position: _position}
_INSTRUCTIONS: Final[dict[type, Callable[[Any], str]]] = {Transfer: _transfer, Matmul: _matmul, Vector: _vector}


def print_instruction(instruction: Instruction) -> str:
    """One line."""
    return _INSTRUCTIONS[type(instruction)](instruction)


def _steps(body: Sequence[Step], depth: int) -> Iterator[str]:
    for step in body:
        if isinstance(step, Repeat):
            yield f"{_INDENT * depth}for i{depth} in range({step.count}):"
            yield from _steps(step.body, depth + 1)
            if not step.body:
                yield f"{_INDENT * (depth + 1)}pass"
        else:
            yield _INDENT * depth + print_instruction(step)


def _constant(constant: Constant) -> str:
    if constant.is_abstract:
        return f"abstract({constant.seed}, {type_text(constant.type)!r})"
    return f"{constant_key(constant)}({type_text(constant.type)!r})"


def _program_lines(program: Program) -> Iterator[str]:
    sizes = {"dram": str(program.dram_bytes), "sram": str(program.sram_bytes)}
    if program.sram_bound_bytes:
        sizes["sram_bound"] = str(program.sram_bound_bytes)
    yield _call("program", [repr(program.name), repr(program.target)], **sizes)
    for buffer in program.buffers:
        constant = None if buffer.constant is None else _constant(buffer.constant)
        shown = [repr(buffer.name), str(buffer.address), repr(type_text(buffer.type)), repr(buffer.role.value)]
        yield _call("buffer", shown, constant=constant)
    for kernel in program.kernels:
        counts = {
            "macs": str(kernel.macs),
            "operations": str(kernel.operations),
            "compulsory": str(kernel.compulsory_bytes),
        }
        if kernel.product:
            counts["product"] = _list(map(str, kernel.product))
        shown = [repr(kernel.name), _list(map(repr, kernel.operators)), repr(location_text(kernel.location))]
        yield _call("kernel", shown, **counts)
    yield from _steps(program.body, 0)


class _ExecutablePrinter:
    """The text of an executable: programs and host operations first, each with a number, then the tree of steps."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.programs: dict[int, int] = {}
        self.ops: dict[int, int] = {}
        self.head: list[str] = []

    def print(self) -> str:
        executable = self.executable
        tree = list(self._block(executable.block, 0))
        names = {
            "inputs": _list(map(repr, executable.input_names)),
            "outputs": _list(map(repr, executable.output_names)),
        }
        lines = [_call("executable", [repr(executable.target)], **names)]
        for slot, constant in executable.constants.items():
            lines.append(_call("constant", [str(slot), _constant(constant)]))
        for slot, type_ in executable.types.items():
            lines.append(_call("slot", [str(slot), repr(type_text(type_))]))
        return "\n".join([*lines, *self.head, *tree]) + "\n"

    def _program(self, program: Program) -> int:
        found = self.programs.get(id(program))
        if found is None:
            found = self.programs[id(program)] = len(self.programs)
            self.head.append(f"def program_{found}():")
            self.head.extend(_INDENT + line for line in _program_lines(program))
        return found

    def _op(self, op: Op) -> int:
        found = self.ops.get(id(op))
        if found is None:
            found = self.ops[id(op)] = len(self.ops)
            self.head.append(_call("operation", [str(found), _long_text(print_graph(op_graph(op)))]))
        return found

    def _block(self, block: Block, depth: int) -> Iterator[str]:
        indent = _INDENT * depth
        yield f"{indent}with block({_list(block.inputs)}, {_list(block.outputs)}):"
        for step in block.steps:
            yield from _PRINTERS[type(step)](self, step, depth + 1)
        if not block.steps:
            yield f"{indent}{_INDENT}pass"

    def run(self, step: Run, depth: int) -> Iterator[str]:
        yield _INDENT * depth + _call(
            "run", [f"program_{self._program(step.program)}", _list(step.inputs), _list(step.outputs)]
        )

    def host(self, step: Host, depth: int) -> Iterator[str]:
        shown = [str(self._op(step.op)), _list(step.operands), _list(step.results), repr(step.reason)]
        yield _INDENT * depth + _call("host", shown)

    def alias(self, step: Alias, depth: int) -> Iterator[str]:
        yield _INDENT * depth + _call("alias", [str(step.operand), str(step.result), repr(type_text(step.type))])

    def branch(self, step: If, depth: int) -> Iterator[str]:
        shown = [str(step.condition), _list(step.results), repr(location_text(step.location))]
        yield f"{_INDENT * depth}with branch({', '.join(shown)}):"
        yield from self._block(step.then_block, depth + 1)
        yield from self._block(step.else_block, depth + 1)

    def loop(self, step: Loop, depth: int) -> Iterator[str]:
        shown = [str(step.trip_count), str(step.condition), _list(step.carried), _list(step.results)]
        yield f"{_INDENT * depth}with loop({', '.join(shown)}, {location_text(step.location)!r}):"
        yield from self._block(step.body, depth + 1)


_PRINTERS: Final[dict[type, Callable[[_ExecutablePrinter, Any, int], Iterator[str]]]] = {
    Run: _ExecutablePrinter.run,
    Host: _ExecutablePrinter.host,
    Alias: _ExecutablePrinter.alias,
    If: _ExecutablePrinter.branch,
    Loop: _ExecutablePrinter.loop,
}


def _long_text(text: str) -> str:
    plain = "\\" not in text and '"""' not in text and not text.endswith('"') and "\r" not in text
    return f'"""{text}"""' if plain else repr(text)
