"""ONNX's reference evaluator in the model's own types. It does not judge itself: its oracle has no vote here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from conformance.backends.protocol import CaseFailure
from conformance.backends.registry import explain_generic
from conformance.comparison import Output
from conformance.onnxruntime_runner import graph_inputs
from conformance.oracles import REFERENCE
from reports.record import Outcome, Stage

_REFUSALS = ("No implementation", "no implementation", "not implemented", "not supported", "Unable to")


class _Evaluator:
    def __init__(self, model: ModelProto) -> None:
        self._names = graph_inputs(model)
        self._evaluator = ReferenceEvaluator(model)

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        with np.errstate(all="ignore"):
            return list(self._evaluator.run(None, dict(zip(self._names, inputs, strict=True))))


class OnnxReference:
    """Pure Python; `target` has no meaning here."""

    name = "onnx_reference"
    shares = frozenset({REFERENCE})

    def compile(self, model: ModelProto) -> _Evaluator:
        return _Evaluator(model)

    def explain(self, error: Exception, stage: Stage) -> CaseFailure:
        found = explain_generic(error, stage)
        refused = any(text in str(error) for text in _REFUSALS)
        return replace(found, outcome=Outcome.UNSUPPORTED) if refused else found

    def versions(self) -> dict[str, str]:
        return {"onnx": version("onnx")}


def create(target: str) -> OnnxReference:
    """Return the backend."""
    del target
    return OnnxReference()
