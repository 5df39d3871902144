import numpy as np
import pytest

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ops.harness_test import run
from compiler.ops.operator_check_test import onnxruntime

RNG = np.random.default_rng(43)
X = RNG.standard_normal((2, 3, 8, 9)).astype(np.float32)
ROIS = np.array([[1, 1, 6, 5], [0, 2, 3.3, 7.9], [5, 5, 5.2, 5.1], [-3, -2, 12, 11]], np.float32)
BATCH = np.array([0, 1, 1, 0], np.int64)


@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align_is_onnxruntimes(mode, ratio, half_pixel):
    (expected,) = onnxruntime(
        "RoiAlign", [X, ROIS, BATCH], mode=mode, sampling_ratio=ratio, output_height=3, output_width=2,
        spatial_scale=0.75, coordinate_transformation_mode="half_pixel" if half_pixel else "output_half_pixel",
    )  # fmt: skip
    found = run(
        "roi_align", X, ROIS, BATCH, mode=mode, sampling_ratio=ratio, height=3, width=2, spatial_scale=0.75,
        half_pixel=half_pixel,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_max_roi_pool_is_onnxruntimes():
    rois = np.array(
        [[0, 1, 1, 6, 5], [1, 0, 2, 3, 7], [1, 5, 5, 5, 5], [0, 2, 3, 20, 20], [0, 30, 30, 40, 40]], np.float32
    )
    (expected,) = onnxruntime("MaxRoiPool", [X, rois], pooled_shape=[3, 2], spatial_scale=0.8)
    found = run("max_roi_pool", X, rois, height=3, width=2, spatial_scale=0.8)
    np.testing.assert_array_equal(found, expected)


def test_batch_indices_and_shapes_are_checked():
    with pytest.raises(EvaluationError, match=r"batch indices from 0 to 2; expected them in 0\.\.1"):
        run("roi_align", X, ROIS, np.array([0, 1, 2, 0]))
    with pytest.raises(TypeMismatch, match=r"expected \[N, C, H, W\] and \[R, 5\]"):
        run("max_roi_pool", X, ROIS)
