import numpy as np
import pytest

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

X = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
GRID = np.linspace(-1.2, 1.2, 12, dtype=np.float32).reshape(1, 2, 3, 2)


@pytest.mark.parametrize("attributes", [{"mode": "nearest", "padding_mode": "wrap"}, {"mode": "area"}])
def test_each_choice_of_a_grid_sample_is_one_of_its_list(attributes):
    with pytest.raises(InvalidModel, match="expected known ones"):
        run_node("GridSample", [X, GRID], 22, **attributes)


@pytest.mark.parametrize(("opset", "mode"), [(16, "bilinear"), (16, "bicubic"), (20, "linear"), (22, "cubic")])
def test_modes_have_other_names_since_version_20(opset, mode):
    agrees_with_onnxruntime("GridSample", [X, GRID], opset, mode=mode, padding_mode="border")
