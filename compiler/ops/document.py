"""Reference documentation of all operators, in Markdown, made from their classes alone."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Final

from compiler.ir import ELEMENT_TYPES
from compiler.ops.registry import (
    ANY,
    BOOLEAN,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMERIC,
    REAL,
    SIGNED,
    STRINGS,
    UNSIGNED,
    Attribute,
    Composite,
    Operand,
    Operator,
    operators,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from compiler.ir import ElementType

GROUPS: Final[dict[str, frozenset[ElementType]]] = {
    "any": ANY,
    "numeric": NUMERIC,
    "real": REAL,
    "float": FLOAT,
    "integer": INTEGER,
    "signed": SIGNED,
    "unsigned": UNSIGNED,
    "complex": COMPLEX,
    "bool": BOOLEAN,
    "string": STRINGS,
}
"""Names of sets of element types, larger sets first."""

FACTS: Final = ("commutative", "associative", "involution", "idempotent", "alias", "generative")
"""The algebraic facts of a class that are shown where they hold."""


def types_text(allowed: frozenset[ElementType]) -> str:
    """A set of element types in as few names as possible: those of groups, then single types."""
    names, rest = [], set(allowed)
    for name, members in GROUPS.items():
        if members and members <= rest:
            names.append(name)
            rest -= members
    names += [element.name for element in ELEMENT_TYPES if element in rest]
    return ", ".join(names)


def reference() -> str:
    """The whole reference: the groups of element types, then each family with its operators."""
    families: dict[str, list[Operator]] = {}
    for operator in operators().values():
        families.setdefault(operator.family, []).append(operator)
    parts = ["# Operators", _introduction(families), _groups()]
    for family, members in sorted(families.items()):
        module = sys.modules[type(members[0]).__module__]
        parts += [f"## {family}", _text(inspect.getdoc(module) or "")]
        parts += [describe(operator) for operator in members]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_reference(path: Path) -> None:
    """Write the reference to a file, whose folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reference(), encoding="utf-8")


def describe(operator: Operator) -> str:
    """One operator: signature, meaning, operands, attributes, facts and how it is computed."""
    parts = [
        f"### {operator.name}",
        f"`{signature(operator)}`",
        _text(inspect.getdoc(type(operator)) or ""),
        _operands(operator.operands),
        _attributes(operator.attributes),
        _notes(operator),
    ]
    return "\n\n".join(part for part in parts if part)


def signature(operator: Operator) -> str:
    """``name(operands; attributes)``: optional operands with ``?``, repeated ones with ``...``, defaults with ``=``."""
    operands = [
        f"{spec.name}{'?' if spec.optional else ''}{', ...' if spec.variadic else ''}" for spec in operator.operands
    ]
    attributes = [f"{spec.name}{_default(spec, '=')}" for spec in operator.attributes]
    inside = "; ".join(", ".join(names) for names in (operands, attributes) if names)
    return f"{operator.name}({inside})"


def _introduction(families: dict[str, list[Operator]]) -> str:
    count = sum(map(len, families.values()))
    composites = sum(isinstance(operator, Composite) for members in families.values() for operator in members)
    listed = "\n".join(
        f"- [{family}](#{family}): {', '.join(f'[{member.name}](#{member.name})' for member in members)}"
        for family, members in sorted(families.items())
    )
    return (
        f"{count} operators, {composites} of them composites, which simpler ones express. A *value operand* is small "
        f"and must be known before the result's sizes or the loops are.\n\n{listed}"
    )


def _groups() -> str:
    rows = [(name, ", ".join(e.name for e in ELEMENT_TYPES if e in members)) for name, members in GROUPS.items()]
    return "## Element types\n\n" + _table(("group", "element types"), rows)


def _operands(specs: Iterable[Operand]) -> str:
    rows = [(f"`{spec.name}`", _operand_type(spec), ", ".join(_marks(spec))) for spec in specs]
    return _table(("operand", "element type", ""), rows)


def _operand_type(spec: Operand) -> str:
    return (
        "anything, sequences and optionals too" if spec.other else f"{spec.type.name}: {types_text(spec.type.allowed)}"
    )


def _marks(spec: Operand) -> Iterable[str]:
    if spec.optional:
        yield "optional"
    if spec.variadic:
        yield "any number"
    if spec.value:
        yield "value operand"


def _attributes(specs: Iterable[Attribute]) -> str:
    rows = [(f"`{spec.name}`", spec.domain.description, _default(spec, ""), spec.doc) for spec in specs]
    return _table(("attribute", "values", "default", "meaning"), rows)


def _default(spec: Attribute, prefix: str) -> str:
    if spec.is_required:
        return "" if prefix else "required"
    if spec.default is None:
        return "?" if prefix else "absent"
    return f"{prefix}{spec.default}"


def _notes(operator: Operator) -> str:
    cls = type(operator)
    facts = [fact for fact in FACTS if getattr(cls, fact)]
    if not cls.pure:
        facts.append("not pure")
    if isinstance(operator, Composite):
        computed = "decomposes into simpler operators"
    elif cls.regions:
        computed = f"runs its regions: {', '.join(cls.regions)}"
    elif cls.work is Operator.work:
        computed = "evaluated on the host"
    else:
        computed = "structured loops"
    return f"Computed: {computed}." + (f" Facts: {', '.join(facts)}." if facts else "")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(_cell(text) for text in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _text(docstring: str) -> str:
    """A docstring as Markdown: its double backticks are single ones there; roles lose their marks."""
    return docstring.replace("``", "`").replace(":class:", "").replace(":data:", "").replace(":func:", "")
