"""Cases of TensorFlow's manifests: their ids, chosen from what each entry varies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generators.expand import applies, parse_cached
from generators.pairwise import Axis, Constraint, select
from opsets.errors import ManifestError
from opsets.tensorflow_manifest import TensorflowItem, load_tensorflow_manifests

_UNSAFE = re.compile(r"[^\w.,=+~-]")
_LONGEST = 180
_DTYPE, _DATA, _MODE, _FORM, _SHAPES, _SET = "$dtype", "$data", "$mode", "$form", "$shapes", "$set"

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorflowCase:
    """Operator x form of the program x element type x parameters x shapes x data class x how inputs come.

    ``parameters`` are attributes, inputs by value, types of further type attributes, and names of the program's own;
    ``shapes`` those of drawn inputs by name, several to a name where the input is a list.
    """

    operator: str
    form: int
    dtype: str
    parameters: tuple[tuple[str, Any], ...]
    shapes: tuple[tuple[str, Dims | tuple[Dims, ...]], ...]
    data_class: str
    mode: str
    id: str

    @property
    def seed(self) -> int:
        """Seed of the draws: 64 bits of a hash of the id."""
        return int.from_bytes(hashlib.blake2b(self.id.encode(), digest_size=8).digest(), "big")


def expand_tensorflow() -> Iterator[TensorflowCase]:
    """Every case of every manifest, in order; nothing is rendered and TensorFlow is not imported."""
    for item in load_tensorflow_manifests():
        yield from expand_item(item)


def expand_item(item: TensorflowItem) -> Iterator[TensorflowCase]:
    """The cases of one operator. Raises ManifestError where an expression does not go with the entry's names."""
    plan = _Plan(item)
    seen: set[str] = set()
    for chosen in plan.choices():
        case = plan.case(chosen)
        if case.id not in seen:
            seen.add(case.id)
            yield case
    if not seen:
        raise ManifestError(f"{item.source}: {item.operator}: found no case that meets 'where'")


def list_inputs(item: TensorflowItem) -> frozenset[str]:
    """Names of the operator's inputs that are lists of tensors."""
    return frozenset(argument.name for argument in item.raw.inputs if argument.count != "one")


def drawn_names(item: TensorflowItem) -> tuple[str, ...]:
    """Names of inputs that rows of shapes speak of by position: all but those that are given by value."""
    entry = item.entry
    given = {*entry.grid, *entry.by_value, *(name for one in entry.sets for name in one)}
    return tuple(name for name in (*(argument.name for argument in item.raw.inputs), *entry.extra) if name not in given)


class _Plan:
    """The axes of one entry's choice and what must hold of a row of them."""

    def __init__(self, item: TensorflowItem) -> None:
        self.item = item
        entry = item.entry
        self._inputs = {*(argument.name for argument in item.raw.inputs), *entry.extra} - set(entry.by_value)
        self._inputs -= {*entry.grid, *(name for one in entry.sets for name in one)}
        self._rows = [self._row(row) for row in entry.shapes]
        forms = len(entry.body) if isinstance(entry.body, list) else 1
        computed = [element for element in item.elements if element in item.computed_elements]
        self._axes = [
            Axis(_DTYPE, tuple(computed or item.elements)),
            Axis(_DATA, tuple(entry.data)),
            Axis(_MODE, tuple(entry.modes)),
            Axis(_FORM, tuple(range(forms))),
            Axis(_SHAPES, tuple(range(len(self._rows)))),
            *(Axis(name, tuple(_frozen(value) for value in values)) for name, values in entry.grid.items()),
            *([Axis(_SET, tuple(range(len(entry.sets))))] if entry.sets else []),
        ]
        self._others = [element for element in item.elements if computed and element not in computed]

    def choices(self) -> Iterator[dict[str, Any]]:
        """Rows of the choice by name of axis; one more for each type without a kernel, whose cells stay grey."""
        entry = self.item.entry
        names = [axis.name for axis in self._axes]
        rows = select(self._axes, self._constraints(), entry.cap, [(_DTYPE, _DATA)])
        found = [dict(zip(names, row, strict=True)) for row in rows]
        yield from found
        for element in self._others:
            yield {**found[0], _DTYPE: element, _DATA: "random"} if found else {}

    def case(self, chosen: Mapping[str, Any]) -> TensorflowCase:
        """The case of a row."""
        item, dtype = self.item, str(chosen[_DTYPE])
        data = str(chosen[_DATA]) if applies(str(chosen[_DATA]), dtype) else "random"
        shapes, parameters = self._rows[chosen[_SHAPES]]
        parameters = {**parameters, **self._parameters(chosen)}
        given = {name: value for name, value in parameters.items() if value is not None}
        mode = self._mode(str(chosen[_MODE]), len(shapes), given)
        listed = tuple(shapes.items())
        many = isinstance(item.entry.body, list)
        text = _id(item, dtype, given, listed, f"form={chosen[_FORM]}" if many else "", (data, mode))
        return TensorflowCase(item.operator, chosen[_FORM], dtype, tuple(given.items()), listed, data, mode, text)

    def _mode(self, mode: str, inputs: int, parameters: Mapping[str, Any]) -> str:
        """The mode, or `static` where it would be the same."""
        if mode == "initializer" and inputs < 2:
            return "static"
        by_value = {argument.name for argument in self.item.raw.inputs} | set(self.item.entry.extra)
        return "static" if mode == "fed" and not by_value & parameters.keys() else mode

    def _parameters(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        entry = self.item.entry
        found = {name: chosen[name] for name in entry.grid if name in chosen}
        if _SET in chosen:
            found |= {name: _frozen(value) for name, value in entry.sets[chosen[_SET]].items()}
        return found

    def _row(self, row: list[Any] | dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Shapes of drawn inputs and what else a row says, by name."""
        named = dict(zip(drawn_names(self.item), row, strict=False)) if isinstance(row, list) else row
        shapes = {name: _frozen(dims) for name, dims in named.items() if name in self._inputs and dims is not None}
        return shapes, {name: _frozen(value) for name, value in named.items() if name not in self._inputs}

    def _constraints(self) -> list[Constraint]:
        axes = {axis.name for axis in self._axes}
        found = []
        for text in self.item.entry.where:
            expression = parse_cached(text)
            places = {"element": _DTYPE, "form": _FORM}
            needed = {name if name in axes else places.get(name, _SHAPES) for name in expression.names}
            needed |= {_SET} & axes
            needed |= {_DATA} if "data_class" in expression.names else set()
            found.append(Constraint(frozenset(needed or {_DTYPE}), self._holds(text)))
        return found

    def _holds(self, text: str) -> Any:  # noqa: ANN401 - the function that a constraint takes
        def holds(chosen: Mapping[str, Any]) -> bool:
            shapes, parameters = self._rows[chosen[_SHAPES]] if _SHAPES in chosen else ({}, {})
            parameters = {**parameters, **self._parameters(chosen), "form": chosen.get(_FORM)}
            element, data = str(chosen.get(_DTYPE, "")), str(chosen.get(_DATA, ""))
            try:
                return bool(parse_cached(text)(expression_names(self.item, shapes, parameters, element, data)))
            except ValueError as error:
                raise ManifestError(f"{self.item.source}: {self.item.operator}.where: {error}") from error

        return holds


def expression_names(
    item: TensorflowItem, shapes: Mapping[str, Any], parameters: Mapping[str, Any], element: str, data_class: str
) -> dict[str, object]:
    """What a manifest's expressions can read of a case; None for what it leaves out."""
    entry = item.entry
    names: dict[str, object] = dict.fromkeys((*(argument.name for argument in item.raw.inputs), *item.raw.attributes))
    names |= dict.fromkeys((*entry.grid, *(name for one in entry.sets for name in one), *entry.extra))
    return {
        **names,
        **shapes,
        **parameters,
        "element": element,
        "data_class": data_class,
        "first": next(iter(shapes.values()), None),
    }


def _id(
    item: TensorflowItem,
    dtype: str,
    parameters: Mapping[str, Any],
    shapes: tuple[tuple[str, Any], ...],
    form: str,
    ends: tuple[str, str],
) -> str:
    pieces = [f"tensorflow-{item.operator}-{dtype}", *(f"{name}={_text(value)}" for name, value in parameters.items())]
    texts = [_shape_text(dims) for _, dims in shapes]
    pieces += [piece for piece in (form, "_".join(texts)) if piece]
    text = _UNSAFE.sub(lambda found: f"~{ord(found[0]):02x}", "-".join([*pieces, *ends]))
    if len(text) > _LONGEST:
        end = f"-{ends[0]}-{ends[1]}"
        kept = text[: _LONGEST - 12 - len(end)]
        text = f"{kept}~{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}{end}"
    return text


def _shape_text(dims: Any) -> str:  # noqa: ANN401 - sizes, or several shapes
    if dims and isinstance(dims[0], tuple):
        return "+".join(map(_shape_text, dims))
    return "x".join(map(str, dims)) or "scalar"


def _frozen(value: Any) -> Any:  # noqa: ANN401 - a value of YAML
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, tuple):
        return ",".join(map(_text, value)) or "empty"
    return f"{value:g}" if isinstance(value, float) else str(value)
