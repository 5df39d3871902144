"""Manifests of Keras 3: its layers with their options, and the networks of keras.applications."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsets.errors import ManifestError

FOLDER: Final = Path(__file__).parent / "keras"
KINDS: Final = ("layers", "applications")
"""Modules of Keras, and names of the files about them."""

KerasType = Literal["float32", "float16", "bfloat16"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KerasEntry(_Strict):
    """What is tried of one layer in one way of calling it."""

    inputs: list[list[int]] = Field(description="shapes of x, y, z; the first dim is the batch")
    options: list[str] = Field(default=[], description="expressions for the layer; a network has the one of its name")
    call: str = Field(default="", description="how it is called; layer(x) without it")
    before: str = Field(default="", description="statement between making the layer and calling it")
    types: list[KerasType] = Field(default=["float32"])
    integers: int | None = Field(default=None, description="inputs are whole numbers below it")
    tolerance: str = Field(default="whole_graph", description="class, where TensorFlow has no float64 kernel for it")
    even: bool = Field(default=False, description="the last dim is made even: for layers that halve it")


class KerasFile(_Strict):
    """One manifest file. A name may have an end of its own behind a hyphen: another way of calling the layer."""

    framework: Literal["tensorflow"]
    excluded: dict[str, list[str]]
    layers: dict[str, KerasEntry]


@cache
def load_keras_manifest(kind: str, folder: Path = FOLDER) -> KerasFile:
    """The manifest of the module ``keras.<kind>``. Raises ManifestError with one line."""
    path = folder / f"{kind}.yaml"
    try:
        return KerasFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{path}: {key}: {first['msg']}, found {str(first['input'])[:80]!r}") from error


def keras_names(kind: str) -> frozenset[str]:
    """Names of the layers or networks that have an entry."""
    return frozenset(name.partition("-")[0] for name in load_keras_manifest(kind).layers)


def excluded_names(kind: str) -> Mapping[str, str]:
    """Names without an entry -> the reason."""
    excluded = load_keras_manifest(kind).excluded
    return {name: reason for reason, names in excluded.items() for name in names}
