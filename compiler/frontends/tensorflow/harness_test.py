"""What the tests of the TensorFlow frontend share: a function traced, imported and interpreted, beside TensorFlow."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="the tests of the TensorFlow frontend need TensorFlow")

from compiler.frontends.tensorflow import import_tensorflow  # noqa: E402
from compiler.ir.verifier import verify  # noqa: E402
from compiler.ops.interpreter import interpret  # noqa: E402


def traced(function, *inputs, open_sizes=False):
    """The concrete function for inputs like these; ``open_sizes`` leaves the first dim of each open."""
    specs = [
        tf.TensorSpec([None if open_sizes and not axis else size for axis, size in enumerate(np.shape(x))], x.dtype)
        for x in inputs
    ]
    return tf.function(function, autograph=False).get_concrete_function(*specs)


def check(function, *inputs, tolerance=None, open_sizes=False):
    """Import a function, run it, and hold it to what TensorFlow computes; gives the graph."""
    inputs = [np.asarray(value) for value in inputs]
    concrete = traced(function, *inputs, open_sizes=open_sizes)
    graph = import_tensorflow(concrete)
    verify(graph)
    expected = [value.numpy() for value in tf.nest.flatten(concrete(*map(tf.constant, inputs)))]
    same(interpret(graph, inputs), expected, tolerance)
    return graph


def same(found, expected, tolerance=None):
    """Equal types and shapes, and values within a tolerance of their type's size."""
    assert len(found) == len(expected)
    for own, reference in zip(map(np.asarray, found), expected, strict=True):
        assert own.dtype == reference.dtype
        assert own.shape == reference.shape
        wide = np.complex128 if own.dtype.kind == "c" else np.float64
        limit = _limit(own.dtype) if tolerance is None else tolerance
        np.testing.assert_allclose(own.astype(wide), reference.astype(wide), rtol=limit, atol=limit)


def _limit(dtype):
    return {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "float64": 1e-11, "complex64": 1e-5}.get(dtype.name, 0)
