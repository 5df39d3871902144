"""What suites of PyTorch programs share: quiet exports, eager runs in the types of the case and in float64."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from conformance.comparison import Output
from conformance.errors import Unavailable


def require_torch() -> None:
    """Import torch, for one thread. Raises `Unavailable` without it."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"torch is not installed ({error}); pip install 'opatlas[torch]'") from error
    torch.set_num_threads(1)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings and what torch prints from the terminal."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def traced(module: Any, tensors: Sequence[Any], dynamic: Any = None) -> Any:  # noqa: ANN401
    """The exported program. Raises `Unavailable` with the first line of what torch.export says."""
    import torch

    try:
        with quiet():
            return torch.export.export(module, tuple(tensors), dynamic_shapes=dynamic, strict=False)
    except Exception as error:
        raise Unavailable(f"torch.export refuses it: {type(error).__name__}: {first_line(error)}") from error


def exported(module: Any, tensors: Sequence[Any], dynamic: Any = None) -> Any:  # noqa: ANN401
    """As `traced`, of a module that eager torch runs: raises `Unavailable` where it does not either."""
    try:
        run(module, tensors)
    except Exception as error:
        raise Unavailable(f"eager torch has no such form: {type(error).__name__}: {first_line(error)}") from error
    return traced(module, tensors, dynamic)


def first_line(error: BaseException) -> str:
    """The first line of a message, up to 200 characters."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else "")[:200]


def to_tensor(array: Any) -> Any:  # noqa: ANN401 - numpy to torch
    """A numpy array as a tensor of the same type."""
    import torch

    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def run(module: Any, tensors: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """The flattened outputs of a module on copies of tensors; Python's floats are float64."""
    import torch
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        found = pytree.tree_leaves(module(*[tensor.clone() for tensor in tensors]))
    numbers = {float: torch.float64}
    return [
        value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=numbers.get(type(value)))
        for value in found
        if value is not None
    ]


def eager_outputs(module: Any, tensors: Sequence[Any]) -> list[Output]:  # noqa: ANN401
    """What the module gives, as arrays."""
    from compiler.frontends.torch.types import array_from

    return [array_from(value) for value in run(module, tensors)]


def eager(module: Any, tensors: Sequence[Any], wide: bool) -> list[Output]:  # noqa: ANN401
    """What torch itself gives; ``wide``: in float64, weights and results for which torch takes its default type too."""
    if not wide:
        return eager_outputs(module, tensors)
    import torch

    doubled = [_doubled(tensor) for tensor in tensors]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return eager_outputs(copy.deepcopy(module).to(torch.float64), doubled)
    finally:
        torch.set_default_dtype(before)


def _doubled(tensor: Any) -> Any:  # noqa: ANN401
    import torch

    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def to_onnx(program: Any) -> ModelProto:  # noqa: ANN401 - an ExportedProgram
    """The program's graph as ONNX. Raises `Unavailable` where it has no such form."""
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.torch import import_exported_program

    try:
        return export_model(import_exported_program(program))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
