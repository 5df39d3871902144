import sys

import ml_dtypes
import numpy as np
import pytest

from compiler.errors import EvaluationError, InvalidModel, OpatlasError
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(4)


@pytest.mark.parametrize("version", [11, 22])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4, 4), (1, 1), (2, 0, 3, 3)])
def test_determinants_are_those_of_onnxruntime(version, shape):
    agrees_with_onnxruntime("Det", [RANDOM.normal(size=shape).astype(np.float32)], version)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_determinants_are_rounded_once(dtype):
    x = np.array([[3, 1], [5, 7.5]], dtype)
    found = run_node("Det", [x], 22)[0]
    assert (found.dtype, float(found), found.shape) == (dtype, 17.5, ())


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(OpatlasError, match="expected square matrices"):
        run_node("Det", [np.ones((2, 3), np.float32)], 22)


def bitmap(pixels):
    """A BMP file of 24 bits a pixel, bottom row first, blue before red, rows padded to 4 bytes."""
    rows = [row[:, ::-1].tobytes() + b"\0" * (-3 * len(row) % 4) for row in pixels[::-1]]
    size = [pixels.shape[1], pixels.shape[0]]
    header = np.array([40, *size, 1 | 24 << 16, 0, 0, 0, 0, 0, 0], "<i4").tobytes()
    return np.frombuffer(b"BM" + np.array([0, 0, 54], "<i4").tobytes() + header + b"".join(rows), np.uint8)


PIXELS = RANDOM.integers(0, 256, (3, 5, 3)).astype(np.uint8)


@pytest.mark.parametrize(("layout", "expected"), [("RGB", PIXELS), ("BGR", PIXELS[:, :, ::-1])])
def test_an_image_is_decoded_into_rows_columns_and_channels(layout, expected):
    np.testing.assert_array_equal(run_node("ImageDecoder", [bitmap(PIXELS)], 20, pixel_format=layout)[0], expected)


def test_grey_is_the_weighted_sum_of_itu_r_601():
    found = run_node("ImageDecoder", [bitmap(PIXELS)], 20, pixel_format="Grayscale")[0]
    assert found.shape == (3, 5, 1)
    assert np.abs(found[..., 0] - PIXELS @ [0.299, 0.587, 0.114]).max() <= 1


def test_bytes_that_are_no_image_give_an_empty_one():
    assert run_node("ImageDecoder", [np.arange(9, dtype=np.uint8)], 20)[0].shape == (0, 0, 3)


def test_a_missing_pillow_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EvaluationError, match=r"opatlas\[image\]"):
        run_node("ImageDecoder", [bitmap(PIXELS)], 20)


def test_an_unknown_layout_is_refused():
    with pytest.raises(InvalidModel, match="'pixel_format' is 'CMYK'"):
        run_node("ImageDecoder", [bitmap(PIXELS)], 20, pixel_format="CMYK")
