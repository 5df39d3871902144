import numpy as np
import pytest
import torch
from onnx.reference.ops.op_grid_sample import GridSample as Reference
from torch.nn import functional

from compiler.errors import TypeMismatch
from compiler.ir import F32, Call, tensor
from compiler.ops import lookup
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(41)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
ALIGN = pytest.mark.parametrize("align", [False, True])
PADDING = pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])


def points(*shape):
    return RNG.uniform(-1.8, 1.8, shape)


@WAYS
@ALIGN
@PADDING
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("spatial", [2, 3])
def test_is_torchs(way, mode, padding, align, spatial):
    x = RNG.standard_normal((2, 3, 5, 4, 3)[: 2 + spatial])
    grid = points(2, *(3, 2, 4)[:spatial], spatial)
    expected = functional.grid_sample(
        torch.tensor(x),
        torch.tensor(grid),
        mode="bilinear" if mode == "linear" else mode,
        padding_mode=padding,
        align_corners=align,
    ).numpy()
    found = way("grid_sample", x, grid, mode=mode, padding=padding, align_corners=align)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@WAYS
@ALIGN
@PADDING
def test_cubic_is_torchs(way, padding, align):
    """With 'border' each neighbour is held inside, not the point: onnxruntime agrees, onnx.reference does not."""
    x, grid = RNG.standard_normal((2, 3, 5, 4)), points(2, 4, 3, 2)
    attributes = {"mode": "bicubic", "padding_mode": padding, "align_corners": align}
    expected = functional.grid_sample(torch.tensor(x), torch.tensor(grid), **attributes).numpy()
    found = way("grid_sample", x, grid, mode="cubic", padding=padding, align_corners=align)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@WAYS
@ALIGN
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_cubic_follows_onnx(way, padding, align):
    x = RNG.standard_normal((1, 2, 5, 4))
    grid = points(1, 3, 3, 2)
    expected = Reference._run(_Plain(), x, grid, mode="cubic", padding_mode=padding, align_corners=int(align))[0]
    found = way("grid_sample", x, grid, mode="cubic", padding=padding, align_corners=align)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


class _Plain(Reference):
    def __init__(self):
        self.align_corners = 0


@WAYS
@PADDING
@pytest.mark.parametrize("element", ["bool", "complex64", "complex128", "object"])
def test_nearest_takes_elements_of_any_type_as_they_are(way, padding, element):
    places = np.arange(1, 41).reshape(2, 1, 5, 4)
    grid = points(2, 3, 3, 2)
    attributes = {"mode": "nearest", "padding_mode": padding, "align_corners": False}
    sampled = functional.grid_sample(torch.tensor(places * 1.0), torch.tensor(grid), **attributes)
    numbers = np.arange(41)
    others = {"bool": numbers % 3 == 1, "object": np.array(["", *map(str, numbers[1:])], object)}
    table = others.get(element, numbers * (1 - 2j)).astype(element)
    found = way("grid_sample", table[places], grid, mode="nearest", padding=padding)
    assert found.dtype == table.dtype
    np.testing.assert_array_equal(found, table[sampled.numpy().astype(int)])


@WAYS
@PADDING
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_complex_numbers_are_joined_by_part(way, padding, mode):
    x = RNG.standard_normal((1, 2, 5, 4)) + 1j * RNG.standard_normal((1, 2, 5, 4))
    grid = points(1, 3, 3, 2)
    attributes = {"mode": f"bi{mode}", "padding_mode": padding, "align_corners": False}
    parts = [
        functional.grid_sample(torch.tensor(part.copy()), torch.tensor(grid), **attributes).numpy()
        for part in (x.real, x.imag)
    ]
    found = way("grid_sample", x, grid, mode=mode, padding=padding)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found, parts[0] + 1j * parts[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("x", [np.zeros((1, 1, 2, 2), bool), np.full((1, 1, 2, 2), "a", object)])
def test_no_sums_of_booleans_and_strings(x):
    with pytest.raises(TypeMismatch, match="no sums; expected 'nearest'"):
        run("grid_sample", x, np.zeros((1, 1, 1, 2)), mode="linear")


@WAYS
def test_nearest_keeps_a_negative_zero(way):
    found = way("grid_sample", np.full((1, 1, 1, 1), -0.0), np.zeros((1, 1, 1, 2)), mode="nearest")
    assert np.signbit(found).all()


@WAYS
def test_infinite_and_nan_points_are_read_somewhere(way):
    x = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    grid = np.array([[[[np.inf, -np.inf], [np.nan, -1.0]]]])
    found = way("grid_sample", x, grid, mode="nearest", padding="border", align_corners=True)
    np.testing.assert_array_equal(found, [[[[2, 1]]]])


@WAYS
def test_nearest_of_integers(way):
    x = np.array([[[[1, 2], [3, 4]]]], np.int32)
    grid = np.array([[[[-0.9, 0.9], [0.9, -0.9]]]], np.float32)
    np.testing.assert_array_equal(way("grid_sample", x, grid, mode="nearest"), [[[[3, 2]]]])


def test_one_spatial_dim_is_enough():
    x, grid = tensor(F32, ("N", 2, 5)), tensor(F32, ("N", 7, 1))
    assert lookup("grid_sample").infer(Call([x, grid], {})) == (tensor(F32, ("N", 2, 7)),)


def test_ranks_must_fit():
    with pytest.raises(TypeMismatch, match="for n spatial dims"):
        run("grid_sample", np.zeros((1, 1, 2, 2)), np.zeros((1, 2, 2, 3)))


@WAYS
@ALIGN
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4)])
def test_affine_grid_is_torchs(way, align, sizes):
    theta = RNG.standard_normal((2, len(sizes), len(sizes) + 1))
    expected = functional.affine_grid(torch.tensor(theta), (2, 1, *sizes), align_corners=align).numpy()
    found = way("affine_grid", theta, np.array([2, 1, *sizes], np.int64), align_corners=align)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
