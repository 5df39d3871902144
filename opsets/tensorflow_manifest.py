"""Manifests of TensorFlow's raw operators: what is tried of each, and why the others are left out.

An entry is named after a raw operator, whose definition (schema.json) says what its inputs, attributes and element
types are; ``scope.yaml`` names all other raw operators, by reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsets.cells import Cell
from opsets.elements import GROUP_OF
from opsets.errors import ManifestError
from opsets.manifest import DataClass, Draw, Expression, Ruling, Tolerances
from opsets.tensorflow_schema import RawOperator, raw_operator
from opsets.tolerance import Tolerance, parse_tolerance

FOLDER: Final = Path(__file__).parent / "tensorflow"
SCOPE: Final = "scope.yaml"

Mode = Literal["static", "symbolic", "initializer", "fed"]
"""How inputs come: sizes known, sizes unknown, all but the first as constants, or values such as axes as inputs too."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorflowEntry(_Strict):
    """What is tried of one operator. Without a ``body`` the program is a single call of it."""

    shapes: list[list[Any] | dict[str, Any]] = Field(
        default=[[]], description="rows of input shapes, by position or name; a list of inputs takes a list of shapes"
    )
    grid: dict[str, list[Any]] = Field(default={}, description="attributes, inputs by value, parameters of the body")
    sets: list[dict[str, Any]] = Field(default=[], description="values that only make sense together")
    by_value: list[str] = Field(default=[], description="inputs that rows give by value; those of grid and sets are")
    inputs: dict[str, Draw] = Field(default={}, description="how an input is drawn where it is not simply data")
    where: list[Expression] = Field(default=[], description="what must hold of a case")
    data: list[DataClass] = Field(default=["random"])
    modes: list[Mode] = Field(default=["static", "symbolic"])
    dtype: str | None = Field(
        default=None, description="type attribute that a case's type means, the first input's; none: there is one type"
    )
    types: dict[str, list[str]] = Field(default={}, description="elements of a type attribute; all of the schema's")
    no_types: str | None = Field(default=None, description="why `types` leaves some out")
    body: str | list[str] = Field(
        default="", description="statements and a last expression, a Jinja template in which `call` is the plain call"
    )
    setup: str = Field(default="", description="statements before the function: functions that it calls, variables")
    extra: dict[str, str] = Field(default={}, description="inputs of the body beside the operator's: name to type")
    variables: list[str] = Field(default=[], description="inputs that are variables of the program, not arguments")
    outputs: list[str] = Field(default=[], description="outputs that are compared, where some have no meaning")
    wide: bool = Field(default=True, description="whether the same program in float64 has the same meaning")
    tolerance: Tolerances = Field(default={}, description="class by element name or group, or one for all")
    ruling: list[Ruling] = Field(default=[], description="which oracle is right where they differ, and why")
    cap: int = Field(default=16, description="greatest number of cases, beyond one for each type and data class")


class TensorflowFile(_Strict):
    """One manifest file: a family of operators."""

    framework: Literal["tensorflow"]
    family: str
    defaults: dict[str, Any] = Field(default={}, description="keys that entries of this file start from")
    operators: dict[str, dict[str, Any] | None]


class ScopeFile(_Strict):
    """All raw operators that no manifest has: reasons, and the operators that each is the reason for."""

    framework: Literal["tensorflow"]
    excluded: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class TensorflowItem:
    """One operator's entry, checked, beside what TensorFlow says of the operator."""

    operator: str
    entry: TensorflowEntry
    family: str
    source: str
    raw: RawOperator

    @property
    def dtype_attribute(self) -> str | None:
        """The type attribute that a case's element type means; None where the operator has one type only."""
        return None if self.entry.dtype == "none" else self.entry.dtype or self.raw.main_type

    @property
    def elements(self) -> tuple[str, ...]:
        """Element types that cases have."""
        attribute = self.dtype_attribute
        if attribute is None:
            return (self._fixed_element(),)
        allowed = self.raw.types[attribute]
        chosen = self.entry.types.get(attribute)
        return allowed if chosen is None else tuple(element for element in allowed if element in chosen)

    @property
    def all_elements(self) -> tuple[str, ...]:
        """Element types that the operator's definition allows, those too that no case has."""
        attribute = self.dtype_attribute
        return self.elements if attribute is None else self.raw.types[attribute]

    @property
    def computed_elements(self) -> frozenset[str]:
        """Element types for which TensorFlow has a kernel on the CPU: only there it can say what is right."""
        attribute = self.dtype_attribute
        return frozenset(self.elements if attribute is None else self.raw.kernels[attribute])

    def _fixed_element(self) -> str:
        arguments = (*self.raw.inputs, *self.raw.outputs)
        types = (*self.entry.extra.values(), *(argument.type for argument in arguments))
        return next((name for name in types if name in GROUP_OF), "float32")

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance class for an element type. Raises ManifestError where the entry names none."""
        classes = self.entry.tolerance
        text = classes.get(dtype) or classes.get(GROUP_OF.get(dtype, "")) or classes.get("all")
        if text is None:
            raise ManifestError(f"{self.source}: {self.operator}.tolerance: found no class for {dtype}, expected one")
        return parse_tolerance(text)


@cache
def load_tensorflow_manifests(folder: Path = FOLDER) -> tuple[TensorflowItem, ...]:
    """Every operator's entry, by file name and in the order of the files. Raises ManifestError with one line."""
    found: list[TensorflowItem] = []
    for path in _manifests(folder):
        file = _checked(TensorflowFile, _read(path), str(path))
        for operator, body in file.operators.items():
            where = f"{path}: operators.{operator}"
            entry = _checked(TensorflowEntry, {**file.defaults, **(body or {})}, where)
            item = TensorflowItem(operator, entry, file.family, str(path), raw_operator(operator))
            _check(item, where)
            found.append(item)
    _check_unique(folder, [item.operator for item in found])
    return tuple(found)


def named_operators(folder: Path = FOLDER) -> tuple[str, ...]:
    """Operators that manifests have, whether or not their definition is known here."""
    files = [_checked(TensorflowFile, _read(path), str(path)) for path in _manifests(folder)]
    return tuple(operator for file in files for operator in file.operators)


def tensorflow_item(operator: str) -> TensorflowItem:
    """The entry of that name. Raises ManifestError."""
    found = _by_name().get(operator)
    if found is None:
        raise ManifestError(f"{FOLDER}: found no operator '{operator}', expected one of the manifests' names")
    return found


@cache
def _by_name() -> Mapping[str, TensorflowItem]:
    return {item.operator: item for item in load_tensorflow_manifests()}


@cache
def excluded_operators(folder: Path = FOLDER) -> Mapping[str, str]:
    """Raw operators out of scope -> the reason. Raises ManifestError with one line."""
    path = folder / SCOPE
    scope = _checked(ScopeFile, _read(path), str(path))
    _check_unique(path, [operator for operators in scope.excluded.values() for operator in operators])
    return {operator: reason for reason, operators in scope.excluded.items() for operator in operators}


def tensorflow_cells() -> tuple[Cell, ...]:
    """What there is to be covered: each operator in scope with each type of its definition that the IR has."""
    return tuple(
        Cell("tensorflow", "raw_ops", item.operator, 0, element, newest=True)
        for item in sorted(load_tensorflow_manifests(), key=lambda item: item.operator)
        for element in item.all_elements
    )


def _manifests(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.yaml")) if path.name != SCOPE]


def _read(path: Path) -> object:
    return yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 - a safe loader, in C where there is one


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _checked(kind: type[Any], data: object, where: str) -> Any:  # noqa: ANN401 - the model asked for
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{where}: {key}: {first['msg']}, found {str(first['input'])[:80]!r}") from error


def _check(item: TensorflowItem, where: str) -> None:
    """Refuse names that the operator does not have, types that are none, and types without a tolerance class."""
    entry, raw = item.entry, item.raw
    known = {argument.name for argument in raw.inputs} | set(raw.attributes) | set(entry.extra)
    rows = [row for row in entry.shapes if isinstance(row, dict)]
    used = {*entry.grid, *entry.by_value, *entry.inputs, *(name for row in (*entry.sets, *rows) for name in row)}
    unknown = sorted(used - known) if not entry.body else []
    if unknown:
        raise ManifestError(
            f"{where}: found '{unknown[0]}', expected an input or attribute: {', '.join(sorted(known))}"
        )
    for attribute, elements in entry.types.items():
        wrong = sorted(set(elements) - set(raw.types.get(attribute, ())))
        if attribute not in raw.types or wrong:
            raise ManifestError(f"{where}.types: found {attribute}: {wrong}, expected types that the operator allows")
    if entry.types and entry.no_types is None:
        raise ManifestError(f"{where}.types: found no reason, expected one in no_types")
    names = {argument.name for argument in raw.outputs}
    if not names.issuperset(entry.outputs):
        raise ManifestError(f"{where}.outputs: found {entry.outputs}, expected some of {', '.join(sorted(names))}")
    for dtype in item.elements:
        item.tolerance(dtype)


def _check_unique(where: Path, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ManifestError(f"{where}: operator '{twice}' stands there twice, expected once")
