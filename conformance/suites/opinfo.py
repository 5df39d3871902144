"""PyTorch's own samples of its operators, those with errors too, through torch.export and the compiler.

They are held against eager PyTorch, and against it in float64. What torch.export cannot trace is `not_run`, with its
reason. A run takes a selection of each entry's samples; --full takes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.suites import opinfo_samples
from conformance.suites.opinfo_samples import ERRORS, Sample, SampleId
from conformance.suites.torch_programs import eager, first_line, quiet, require_torch, run, traced

_UNWRITTEN: Final = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    }
)
"""Entries that give memory as it was found."""

_REFUSALS: Final = frozenset({"UnsupportedOperator", "UnsupportedType", "TypeMismatch", "ValueNeeded"})
"""Diagnoses that a sample may be refused with: what has no conversion is counted, not listed one by one."""


class OpInfo:
    """Samples by entry, type and index; ids come from the counted numbers, and seeds from the ids."""

    name: ClassVar[str] = "opinfo"
    time_limit: ClassVar[float] = 60.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for sample, extra in opinfo_samples.samples():
            yield CaseInfo(
                id=sample.id,
                suite=self.name,
                operator=sample.entry,
                framework="torch",
                domain="opinfo",
                dtype="" if sample.dtype == ERRORS else sample.dtype,
                data_class="error" if sample.dtype == ERRORS else "sample",
                input_mode="static",
                source=sample,
                refusals=frozenset() if sample.dtype == ERRORS else _REFUSALS,
                extra=extra,
            )

    def load(self, info: CaseInfo) -> LoadedCase:
        """The sample. Raises `Unavailable` without torch, and for what eager torch or torch.export refuses."""
        assert isinstance(info.source, SampleId)
        require_torch()
        sample = opinfo_samples.make(info.source)
        inputs = [_array(tensor) for tensor in sample.tensors]
        if info.source.dtype == ERRORS:
            return _error(sample, inputs)
        try:
            outputs = _eager(sample, wide=False)
        except Exception as error:
            raise Unavailable(f"eager torch refuses it: {type(error).__name__}: {first_line(error)}") from error
        program = traced(sample.module, sample.tensors)
        native = Native(program, partial(_eager, sample), _no_onnx, _known={"eager False": outputs})
        tolerance = _tolerance(info.source.entry, sample, program, outputs)
        return LoadedCase(model=None, inputs=inputs, tolerance=tolerance, native=native)

    def reproducer(self, info: CaseInfo) -> str | None:
        assert isinstance(info.source, SampleId)
        source = info.source
        return _REPRODUCER.format(id=info.id, entry=source.entry, dtype=source.dtype, index=source.index)


def _error(sample: Sample, inputs: list[Output]) -> LoadedCase:
    try:
        with quiet():
            run(sample.module, sample.tensors)
    except Exception:  # noqa: BLE001 - the refusal that the sample is there for
        native = Native(sample.module, partial(_eager, sample), _no_onnx, inputs=sample.tensors)
        return LoadedCase(model=None, inputs=inputs, tolerance="exact", native=native, must_fail=True)
    raise Unavailable("eager torch takes it, with no gradient asked for")


def _array(tensor: Any) -> Output:  # noqa: ANN401
    from compiler.errors import UnsupportedType
    from compiler.frontends.torch.types import array_from

    if str(tensor.layout) != "torch.strided" or tensor.is_meta or tensor.is_quantized:
        raise Unavailable(f"a tensor of layout {tensor.layout} on {tensor.device} has no numpy form")
    try:
        return array_from(tensor)
    except (UnsupportedType, ValueError) as error:
        raise Unavailable(str(error)) from error


def _eager(sample: Sample, wide: bool) -> list[Output]:
    with quiet():
        return eager(sample.module.widened() if wide else sample.module, sample.tensors, wide)


def _no_onnx() -> Any:  # noqa: ANN401
    raise Unavailable("PyTorch's samples are held against PyTorch alone")


def _tolerance(entry: str, sample: Sample, program: Any, outputs: list[Output]) -> str:  # noqa: ANN401
    """Random and unwritten results have no values to compare; the other classes are measured.

    Results in float64 have no wider reference to measure by: 16 units of the greatest.
    """
    import torch

    targets = [node.target for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]  # noqa: SLF001
    if entry in _UNWRITTEN or any(torch.Tag.nondeterministic_seeded in target.tags for target in targets):
        return "shape_only"
    types = {output.dtype.name for output in outputs if isinstance(output, np.ndarray)}
    if types & {"float64", "complex128"}:
        return "max_relative(16)"
    return "measured_ulp" if sample.elementwise else "whole_graph"


_REPRODUCER = '''"""{id}: run in a clone."""

from conformance.suites.opinfo_samples import SampleId, make
from conformance.suites.torch_programs import run

sample = make(SampleId({entry!r}, {dtype!r}, {index}))
for tensor in sample.tensors:
    print("input", tensor)
for value in run(sample.module, sample.tensors):
    print("eager", value)
'''


def create() -> OpInfo:
    """Return the suite."""
    return OpInfo()
