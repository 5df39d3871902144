"""Which framework a model comes from, told without importing any of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

TORCH_SUFFIXES: Final = (".pt2", ".pt", ".pth", ".ptc", ".ts")
"""Endings of the files that torch writes."""


def is_torch(model: Any) -> bool:  # noqa: ANN401 - whatever a user passes
    """Whether a model is torch's: a module, an exported program, a scripted module, or the path of a file of theirs."""
    if isinstance(model, (str, Path)):
        return Path(model).suffix in TORCH_SUFFIXES
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(model, (torch.nn.Module, torch.export.ExportedProgram, torch.jit.ScriptFunction))


CAFFE_SUFFIX: Final = ".prototxt"
"""Ending of the text of a Caffe network; its weights have the same name and the ending .caffemodel."""


def caffe_files(model: Any) -> tuple[Any, Any] | None:  # noqa: ANN401
    """The network and the weights of a Caffe model, a pair or the path of a prototxt; None for other models."""
    if isinstance(model, tuple):
        return (model[0], model[1]) if len(model) == 2 else (model, None)
    if not isinstance(model, (str, Path)) or Path(model).suffix != CAFFE_SUFFIX:
        return None
    weights = Path(model).with_suffix(".caffemodel")
    return Path(model), weights if weights.is_file() else None


_TENSORFLOW_SUFFIXES: Final = (".keras", ".pb")
_TENSORFLOW_MODULES: Final = ("tensorflow", "keras", "tf_keras")


def is_tensorflow(model: Any) -> bool:  # noqa: ANN401
    """Whether a model is TensorFlow's: its or Keras's own object, a read program, or the path of what they write.

    Folders are taken for SavedModels: no other framework here writes folders.
    """
    if isinstance(model, (str, Path)):
        return Path(model).suffix in _TENSORFLOW_SUFFIXES or Path(model).is_dir()
    program = sys.modules.get("compiler.frontends.tensorflow.program")
    if program is not None and isinstance(model, program.Program):
        return True
    if not any(name in sys.modules for name in _TENSORFLOW_MODULES):
        return False
    return any(kind.__module__.partition(".")[0] in _TENSORFLOW_MODULES for kind in type(model).__mro__)
