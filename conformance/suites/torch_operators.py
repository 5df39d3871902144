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
    require_torch()
    module, inputs = build_torch(case)
    tensors = [to_tensor(value) for value in inputs]
    program = exported(module, tensors, _dynamic(case, tensors))
    native = Native(program, partial(_eager, module, tensors), partial(to_onnx, program))
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


def require_torch() -> None:
    """Import torch, for one thread. Raises `Unavailable` without it."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"torch is not installed ({error}); pip install 'opatlas[torch]'") from error
    torch.set_num_threads(1)


def exported(module: Any, tensors: Sequence[Any], dynamic: Any = None) -> Any:  # noqa: ANN401 - torch's own objects
    """The module as an ExportedProgram. Raises `Unavailable` where torch refuses to run or to export it."""
    import torch

    try:
        eager_run(module, tensors)
    except Exception as error:
        raise Unavailable(f"eager torch has no such form: {type(error).__name__}: {_first_line(error)}") from error
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            return torch.export.export(module, tuple(tensors), dynamic_shapes=dynamic, strict=False)
    except Exception as error:
        raise Unavailable(f"torch.export refuses it: {type(error).__name__}: {_first_line(error)}") from error


def eager_outputs(module: Any, tensors: Sequence[Any]) -> list[Output]:  # noqa: ANN401
    """What the module gives, as arrays."""
    from compiler.frontends.torch.types import array_from

    return [array_from(value) for value in eager_run(module, tensors)]


def _dynamic(case: TorchCase, tensors: Sequence[Any]) -> Any:  # noqa: ANN401 - what torch.export takes
    """Every size of every input as a symbol, as far as torch lets it be one; None for a static case."""
    if case.mode == "static":
        return None
    import torch

    return tuple(dict.fromkeys(range(tensor.dim()), torch.export.Dim.AUTO) for tensor in tensors)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else "")[:200]


def to_tensor(array: Any) -> Any:  # noqa: ANN401 - numpy to torch
    """A tensor with the array's data."""
    import torch

    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def eager_run(module: Any, tensors: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """What the module gives, as tensors."""
    import torch
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        found = pytree.tree_leaves(module(*[tensor.clone() for tensor in tensors]))
    return [value if isinstance(value, torch.Tensor) else torch.tensor(value) for value in found if value is not None]


def _eager(module: Any, tensors: Sequence[Any], wide: bool) -> list[Output]:  # noqa: ANN401
    if not wide:
        return eager_outputs(module, tensors)
    import copy

    import torch

    doubled = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]
    return eager_outputs(copy.deepcopy(module).to(torch.float64), doubled)


def to_onnx(program: Any) -> ModelProto:  # noqa: ANN401 - an ExportedProgram
    """The program's graph as the IR has it, in ONNX. Raises `Unavailable` where some operation has no such form."""
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.torch import import_exported_program

    try:
        return export_model(import_exported_program(program))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
