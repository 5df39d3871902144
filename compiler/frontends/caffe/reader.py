"""Files to layers: text and binary networks, layers of both formats in one form, the phase's choice among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from compiler.errors import InvalidModel
from compiler.frontends.caffe import caffe_pb2
from compiler.frontends.caffe.text import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compiler.ir import Array

PB: Final[Any] = caffe_pb2
"""The format's messages, which protobuf makes at run time."""

_TYPES_OF_V1: Final = {
    "ABSVAL": "AbsVal", "ACCURACY": "Accuracy", "ARGMAX": "ArgMax", "BNLL": "BNLL", "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss", "CONVOLUTION": "Convolution", "DATA": "Data",
    "DECONVOLUTION": "Deconvolution", "DROPOUT": "Dropout", "DUMMY_DATA": "DummyData", "ELTWISE": "Eltwise",
    "EUCLIDEAN_LOSS": "EuclideanLoss", "EXP": "Exp", "FLATTEN": "Flatten", "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output", "HINGE_LOSS": "HingeLoss", "IM2COL": "Im2col", "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss", "INNER_PRODUCT": "InnerProduct", "LRN": "LRN", "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss", "MVN": "MVN", "POOLING": "Pooling", "POWER": "Power",
    "RELU": "ReLU", "SIGMOID": "Sigmoid", "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SILENCE": "Silence", "SLICE": "Slice", "SOFTMAX": "Softmax", "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "SPLIT": "Split", "TANH": "TanH", "THRESHOLD": "Threshold", "WINDOW_DATA": "WindowData",
}  # fmt: skip
"""The first format numbers its layer types; the second names them."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A parameter as stored. ``legacy``: with the four dims of old files, missing ones in front being 1."""

    data: Array
    legacy: bool


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, of either format. ``shared`` has the names under which its parameters are shared, in order."""

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    message: Any
    blobs: tuple[Blob, ...]
    shared: tuple[str, ...]
    line: int

    def __str__(self) -> str:
        where = f", line {self.line}" if self.line else ""
        return f"layer '{self.name}' ({self.type or 'no type'}{where})"


@dataclass(frozen=True, slots=True)
class Net:
    """A network as read: its declared inputs with their dims, and the layers that the phase has, in order."""

    name: str
    source: str
    inputs: tuple[tuple[str, tuple[int, ...] | None], ...]
    layers: tuple[Layer, ...]


def read_net(prototxt: Path | str) -> Net:
    """The network of a prototxt file, or of its text: what has a brace or a line break is no path.

    Raises InvalidModel with line and column for text that does not parse.
    """
    if not isinstance(prototxt, (str, Path)):
        found = type(prototxt).__name__
        raise InvalidModel(f"the network is of type {found}; expected a pair (prototxt, caffemodel), text or paths")
    if isinstance(prototxt, str) and ("{" in prototxt or "\n" in prototxt):
        text, source = prototxt, ""
    else:
        text, source = _text_of(Path(prototxt)), Path(prototxt).name
    message = PB.NetParameter()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidModel(f"{source or 'prototxt'}: no network: {error}") from error
    if message.layer and message.layers:
        raise InvalidModel(f"{source or 'prototxt'}: layers of both formats, 'layer' and 'layers'; expected one")
    field = "layers" if message.layers else "layer"
    lines = lines_of(text, field)
    layers = tuple(_layers(message, lines))
    return Net(message.name, source, tuple(_inputs(message, source)), layers)


def read_weights(caffemodel: Path | str | bytes | None) -> Mapping[str, tuple[Blob, ...]]:
    """The parameters of each layer that has some, by name. Raises InvalidModel for bytes that are no network."""
    if caffemodel is None:
        return {}
    if not isinstance(caffemodel, (str, Path, bytes)):
        raise InvalidModel(f"the caffemodel is of type {type(caffemodel).__name__}; expected a path, bytes or None")
    name = "caffemodel" if isinstance(caffemodel, bytes) else str(caffemodel)
    try:
        data = caffemodel if isinstance(caffemodel, bytes) else Path(caffemodel).read_bytes()
    except OSError as error:
        raise InvalidModel(f"{name}: {error.strerror or error}") from error
    message = PB.NetParameter()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidModel(f"{name}: no caffemodel of {len(data)} bytes: {error}") from error
    found: dict[str, tuple[Blob, ...]] = {}
    for layer in (*message.layer, *message.layers):
        if layer.blobs:
            found.setdefault(layer.name, _blobs(layer, f"{name}: layer '{layer.name}'"))
    if not found:
        raise InvalidModel(f"{name}: no layer with weights; expected a caffemodel")
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidModel(f"{path}: no text: {error}") from error
    except OSError as error:
        raise InvalidModel(f"{path}: {error.strerror or error}") from error


def _layers(net: Any, lines: Sequence[int]) -> Iterator[Layer]:  # noqa: ANN401 - a protobuf message
    old = bool(net.layers)
    for index, message in enumerate(net.layers if old else net.layer):
        line = lines[index] if index < len(lines) else 0
        kind = _TYPES_OF_V1.get(message.LayerType.Name(message.type), "") if old else message.type
        shared = tuple(message.param) if old else tuple(spec.name for spec in message.param)
        name = message.name or (message.top[0] if message.top else "")
        blobs = _blobs(message, f"layer '{name}'")
        layer = Layer(name, kind, tuple(message.bottom), tuple(message.top), message, blobs, shared, line)
        if not kind:
            raise InvalidModel(f"{layer}: no type; layers of the oldest format, with a 'layer' inside, are not read")
        if _is_included(layer, net.state):
            yield layer


def _is_included(layer: Layer, state: Any) -> bool:  # noqa: ANN401
    """Caffe's Net::FilterNet: any rule to include that is met, or no rule to exclude that is."""
    include, exclude = layer.message.include, layer.message.exclude
    if include and exclude:
        raise InvalidModel(f"{layer}: rules to include and to exclude; expected one kind")
    if include:
        return any(_meets(state, rule) for rule in include)
    return not any(_meets(state, rule) for rule in exclude)


def _meets(state: Any, rule: Any) -> bool:  # noqa: ANN401
    """Caffe's Net::StateMeetsRule."""
    stages = set(state.stage)
    return (
        (not rule.HasField("phase") or rule.phase == state.phase)
        and (not rule.HasField("min_level") or state.level >= rule.min_level)
        and (not rule.HasField("max_level") or state.level <= rule.max_level)
        and stages.issuperset(rule.stage)
        and stages.isdisjoint(rule.not_stage)
    )


def _inputs(net: Any, source: str) -> Iterator[tuple[str, tuple[int, ...] | None]]:  # noqa: ANN401
    where = f"{source or 'prototxt'}: "
    if net.input_dim and len(net.input_dim) != 4 * len(net.input):
        raise InvalidModel(f"{where}{len(net.input_dim)} values of input_dim; expected 4 for each of {len(net.input)}")
    if net.input_shape and len(net.input_shape) != len(net.input):
        raise InvalidModel(f"{where}{len(net.input_shape)} of input_shape; expected {len(net.input)}, one an input")
    for index, name in enumerate(net.input):
        dims: tuple[int, ...] | None = None
        if net.input_shape:
            dims = tuple(net.input_shape[index].dim)
        elif net.input_dim:
            dims = tuple(net.input_dim[4 * index : 4 * index + 4])
        yield name, dims


def _blobs(message: Any, what: str) -> tuple[Blob, ...]:  # noqa: ANN401
    return tuple(_blob(blob, f"{what}, blob {index}") for index, blob in enumerate(message.blobs))


def _blob(message: Any, what: str) -> Blob:  # noqa: ANN401
    data = np.array(message.double_data or message.data, np.float32)
    legacy = any(message.HasField(name) for name in ("num", "channels", "height", "width"))
    if legacy:
        dims = (message.num, message.channels, message.height, message.width)
    else:
        dims = tuple(message.shape.dim) if message.HasField("shape") else (data.size,)
    if any(size < 0 for size in dims) or data.size != int(np.prod(dims, dtype=np.int64)):
        raise InvalidModel(f"{what}: {data.size} values; expected as many as its shape {list(dims)} has")
    return Blob(data.reshape(dims), legacy)
