"""A program as lines of a framework's own source, by that framework's table of spellings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any, Final, TypeAlias

from generators.blocks.program import FLOATS, Program, Step, Var

Spelling: TypeAlias = "str | Callable[[Step, list[Argument]], str]"
_LONGEST: Final = 88
"""Longest expression that is put inside another."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An operand in a template: ``{0}`` as it is, ``{0:c}`` a number made a tensor, ``{0:l}`` a literal."""

    text: str
    constant: str
    compound: bool = False

    def alone(self) -> Argument:
        """The same where nothing else stands beside it, as in a call."""
        return Argument(self.text, self.constant)

    def __format__(self, spec: str) -> str:
        if spec == "c":
            return self.constant
        return f"({self.text})" if self.compound else self.text


@dataclass(frozen=True, slots=True)
class Framework:
    """How one framework spells words: the table, its numbers, its names of types, and names that it keeps for itself.

    ``number`` gives a number as a tensor of an element type; ``bare`` whether operators take Python's numbers.
    """

    name: str
    words: Mapping[str, Spelling]
    number: Callable[[Any, str], str]
    type_name: Callable[[str], str]
    weight: str
    bare: bool = True
    reserved: frozenset[str] = frozenset()


def literal(value: Any) -> str:  # noqa: ANN401 - a number
    """A number as Python source."""
    if isinstance(value, bool | int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return f'float("{value}")'
    return repr(float(value))


@dataclass(slots=True)
class Renderer:
    """Turns steps into statements; what is used once and has no name goes inside what uses it."""

    program: Program
    framework: Framework
    lines: list[str] = field(default_factory=list)
    _texts: dict[int, Argument] = field(default_factory=dict)
    _taken: Counter[str] = field(default_factory=Counter)
    _uses: Counter[int] = field(default_factory=Counter)

    def render(self) -> list[str]:
        """The statements, in order."""
        steps = self.program.live_steps()
        self._uses.update(id(x) for step in steps for x in step.operands if isinstance(x, Var))
        self._uses.update(2 * [id(x) for x in self.program.outputs])
        for name, var in self.program.inputs.items():
            self._taken[name] = 1
            self._texts[id(var)] = Argument(name, name)
        for name, var in self.program.weights.items():
            text = self.framework.weight.format(name)
            self._taken[text] = 1
            self._texts[id(var)] = Argument(text, text)
        for step in steps:
            self._step(step)
        return self.lines

    def text(self, var: Var) -> str:
        """What stands for a tensor."""
        return self._texts[id(var)].text

    def _step(self, step: Step) -> None:
        text, compound = self._expression(step)
        if len(step.results) > 1:
            names = [self._fresh(var.name or step.word) for var in step.results]
            self.lines.append(f"{', '.join(names)} = {text}")
            for var, name in zip(step.results, names, strict=True):
                self._texts[id(var)] = Argument(name, name)
            return
        (var,) = step.results
        if var.name is None and self._uses[id(var)] == 1 and len(text) <= _LONGEST:
            self._texts[id(var)] = Argument(text, text, compound)
            return
        name = self._fresh(var.name or step.word.rpartition(".")[2])
        self.lines.append(f"{name} = {text}")
        self._texts[id(var)] = Argument(name, name)

    def _fresh(self, wanted: str) -> str:
        wanted = f"{wanted}_" if iskeyword(wanted) or wanted in self.framework.reserved else wanted
        while True:
            self._taken[wanted] += 1
            name = wanted if self._taken[wanted] == 1 else f"{wanted}_{self._taken[wanted]}"
            if name == wanted or not self._taken[name]:
                self._taken[name] += name != wanted
                return name

    def _expression(self, step: Step) -> tuple[str, bool]:
        dtype = next((x.dtype for x in step.operands[::-1] if isinstance(x, Var)), "")
        spelling = self.framework.words[step.word]
        joined = isinstance(spelling, str) and spelling.startswith(("{0}", "-{0}"))
        arguments = [self._argument(x, dtype) if joined else self._argument(x, dtype).alone() for x in step.operands]
        if not isinstance(spelling, str):
            return spelling(step, arguments), False
        settings = {name: self._setting(name, value) for name, value in step.settings.items()}
        compound = spelling.startswith(("{0} ", "-{0}"))
        return spelling.format(*arguments, **settings, all=", ".join(map(str, map(format, arguments)))), compound

    def _argument(self, operand: Any, dtype: str) -> Argument:  # noqa: ANN401 - a tensor or a number
        if isinstance(operand, Var):
            return self._texts[id(operand)]
        number = self.framework.number(_fitting(operand, dtype), dtype)
        return Argument(literal(_fitting(operand, dtype)) if self.framework.bare else number, number)

    def _setting(self, name: str, value: Any) -> Any:  # noqa: ANN401
        if name == "dtype":
            return self.framework.type_name(value)
        if name == "step":
            return "" if value == 1 else f":{value}"
        if name == "before":
            return "".join(f"{part}, " for part in value)
        if name == "values":
            return f"[{', '.join(map(literal, value))}]"
        return literal(value) if isinstance(value, float) else value


def _fitting(value: Any, dtype: str) -> Any:  # noqa: ANN401
    return float(value) if dtype in FLOATS and not isinstance(value, bool) else value


def statements(program: Program, framework: Framework) -> tuple[list[str], list[str]]:
    """The block's statements, and the names of its outputs."""
    renderer = Renderer(program, framework)
    lines = renderer.render()
    return lines, [renderer.text(var) for var in program.outputs]
