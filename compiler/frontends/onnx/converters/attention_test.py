import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, node_model, run_node

RANDOM = np.random.default_rng(29)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def agrees_with_reference(op_type, arrays, opset, outputs=1, **attributes):
    model = node_model(op_type, arrays, opset, outputs, **attributes)
    for value in model.graph.output:
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, 1, None))
    feeds = {f"x{i}": array for i, array in enumerate(arrays) if array is not None}
    expected = ReferenceEvaluator(model).run(None, feeds)
    for got, wanted in zip(run_node(op_type, arrays, opset, outputs, **attributes), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6)


Q, K, V = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)


@pytest.mark.parametrize("opset", [23, 24, 25])
@pytest.mark.parametrize(
    "attributes", [{}, {"scale": 0.3}, {"softcap": 0.5}, {"is_causal": 1}, {"is_causal": 1, "softcap": 2.0}]
)
def test_grouped_attention(opset, attributes):
    agrees_with_reference("Attention", [Q, K, V], opset, **attributes)


@pytest.mark.parametrize("mask", [floats(3, 5), RANDOM.integers(0, 2, (2, 4, 3, 5)) > 0, floats(2, 1, 1, 5)])
def test_masks(mask):
    agrees_with_reference("Attention", [Q, K, V, mask], 24)


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("causal", [0, 1])
def test_past_is_put_before_keys_and_values(opset, causal):
    past = [None, floats(2, 2, 4, 8), floats(2, 2, 4, 6)]
    agrees_with_reference("Attention", [Q, K, V, *past], opset, 3, is_causal=causal)


def test_heads_of_inputs_of_rank_3():
    q, k, v = floats(2, 3, 8), floats(2, 5, 4), floats(2, 5, 6)
    agrees_with_reference("Attention", [q, k, v], 23, q_num_heads=4, kv_num_heads=2)
    with pytest.raises(InvalidModel, match="inputs of rank 3 need it"):
        run_node("Attention", [q, k, v], 23)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_as_an_output(mode):
    # With a softcap the reference gives the capped scores where the text asks for the raw ones.
    attributes = {"softcap": 1.5} if mode else {}
    agrees_with_reference("Attention", [Q, K, V, floats(3, 5)], 24, 4, qk_matmul_output_mode=mode, **attributes)


def test_raw_scores_are_not_capped():
    scores = run_node("Attention", [Q, K, V], 24, 4, softcap=0.5)[3]
    expected = np.einsum("bhsd,bhld->bhsl", Q, K.repeat(2, 1)) / np.sqrt(8)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=2e-6)


def test_half_a_past_is_refused():
    with pytest.raises(InvalidModel, match="only one of"):
        run_node("Attention", [Q, K, V, None, floats(2, 2, 4, 8)], 23)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    x, tables = floats(2, 3, 4, 8), [floats(10, 4), floats(10, 4)]
    positions = np.array([[0, 3, 9, 2], [1, 1, 5, 7]])
    agrees_with_reference("RotaryEmbedding", [x, *tables, positions], 23, interleaved=interleaved)
    part = [floats(10, 2), floats(10, 2), positions]
    agrees_with_reference("RotaryEmbedding", [x, *part], 23, interleaved=interleaved, rotary_embedding_dim=4)
    flat = floats(2, 4, 24)
    direct = [floats(2, 4, 4), floats(2, 4, 4)]
    agrees_with_reference("RotaryEmbedding", [flat, *direct], 23, interleaved=interleaved, num_heads=3)


IMAGE = floats(1, 2, 5, 6)


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("opset", "mode"),
    [(16, "bilinear"), (16, "nearest"), (16, "bicubic"), (20, "linear"), (20, "nearest"), (20, "cubic")],
)
def test_grid_sample(opset, mode, padding_mode, align_corners):
    grid = (RANDOM.random((1, 3, 4, 2)) * 2.4 - 1.2).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    agrees_with_onnxruntime("GridSample", [IMAGE, grid], opset, **attributes)


@pytest.mark.parametrize("align_corners", [0, 1])
def test_affine_grid(align_corners):
    agrees_with_onnxruntime("AffineGrid", [floats(2, 2, 3), np.array([2, 1, 4, 3])], 20, align_corners=align_corners)


ROIS = np.array([[0, 0, 4, 3], [1.2, 0.5, 5.4, 4.4]], np.float32)


@pytest.mark.parametrize(("opset", "attributes"), [
    (10, {}), (10, {"mode": "max"}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}),
    (16, {"sampling_ratio": 2, "spatial_scale": 0.5}),
])  # fmt: skip
def test_roi_align(opset, attributes):
    arrays = [IMAGE, ROIS, np.array([0, 0])]
    agrees_with_onnxruntime("RoiAlign", arrays, opset, output_height=2, output_width=3, **attributes)


def test_max_roi_pool():
    rois = np.concatenate([np.zeros((2, 1), np.float32), ROIS], 1)
    agrees_with_onnxruntime("MaxRoiPool", [IMAGE, rois], 1, pooled_shape=[2, 2], spatial_scale=0.8)
