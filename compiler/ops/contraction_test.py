import ml_dtypes
import numpy as np
import pytest
import torch

from compiler.errors import TypeMismatch
from compiler.ir import F32, I8, I32, U8, Call, tensor
from compiler.ops.contraction import Conv, DotGeneral, MatMul
from compiler.ops.harness_test import run, run_loops

RNG = np.random.default_rng(7)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


MATMULS = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 1, 3, 4), (6, 4, 2)),
    ((2, 3, 0), (0, 4)),
]


@pytest.mark.parametrize("way", [run, run_loops])
@pytest.mark.parametrize("shapes", MATMULS)
def test_matmul_follows_numpy_for_vectors_batches_and_empty_sums(way, shapes):
    a, b = (normal(*shape, dtype=np.float64) for shape in shapes)
    np.testing.assert_allclose(way("matmul", a, b), np.matmul(a, b), rtol=1e-12)


@pytest.mark.parametrize("way", [run, run_loops])
def test_narrow_integers_are_summed_in_the_result_type(way):
    a = RNG.integers(0, 256, (3, 40)).astype(np.uint8)
    b = RNG.integers(-128, 128, (40, 2)).astype(np.int8)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    found = way("matmul", a, b, to=I32)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("way", [run, run_loops])
def test_half_types_accumulate_in_float32_and_round_once(way, dtype):
    a, b = np.full((1, 4096), 1.0, dtype), np.full((4096, 1), 1.0, dtype)
    assert float(way("matmul", a, b)[0, 0]) == 4096.0


def test_int64_products_wrap():
    big = np.array([[2**62]], np.int64)
    assert run("matmul", big, np.array([[4]], np.int64))[0, 0] == 0


def test_operand_types_must_agree_unless_integers_are_widened():
    a = tensor(U8, (2, 3))
    with pytest.raises(TypeMismatch, match="element types ui8 and i8"):
        MatMul.instance().check(Call([a, tensor(I8, (3, 2))], {}))
    with pytest.raises(TypeMismatch, match="contracted dim has size 3"):
        MatMul.instance().infer(Call([a, tensor(U8, (4, 2))], {}))


def test_symbolic_dims_stay_in_matmul():
    found = MatMul.instance().infer(Call([tensor(F32, ("N", 3, "K")), tensor(F32, ("K", 4))], {}))
    assert found == (tensor(F32, ("N", 3, 4)),)


@pytest.mark.parametrize("way", [run, run_loops])
def test_dot_general_is_einsum_over_any_dims(way):
    a, b = normal(5, 2, 3, 4, dtype=np.float64), normal(4, 6, 2, 5, dtype=np.float64)
    found = way("dot_general", a, b, a_batch=(1,), b_batch=(2,), a_contract=(3, 0), b_contract=(0, 3))
    np.testing.assert_allclose(found, np.einsum("abcd,defa->bce".replace("f", "b"), a, b), rtol=1e-12)


@pytest.mark.parametrize("way", [run, run_loops])
def test_dot_general_of_everything_is_a_scalar(way):
    a, b = normal(2, 3), normal(2, 3)
    found = way("dot_general", a, b, a_contract=(0, 1), b_contract=(0, 1))
    assert found.shape == ()
    np.testing.assert_allclose(found, (a.astype(np.float64) * b).sum(), rtol=1e-5)


def test_dot_general_keeps_symbols():
    found = DotGeneral.instance().infer(
        Call(
            [tensor(F32, ("B", "S", 8)), tensor(F32, ("B", 8, 4))],
            {"a_batch": (0,), "b_batch": (0,), "a_contract": (2,), "b_contract": (1,)},
        )
    )
    assert found == (tensor(F32, ("B", "S", 4)),)


CONVS = [
    ((2, 3, 9), (4, 3, 3), {}),
    ((1, 4, 7, 8), (6, 2, 3, 2), {"groups": 2, "strides": (2, 1), "pads": (1, 0, 1, 0)}),
    ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "dilations": (2, 1), "pads": (2, 1, 2, 1)}),
    ((1, 2, 4, 5, 4), (3, 2, 2, 2, 2), {"strides": (1, 2, 2)}),
    ((0, 3, 5), (4, 3, 3), {}),
]


@pytest.mark.parametrize("way", [run, run_loops])
@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CONVS)
def test_conv_is_torchs(way, x_shape, w_shape, attributes):
    x, w = normal(*x_shape, dtype=np.float64), normal(*w_shape, dtype=np.float64)
    spatial = len(x_shape) - 2
    function = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[spatial - 1]
    expected = function(
        torch.tensor(x),
        torch.tensor(w),
        stride=attributes.get("strides", 1),
        padding=attributes.get("pads", (0,) * spatial)[:spatial],
        dilation=attributes.get("dilations", 1),
        groups=attributes.get("groups", 1),
    ).numpy()
    np.testing.assert_allclose(way("conv", x, w, **attributes), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("way", [run, run_loops])
@pytest.mark.parametrize("auto_pad", ["same_upper", "same_lower"])
def test_conv_pads_to_keep_the_size_with_the_odd_element_on_the_named_side(way, auto_pad):
    x, w = normal(1, 1, 5, dtype=np.float64), normal(1, 1, 4, dtype=np.float64)
    pads = (1, 2) if auto_pad == "same_upper" else (2, 1)
    expected = np.correlate(np.pad(x[0, 0], pads), w[0, 0], "valid")
    np.testing.assert_allclose(way("conv", x, w, auto_pad=auto_pad)[0, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("way", [run, run_loops])
def test_integer_conv_is_exact(way):
    x = RNG.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8)
    w = RNG.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
    expected = torch.nn.functional.conv2d(torch.tensor(x).double(), torch.tensor(w).double(), padding=1).numpy()
    np.testing.assert_array_equal(way("conv", x, w, to=I32, pads=(1, 1, 1, 1)), expected)


def test_conv_names_what_does_not_fit():
    with pytest.raises(TypeMismatch, match="channel dim with 2 groups has size 3"):
        Conv.instance().infer(
            Call([tensor(F32, (1, 3, 5)), tensor(F32, (2, 2, 3))], Conv.instance().complete({"groups": 2}))
        )


def test_conv_of_symbolic_sizes():
    call = Call(
        [tensor(F32, ("N", 3, "H", 8)), tensor(F32, (4, 3, 3, 3))], Conv.instance().complete({"pads": (1, 1, 1, 1)})
    )
    assert Conv.instance().infer(call) == (tensor(F32, ("N", 4, "H", 8)),)
