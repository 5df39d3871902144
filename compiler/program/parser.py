"""Reads the text that :mod:`compiler.program.printer` writes."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.ir import Constant
from compiler.ops.work import Apply, Arg, Combiner, Literal, OutOfRange, Position
from compiler.program import syntax
from compiler.program.executable import Buffer, Kernel, Program, Role
from compiler.program.instructions import (
    Address,
    Instruction,
    Lookup,
    Matmul,
    Memory,
    Operand,
    Region,
    Repeat,
    Rotation,
    Transfer,
    Vector,
    Wait,
)
from compiler.program.syntax import Arguments, call_of, fail, integer, integers, items, name_of, number, string
from compiler.targets.schema import Dataflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from enum import Enum
    from typing import TypeVar

    from compiler.ir import Array, TensorType
    from compiler.ops.work import Expression
    from compiler.program.instructions import Step

    Choice = TypeVar("Choice", bound=Enum)

_INPUT: Final = re.compile(r"x(\d+)")
_INDEX: Final = re.compile(r"i(\d+)")


def parse_program(text: str, data: Mapping[str, Array] | None = None) -> Program:
    """The program that ``text`` shows; ``data`` has the bytes of constants by the digests in the text.

    Raises InvalidText: line:column, what was found, what was expected.
    """
    return read_program(syntax.parse_statements(text), data or {})


def read_program(statements: Sequence[ast.stmt], data: Mapping[str, Array]) -> Program:
    """The program that these statements are. Raises InvalidText."""
    if not statements:
        fail(ast.Pass(lineno=1, col_offset=0), "program(...)")
    head = call_of(statements[0])
    if name_of(head) != "program":
        fail(head, "program(...)")
    arguments = Arguments(head)
    name, target = string(arguments.next("its name")), string(arguments.next("its target"))
    dram, sram = integer(arguments.required("dram")), integer(arguments.required("sram"))
    bound = arguments.named("sram_bound")
    arguments.end()
    buffers: list[Buffer] = []
    kernels: list[Kernel] = []
    rest = list(statements[1:])
    while rest and isinstance(rest[0], ast.Expr):
        call = call_of(rest[0])
        if name_of(call) == "buffer":
            buffers.append(_buffer(call, data))
        elif name_of(call) == "kernel":
            kernels.append(_kernel(call))
        else:
            break
        rest.pop(0)
    return Program(
        name,
        target,
        tuple(buffers),
        tuple(kernels),
        _steps(rest, 0),
        dram,
        sram,
        0 if bound is None else integer(bound),
    )


def _choice(enum: type[Choice], node: ast.AST) -> Choice:
    found = {str(member.value): member for member in enum}.get(string(node))
    if found is None:
        fail(node, f"one of {', '.join(str(member.value) for member in enum)}")
    return found


def read_constant(node: ast.AST, data: Mapping[str, Array]) -> Constant:
    """The constant that a digest or ``abstract(seed)`` names. Raises InvalidText."""
    call = call_of(node)
    key, arguments = name_of(call), Arguments(call)
    if key == "abstract":
        seed = integer(arguments.next("its seed"))
        type_ = syntax.tensor_type(arguments.next("its type"))
        arguments.end()
        return Constant.abstract(type_, seed)
    type_ = syntax.tensor_type(arguments.next("its type"))
    arguments.end()
    content = data.get(key)
    if content is None:
        fail(node, f"a constant whose data is given beside the text ({len(data)} are)")
    return Constant.of(_array(node, content, type_))


def _array(node: ast.AST, content: Array, type_: TensorType) -> Array:
    dtype = type_.element.dtype
    if dtype.hasobject:
        values = np.array(json.loads(content.tobytes().decode()), dtype=object)
        return values.reshape(type_.shape)
    if content.size != type_.size * dtype.itemsize:
        fail(node, f"{type_.size * dtype.itemsize} bytes of data for {type_}; there are {content.size}")
    return content.view(dtype).reshape(type_.shape)


def _buffer(call: ast.Call, data: Mapping[str, Array]) -> Buffer:
    arguments = Arguments(call)
    name, address = string(arguments.next("a name")), integer(arguments.next("an address"))
    type_, role = syntax.tensor_type(arguments.next("a type")), _choice(Role, arguments.next("a role"))
    given = arguments.named("constant")
    arguments.end()
    return Buffer(name, address, type_, role, None if given is None else read_constant(given, data))


def _kernel(call: ast.Call) -> Kernel:
    arguments = Arguments(call)
    name = string(arguments.next("a name"))
    operators = tuple(string(item) for item in items(arguments.next("operators")))
    where = syntax.location(arguments.next("a location"))
    macs, operations, compulsory = (integer(arguments.required(key)) for key in ("macs", "operations", "compulsory"))
    product = arguments.named("product")
    arguments.end()
    extents = () if product is None else integers(product)
    return Kernel(name, operators, where, macs, operations, compulsory, extents)


def _steps(statements: Iterable[ast.stmt], depth: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    for statement in statements:
        if isinstance(statement, ast.For):
            steps.append(_repeat(statement, depth))
        elif isinstance(statement, ast.Pass):
            continue
        else:
            steps.append(_instruction(call_of(statement)))
    return tuple(steps)


def _repeat(statement: ast.For, depth: int) -> Repeat:
    if not isinstance(statement.target, ast.Name) or statement.target.id != f"i{depth}" or statement.orelse:
        fail(statement.target, f"i{depth}, the index at this depth")
    call = call_of(statement.iter)
    if name_of(call) != "range":
        fail(call, "range(count)")
    arguments = Arguments(call)
    count = integer(arguments.next("the count"))
    arguments.end()
    return Repeat(count, _steps(statement.body, depth + 1))


def _instruction(call: ast.Call) -> Instruction:
    read = _INSTRUCTIONS.get(name_of(call))
    if read is None:
        fail(call, f"one of {', '.join(_INSTRUCTIONS)}")
    arguments = Arguments(call)
    instruction = read(arguments)
    arguments.end()
    return instruction


def _waits(arguments: Arguments) -> tuple[Wait, ...]:
    given = arguments.named("waits")
    return () if given is None else tuple(_wait(item) for item in items(given))


def _wait(node: ast.AST) -> Wait:
    call = call_of(node)
    if name_of(call) != "wait" or not 1 <= len(call.args) <= 2 or call.keywords:
        fail(node, "wait(instruction) or wait(instruction, lag)")
    return Wait(*(integer(argument) for argument in call.args))


def _address(node: ast.AST) -> Address:
    parts: list[ast.AST] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(node.right)
        node = node.left
    base = integer(node)
    terms: list[tuple[int, int]] = []
    rotations: list[Rotation] = []
    for part in reversed(parts):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
            fail(part, "number*i0 or number*(i0 % count)")
        factor = integer(part.left)
        if isinstance(part.right, ast.BinOp) and isinstance(part.right.op, ast.Mod):
            rotations.append(Rotation(_level(part.right.left), integer(part.right.right), factor))
        else:
            terms.append((_level(part.right), factor))
    return Address(base, tuple(terms), tuple(rotations))


def _level(node: ast.AST) -> int:
    found = _INDEX.fullmatch(node.id) if isinstance(node, ast.Name) else None
    if found is None:
        fail(node, "a loop index: i0, i1, ...")
    return int(found[1])


def _region(node: ast.AST) -> Region:
    call = call_of(node)
    memories = {memory.value: memory for memory in Memory}
    memory = memories.get(name_of(call))
    if memory is None:
        fail(node, f"one of {', '.join(memories)}")
    arguments = Arguments(call)
    element, address = syntax.element(arguments.next("an element type")), _address(arguments.next("an address"))
    strides = integers(arguments.next("strides"))
    arguments.end()
    return Region(memory, address, element, strides)


def _operand(node: ast.AST) -> Operand:
    call = call_of(node)
    if name_of(call) != "at":
        return Operand(_region(call))
    arguments = Arguments(call)
    region = _region(arguments.next("a region"))
    lookups = tuple(_lookup(item) for item in items(arguments.next("lookups")))
    fill = arguments.named("fill")
    arguments.end()
    return Operand(region, lookups, None if fill is None else number(fill))


def _lookup(node: ast.AST) -> Lookup:
    call = call_of(node)
    if name_of(call) != "lookup":
        fail(node, "lookup(...)")
    arguments = Arguments(call)
    region, stride = _region(arguments.next("a region")), integer(arguments.next("a stride"))
    extent, rule = integer(arguments.next("an extent")), _choice(OutOfRange, arguments.next("a rule"))
    arguments.end()
    return Lookup(region, stride, extent, rule)


def _transfer(arguments: Arguments) -> Transfer:
    number_, kernel = integer(arguments.next("an id")), integer(arguments.next("a kernel"))
    extents = integers(arguments.next("extents"))
    source, destination = _operand(arguments.next("a source")), _operand(arguments.next("a destination"))
    return Transfer(number_, kernel, extents, source, destination, _waits(arguments))


def _matmul(arguments: Arguments) -> Matmul:
    number_, kernel = integer(arguments.next("an id")), integer(arguments.next("a kernel"))
    batch, m, n, k = (integers(arguments.next("extents")) for _ in range(4))
    a, b, out = (_region(arguments.next("a region")) for _ in range(3))
    given = arguments.named("accumulate")
    accumulate = False if given is None else syntax.flag(given)
    flow = arguments.named("dataflow")
    dataflow = None if flow is None else _choice(Dataflow, flow)
    return Matmul(number_, kernel, batch, m, n, k, a, b, out, accumulate, _waits(arguments), dataflow)


def _vector(arguments: Arguments) -> Vector:
    number_, kernel = integer(arguments.next("an id")), integer(arguments.next("a kernel"))
    extents = integers(arguments.next("extents"))
    inputs = tuple(_operand(item) for item in items(arguments.next("inputs")))
    body, out = _Body().read(arguments.next("a body")), _operand(arguments.next("a result"))
    reduced, combiner = arguments.named("reduced"), arguments.named("combiner")
    initial, accumulate = arguments.named("initial"), arguments.named("accumulate")
    scan, origin = arguments.named("scan"), arguments.named("origin")
    return Vector(
        number_,
        kernel,
        extents,
        inputs,
        body,
        out,
        reduced=0 if reduced is None else integer(reduced),
        combiner=None if combiner is None else _choice(Combiner, combiner),
        initial=None if initial is None else number(initial),
        accumulate=None if accumulate is None else syntax.element(accumulate),
        scan=False if scan is None else syntax.flag(scan),
        origin=() if origin is None else tuple(_address(item) for item in items(origin)),
        waits=_waits(arguments),
    )


_INSTRUCTIONS: Final[dict[str, Callable[[Arguments], Instruction]]] = {
    "transfer": _transfer,
    "matmul": _matmul,
    "vector": _vector,
}


class _Body:
    """Reads one scalar body; names given with ``:=`` stand for the node they were given to."""

    def __init__(self) -> None:
        self._named: dict[str, Expression] = {}

    def read(self, node: ast.AST) -> Expression:
        if isinstance(node, ast.NamedExpr):
            found = self._named[node.target.id] = self.read(node.value)
            return found
        if isinstance(node, ast.Name):
            known = self._named.get(node.id)
            if known is None:
                fail(node, "a name given before")
            return known
        call = call_of(node)
        if isinstance(call.func, ast.Attribute):
            operands = tuple(self.read(argument) for argument in call.args)
            return Apply(call.func.attr.removesuffix("_"), operands, syntax.element(call.func.value))
        return self._leaf(call)

    def _leaf(self, call: ast.Call) -> Expression:
        name, arguments = name_of(call), Arguments(call)
        element = syntax.element(arguments.next("an element type"))
        found = _INPUT.fullmatch(name)
        result: Expression
        if found is not None:
            result = Arg(int(found[1]), element)
        elif name == "literal":
            result = Literal(number(arguments.next("a value")), element)
        elif name == "position":
            iterator = integer(arguments.next("a loop"))
            result = Position(iterator, element, number(arguments.next("a scale")), number(arguments.next("an offset")))
        elif name == "apply":
            function = string(arguments.next("a function"))
            result = Apply(function, tuple(self.read(argument) for argument in call.args[2:]), element)
            return result
        else:
            fail(call, "x0(...), literal(...), position(...) or type.function(...)")
        arguments.end()
        return result
