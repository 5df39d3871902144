"""Networks to graphs: inputs, then layer by layer in the order of the text, each blob name standing for its last value.

That order makes in-place layers and blobs with several readers (Caffe's implicit Split) plain values: who reads a name
before a layer changes it in place has the old value, who reads it after has the new one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.caffe import layers as _layers  # noqa: F401 - fills the table of converters
from compiler.frontends.caffe.reader import Blob, Layer, Net, read_net, read_weights
from compiler.frontends.caffe.site import Site, converter_for
from compiler.ir import F32, UNKNOWN_LOCATION, Builder, Graph, Value, at, tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_INPUT = "Input"
_LARGEST_BLOB = 2**31 - 1
_OUT_OF_SCOPE = {
    **dict.fromkeys(
        ("Data", "ImageData", "HDF5Data", "MemoryData", "WindowData", "AnnotatedData", "VideoData"),
        "it reads data sets: put a layer of type Input in its place, or limit it to phase TRAIN",
    ),
    **dict.fromkeys(("HDF5Output", "DetectionEvaluate"), "it writes or scores results and computes none"),
    **dict.fromkeys(
        ("Accuracy", "ContrastiveLoss", "EuclideanLoss", "HingeLoss", "InfogainLoss", "MultiBoxLoss",
         "MultinomialLogisticLoss", "SigmoidCrossEntropyLoss", "SoftmaxWithLoss"),
        "it belongs to training: leave it out, or limit it to phase TRAIN",
    ),
    "Python": "its meaning is Python code outside of the model",
}  # fmt: skip
"""Layer types that are known and not converted, and why."""


def import_caffe(prototxt: Path | str, caffemodel: Path | str | bytes | None = None) -> Graph:
    """The graph of a Caffe network in phase TEST: float32, sizes as the prototxt has them.

    ``prototxt`` is a path or the text itself; ``caffemodel`` a path or the bytes, None for a network without weights.
    Inputs come in the order of the text; outputs are the blobs that no layer reads, by name in alphabetical order, as
    Caffe's Net has them.

    Raises InvalidModel for files that do not parse, layers that do not fit together, weights that are missing or of
    another shape; UnsupportedOperator for layers and forms of them without a conversion.
    """
    return _Importer(read_net(prototxt), read_weights(caffemodel)).graph()


@dataclass(slots=True)
class _Importer:
    net: Net
    weights: Mapping[str, tuple[Blob, ...]]
    values: dict[str, Value] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    shared: dict[str, Blob] = field(default_factory=dict)

    def graph(self) -> Graph:
        graph = Graph(self.net.name or "main")
        builder = Builder(graph)
        for name, dims in self.net.inputs:
            self._input(graph, name, dims, f"input '{name}'")
        for layer in self.net.layers:
            if layer.type == _INPUT:
                self._input_layer(graph, layer)
            else:
                self._layer(layer, builder)
        if not self.unread:
            raise InvalidModel(f"network '{self.net.name}': no layer makes an output")
        builder.location = UNKNOWN_LOCATION
        names = sorted(self.unread)
        builder.output(*(self.values[name] for name in names))
        graph.output_names = tuple(names)
        return graph

    def _input(self, graph: Graph, name: str, dims: Sequence[int] | None, what: str) -> None:
        if not dims or any(size < 1 for size in dims):
            shown = "no shape" if not dims else f"shape {list(dims)}"
            raise InvalidModel(f"{what}: {shown}; expected sizes of at least 1, which everything after it builds on")
        if math.prod(dims) > _LARGEST_BLOB:
            raise InvalidModel(f"{what}: shape {list(dims)}; expected at most {_LARGEST_BLOB} values, as in Caffe")
        if name in self.values:
            raise InvalidModel(f"{what}: blob '{name}' is made before by {self.made_by[name]}")
        self.values[name] = graph.add_input(tensor(F32, tuple(int(size) for size in dims)), name)
        self.made_by[name] = what
        self.unread.add(name)

    def _input_layer(self, graph: Graph, layer: Layer) -> None:
        shapes = [tuple(shape.dim) for shape in layer.message.input_param.shape]
        if len(shapes) not in {1, len(layer.tops)}:
            raise InvalidModel(f"{layer}: {len(shapes)} shapes; expected 1 or one for each of {len(layer.tops)} tops")
        for index, top in enumerate(layer.tops):
            self._input(graph, top, shapes[index % len(shapes)], str(layer))

    def _layer(self, layer: Layer, builder: Builder) -> None:
        converter = converter_for(layer.type)
        if converter is None:
            reason = _OUT_OF_SCOPE.get(layer.type, "it has no conversion")
            node = f"{layer.name}, line {layer.line}" if layer.line else layer.name
            raise UnsupportedOperator("caffe", layer.type, None, reason, node=node)
        inputs = tuple(self._bottom(layer, name) for name in layer.bottoms)
        self._check_bottoms(layer, converter.least, converter.greatest)
        where = f"{self.net.source}:{layer.line}" if self.net.source else f"line {layer.line}"
        builder.location = at(layer.name, layer.type, where if layer.line else self.net.source)
        try:
            converted = converter.convert(Site(layer, inputs, self._blobs(layer), builder))
        except MemoryError as error:
            raise InvalidModel(f"{layer}: its sizes are beyond the memory of this machine") from error
        results = (converted,) if isinstance(converted, Value) else tuple(converted)
        if len(layer.tops) != len(results):
            raise InvalidModel(f"{layer}: {len(layer.tops)} tops; expected {len(results)}")
        self.unread.difference_update(layer.bottoms)
        for index, (top, value) in enumerate(zip(layer.tops, results, strict=True)):
            self._top(layer, index, top, value)

    @staticmethod
    def _check_bottoms(layer: Layer, least: int, greatest: int | None) -> None:
        found = len(layer.bottoms)
        if found < least or (greatest is not None and found > greatest):
            wanted = "at least" if greatest is None else "exactly" if least == greatest else f"{least} to"
            raise InvalidModel(f"{layer}: {found} bottoms; expected {wanted} {least if greatest is None else greatest}")

    def _top(self, layer: Layer, index: int, top: str, value: Value) -> None:
        in_place = index < len(layer.bottoms) and layer.bottoms[index] == top
        if top in layer.tops[:index]:
            raise InvalidModel(f"{layer}: top '{top}' is named twice")
        if top in self.values and not in_place:
            raise InvalidModel(f"{layer}: top '{top}' is made before by {self.made_by[top]}")
        if value.op is not None and not value.name and not value.op.definition.holds_constant:
            value.name = top
        self.values[top] = value
        self.made_by[top] = str(layer)
        self.unread.add(top)

    def _bottom(self, layer: Layer, name: str) -> Value:
        found = self.values.get(name)
        if found is not None:
            return found
        later = next((other for other in self.net.layers if name in other.tops and other is not layer), None)
        if name in layer.tops and later is None:
            raise InvalidModel(f"{layer}: bottom '{name}' is a cycle: only the layer itself makes it")
        if later is None:
            known = ", ".join(sorted(self.values)) or "none"
            raise InvalidModel(f"{layer}: bottom '{name}' is unknown; blobs before it: {known}")
        cycle = self._way(later, layer)
        if cycle:
            shown = " -> ".join(f"'{step.name}'" for step in (layer, *reversed(cycle), layer))
            raise InvalidModel(f"{layer}: bottom '{name}' closes a cycle of layers: {shown}")
        raise InvalidModel(f"{layer}: bottom '{name}' is made only further down, by {later}")

    def _way(self, start: Layer, goal: Layer) -> list[Layer]:
        """Layers from ``start`` back to one that reads a top of ``goal``; empty where none does."""
        makers: dict[str, Layer] = {}
        for layer in self.net.layers:
            for top in layer.tops:
                makers.setdefault(top, layer)
        ways, seen = [[start]], {start.name}
        for way in ways:
            for bottom in way[-1].bottoms:
                maker = makers.get(bottom)
                if maker is goal:
                    return way
                if maker is not None and maker.name not in seen:
                    seen.add(maker.name)
                    ways.append([*way, maker])
        return []

    def _blobs(self, layer: Layer) -> tuple[Blob, ...]:
        """The layer's parameters: by its name in the caffemodel, else in the text, else those shared by name."""
        found = self.weights.get(layer.name) or layer.blobs
        if not found:
            shared = [self.shared[name] for name in layer.shared if name in self.shared]
            return tuple(shared) if len(shared) == len(layer.shared) else ()
        for name, blob in zip(layer.shared, found, strict=False):
            if name:
                self.shared.setdefault(name, blob)
        return found
