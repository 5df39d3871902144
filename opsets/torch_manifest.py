"""Manifests of PyTorch operators: what is tried of each, as a module's ``forward`` over typed inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsets.elements import GROUP_OF
from opsets.errors import ManifestError
from opsets.manifest import DataClass, Draw, Ruling, Tolerances
from opsets.tolerance import Tolerance, parse_tolerance

FOLDER: Final = Path(__file__).parent / "torch"
CORE: Final = Path(__file__).parent / "torch_core.yaml"

_FLOATS: Final = ("float32", "float16", "bfloat16", "float64")
_INTEGERS: Final = ("int64", "int32", "int16", "int8", "uint8")
TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "float": _FLOATS,
    "wide": ("float32", "float64"),
    "int": _INTEGERS,
    "real": (*_FLOATS, *_INTEGERS),
    "all": (*_FLOATS, *_INTEGERS, "bool"),
    "bits": (*_INTEGERS, "bool"),
    "bool": ("bool",),
    "float32": ("float32",),
    "index": ("int64", "int32"),
}
"""Sets of element types that an entry may name."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TorchEntry(_Strict):
    """What is tried of one operator."""

    forward: str | list[str] = Field(description="an expression over the inputs, or several of them; a Jinja template")
    init: str = Field(default="", description="statements of the module's __init__; weights take the case's type")
    inputs: dict[str, Draw] = Field(default={"x": Draw()})
    types: str = Field(default="float", description="the set of element types")
    shapes: list[list[list[int] | None]] = Field(default=[[[3, 4]]])
    grid: dict[str, list[Any]] = Field(default={})
    sets: list[dict[str, Any]] = Field(default=[], description="values that only make sense together")
    data: list[DataClass] = Field(default=["random"])
    tolerance: Tolerances = Field(default={}, description="class by element name or group, or one for all")
    ruling: Ruling | None = Field(default=None, description="which oracle is right where they differ, and why")
    cap: int = Field(default=24, description="greatest number of cases")
    covers: list[str] = Field(default=[], description="ATen operators beside the one that the entry is named after")
    mode: Literal["static", "symbolic"] = "static"


class TorchFile(_Strict):
    """One manifest file: a family of operators."""

    framework: Literal["torch"]
    family: str
    defaults: dict[str, Any] = Field(default={})
    operators: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TorchItem:
    """One operator's entry, checked."""

    operator: str
    entry: TorchEntry
    source: str

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance class for an element type. Raises ManifestError where the entry names none."""
        classes = self.entry.tolerance
        text = classes.get(dtype) or classes.get(GROUP_OF.get(dtype, "")) or classes.get("all")
        if text is None:
            raise ManifestError(f"{self.source}: {self.operator}.tolerance: found no class for {dtype}, expected one")
        return parse_tolerance(text)


@cache
def load_torch_manifests(folder: Path = FOLDER) -> tuple[TorchItem, ...]:
    """Every operator's entry, by file name and in the order of the files. Raises ManifestError with one line."""
    found: list[TorchItem] = []
    for path in sorted(folder.glob("*.yaml")):
        file = _checked(TorchFile, yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
        for operator, body in file.operators.items():
            entry = _checked(TorchEntry, {**file.defaults, **body}, f"{path}: operators.{operator}")
            if entry.types not in TYPES:
                raise ManifestError(
                    f"{path}: {operator}.types: found '{entry.types}', expected one of {', '.join(TYPES)}"
                )
            item = TorchItem(operator, entry, str(path))
            for dtype in TYPES[entry.types]:
                item.tolerance(dtype)
            found.append(item)
    names = [item.operator for item in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ManifestError(f"{folder}: operator '{twice}' has two entries, expected one")
    return tuple(found)


def torch_item(operator: str) -> TorchItem:
    """The entry of that name. Raises ManifestError."""
    for item in load_torch_manifests():
        if item.operator == operator:
            return item
    raise ManifestError(f"{FOLDER}: found no operator '{operator}', expected one of the manifests' names")


def _checked(kind: type[Any], data: object, where: str) -> Any:  # noqa: ANN401 - the model asked for
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{where}: {key}: {first['msg']}, found {str(first['input'])[:80]!r}") from error


def covered_operators() -> frozenset[str]:
    """Names of the ATen operators that some entry is about."""
    names = {item.operator.partition("-")[0] for item in load_torch_manifests()}
    return frozenset(names.union(*(item.entry.covers for item in load_torch_manifests())))


@cache
def core_overloads(path: Path = CORE) -> tuple[str, ...]:
    """The ATen overloads that torch tags as core, such as ``add.Tensor``, sorted; from a file."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(sorted(f"{name}.{one}" for name, overloads in data["overloads"].items() for one in overloads))
