"""Single operators: every case that the manifests under opsets/ expand to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import generators
import opsets
from conformance.case import CaseInfo, LoadedCase
from conformance.suites import caffe_operators, tensorflow_operators, torch_operators
from generators.tensorflow_cases import TensorflowCase
from generators.torch_cases import TorchCase
from opsets.caffe import load_layers
from opsets.expressions import parse
from opsets.tensorflow_manifest import load_tensorflow_manifests
from opsets.torch_manifest import load_torch_manifests


class Operators:
    """Cases by manifest. An id holds all that the case is, so loading starts from the description alone."""

    name: ClassVar[str] = "operators"
    time_limit: ClassVar[float] = 60.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def operators(self) -> set[str]:
        """Return the names of all operators that a manifest has."""
        names = {item.operator for manifest in opsets.load_manifests("onnx") for item in manifest.items}
        names |= {item.operator for item in load_torch_manifests()} | set(load_layers())
        return names | {item.operator for item in load_tensorflow_manifests()}

    def cases(self) -> Iterator[CaseInfo]:
        for manifest in opsets.load_manifests("onnx"):
            for case in generators.expand(manifest):
                yield _describe(case, self.name)
        yield from torch_operators.infos(self.name)
        yield from tensorflow_operators.infos(self.name)
        yield from caffe_operators.infos(self.name)

    def load(self, info: CaseInfo) -> LoadedCase:
        if isinstance(info.source, TorchCase):
            return torch_operators.load(info.source)
        if isinstance(info.source, TensorflowCase):
            return tensorflow_operators.load(info.source)
        case = _case_of(info)
        if case.framework == caffe_operators.FRAMEWORK:
            return caffe_operators.load(case)
        item = opsets.find_item(case.framework, case.domain, case.operator, case.since_version)
        model, inputs = generators.build(case)
        twin = generators.twin(case)
        names = generators.names_of(item, case)
        attributes = {name: names[name] for name in item.signature.attributes}
        ruling = next((r for r in item.entry.ruling if r.where is None or parse(r.where)(names)), None)
        return LoadedCase(
            model=model,
            inputs=inputs,
            tolerance=str(item.tolerance(case.dtype).resolved(attributes)),
            twin=None if twin is None else (twin, inputs),
            ruling=None if ruling is None else ruling.follows,
            rule=None if ruling is None else f"{ruling.follows}: {ruling.rule}",
        )

    def reproducer(self, info: CaseInfo) -> str | None:
        if isinstance(info.source, TorchCase):
            return torch_operators.reproducer(info.source)
        if isinstance(info.source, TensorflowCase):
            return tensorflow_operators.reproducer(info.source)
        case = _case_of(info)
        return (
            caffe_operators.reproducer(case) if case.framework == caffe_operators.FRAMEWORK else generators.render(case)
        )


def _describe(case: generators.Case, suite: str) -> CaseInfo:
    return CaseInfo(
        id=case.id,
        suite=suite,
        operator=case.operator,
        framework=case.framework,
        domain=case.domain,
        since_version=case.since_version,
        opset=case.opset,
        dtype=case.dtype,
        attributes=dict(case.settings),
        shapes=case.shapes,
        data_class=case.data_class,
        input_mode=case.input_mode,
        source=case,
    )


def _case_of(info: CaseInfo) -> generators.Case:
    case = info.source
    if not isinstance(case, generators.Case):
        raise TypeError(f"{info.id}: found a source of {type(case).__name__}, expected a generators.Case")
    return case


def create() -> Operators:
    """Return the suite. Raises `ManifestError` for a manifest that breaks its schema."""
    opsets.load_manifests("onnx")
    return Operators()
