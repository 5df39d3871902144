"""Caffe's layers and networks: every case of the manifests under opsets/caffe, and whole networks of generators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from conformance.caffe import network, opencv
from conformance.caffe.definitions import DEFINITIONS, Options
from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from generators import caffe
from generators.case import Case

FRAMEWORK = caffe.FRAMEWORK
_ORACLE = {"definition": "native-widened", "native": "native", "onnxruntime": "onnxruntime"}
_RENAMED = {"Silence": "kept"}
"""Layers that have no output themselves, and the one beside that has."""


@dataclass(frozen=True, slots=True)
class CaffeNative(Native):
    """A network as (prototxt, caffemodel): run by OpenCV, and where ``wide`` by the layer's definition in float64."""

    count: int = field(default=1)

    def types(self) -> list[np.dtype[np.generic] | None]:
        """All blobs of Caffe are float32."""
        return [np.dtype(np.float32)] * self.count


def infos(suite: str) -> Iterator[CaseInfo]:
    """Every case of a layer."""
    for case in caffe.cases():
        yield describe(case, suite)


def nets(suite: str) -> Iterator[CaseInfo]:
    """Every whole network."""
    for name in caffe.NETS:
        yield describe(caffe.net_case(name), suite)


def describe(case: Case, suite: str) -> CaseInfo:
    """What collection and records need of a case; the version is that of the layer format, 1 or 2."""
    return CaseInfo(
        id=case.id,
        suite=suite,
        operator=case.operator,
        framework=FRAMEWORK,
        domain=case.domain,
        since_version=case.since_version,
        dtype=case.dtype,
        attributes=dict(case.settings),
        shapes=case.shapes,
        data_class=case.data_class,
        input_mode=case.input_mode,
        source=case,
    )


def load(case: Case) -> LoadedCase:
    """Build a case: the two files, its inputs, and who is asked about it."""
    built = caffe.build(case)
    is_net = case.domain == "nets"
    eager = partial(_net_outputs, built) if is_net else partial(_layer_outputs, case, built)
    native = CaffeNative(
        (built.prototxt, built.caffemodel),
        eager,
        partial(_onnx, built),
        count=1 if is_net or case.operator in _RENAMED else max(case.outputs, 1),
    )
    rule = None if is_net else caffe.ruling(case)
    return LoadedCase(
        model=None,
        inputs=list(built.inputs.values()),
        tolerance="whole_graph" if is_net else caffe.tolerance(case),
        # The exported graph is the work of the code under test: it has a word, but no vote.
        ruling="native" if rule is None else _ORACLE[rule[0]],
        rule=None if rule is None else f"{rule[0]}: {rule[1]}",
        native=native,
    )


def reproducer(case: Case) -> str:
    """Standalone source of a case."""
    return caffe.render(case)


def _layer_outputs(case: Case, built: caffe.Built, wide: bool) -> Sequence[Output]:
    exact = _defined(case, built)
    if wide:
        if exact is None:
            raise Unavailable(f"{case.operator} has no definition here but OpenCV's")
        return exact
    layer = _RENAMED.get(case.operator, caffe.LAYER)
    if case.operator == "Input":
        raise Unavailable("OpenCV gives no outputs of a network without layers")
    found = opencv.run(built.prototxt, built.caffemodel, built.inputs, layer)
    if len(found) < case.outputs:
        raise Unavailable(f"OpenCV gives {len(found)} of {case.outputs} tops")
    return found if exact is None else [_shaped(one, like.shape) for one, like in zip(found, exact, strict=False)]


def _shaped(found: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """OpenCV has no arrays of fewer than two dims: it adds dims of 1, which say nothing about the result."""
    same = [size for size in found.shape if size != 1] == [size for size in shape if size != 1]
    return found.reshape(shape) if same else found


def _defined(case: Case, built: caffe.Built) -> list[NDArray[Any]] | None:
    definition = DEFINITIONS.get(case.operator)
    if definition is None:
        return None
    weights = [array.astype(np.float64) for array in built.weights.get(caffe.LAYER, [])]
    options = Options({name: _single(value) for name, value in case.attributes}, case.outputs, weights)
    with np.errstate(all="ignore"):
        return list(definition(options, [array.astype(np.float64) for array in built.inputs.values()]))


def _single(value: object) -> object:
    """A float field as the format stores it."""
    return float(np.float32(value)) if isinstance(value, float) else value


def _net_outputs(built: caffe.Built, wide: bool) -> Sequence[Output]:
    if wide:
        return network.run(built.prototxt, built.weights, built.inputs)
    return opencv.run(built.prototxt, built.caffemodel, built.inputs)


def _onnx(built: caffe.Built) -> ModelProto:
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.caffe import import_caffe

    try:
        return export_model(import_caffe(built.prototxt, built.caffemodel))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
