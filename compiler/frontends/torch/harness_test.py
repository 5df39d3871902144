"""What the tests of the torch frontend share: a module exported, imported and interpreted, beside eager torch."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils import _pytree as pytree  # noqa: E402

from compiler.frontends.torch import import_exported_program  # noqa: E402
from compiler.frontends.torch.types import array_from  # noqa: E402
from compiler.ir.verifier import verify  # noqa: E402
from compiler.ops.interpreter import interpret  # noqa: E402


class Function(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def exported(module, *inputs, **options):
    """The program of a module, or of a function of tensors."""
    module = module if isinstance(module, torch.nn.Module) else Function(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module, inputs, strict=False, **options)


def leaves(results):
    return [array_from(torch.as_tensor(value)) for value in pytree.tree_leaves(results) if value is not None]


def check(module, *inputs, tolerance=None, given=None, **options):
    """Import a module exported for ``inputs``, run it on ``given`` (those inputs), and hold it to eager torch."""
    graph = import_exported_program(exported(module, *inputs, **options))
    verify(graph)
    given = inputs if given is None else given
    module = module if isinstance(module, torch.nn.Module) else Function(module)
    with torch.no_grad():
        expected = leaves(module(*[value.clone() for value in given]))
    found = interpret(graph, [array_from(value) for value in given])
    assert len(found) == len(expected)
    for own, reference in zip(found, expected, strict=True):
        assert own.dtype == reference.dtype
        assert own.shape == reference.shape
        wide = np.complex128 if own.dtype.kind == "c" else np.float64
        limit = _limit(own.dtype) if tolerance is None else tolerance
        np.testing.assert_allclose(own.astype(wide), reference.astype(wide), rtol=limit, atol=limit)
    return graph


def _limit(dtype):
    return {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-12}.get(dtype.name, 0)
