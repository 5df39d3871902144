import numpy as np
import pytest
import torch
from torch.nn import functional

from compiler.errors import TypeMismatch
from compiler.ir import F32, Call, tensor
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(5)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])

CASES = [
    ((2, 3, 5), (3, 4, 3), {}),
    ((1, 2, 4, 3), (2, 3, 3, 2), {"strides": (2, 3), "pads": (1, 0, 1, 0), "output_padding": (1, 2)}),
    ((1, 4, 3, 3), (4, 2, 2, 3), {"groups": 2, "dilations": (2, 1)}),
    ((1, 2, 4), (2, 2, 2), {"pads": (2, 2), "strides": (3,)}),
    ((1, 2, 3, 2, 3), (2, 2, 2, 1, 2), {"strides": (2, 1, 2)}),
]


@WAYS
@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CASES)
def test_is_torchs(way, x_shape, w_shape, attributes):
    x, w = RNG.standard_normal(x_shape), RNG.standard_normal(w_shape)
    spatial = len(x_shape) - 2
    names = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
    expected = getattr(functional, names[spatial - 1])(
        torch.tensor(x),
        torch.tensor(w),
        stride=attributes.get("strides", 1),
        padding=attributes.get("pads", (0,) * spatial)[:spatial],
        output_padding=attributes.get("output_padding", 0),
        groups=attributes.get("groups", 1),
        dilation=attributes.get("dilations", 1),
    ).numpy()
    np.testing.assert_allclose(way("conv_transpose", x, w, **attributes), expected, rtol=1e-11, atol=1e-13)


@WAYS
def test_output_shape_takes_the_odd_padding_before_unless_upper(way):
    x, w = np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0, 100.0]]])
    # Unpadded, stride 2: 1 10 102 20 200; of total padding 1, the first or the last goes.
    np.testing.assert_array_equal(
        way("conv_transpose", x, w, strides=(2,), output_shape=(4,))[0, 0], [10, 102, 20, 200]
    )
    upper = way("conv_transpose", x, w, strides=(2,), auto_pad="same_upper")
    np.testing.assert_array_equal(upper[0, 0], [1, 10, 102, 20])


@WAYS
def test_asymmetric_padding_cuts_each_side(way):
    x, w = np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0, 100.0]]])
    np.testing.assert_array_equal(way("conv_transpose", x, w, strides=(2,), pads=(0, 3))[0, 0], [1, 10])


@WAYS
def test_half_is_summed_in_float32(way):
    x, w = np.ones((1, 3000, 1), np.float16), np.ones((3000, 1, 1), np.float16)
    assert way("conv_transpose", x, w)[0, 0, 0] == 3000
    sums = way("conv_transpose", x * np.float16(0.1), w, to=F32)
    assert sums.dtype == np.float32
    np.testing.assert_allclose(sums, 3000 * float(np.float16(0.1)), rtol=1e-6)


def test_channels_must_fit_and_symbols_stay_unknown():
    definition = ConvTranspose.instance()
    with pytest.raises(TypeMismatch, match="x has 3 channels, w 2"):
        definition.infer(Call([tensor(F32, (1, 3, 4)), tensor(F32, (2, 1, 2))], definition.complete({})))
    call = Call([tensor(F32, ("N", 3, "L")), tensor(F32, (3, 2, 2))], definition.complete({"groups": 3}))
    assert definition.infer(call) == (tensor(F32, ("N", 6, "?")),)
