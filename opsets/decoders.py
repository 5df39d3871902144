"""Sizes of decoders: published ones by name, others from a YAML file of the same keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from opsets.errors import ManifestError

FILE: Final = Path(__file__).with_name("decoders.yaml")


class Decoder(BaseModel):
    """A decoder of the Llama family: what its layers are made of, in numbers of elements."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layers: PositiveInt
    width: PositiveInt
    heads: PositiveInt
    groups: PositiveInt
    head: PositiveInt
    inner: PositiveInt
    vocabulary: PositiveInt

    @property
    def layer_weights(self) -> int:
        """Elements of the weights of one layer: projections, the gated MLP, two norms."""
        attention = self.width * self.head * (2 * self.heads + 2 * self.groups)
        return attention + 3 * self.width * self.inner + 2 * self.width

    @property
    def weights(self) -> int:
        """Elements of all weights: layers, the table of tokens, the head and its norm."""
        return self.layers * self.layer_weights + 2 * self.vocabulary * self.width + self.width

    def cache(self, length: int) -> int:
        """Elements of keys and values of one sequence of this length."""
        return 2 * self.layers * self.groups * self.head * length


def decoder_names() -> tuple[str, ...]:
    """Names of the published ones."""
    return tuple(_read(FILE))


def load_decoder(source: str) -> Decoder:
    """The decoder of that name, or of that file. Raises ManifestError."""
    known = _read(FILE)
    if source in known:
        return _checked(known[source], f"{FILE.name}: {source}")
    path = Path(source)
    if not path.exists():
        raise ManifestError(f"decoder '{source}' is unknown; expected a YAML file or one of {', '.join(known)}")
    return _checked(_read(path), source)


def _read(path: Path) -> Any:  # noqa: ANN401 - what YAML holds
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, IsADirectoryError) as error:
        raise ManifestError(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error


def _checked(data: object, where: str) -> Decoder:
    try:
        return Decoder.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the file"
        raise ManifestError(f"{where}: {key}: {first['msg']}, found {str(first['input'])[:60]!r}") from error
