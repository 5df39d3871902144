"""Manifests of blocks: pieces of today's models, each defined once in the block language for every framework.

A definition has inputs and weights with sizes by name, a body, and configurations that say what the names are. The
language, and what it is rendered to, is in generators/blocks. `phrases.yaml` holds the spellings of composites.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsets.errors import ManifestError

FOLDER: Final = Path(__file__).parent / "blocks"
PHRASES: Final = "phrases.yaml"
DTYPES: Final = ("float32", "float16", "bfloat16")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorEntry(_Strict):
    """An input or a weight: sizes by name or expression, its element type, and what values it takes."""

    shape: list[int | str]
    type: Literal["T", "int64", "int32", "uint8", "int8", "bool"] = Field(
        default="T", description="T: the case's float type"
    )
    range: tuple[float | str, float | str] | None = Field(
        default=None, description="uniform between these; floats without it are normal"
    )
    scale: float | None = Field(default=None, description="standard deviation; weights without it: 1 / sqrt(fan-in)")


class BlockEntry(_Strict):
    """One block."""

    doc: str
    inputs: dict[str, TensorEntry]
    weights: dict[str, TensorEntry] = Field(default={})
    body: str = Field(description="the definition, in the block language")
    configs: dict[str, dict[str, Any]] = Field(description="sizes by name of configuration, small ones")
    real: dict[str, dict[str, Any]] = Field(
        default={}, description="sizes of published models: timing only, without data"
    )
    becomes: dict[str, int] = Field(
        default={}, description="composites that the canonical graph has at least, in every spelling"
    )
    never: list[str] = Field(default=[], description="composites that must not be seen in it: a look-alike")
    dtypes: list[str] = Field(default=list(DTYPES))
    frameworks: list[str] = Field(default=["onnx", "torch", "tensorflow"])


class PhraseEntry(_Strict):
    """A composite's spellings: a signature as Python writes it, and a body each."""

    signature: str
    spellings: dict[str, str]


class _File(_Strict):
    family: str
    blocks: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Block:
    """One block's entry, checked."""

    name: str
    family: str
    entry: BlockEntry
    source: str


@cache
def load_blocks(folder: Path = FOLDER) -> tuple[Block, ...]:
    """Every block, by file name and in the order of the files. Raises ManifestError with one line."""
    found: list[Block] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name == PHRASES:
            continue
        file = _checked(_File, _read(path), str(path))
        for name, body in file.blocks.items():
            where = f"{path}: blocks.{name}"
            found.append(Block(name, file.family, _checked(BlockEntry, _with_shapes(body), where), str(path)))
    names = [block.name for block in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ManifestError(f"{folder}: block '{twice}' has two entries, expected one")
    return tuple(found)


def find_block(name: str) -> Block:
    """The block of that name. Raises ManifestError."""
    for block in load_blocks():
        if block.name == name:
            return block
    raise ManifestError(f"{FOLDER}: found no block '{name}', expected one of the manifests' names")


@cache
def load_phrases(path: Path = FOLDER / PHRASES) -> dict[str, PhraseEntry]:
    """Every phrase by name. Raises ManifestError with one line."""
    return {name: _checked(PhraseEntry, body, f"{path}: {name}") for name, body in _read(path).items()}


def _with_shapes(body: dict[str, Any]) -> dict[str, Any]:
    """A tensor that is a list of sizes and nothing else may be written as that."""
    tensors = {
        key: {name: {"shape": one} if isinstance(one, list) else one for name, one in body[key].items()}
        for key in ("inputs", "weights")
        if isinstance(body.get(key), dict)
    }
    return {**body, **tensors}


def _read(path: Path) -> Any:  # noqa: ANN401 - what YAML holds
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ManifestError(f"{path}: {' '.join(str(error).split())}") from error


def _checked(kind: type[Any], data: object, where: str) -> Any:  # noqa: ANN401 - the model asked for
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{where}: {key}: {first['msg']}, found {str(first['input'])[:80]!r}") from error
