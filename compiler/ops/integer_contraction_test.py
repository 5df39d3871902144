import numpy as np
import pytest
import torch

from compiler.errors import TypeMismatch
from compiler.ir import I8, U8, Builder, Graph, tensor
from compiler.ops import lookup
from compiler.ops.harness_test import decompose_all, run, run_decomposed

RNG = np.random.default_rng(17)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])


def bytes_of(*shape, signed):
    low = -128 if signed else 0
    return RNG.integers(low, low + 256, shape).astype(np.int8 if signed else np.uint8)


@WAYS
@pytest.mark.parametrize("a_zero", [None, (), (4,), (2, 4, 1)])
@pytest.mark.parametrize("b_zero", [None, (), (5,), (2, 1, 5)])
def test_matmul_integer_is_exact_for_every_kind_of_zero_point(way, a_zero, b_zero):
    a, b = bytes_of(2, 4, 6, signed=False), bytes_of(2, 6, 5, signed=True)
    zeros = [
        None if a_zero is None else bytes_of(*a_zero, signed=False),
        None if b_zero is None else bytes_of(*b_zero, signed=True),
    ]
    rows = 0 if a_zero is None else zeros[0].astype(np.int64).reshape((4, 1) if a_zero == (4,) else a_zero)
    columns = 0 if b_zero is None else zeros[1].astype(np.int64)
    expected = (a.astype(np.int64) - rows) @ (b.astype(np.int64) - columns)
    found = way("matmul_integer", a, b, *zeros)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shapes", [((4, "K"), ("K", 5)), ((4, 6), (6, 5))])
def test_a_product_of_matrices_is_one_of_bytes_whatever_its_depth(shapes):
    """With one zero point, so that the array takes it: not a product of differences in 32 bits."""
    graph = Graph("main", [tensor(U8, shapes[0]), tensor(I8, shapes[1])])
    builder = Builder(graph)
    builder.output(builder(lookup("matmul_integer"), *graph.inputs, builder.constant(np.array(7, np.uint8))))
    decompose_all(graph)
    (product,) = (op for op in graph.ops if op.name == "matmul")
    assert [value.tensor.element for value in product.operands] == [U8, I8]


@WAYS
def test_matmul_integer_of_vectors(way):
    a, b = bytes_of(6, signed=False), bytes_of(6, 3, signed=True)
    zero = np.array(7, np.uint8)
    np.testing.assert_array_equal(way("matmul_integer", a, b, zero), (a.astype(np.int64) - 7) @ b.astype(np.int64))


WINDOWS = [
    {"pads": (1, 0, 1, 2), "strides": (2, 1)},
    {"groups": 2, "dilations": (2, 1)},
    {"auto_pad": "same_lower", "strides": (2, 2)},
]


@WAYS
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("x_zero", [None, 0, 130])
@pytest.mark.parametrize("w_zero", [None, (), (4,)])
def test_conv_integer_pads_with_the_zero_point(way, window, x_zero, w_zero):
    groups = window.get("groups", 1)
    x, w = bytes_of(1, 4, 6, 6, signed=False), bytes_of(4, 4 // groups, 3, 2, signed=True)
    zeros = [
        None if x_zero is None else np.array(x_zero, np.uint8),
        None if w_zero is None else bytes_of(*w_zero, signed=True),
    ]
    inputs = torch.tensor(x.astype(np.float64) - (x_zero or 0))
    shift = 0 if w_zero is None else zeros[1].astype(np.float64).reshape(-1, 1, 1, 1)
    weights = torch.tensor(w.astype(np.float64) - shift)
    pads = window.get("pads", (0, 0, 0, 0))
    if "auto_pad" in window:
        pads = (1, 0, 0, 0)  # 6 -> 3 with stride 2: total 1 for the kernel of 3 (lower: before), 0 for that of 2.
    inputs = torch.nn.functional.pad(inputs, (pads[1], pads[3], pads[0], pads[2]))
    expected = torch.nn.functional.conv2d(
        inputs, weights, stride=window.get("strides", 1), dilation=window.get("dilations", 1), groups=groups
    ).numpy()
    found = way("conv_integer", x, w, *zeros, **window)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_a_vector_of_input_zero_points_is_refused():
    with pytest.raises(TypeMismatch, match="x_zero is tensor<2xui8>"):
        run("conv_integer", bytes_of(1, 2, 3, signed=False), bytes_of(1, 2, 2, signed=True), bytes_of(2, signed=False))
