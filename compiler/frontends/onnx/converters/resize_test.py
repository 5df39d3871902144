import numpy as np
import pytest

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

X = np.random.default_rng(17).normal(size=(1, 2, 4, 5)).astype(np.float32)


def floats(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode):
    expected = run_node("Upsample", [X, floats(1, 1, 2, 3)], 9, mode=mode)[0]
    agrees_with_onnxruntime("Upsample", [X], 7, scales=[1.0, 1.0, 2.0, 3.0], mode=mode)
    agrees_with_onnxruntime("Upsample", [X, floats(1, 1, 2, 3)], 9, mode=mode)
    first = {"nearest": "nearest", "linear": "bilinear"}[mode]
    (got,) = run_node("Upsample", [X], 1, height_scale=2.0, width_scale=3.0, mode=first)
    np.testing.assert_array_equal(got, expected)
    if mode == "nearest":
        np.testing.assert_array_equal(expected, X.repeat(2, 2).repeat(3, 3))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.5, 0.6), (1, 1, 1.7, 0.4)])
def test_resize_in_version_10(mode, scales):
    agrees_with_onnxruntime("Resize", [X, floats(*scales)], 10, known=[1], mode=mode)


@pytest.mark.parametrize("opset", [11, 13, 18, 19])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_by_scales_and_by_sizes(mode, coordinates, opset):
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    empty = np.zeros(0, np.float32) if opset == 11 else None
    agrees_with_onnxruntime("Resize", [X, empty, floats(1, 1, 1.75, 2.2)], opset, **attributes)
    agrees_with_onnxruntime("Resize", [X, empty, empty, np.array([1, 2, 3, 9])], opset, **attributes)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_rounding_of_nearest(nearest_mode):
    agrees_with_onnxruntime("Resize", [X, None, floats(1, 1, 1.5, 0.7)], 13, nearest_mode=nearest_mode)


def test_resize_of_chosen_axes_with_antialiasing():
    arrays = [X, None, None, np.array([2, 3])]
    agrees_with_onnxruntime("Resize", arrays, 18, axes=[2, 3], mode="linear", antialias=1)


def test_crop_and_resize():
    roi = floats(0, 0, 0.2, 0.1, 1, 1, 0.8, 1.2)
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0, "mode": "linear"}
    agrees_with_onnxruntime("Resize", [X, roi, None, np.array([1, 2, 3, 3])], 13, **attributes)


def test_exactly_one_of_scales_and_sizes():
    for arrays in ([X], [X, None, floats(1, 1, 2, 2), np.array([1, 2, 8, 10])]):
        with pytest.raises(InvalidModel, match="exactly one"):
            run_node("Resize", arrays, 13)


def test_unknown_old_mode_is_refused():
    with pytest.raises(InvalidModel, match="expected nearest or linear"):
        run_node("Upsample", [X], 7, scales=[1.0, 1.0, 2.0, 2.0], mode="cubic")
