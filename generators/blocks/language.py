"""The block language: a definition's text, Python's own grammar over words and phrases, run once into a program.

Names stand for sizes of the configuration, for inputs and weights, and for what was assigned before. Numbers are
computed at once, tensors become steps. A *phrase* is a composite that frameworks and models spell in several ways; its
spellings are written in the same language, and a case chooses one of them.

Allowed: assignments, ``if`` and ``for ... in range(...)`` over numbers, ``return``; calls, + - * / // % ** @, - and
comparisons, conditional expressions, tuples and lists.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from generators.blocks.program import FLOAT32, Program, Var
from generators.blocks.words import WORDS
from opsets.errors import ManifestError

_OPERATORS: Final[dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Add: ("add", lambda a, b: a + b),
    ast.Sub: ("sub", lambda a, b: a - b),
    ast.Mult: ("mul", lambda a, b: a * b),
    ast.Div: ("div", lambda a, b: a / b),
    ast.FloorDiv: ("", lambda a, b: a // b),
    ast.Mod: ("mod", lambda a, b: a % b),
    ast.Pow: ("pow", lambda a, b: a**b),
    ast.MatMult: ("matmul", lambda a, b: a @ b),
    ast.Lt: ("lt", lambda a, b: a < b),
    ast.LtE: ("le", lambda a, b: a <= b),
    ast.Gt: ("gt", lambda a, b: a > b),
    ast.GtE: ("ge", lambda a, b: a >= b),
    ast.Eq: ("eq", lambda a, b: a == b),
    ast.NotEq: ("", lambda a, b: a != b),
}
_NUMBERS: Final[dict[str, Any]] = {
    "pi": math.pi, "inf": math.inf, "range": range, "min": min, "max": max, "sqrt": math.sqrt, "exp": math.exp,
    "log": math.log, "round": round, "reversed": lambda x: list(reversed(x)), "len": len, "cos": math.cos,
}  # fmt: skip
"""What may be done to numbers; a word of the same name is meant where a tensor comes."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A composite's spellings by name: each a body over the same parameters."""

    name: str
    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]
    spellings: Mapping[str, str]


@dataclass(slots=True)
class Evaluator:
    """Runs bodies. ``spelled`` says which spelling of a phrase is meant; ``dtype`` is the case's float type."""

    program: Program
    dtype: str
    phrases: Mapping[str, Phrase]
    spelled: Mapping[str, str]
    used: dict[str, None] = field(default_factory=dict)
    """Phrases that were met, in order."""

    def run(self, body: str, names: dict[str, Any]) -> Any:  # noqa: ANN401 - a tensor or a tuple of them
        """What a body returns, its steps appended to the program. Raises ManifestError with the line at fault."""
        found = self._block(_parsed(body), names)
        if found is None:
            raise ManifestError(f"a body without 'return': {body.strip().splitlines()[-1]!r}")
        return found

    def _block(self, statements: Sequence[ast.stmt], names: dict[str, Any]) -> Any:  # noqa: ANN401
        for statement in statements:
            try:
                found = self._statement(statement, names)
            except ManifestError as error:
                if "\n" in str(error) or " in `" in str(error):
                    raise
                raise ManifestError(f"{error} in `{ast.unparse(statement)[:90]}`") from error
            except (TypeError, ValueError, ZeroDivisionError) as error:
                raise ManifestError(f"{error} in `{ast.unparse(statement)[:90]}`") from error
            if found is not None:
                return found
        return None

    def _statement(self, statement: ast.stmt, names: dict[str, Any]) -> Any:  # noqa: ANN401
        if isinstance(statement, ast.Return) and statement.value is not None:
            return self.value(statement.value, names)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], self.value(statement.value, names), names)
            return None
        if isinstance(statement, ast.If):
            return self._block(statement.body if self.value(statement.test, names) else statement.orelse, names)
        if isinstance(statement, ast.For):
            for item in self.value(statement.iter, names):
                self._assign(statement.target, item, names)
                self._block(statement.body, names)
            return None
        raise ManifestError(f"`{ast.unparse(statement)}`: found no statement of the language")

    def _assign(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:  # noqa: ANN401
        if isinstance(target, ast.Tuple):
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item, names)
            return
        if not isinstance(target, ast.Name):
            raise ManifestError(f"`{ast.unparse(target)}`: expected a name")
        if isinstance(value, Var) and value.name is None:
            value.name = target.id
        names[target.id] = value

    def value(self, node: ast.expr, names: dict[str, Any]) -> Any:  # noqa: ANN401 - a tensor, a number, a tuple
        """What an expression stands for."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise ManifestError(f"`{ast.unparse(node)}`: found no expression of the language")
        return handler(self, node, names)

    def _name(self, node: ast.Name, names: dict[str, Any]) -> Any:  # noqa: ANN401
        for scope in (names, _NUMBERS):
            if node.id in scope:
                return scope[node.id]
        raise ManifestError(f"name '{node.id}' is unknown; expected one of {', '.join(names)}")

    def _binary(self, node: ast.BinOp, names: dict[str, Any]) -> Any:  # noqa: ANN401
        return self._operate(node.op, self.value(node.left, names), self.value(node.right, names))

    def _compare(self, node: ast.Compare, names: dict[str, Any]) -> Any:  # noqa: ANN401
        return self._operate(node.ops[0], self.value(node.left, names), self.value(node.comparators[0], names))

    def _operate(self, operator: ast.AST, a: Any, b: Any) -> Any:  # noqa: ANN401
        name, compute = _OPERATORS[type(operator)]
        if isinstance(a, Var) or isinstance(b, Var):
            return self.step(name, a, b)
        return compute(a, b)

    def _minus(self, node: ast.UnaryOp, names: dict[str, Any]) -> Any:  # noqa: ANN401
        value = self.value(node.operand, names)
        if isinstance(node.op, ast.Not):
            return not value
        return self.step("neg", value) if isinstance(value, Var) else -value

    def _conditional(self, node: ast.IfExp, names: dict[str, Any]) -> Any:  # noqa: ANN401
        return self.value(node.body if self.value(node.test, names) else node.orelse, names)

    def _boolean(self, node: ast.BoolOp, names: dict[str, Any]) -> bool:
        join = all if isinstance(node.op, ast.And) else any
        return join(self.value(part, names) for part in node.values)

    def _list(self, node: ast.List | ast.Tuple, names: dict[str, Any]) -> Any:  # noqa: ANN401
        found: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                found += self.value(item.value, names)
            else:
                found.append(self.value(item, names))
        return tuple(found)

    def _comprehension(self, node: ast.ListComp, names: dict[str, Any]) -> Any:  # noqa: ANN401
        (generator,) = node.generators
        found = []
        for item in self.value(generator.iter, names):
            inner = dict(names)
            self._assign(generator.target, item, inner)
            found.append(self.value(node.elt, inner))
        return tuple(found)

    def _subscript(self, node: ast.Subscript, names: dict[str, Any]) -> Any:  # noqa: ANN401
        return self.value(node.value, names)[self.value(node.slice, names)]

    def _call(self, node: ast.Call, names: dict[str, Any]) -> Any:  # noqa: ANN401
        name = ast.unparse(node.func)
        arguments = list(self._list(ast.List(elts=node.args), names))
        settings = {keyword.arg or "": self.value(keyword.value, names) for keyword in node.keywords}
        if name in self.phrases:
            return self._phrase(self.phrases[name], arguments, settings)
        if name in CASTS:
            dtype = self._element(CASTS[name])
            return arguments[0] if arguments[0].dtype == dtype else self.step("cast", arguments[0], dtype)
        if name == "constant":
            return self.step("constant", arguments[0], self._element(settings.get("dtype", "")))
        if name == "size":
            return arguments[0].shape[arguments[1]]
        if name in _NUMBERS and not any(isinstance(argument, Var) for argument in arguments):
            return _NUMBERS[name](*arguments, **settings)
        return self.step(name, *arguments, **settings)

    def _element(self, name: str) -> str:
        """An element type by name; "" is the case's own, and in a wide run every float is float64."""
        return self.dtype if not name or (name == FLOAT32 and self.dtype == "float64") else name

    def _phrase(self, phrase: Phrase, arguments: Sequence[Any], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
        self.used[phrase.name] = None
        given = dict(zip(phrase.parameters, arguments, strict=False))
        names = {"wide": self.dtype in ("float32", "float64"), **phrase.defaults, **given, **settings}
        body = phrase.spellings.get(self.spelled.get(phrase.name, ""), next(iter(phrase.spellings.values())))
        return self.run(body, names)

    def step(self, name: str, *arguments: Any, **settings: Any) -> Any:  # noqa: ANN401
        """Append a word; its result, or its results as a tuple."""
        if name not in WORDS:
            raise ManifestError(f"word '{name}' is unknown")
        made = WORDS[name](*arguments, **settings)
        results = [Var(shape, dtype) for shape, dtype in made.results]
        self.program.add(name, made.operands, made.settings, results)
        return results[0] if len(results) == 1 else tuple(results)


CASTS: Final[dict[str, str]] = {
    "typed": "", "float32": FLOAT32, "int64": "int64", "int32": "int32", "int8": "int8", "uint8": "uint8",
    "boolean": "bool",
}  # fmt: skip
"""Casts by their word; ``typed`` is the case's own float type."""

_EXPRESSIONS: Final[dict[type[ast.AST], Callable[[Evaluator, Any, dict[str, Any]], Any]]] = {
    ast.Constant: lambda _, node, __: node.value,
    ast.Name: Evaluator._name,  # noqa: SLF001 - the table belongs to the class
    ast.BinOp: Evaluator._binary,  # noqa: SLF001
    ast.Compare: Evaluator._compare,  # noqa: SLF001
    ast.UnaryOp: Evaluator._minus,  # noqa: SLF001
    ast.BoolOp: Evaluator._boolean,  # noqa: SLF001
    ast.IfExp: Evaluator._conditional,  # noqa: SLF001
    ast.List: Evaluator._list,  # noqa: SLF001
    ast.Tuple: Evaluator._list,  # noqa: SLF001
    ast.ListComp: Evaluator._comprehension,  # noqa: SLF001
    ast.Subscript: Evaluator._subscript,  # noqa: SLF001
    ast.Call: Evaluator._call,  # noqa: SLF001
}


@cache
def _parsed(body: str) -> list[ast.stmt]:
    try:
        return ast.parse(body).body
    except SyntaxError as error:
        raise ManifestError(f"line {error.lineno} of a body: {error.msg}: {(error.text or '').strip()!r}") from error
