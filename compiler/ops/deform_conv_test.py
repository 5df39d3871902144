import numpy as np
import pytest
import torch
from onnx.reference.ops.op_deform_conv import _deform_conv_implementation

from compiler.errors import TypeMismatch
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(59)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])


def normal(*shape):
    return RNG.standard_normal(shape)


@WAYS
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("groups", "moved", "strides", "dilations", "pads"),
    [(1, 1, (1, 1), (1, 1), (0, 0, 0, 0)), (2, 2, (2, 1), (1, 2), (1, 2, 0, 1)), (1, 4, (1, 1), (1, 1), (1, 1, 1, 1))],
)
def test_follows_onnx(way, groups, moved, strides, dilations, pads, masked):
    x, w = normal(2, 4, 7, 8), normal(6, 4 // groups, 3, 2)
    rows = (7 + pads[0] + pads[2] - (2 * dilations[0] + 1)) // strides[0] + 1
    columns = (8 + pads[1] + pads[3] - (dilations[1] + 1)) // strides[1] + 1
    offset = normal(2, moved * 12, rows, columns) * 2
    mask = RNG.random((2, moved * 6, rows, columns)) if masked else None
    bias = np.zeros(6)
    expected = _deform_conv_implementation(x, w, offset, bias, mask, dilations, groups, (3, 2), moved, pads, strides)
    found = way(
        "deform_conv", x, w, offset, mask, groups=groups, offset_groups=moved, strides=strides, dilations=dilations,
        pads=pads,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@WAYS
def test_without_offsets_it_is_a_convolution(way):
    x, w = normal(1, 2, 5, 5), normal(3, 2, 3, 3)
    expected = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w)).numpy()
    np.testing.assert_allclose(way("deform_conv", x, w, np.zeros((1, 18, 3, 3))), expected, rtol=1e-12)


def test_offsets_must_fit():
    with pytest.raises(TypeMismatch, match=r"offsets \[18, 3, 3\]"):
        run("deform_conv", normal(1, 2, 5, 5), normal(3, 2, 3, 3), np.zeros((1, 9, 3, 3)))
