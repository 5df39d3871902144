"""ONNX's own backend tests with their own expected outputs.

The verdict follows ONNX's own rule for these tests, |y - expected| <= atol + rtol * |expected| with the test's rtol and
atol. The expected values are rounded results of numpy, not exact ones, so that the rule fails some exact results (an
inverse DFT, attention in float16): a result that it calls wrong passes if it is within the computed class of the
manifests of the exact value, and all oracles and the expected values agree within that class too. The record says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

import opsets
from compiler.onnx_types import numpy_type
from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""Kinds of tests that have data. (`real` has the light models without weights: see the suite `models`.)"""

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


class OnnxOfficial:
    """Test cases of the installed onnx package, by kind and name."""

    name: ClassVar[str] = "onnx-official"
    time_limit: ClassVar[float] = 120.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def operators(self) -> set[str]:
        """Return the operator types that the node tests are named after."""
        return {info.operator for info in self.cases()}

    def cases(self) -> Iterator[CaseInfo]:
        for kind in KINDS:
            for name, test in sorted(_tests(kind).items()):
                yield _describe(kind, name, test, self.name)

    def load(self, info: CaseInfo) -> LoadedCase:
        test: Any = info.source
        if test is None:
            kind, name = info.id.split("/")[1:]
            test = _tests(kind)[name]
        model = _model(test)
        inputs, outputs = _first_data_set(test, model)
        return LoadedCase(
            model=model,
            inputs=inputs,
            tolerance="shape_only" if _is_random(test.name, model) else f"onnx_rule({test.rtol:g}, {test.atol:g})",
            expected=outputs,
            computed=_computed_class(info),
            ruling="expected",
            rule="expected: the values that ONNX publishes with the test",
        )

    def reproducer(self, info: CaseInfo) -> str | None:
        kind, name = info.id.split("/")[1:]
        return _REPRODUCER.format(kind=kind, name=name)


@cache
def _tests(kind: str) -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test import loader

        return {test.name: test for test in loader.load_model_tests(kind=kind)}


def _model(test: Any) -> ModelProto:  # noqa: ANN401 - onnx's TestCase is not annotated
    if test.model is not None:
        model: ModelProto = test.model
        return model
    return onnx.load(Path(test.model_dir) / "model.onnx")


def _computed_class(info: CaseInfo) -> str | None:
    """Return the class that the manifests name for the operator and element type, if they have it."""
    try:
        return str(opsets.tolerance(info.operator, info.since_version, info.dtype, domain=info.domain))
    except opsets.ManifestError:
        return None


def _is_random(name: str, model: ModelProto) -> bool:
    """Return whether the values are drawn at random: no implementation can give those that ONNX once drew."""
    drops = name.startswith("test_training_dropout") and "zero_ratio" not in name
    return drops or any(node.op_type in _RANDOM for node in model.graph.node)


def _describe(kind: str, name: str, test: Any, suite: str) -> CaseInfo:  # noqa: ANN401
    model = _model(test)
    operators = {node.op_type for node in model.graph.node}
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    named = _operator_of(name, operators) if kind == "node" else name
    domains = {node.domain for node in model.graph.node if node.op_type == named}
    domain = next(iter(domains), "") or "ai.onnx"
    first = model.graph.input[0].type.tensor_type.elem_type if model.graph.input else 0
    return CaseInfo(
        id=f"{suite}/{kind}/{name}",
        suite=suite,
        operator=named,
        domain=domain,
        since_version=_since(named, opset, domain),
        opset=opset,
        dtype=numpy_type(first).name if first else "",
        input_mode="static",
        data_class="expanded" if "_expanded" in name else "",
        # Making the tests takes seconds: the process that runs the case need not do that again.
        source=test,
    )


def _operator_of(name: str, operators: set[str]) -> str:
    """Return the operator that a node test is about: the longest that its name starts with, else its first node's."""
    text = name.removeprefix("test_").replace("_", "").lower()
    known = [operator for operator in operators | _known_operators() if text.startswith(operator.lower())]
    return max(known, key=len) if known else min(operators, default=name)


@cache
def _known_operators() -> frozenset[str]:
    return frozenset(schema.name for schema in onnx.defs.get_all_schemas())


def _since(operator: str, opset: int, domain: str) -> int:
    try:
        return int(onnx.defs.get_schema(operator, opset, "" if domain == "ai.onnx" else domain).since_version)
    except onnx.defs.SchemaError:
        return 0


def _first_data_set(test: Any, model: ModelProto) -> tuple[list[Output], list[Output]]:  # noqa: ANN401
    if test.data_sets:
        inputs, outputs = test.data_sets[0]
        return [_value(v) for v in inputs], [_value(v) for v in outputs]
    folder = Path(test.model_dir) / "test_data_set_0"
    if not folder.is_dir():
        raise Unavailable(f"{folder}: onnx ships no data for this test")
    inputs = _read(folder, "input", [value.type for value in model.graph.input])
    return inputs, _read(folder, "output", [value.type for value in model.graph.output])


def _value(value: Any) -> Output:  # noqa: ANN401 - a TensorProto, an array or a list of them
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return [_value(part) for part in numpy_helper.to_list(value)]
    if isinstance(value, onnx.OptionalProto):
        found = numpy_helper.to_optional(value)
        return None if found is None else _value(found)
    return value if value is None or isinstance(value, dict) else np.asarray(value)


def _read(folder: Path, stem: str, types: Sequence[onnx.TypeProto]) -> list[Output]:
    """Return the values of `input_0.pb` ... or `output_0.pb` ...; the graph says what each file holds."""
    holders = {
        "tensor_type": onnx.TensorProto,
        "sequence_type": onnx.SequenceProto,
        "optional_type": onnx.OptionalProto,
    }
    values = []
    for index in range(len(list(folder.glob(f"{stem}_*.pb")))):
        holder = holders[types[index].WhichOneof("value") or "tensor_type"]()
        holder.ParseFromString((folder / f"{stem}_{index}.pb").read_bytes())
        values.append(_value(holder))
    return values


_REPRODUCER = '''"""ONNX's own backend test {name} in onnxruntime without its optimizer. Needs onnx and onnxruntime."""

import onnxruntime
from onnx.backend.test import loader

test = next(t for t in loader.load_model_tests(kind={kind!r}) if t.name == {name!r})
model = test.model if test.model is not None else __import__("onnx").load(test.model_dir + "/model.onnx")
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
if test.data_sets:
    inputs, expected = test.data_sets[0]
    outputs = session.run(None, dict(zip([value.name for value in session.get_inputs()], inputs)))
    for output, value in zip(outputs, expected, strict=True):
        print("onnxruntime:", output, "expected:", value, sep="\\n")
else:
    print(session.get_inputs(), "data in", test.model_dir)
'''


def create() -> OnnxOfficial:
    """Return the suite."""
    return OnnxOfficial()
