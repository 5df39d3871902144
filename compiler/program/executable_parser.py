"""Reads the text of an executable, and keeps executables in files: the text and the data of its constants in a zip."""

from __future__ import annotations

import ast
import io
import os
import re
import zipfile
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.errors import InvalidText
from compiler.ir import Constant, Location, Op, Type
from compiler.ir.parser import parse_graph
from compiler.ops.registry import lookup
from compiler.program import syntax
from compiler.program.executable import Alias, Block, Executable, Host, If, Loop, Program, Run
from compiler.program.parser import read_constant, read_program
from compiler.program.printer import constant_data, print_executable
from compiler.program.syntax import (
    Arguments,
    call_of,
    fail,
    integer,
    integers,
    items,
    name_of,
    optional_integer,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from compiler.ir import Array
    from compiler.program.executable import ExecutableStep

_TEXT: Final = "executable.txt"
_DATA: Final = "constants.npz"
_TYPE: Final = re.compile(r"tensor<[^\n]*>")


def parse_executable(text: str, data: Mapping[str, Array] | None = None) -> Executable:
    """The executable that ``text`` shows; ``data`` has the bytes of constants by the digests in the text.

    Raises InvalidText: line:column, what was found, what was expected.
    """
    return _Reader(data or {}).read(syntax.parse_statements(text))


def save_executable(executable: Executable, path: Path) -> None:
    """Write text and constants to one zip file; the same executable gives the same bytes. Nothing partial is left."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for key, content in sorted(constant_data(executable).items()):
            archive.writestr(_entry(f"{key}.npy"), _npy(content))
    temporary = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr(_entry(_TEXT), print_executable(executable))
            archive.writestr(_entry(_DATA), data.getvalue())
        os.replace(temporary, path)  # noqa: PTH105 - atomic; Path.replace is the same call
    finally:
        temporary.unlink(missing_ok=True)


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def _npy(content: Array) -> bytes:
    data = io.BytesIO()
    np.save(data, content, allow_pickle=False)
    return data.getvalue()


def load_executable(path: Path) -> Executable:
    """Read what :func:`save_executable` wrote. Raises InvalidText for a file that is something else."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(_TEXT).decode()
            with np.load(io.BytesIO(archive.read(_DATA)), allow_pickle=False) as arrays:
                data = {key: arrays[key] for key in arrays.files}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        msg = f"1:1: '{path}' is no saved executable: {error}"
        raise InvalidText(msg) from error
    return parse_executable(text, data)


class _Reader:
    """One parse: programs and operations by number."""

    def __init__(self, data: Mapping[str, Array]) -> None:
        self.data = data
        self.programs: dict[str, Program] = {}
        self.ops: dict[int, Op] = {}
        self.constants: dict[int, Constant] = {}
        self.types: dict[int, Type] = {}

    def read(self, statements: list[ast.stmt]) -> Executable:
        if not statements:
            fail(ast.Pass(lineno=1, col_offset=0), "executable(...)")
        head = call_of(statements[0])
        if name_of(head) != "executable":
            fail(head, "executable(...)")
        arguments = Arguments(head)
        target = string(arguments.next("its target"))
        inputs = tuple(string(item) for item in items(arguments.required("inputs")))
        outputs = tuple(string(item) for item in items(arguments.required("outputs")))
        arguments.end()
        for statement in statements[1:-1]:
            self._declare(statement)
        block = self._block(statements[-1])
        return Executable(target, block, self.constants, self.types, inputs, outputs)

    def _declare(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef):
            self.programs[statement.name] = read_program(statement.body, self.data)
            return
        call = call_of(statement)
        declare = _DECLARATIONS.get(name_of(call))
        if declare is None:
            fail(call, f"a program or one of {', '.join(_DECLARATIONS)}")
        arguments = Arguments(call)
        declare(self, arguments)
        arguments.end()

    def constant(self, arguments: Arguments) -> None:
        slot = integer(arguments.next("a slot"))
        self.constants[slot] = read_constant(arguments.next("a constant"), self.data)

    def slot(self, arguments: Arguments) -> None:
        slot = integer(arguments.next("a slot"))
        self.types[slot] = syntax.type_(arguments.next("a type"))

    def operation(self, arguments: Arguments) -> None:
        index, node = integer(arguments.next("a number")), arguments.next("an operation")
        text = string(node)
        arrays = {
            key: self._resource(key, text) for key in re.findall(r"dense_resource<(\w+)>", text) if key in self.data
        }
        first = parse_graph(text, lookup, arrays).first
        if first is None:
            fail(node, "an operation")
        self.ops[index] = first

    def _resource(self, key: str, text: str) -> Array:
        """The array of a constant inside an operation: its type follows its key in the text."""
        after = text[text.index(f"dense_resource<{key}>") :].partition(" : ")[2]
        found = _TYPE.match(after.split(">", 1)[0] + ">")
        node = ast.Constant(found[0] if found else after[:40], lineno=1, col_offset=0)
        type_ = syntax.tensor_type(node)
        return self.data[key].view(type_.element.dtype).reshape(type_.shape)

    def _block(self, statement: ast.AST) -> Block:
        call, body = _with(statement, "block")
        arguments = Arguments(call)
        inputs, outputs = integers(arguments.next("inputs")), integers(arguments.next("outputs"))
        arguments.end()
        return Block(inputs, self._steps(body), outputs)

    def _steps(self, statements: Iterable[ast.stmt]) -> tuple[ExecutableStep, ...]:
        steps: list[ExecutableStep] = []
        for statement in statements:
            if isinstance(statement, ast.Pass):
                continue
            call = call_of(statement.items[0].context_expr if isinstance(statement, ast.With) else statement)
            read = _STEPS.get(name_of(call))
            if read is None:
                fail(call, f"one of {', '.join(_STEPS)}")
            arguments = Arguments(call)
            blocks = [self._block(inner) for inner in statement.body] if isinstance(statement, ast.With) else []
            steps.append(read(self, arguments, blocks))
            arguments.end()
        return tuple(steps)

    def run(self, arguments: Arguments, blocks: list[Block]) -> Run:
        _count(arguments, blocks, 0)
        node = arguments.next("a program")
        program = self.programs.get(node.id) if isinstance(node, ast.Name) else None
        if program is None:
            fail(node, f"one of {', '.join(self.programs) or 'no programs'}")
        return Run(program, integers(arguments.next("inputs")), integers(arguments.next("outputs")))

    def host(self, arguments: Arguments, blocks: list[Block]) -> Host:
        _count(arguments, blocks, 0)
        node = arguments.next("an operation")
        op = self.ops.get(integer(node))
        if op is None:
            fail(node, f"one of the {len(self.ops)} operations")
        operands = tuple(optional_integer(item) for item in items(arguments.next("operands")))
        results, reason = integers(arguments.next("results")), string(arguments.next("a reason"))
        return Host(op, operands, results, reason)

    def alias(self, arguments: Arguments, blocks: list[Block]) -> Alias:
        _count(arguments, blocks, 0)
        operand, result = integer(arguments.next("an operand")), integer(arguments.next("a result"))
        return Alias(operand, result, syntax.tensor_type(arguments.next("a type")))

    def branch(self, arguments: Arguments, blocks: list[Block]) -> If:
        _count(arguments, blocks, 2)
        condition, results = integer(arguments.next("a condition")), integers(arguments.next("results"))
        return If(condition, blocks[0], blocks[1], results, self._location(arguments))

    def loop(self, arguments: Arguments, blocks: list[Block]) -> Loop:
        _count(arguments, blocks, 1)
        trips = optional_integer(arguments.next("a trip count"))
        condition = optional_integer(arguments.next("a condition"))
        carried, results = integers(arguments.next("carried")), integers(arguments.next("results"))
        return Loop(trips, condition, carried, blocks[0], results, self._location(arguments))

    def _location(self, arguments: Arguments) -> Location:
        return syntax.location(arguments.next("a location"))


def _count(arguments: Arguments, blocks: list[Block], wanted: int) -> None:
    if len(blocks) != wanted:
        fail(arguments.call, f"{wanted} blocks inside; there are {len(blocks)}")


def _with(statement: ast.AST, name: str) -> tuple[ast.Call, list[ast.stmt]]:
    if not isinstance(statement, ast.With) or len(statement.items) != 1:
        fail(statement, f"with {name}(...):")
    call = call_of(statement.items[0].context_expr)
    if name_of(call) != name:
        fail(call, f"{name}(...)")
    return call, statement.body


_DECLARATIONS: Final[dict[str, Callable[[_Reader, Arguments], None]]] = {
    "constant": _Reader.constant,
    "slot": _Reader.slot,
    "operation": _Reader.operation,
}
_STEPS: Final[dict[str, Callable[[_Reader, Arguments, list[Block]], ExecutableStep]]] = {
    "run": _Reader.run,
    "host": _Reader.host,
    "alias": _Reader.alias,
    "branch": _Reader.branch,
    "loop": _Reader.loop,
}
