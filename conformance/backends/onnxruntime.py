"""onnxruntime as its users have it: optimizer on, CPU. It does not judge itself: its oracles have no vote here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from onnx import ModelProto

from conformance.backends.protocol import CaseFailure
from conformance.backends.registry import explain_generic
from conformance.comparison import Output
from conformance.onnxruntime_runner import first_line, open_session, run_session
from conformance.oracles import ONNXRUNTIME, ONNXRUNTIME_WIDENED
from reports.record import Outcome, Stage

_REFUSAL = re.compile(
    r"NOT_IMPLEMENTED|Could not find an implementation|is not a registered function/op|not supported|unsupported"
    r"|No Op registered|is not currently registered|No corresponding Numpy type|ONNX Runtime only \*guarantees\*",
    re.IGNORECASE,
)
"""What onnxruntime says when it has no kernel, type or opset: its exception classes do not tell that apart."""


class _Session:
    def __init__(self, model: ModelProto | Path) -> None:
        self._session: Any = open_session(model, optimize=True)
        self._names = [value.name for value in self._session.get_inputs()]

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        return run_session(self._session, dict(zip(self._names, inputs, strict=True)))


class OnnxRuntime:
    """The CPU execution provider; `target` has no meaning here."""

    name = "onnxruntime"
    shares = frozenset({ONNXRUNTIME, ONNXRUNTIME_WIDENED})

    def compile(self, model: ModelProto) -> _Session:
        return _Session(model)

    def compile_file(self, path: Path) -> _Session:
        """Open a model file."""
        return _Session(path)

    def explain(self, error: Exception, stage: Stage) -> CaseFailure:
        found = explain_generic(error, stage)
        outcome = Outcome.UNSUPPORTED if _REFUSAL.search(str(error)) else found.outcome
        return CaseFailure(outcome, stage, found.diagnosis, first_line(error), found.named)

    def versions(self) -> dict[str, str]:
        return {"onnxruntime": version("onnxruntime")}


def create(target: str) -> OnnxRuntime:
    """Return the backend."""
    del target
    return OnnxRuntime()
