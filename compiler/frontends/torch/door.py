"""The ways in: an exported program, a module with example inputs, a .pt2 file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidModel
from compiler.frontends.torch.importer import import_exported_program, signature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Graph, Type

_HOW: Final = "export the module with `torch.export.save(torch.export.export(module, example_inputs), 'model.pt2')`"


def import_torch(
    model: Any,  # noqa: ANN401 - a module, an exported program, a path
    inputs: Sequence[Any] | None = None,
    types: Mapping[str, Type] | None = None,
) -> Graph:
    """The graph of a torch model. ``inputs`` are example inputs (tensors or numpy arrays) for a module.

    Raises InvalidModel for what cannot be read or exported, and as :func:`import_exported_program`.
    """
    return import_exported_program(exported(model, inputs), types=types)


def import_signature(program: Any) -> Graph:  # noqa: ANN401 - an ExportedProgram
    """A graph with the program's inputs and output names and no operations: for one that sizes of inputs decide."""
    return signature(program)


def exported(model: Any, inputs: Sequence[Any] | None = None) -> Any:  # noqa: ANN401 - an ExportedProgram
    """The exported program of a torch model. Raises InvalidModel with one line for what torch cannot export."""
    try:
        import torch
    except ImportError as error:
        raise InvalidModel(
            f"reading {model} needs torch, which is not installed: pip install 'opatlas[torch]'"
        ) from error
    if isinstance(model, (str, Path)):
        return load_program(Path(model))
    if isinstance(model, torch.export.ExportedProgram):
        return model
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise InvalidModel(f"a TorchScript {type(model).__name__} cannot be read; {_HOW}")
    if inputs is None:
        raise InvalidModel(
            f"module {type(model).__name__} comes without inputs; expected example inputs, by which it is exported"
        )
    return _export(model, tuple(tensor_of(item) for item in inputs))


def tensor_of(item: Any) -> Any:  # noqa: ANN401 - a torch.Tensor
    """An array as a tensor; what is no array as it is."""
    import numpy as np
    import torch

    if isinstance(item, np.ndarray):
        if item.dtype.name == "bfloat16":
            return torch.from_numpy(item.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(item)
    return item


def _export(module: Any, inputs: tuple[Any, ...]) -> Any:  # noqa: ANN401
    import torch

    try:
        with torch.no_grad():
            return torch.export.export(module, inputs, strict=False)
    except Exception as error:
        # Whatever a user's forward raises comes out here, and torch has many classes for a graph that breaks.
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
        raise InvalidModel(
            f"module {type(module).__name__} cannot be exported by torch.export: {type(error).__name__}: {first}"
        ) from error


def load_program(path: Path) -> Any:  # noqa: ANN401 - an ExportedProgram
    """The exported program of a file. Raises InvalidModel, with a word on how to export where the file is another."""
    import zipfile

    import torch

    if not path.is_file():
        raise InvalidModel(f"file {path} does not exist")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if any(name.endswith("constants.pkl") for name in names) and any("/code/" in name for name in names):
            raise InvalidModel(f"file {path} is TorchScript, which cannot be read; {_HOW}")
        if any(name.endswith("data.pkl") for name in names) and not any(".json" in name for name in names):
            raise InvalidModel(f"file {path} holds weights alone and no program; {_HOW}")
    try:
        return torch.export.load(path)
    except Exception as error:
        # torch raises whatever its readers of zip, JSON and pickle do.
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
        raise InvalidModel(f"file {path} is no exported program: {type(error).__name__}: {first}") from error
