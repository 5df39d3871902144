"""Broken models: each must be refused with a named diagnosis, at compilation or when its first inputs arrive.

Some are written by hand, most are made from the schemas (generators/must_fail.py) and say which diagnosis is right.

Right is `passed`: the refusal. A broken model that is accepted is a `wrong_result`; an exception that is no refusal of
the backend's own is an `error`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import onnx
from onnx import ModelProto

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.onnxruntime_runner import graph_inputs
from conformance.suites.broken_files import BROKEN_FILES
from conformance.suites.broken_models import BROKEN_MODELS
from generators.must_fail import MustFail, build_must_fail, must_fail_models


class Invalid:
    """Models broken in memory, and files that are no models or whose external data is not where it may be."""

    name: ClassVar[str] = "invalid"
    time_limit: ClassVar[float] = 60.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for kind, names in (("model", BROKEN_MODELS), ("file", BROKEN_FILES)):
            for name in names:
                yield CaseInfo(
                    id=f"{self.name}/{kind}/{name}", suite=self.name, operator=name, domain="invalid", input_mode=kind
                )

        for case in must_fail_models():
            yield CaseInfo(
                id=f"{self.name}/schema/{case.id}",
                suite=self.name,
                operator=case.operator,
                domain="invalid",
                since_version=case.since_version,
                data_class=case.rule,
                input_mode="schema",
                source=case,
            )

    def load(self, info: CaseInfo) -> LoadedCase:
        if isinstance(info.source, MustFail):
            model, inputs = build_must_fail(info.source)
            given = _inputs(model) if inputs is None else inputs
            return LoadedCase(model, given, "shape_only", must_fail=True, diagnosis=info.source.diagnosis)
        if info.input_mode == "file":
            return LoadedCase(ModelProto(), (), "shape_only", must_fail=True, files=BROKEN_FILES[info.operator]())
        model = BROKEN_MODELS[info.operator]()
        return LoadedCase(model, _inputs(model), "shape_only", must_fail=True)

    def reproducer(self, info: CaseInfo) -> str | None:
        if info.input_mode == "file":
            return None
        model = self.load(info).model
        if model is None:
            return None
        return _REPRODUCER.format(text=onnx.printer.to_text(model), data=model.SerializeToString())


def _inputs(model: ModelProto) -> list[Output]:
    """Return zeros of the declared shapes, unknown and negative sizes as 2."""
    inputs: list[Output] = []
    declared = {value.name: value.type.tensor_type for value in model.graph.input}
    for name in graph_inputs(model):
        shape = [max(dim.dim_value, 0) or 2 for dim in declared[name].shape.dim]
        inputs.append(np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(declared[name].elem_type or 1)))
    return inputs


_REPRODUCER = '''"""A model that must be refused. As text:

{text}
"""

import onnx
import onnxruntime

data = {data!r}
try:
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    print("onnx.checker accepts it")
except Exception as error:
    print("onnx.checker:", error)
try:
    onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    print("onnxruntime accepts it")
except Exception as error:
    print("onnxruntime:", error)
'''


def create() -> Invalid:
    """Return the suite."""
    return Invalid()
