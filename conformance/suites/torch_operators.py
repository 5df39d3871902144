"""PyTorch's operators: every case that the manifests under opsets/torch expand to."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
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
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"torch is not installed ({error}); pip install 'opatlas[torch]'") from error
    torch.set_num_threads(1)
    module, inputs = build_torch(case)
    tensors = [_tensor(value) for value in inputs]
    try:
        _run(module, tensors)
    except Exception as error:
        raise Unavailable(f"eager torch has no such form: {type(error).__name__}: {_first_line(error)}") from error
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            program = torch.export.export(module, tuple(tensors), dynamic_shapes=_dynamic(case, tensors), strict=False)
    except Exception as error:
        raise Unavailable(f"torch.export refuses it: {type(error).__name__}: {_first_line(error)}") from error
    native = Native(program, partial(_eager, module, tensors), partial(_onnx, program))
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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else "")[:200]


def _tensor(array: Any) -> Any:  # noqa: ANN401 - numpy to torch
    import torch

    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _run(module: Any, tensors: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    import torch
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        found = pytree.tree_leaves(module(*[tensor.clone() for tensor in tensors]))
    return [value if isinstance(value, torch.Tensor) else torch.tensor(value) for value in found if value is not None]


def _eager(module: Any, tensors: Sequence[Any], wide: bool) -> list[Output]:  # noqa: ANN401
    from compiler.frontends.torch.types import array_from

    if not wide:
        return [array_from(value) for value in _run(module, tensors)]
    import copy

    import torch

    doubled = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]
    found = _run(copy.deepcopy(module).to(torch.float64), doubled)
    return [array_from(value) for value in found]


def _onnx(program: Any) -> ModelProto:  # noqa: ANN401 - an ExportedProgram
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.torch import import_exported_program

    try:
        return export_model(import_exported_program(program))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
