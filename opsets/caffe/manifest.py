"""The form of a manifest of Caffe layers.

Caffe has no schema of operators with versions and types, as ONNX has: all blobs are float32, and a layer's options are
the fields of one protobuf message. So an entry names that message and gives values of its fields, shapes of bottoms,
and shapes of weights by expression; the rest is as in the manifests of ONNX.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from opsets.errors import ManifestError
from opsets.expressions import parse
from opsets.tolerance import parse_tolerance

FOLDER = Path(__file__).parent
_SCOPE = "scope.yaml"
Value = bool | int | float | str | list[int] | list[float] | list[str] | None
"""A value of a field: text is an enum's name, or with braces a message. None: the field is left out."""


def _expression(text: object) -> object:
    parse(str(text))
    return text


def _tolerance(text: object) -> object:
    if text != "whole_graph":
        parse_tolerance(str(text))
    return text


Expression = Annotated[str, BeforeValidator(_expression)]
ToleranceName = Annotated[str, BeforeValidator(_tolerance)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Draw(_Strict):
    """How a bottom or a weight is filled; without any key normal numbers, or the case's data class for bottom 0."""

    draw: Literal["class", "uniform", "integers", "distinct", "mask", "repeat", "permutation"] = "class"
    range: tuple[Any, Any] | None = Field(default=None, strict=False, description="bounds, numbers or expressions")
    values: list[float] | None = Field(default=None, description="repeat: these, from the start again when used up")


class Ruling(_Strict):
    """Which oracle has Caffe's meaning where they differ, and by which rule."""

    follows: Literal["native", "definition", "onnxruntime"]
    rule: str
    where: Expression | None = None


class Layer(_Strict):
    """What is tried of one layer type."""

    parameters: str | None = Field(default=None, description="field of the layer that holds its options")
    v1: str | None = Field(default=None, description="the type's name in the first format, which one case is tried in")
    rows: list[dict[str, Any]] = Field(description="`bottoms`: their shapes; other keys: fields that go with them")
    grid: dict[str, list[Value]] = Field(default={}, description="fields whose values are combined with each other")
    defaults: dict[str, Value] = Field(default={}, description="what fields left out are, for expressions")
    where: list[Expression] = Field(default=[], description="what must hold of a case")
    blobs: list[Expression] = Field(default=[], description="shapes of weights; one that gives None is left out")
    inputs: dict[int, Draw] = Field(default={}, description="draws of bottoms, by position")
    weights: dict[int, Draw] = Field(default={}, description="draws of weights, by position")
    data: list[Literal["random", "mixed", "zeros", "ties", "special", "large"]] = Field(default=["random"])
    tops: Expression = Field(default="1", description="number of tops")
    tolerance: ToleranceName
    ruling: list[Ruling] = Field(default=[])


class LayerFile(_Strict):
    """One manifest file: a family of layers."""

    framework: Literal["caffe"]
    family: str
    layers: dict[str, Layer]


@dataclass(frozen=True, slots=True)
class _Scope:
    layers: tuple[str, ...]
    excluded: dict[str, str]


@cache
def load_layers() -> dict[str, Layer]:
    """All layer types that a manifest has, by file and as the files list them.

    :raises ManifestError: one line for the first thing that is wrong.
    """
    found: dict[str, Layer] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name == _SCOPE:
            continue
        for name, layer in _read(path).layers.items():
            if name in found:
                raise ManifestError(f"{path}: layers.{name}: found twice, expected it once")
            found[name] = layer
    return found


def _read(path: Path) -> LayerFile:
    try:
        return LayerFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{path}: {where}: found {first['input']!r:.80}, {first['msg']}") from error
    except (yaml.YAMLError, OSError) as error:
        raise ManifestError(f"{path}: found no valid YAML: {str(error).splitlines()[0]}") from error


@cache
def scope() -> _Scope:
    """The denominator: layer types that inference has, and those left out with a reason."""
    data = yaml.safe_load((FOLDER / _SCOPE).read_text(encoding="utf-8"))
    return _Scope(tuple(data["layers"]), dict(data["excluded"]))


def known_layers() -> tuple[str, ...]:
    """Names of all layer types in scope, sorted."""
    return tuple(sorted(scope().layers))
