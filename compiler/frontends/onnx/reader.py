"""A file or a protobuf object to a model whose header is sound: version, operator sets, a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import onnx
from google.protobuf.message import DecodeError

from compiler.errors import InvalidModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_GREATEST: Final = 2**31 - 1
"""Versions of operator sets are small; onnx keeps them in 32 bits."""
DEFAULT_DOMAINS: Final = {"", "ai.onnx"}
"""Two spellings of the standard operators' domain."""


@dataclass(frozen=True, slots=True)
class Source:
    """A read model. ``folder`` holds its external data; ``opsets`` is domain -> version; ``name`` is for locations."""

    model: onnx.ModelProto
    folder: Path | None
    opsets: Mapping[str, int]
    name: str


def canonical_domain(domain: str) -> str:
    """The empty string for the standard domain, however it is spelled."""
    return "" if domain in DEFAULT_DOMAINS else domain


def read_model(model: onnx.ModelProto | Path | str, folder: Path | None = None) -> Source:
    """Read a model file, or take a model object.

    ``folder`` holds the external data of a model object. Raises InvalidModel for a file that is missing, empty,
    truncated or something else, and for versions that the installed onnx package does not know.
    """
    name = ""
    if not isinstance(model, onnx.ModelProto):
        path = Path(model)
        name, folder, model = path.name, path.parent, _parse(path)
    shown = f"model '{name}'" if name else "the model"
    if model.ir_version <= 0 or not model.HasField("graph"):
        missing = "graph" if model.ir_version > 0 else "IR version"
        raise InvalidModel(f"{shown} has no {missing}: it is no ONNX model, or a truncated one")
    if not model.graph.output:
        raise InvalidModel(f"{shown} has no output; expected at least one")
    if model.ir_version > onnx.IR_VERSION:
        raise InvalidModel(f"{shown} has IR version {model.ir_version}; expected 1 to {onnx.IR_VERSION}")
    return Source(model, folder, _model_opsets(model, shown), name)


def _parse(path: Path) -> onnx.ModelProto:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidModel(f"model '{path}' cannot be read: {error.strerror or error}") from error
    if not data:
        raise InvalidModel(f"model '{path}' is empty")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise InvalidModel(f"model '{path}' is no ONNX protobuf, or a truncated one: {error}") from error
    return model


def _model_opsets(model: onnx.ModelProto, shown: str) -> dict[str, int]:
    if not model.opset_import and model.ir_version < 3:
        return {"": 1}
    return read_opsets(model.opset_import, shown)


def require_text(what: str, texts: Iterable[object]) -> None:
    """Check names: the protobuf library gives bytes where one is not UTF-8. Raises InvalidModel."""
    for text in texts:
        if not isinstance(text, str):
            raise InvalidModel(f"{what} has a name that is not UTF-8: {text!r}")


@cache
def _newest(domain: str) -> int:
    """The newest operator set of a domain that onnx has schemas for; of others nobody knows a limit."""
    if not domain:
        return int(onnx.defs.onnx_opset_version())
    found = [int(one.since_version) for one in onnx.defs.get_all_schemas_with_history() if one.domain == domain]
    return max(found, default=_GREATEST)


def read_opsets(imports: Iterable[onnx.OperatorSetIdProto], shown: str) -> dict[str, int]:
    """Domain -> version. Raises InvalidModel for a domain given twice or a version that onnx does not know."""
    opsets: dict[str, int] = {}
    for entry in imports:
        require_text(shown, [entry.domain])
        domain = canonical_domain(entry.domain)
        if domain in opsets and opsets[domain] != entry.version:
            raise InvalidModel(f"{shown} imports operator set '{domain or 'ai.onnx'}' twice")
        limit = _newest(domain)
        if not 1 <= entry.version <= limit:
            name = f"{domain or 'ai.onnx'} {entry.version}"
            raise InvalidModel(f"{shown} imports operator set {name}; expected 1 to {limit}")
        opsets[domain] = int(entry.version)
    return opsets
