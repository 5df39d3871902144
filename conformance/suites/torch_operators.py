"""PyTorch's operators: every case that the manifests under opsets/torch expand to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from conformance.case import CaseInfo, LoadedCase
from conformance.native import Native
from conformance.suites.torch_programs import eager, exported, require_torch, to_onnx, to_tensor
from generators.torch_cases import TorchCase, build_torch, expand_torch, render_torch
from opsets.torch_manifest import torch_item


def describe(case: TorchCase, suite: str) -> CaseInfo:
    """What collection and records need of a case."""
    return CaseInfo(
        id=case.id,
        suite=suite,
        operator=case.operator,
        framework="torch",
        domain="aten",
        dtype=case.dtype,
        attributes=dict(case.parameters),
        shapes=case.shapes,
        data_class=case.data_class,
        input_mode=case.mode,
        source=case,
    )


def infos(suite: str) -> Iterator[CaseInfo]:
    """Every case, without importing torch."""
    for case in expand_torch():
        yield describe(case, suite)


def reproducer(case: TorchCase) -> str:
    """Standalone source of a case."""
    return render_torch(case)


def load(case: TorchCase) -> LoadedCase:
    """Build and export a case. Raises `Unavailable` without torch, and where eager torch itself refuses the case."""
    require_torch()
    module, inputs = build_torch(case)
    tensors = [to_tensor(value) for value in inputs]
    program = exported(module, tensors, _dynamic(case, tensors))
    native = Native(program, partial(eager, module, tensors), partial(to_onnx, program))
    item = torch_item(case.operator)
    ruling = item.entry.ruling
    return LoadedCase(
        model=None,
        inputs=inputs,
        tolerance=str(item.tolerance(case.dtype)),
        ruling=None if ruling is None else ruling.follows,
        rule=None if ruling is None else f"{ruling.follows}: {ruling.rule}",
        native=native,
    )


def _dynamic(case: TorchCase, tensors: Sequence[Any]) -> Any:  # noqa: ANN401 - what torch.export takes
    """Every size of every input as a symbol, as far as torch lets it be one; None for a static case."""
    if case.mode == "static":
        return None
    import torch

    return tuple(dict.fromkeys(range(tensor.dim()), torch.export.Dim.AUTO) for tensor in tensors)
