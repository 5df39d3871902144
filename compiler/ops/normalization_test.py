import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from torch.nn import functional

from compiler.errors import TypeMismatch
from compiler.ops.harness_test import run, run_decomposed

WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
RNG = np.random.default_rng(11)


def normal(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def onnx_reference(operator, opset, inputs, outputs=1, **attributes):
    names = [f"i{k}" for k in range(len(inputs))]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    untyped = [onnx.ValueInfoProto(name=name) for name in results]
    model = helper.make_model(
        helper.make_graph([node], "g", types, untyped), opset_imports=[helper.make_opsetid("", opset)]
    )
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))


@WAYS
@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(way, axis):
    x, scale, bias = normal(2, 3, 4), normal(*(2, 3, 4)[axis % 3 :]), normal(*(2, 3, 4)[axis % 3 :])
    expected = functional.layer_norm(
        torch.tensor(x), scale.shape, torch.tensor(scale), torch.tensor(bias), eps=1e-3
    ).numpy()
    y, mean, inverse = way("layer_norm", x, scale, bias, axis=axis, epsilon=1e-3, statistics=True)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
    axes = tuple(range(axis % 3, 3))
    np.testing.assert_allclose(mean, x.mean(axes, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-3), rtol=1e-10)


@WAYS
def test_layer_norm_without_scale_in_bfloat16_computes_in_float32(way):
    x = (normal(2, 512) + 100).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    found = way("layer_norm", x).astype(np.float64)
    assert np.all(np.abs(found - expected) <= 0.51 * 2.0**-7 * np.maximum(np.abs(expected), 1e-3))


@WAYS
def test_rms_norm(way):
    x, scale = normal(2, 3, 4), normal(4)
    expected = functional.rms_norm(torch.tensor(x), (4,), torch.tensor(scale), eps=1e-5).numpy()
    np.testing.assert_allclose(way("rms_norm", x, scale), expected, rtol=1e-12)


@WAYS
@pytest.mark.parametrize("shape", [(2, 6, 3, 2), (2, 6)])
def test_group_norm_with_vectors_a_channel_and_a_group(way, shape):
    x, scale, bias = normal(*shape), normal(6), normal(6)
    expected = functional.group_norm(torch.tensor(x), 3, torch.tensor(scale), torch.tensor(bias), eps=1e-5).numpy()
    np.testing.assert_allclose(way("group_norm", x, scale, bias, num_groups=3), expected, rtol=1e-10, atol=1e-12)
    by_group = way("group_norm", x, scale[:3], bias[:3], num_groups=3)
    by_channel = way("group_norm", x, np.repeat(scale[:3], 2), np.repeat(bias[:3], 2), num_groups=3)
    np.testing.assert_array_equal(by_group, by_channel)


def test_groups_must_divide_the_channels():
    with pytest.raises(TypeMismatch, match="6 channels in 4 groups"):
        run("group_norm", normal(1, 6, 2), normal(6), normal(6), num_groups=4)


@WAYS
def test_instance_norm(way):
    x, scale, bias = normal(2, 3, 4, 5), normal(3), normal(3)
    expected = functional.instance_norm(
        torch.tensor(x), weight=torch.tensor(scale), bias=torch.tensor(bias), eps=1e-5
    ).numpy()
    np.testing.assert_allclose(way("instance_norm", x, scale, bias), expected, rtol=1e-10, atol=1e-12)


@WAYS
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3)])
def test_batch_norm(way, shape):
    x, scale, bias, mean, variance = normal(*shape), normal(3), normal(3), normal(3), np.abs(normal(3))
    tensors = [torch.tensor(array) for array in (x, mean, variance, scale, bias)]
    expected = functional.batch_norm(*tensors, eps=1e-3).numpy()
    found = way("batch_norm", x, scale, bias, mean, variance, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@WAYS
def test_batch_norm_training_follows_onnx(way):
    inputs = [normal(2, 3, 4, dtype=np.float32), *(np.abs(normal(3, dtype=np.float32)) for _ in range(4))]
    expected = onnx_reference("BatchNormalization", 15, inputs, 3, training_mode=1, momentum=0.8)
    found = way("batch_norm_training", *inputs, momentum=0.8)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


@WAYS
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lrn_follows_onnx(way, size):
    # As many instances as channels: the reference loops over the former where it means the latter.
    x = normal(5, 5, 3, 2, dtype=np.float32)
    attributes = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    np.testing.assert_allclose(way("lrn", x, **attributes), onnx_reference("LRN", 13, [x], **attributes)[0], rtol=1e-5)


@WAYS
def test_mean_variance_norm_follows_onnx(way):
    x = normal(2, 3, 4, 5, dtype=np.float32)
    expected = onnx_reference("MeanVarianceNormalization", 13, [x])[0]
    np.testing.assert_allclose(way("mean_variance_norm", x), expected, rtol=1e-4, atol=1e-5)


@WAYS
@pytest.mark.parametrize("p", [1, 2])
def test_lp_norm_of_zeros_is_zero(way, p):
    x = np.array([[3.0, -4.0], [0.0, 0.0]])
    expected = [[3 / 7, -4 / 7], [0, 0]] if p == 1 else [[0.6, -0.8], [0, 0]]
    np.testing.assert_allclose(way("lp_norm", x, p=p), expected, rtol=1e-15)
