import numpy as np
import pytest

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import C64, F32, Builder, Graph, tensor
from compiler.ops.complex_numbers import ComplexOf, FourierTransform, ImaginaryPart, RealFourierInverse, RealPart
from compiler.ops.interpreter import interpret

RANDOM = np.random.default_rng(3)
Z = (RANDOM.normal(size=(3, 5)) + 1j * RANDOM.normal(size=(3, 5))).astype(np.complex64)


def run(definition, *arrays, **attributes):
    elements = {np.dtype(np.complex64): C64, np.dtype(np.float32): F32}
    graph = Graph("net", [tensor(elements[a.dtype], a.shape) for a in arrays])
    graph.output_names = ("result",)
    builder = Builder(graph)
    builder.output(builder(definition, *graph.inputs, **attributes))
    (found,) = interpret(graph, list(arrays))
    assert found.shape == graph.outputs[0].tensor.dims
    assert found.dtype == graph.outputs[0].tensor.element.dtype
    return found


def test_parts_go_in_and_out():
    parts = [np.array([0.0, -0.0, np.inf], np.float32), np.array([np.nan, -0.0, 1.0], np.float32)]
    whole = run(ComplexOf, *parts)
    for definition, part in zip((RealPart, ImaginaryPart), parts, strict=True):
        found = run(definition, whole)
        np.testing.assert_array_equal(found, part)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(part))


@pytest.mark.parametrize("direction", [-1, 1])
def test_a_transform_is_its_sum(direction):
    angles = np.outer(np.arange(5), np.arange(5)) / 5
    expected = Z.astype(np.complex128) @ np.exp(direction * 2j * np.pi * angles) * 0.5
    found = run(FourierTransform, Z, axes=(1,), factor=0.5, direction=direction)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("size", [8, 9])
def test_half_a_spectrum_gives_real_numbers(size):
    expected = RANDOM.normal(size=(2, size)).astype(np.float32)
    spectrum = np.exp(-2j * np.pi * np.outer(np.arange(size), np.arange(size // 2 + 1)) / size)
    half = (expected @ spectrum).astype(np.complex64)
    found = run(RealFourierInverse, half, axes=(1,), size=size, factor=1 / size)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeMismatch, match="one shape"):
        run(ComplexOf, np.zeros(2, np.float32), np.zeros(3, np.float32))
    with pytest.raises(InvalidAttribute, match="different dims below 2"):
        run(FourierTransform, Z, axes=(2,))
