"""Small graphs in which operators meet: what passes, fusion and memory plans do with neighbours. From graphs.yaml."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx.parser
import yaml
from onnx import GraphProto, ModelProto, TypeProto

from compiler.onnx_types import numpy_type
from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output

_FILE = Path(__file__).with_name("graphs.yaml")
_NAMES = {"float": "float32", "double": "float64"}
_CODES = {"float": "1", "int32": "6"}
_ROUNDED_STEPS = "onnxruntime: every operator rounds to the type of its result, as the model says"
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0)


class Graphs:
    """Cases by name, element type and data class."""

    name: ClassVar[str] = "graphs"
    time_limit: ClassVar[float] = 60.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for name, entry in _entries().items():
            for element in entry["types"]:
                exact = str(entry["tolerance"]).startswith("exact")
                floats = f"{element if 'T[' in entry['text'] else entry['text'].split('[')[0][1:]}".startswith(
                    ("float", "double")
                )
                for data in ("random", "special") if exact and floats and "range" not in entry else ("random",):
                    yield CaseInfo(
                        id=f"{self.name}/{name}-{_NAMES.get(element, element)}-{data}",
                        suite=self.name,
                        operator=name,
                        domain="graphs",
                        opset=_opset(),
                        dtype=_NAMES.get(element, element),
                        data_class=data,
                        input_mode="static",
                        source=(name, element),
                    )

    def load(self, info: CaseInfo) -> LoadedCase:
        name, element = _source(info)
        entry = _entries()[name]
        model = _model(entry["text"], element)
        tolerance = str(entry["tolerance"])
        # Where a result is exact, each step's rounding is what the graph is about, and widened oracles leave it out.
        ruling = "onnxruntime" if tolerance.startswith("exact") else None
        return LoadedCase(model, _inputs(model, info, entry), tolerance, ruling=ruling, rule=ruling and _ROUNDED_STEPS)

    def reproducer(self, info: CaseInfo) -> str | None:
        name, element = _source(info)
        text = onnx.printer.to_text(_model(_entries()[name]["text"], element))
        return f'"""{info.id}"""\n\nimport onnx.parser\n\nmodel = onnx.parser.parse_model({text!r})\nprint(model)\n'


def _source(info: CaseInfo) -> tuple[str, str]:
    if not isinstance(info.source, tuple):
        raise TypeError(f"{info.id}: found a source of {type(info.source).__name__}, expected (name, element)")
    name, element = info.source
    return name, element


@cache
def _file() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return loaded


def _entries() -> dict[str, Any]:
    entries: dict[str, Any] = _file()["graphs"]
    return entries


def _opset() -> int:
    return int(_file()["opset"])


def _model(text: str, element: str) -> ModelProto:
    for before, after in (("T[", f"{element}["), ("T ", f"{element} "), ("=TO>", f"={_CODES.get(element, '')}>")):
        text = text.replace(before, after)
    header = f'<ir_version: 9, opset_import: ["": {_opset()}]>'
    model: ModelProto = onnx.parser.parse_model(f"{header} g {text}")
    _forget_shapes(model.graph)
    return model


def _forget_shapes(graph: GraphProto) -> None:
    """Leave sizes of results open: in the text form a type alone is a scalar's."""
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _forget_shapes(attribute.g)


def _inputs(model: ModelProto, info: CaseInfo, entry: dict[str, Any]) -> list[Output]:
    seed = int.from_bytes(hashlib.blake2b(info.id.encode(), digest_size=8).digest(), "big")
    draw = np.random.default_rng(seed)
    sizes: dict[str, int] = entry.get("sizes", {})
    low, high = entry.get("range", (-4, 4))
    return [_drawn(value.type, draw, sizes, (low, high), info.data_class) for value in model.graph.input]


def _drawn(
    declared: TypeProto, draw: np.random.Generator, sizes: dict[str, int], span: tuple[float, float], data_class: str
) -> Output:
    dtype = numpy_type(declared.tensor_type.elem_type)
    shape = tuple(dim.dim_value or sizes.get(dim.dim_param, 0) for dim in declared.tensor_type.shape.dim)
    if dtype.kind == "b":
        return np.asarray(draw.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        return np.asarray(draw.integers(int(span[0]), int(span[1]) + 1, shape)).astype(dtype)
    values = np.asarray(draw.uniform(*span, shape))
    if data_class == "special":
        values = np.where(draw.random(shape) < 0.5, draw.choice(_SPECIAL, shape), values)
    return values.astype(dtype)


def create() -> Graphs:
    """Return the suite."""
    return Graphs()
