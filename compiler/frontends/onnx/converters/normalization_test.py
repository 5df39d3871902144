import numpy as np
import pytest

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(2, 4, 3, 2)).astype(np.float32)
CHANNELS = [RANDOM.normal(size=4).astype(np.float32) for _ in range(3)]
SCALE, BIAS, MEAN = CHANNELS
VARIANCE = np.abs(RANDOM.normal(size=4)).astype(np.float32) + 0.5


def softmax(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


@pytest.mark.parametrize("opset", [1, 11])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_old_softmax_takes_its_input_as_a_matrix(opset, axis):
    wide, axes = X.astype(np.float64), tuple(range(axis, 4))
    np.testing.assert_allclose(run_node("Softmax", [X], opset, axis=axis)[0], softmax(wide, axes), rtol=2e-6)
    logs = run_node("LogSoftmax", [X], opset, axis=axis)[0]
    np.testing.assert_allclose(logs, np.log(softmax(wide, axes)), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("opset", [1, 11])
def test_old_softmax_starts_at_axis_1_by_default(opset):
    np.testing.assert_allclose(run_node("Softmax", [X], opset)[0], softmax(X.astype(float), (1, 2, 3)), rtol=2e-6)


@pytest.mark.parametrize("opset", [1, 11])
def test_old_softmax_takes_an_axis_from_the_end(opset):
    expected = softmax(X.astype(float), (2, 3))
    np.testing.assert_allclose(run_node("Softmax", [X], opset, axis=-2)[0], expected, rtol=2e-6)


@pytest.mark.parametrize("axis", [None, 0, -2])
def test_softmax_is_along_one_axis(axis):
    attributes = {} if axis is None else {"axis": axis}
    expected = softmax(X.astype(float), (-1 if axis is None else axis,))
    np.testing.assert_allclose(run_node("Softmax", [X], 13, **attributes)[0], expected, rtol=2e-6)


def test_hardmax():
    x = np.array([[[1, 3], [3, 0]], [[2, 2], [1, 2]]], np.float32)
    for opset in (1, 11):
        (got,) = run_node("Hardmax", [x], opset)
        assert got.reshape(2, 4).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert run_node("Hardmax", [x], 13)[0].tolist() == [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]


def batch_norm(x, scale, bias, mean, variance, epsilon=1e-5):
    mean, variance, scale, bias = (v.reshape(-1, 1, 1).astype(np.float64) for v in (mean, variance, scale, bias))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + bias


OPERANDS = [X, SCALE, BIAS, MEAN, VARIANCE]


@pytest.mark.parametrize(
    ("opset", "attributes"),
    [
        (1, {"is_test": 1, "consumed_inputs": [0, 0, 0, 0, 0]}),
        (6, {"is_test": 1}),
        (7, {}),
        (9, {}),
        (14, {}),
        (15, {}),
    ],
)
def test_batch_norm_in_inference(opset, attributes):
    expected = batch_norm(*OPERANDS)
    np.testing.assert_allclose(
        run_node("BatchNormalization", OPERANDS, opset, **attributes)[0], expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [(6, 1, {}), (6, 3, {}), (7, 3, {}), (9, 3, {}), (14, 3, {"training_mode": 1}), (15, 3, {"training_mode": 1})],
)
def test_batch_norm_in_training(opset, outputs, attributes):
    mean, variance = X.mean((0, 2, 3)), X.var((0, 2, 3))
    got = run_node("BatchNormalization", OPERANDS, opset, outputs, momentum=0.75, **attributes)
    np.testing.assert_allclose(got[0], batch_norm(X, SCALE, BIAS, mean, variance), rtol=1e-5, atol=1e-6)
    if outputs == 3:
        np.testing.assert_allclose(got[1], MEAN * 0.75 + mean * 0.25, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[2], VARIANCE * 0.75 + variance * 0.25, rtol=1e-5, atol=1e-6)


def test_saved_statistics_are_refused():
    with pytest.raises(UnsupportedOperator, match="output 'y3' has no conversion"):
        run_node("BatchNormalization", OPERANDS, 7, 5)


@pytest.mark.parametrize(("opset", "attributes"), [(1, {"consumed_inputs": [0] * 5}), (6, {}), (7, {})])
def test_batch_norm_with_statistics_of_each_activation(opset, attributes):
    shape = X.shape[1:]
    scale, bias, mean = (RANDOM.normal(size=shape).astype(np.float32) for _ in range(3))
    variance = np.abs(RANDOM.normal(size=shape)).astype(np.float32) + 0.5
    if opset < 7:
        attributes = {**attributes, "is_test": 1}
    (got,) = run_node("BatchNormalization", [X, scale, bias, mean, variance], opset, spatial=0, **attributes)
    expected = (X - mean.astype(float)) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [1, -1])
def test_layer_norm_with_its_statistics(axis):
    shape = X.shape[axis:]
    scale, bias = RANDOM.normal(size=shape).astype(np.float32), RANDOM.normal(size=shape).astype(np.float32)
    for outputs in (2, 3):
        agrees_with_onnxruntime("LayerNormalization", [X, scale, bias], 17, outputs, axis=axis)
    agrees_with_onnxruntime("LayerNormalization", [X, scale], 17, axis=axis, epsilon=0.1)


def test_layer_norm_of_half_floats_has_statistics_in_single():
    scale = np.ones(2, np.float16)
    y, mean, inverse = run_node("LayerNormalization", [X.astype(np.float16), scale], 17, 3)
    assert (y.dtype, mean.dtype, inverse.dtype) == (np.float16, np.float32, np.float32)


def test_rms_norm():
    scale = np.array([2, 3], np.float32)
    (got,) = run_node("RMSNormalization", [X, scale], 23)
    expected = X / np.sqrt((X.astype(float) ** 2).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_group_norm_has_a_scale_a_group_in_18_and_a_channel_since_21():
    grouped = X.astype(float).reshape(2, 2, -1)
    normal = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    group = np.array([2, 3], np.float32)
    (old,) = run_node("GroupNormalization", [X, group, group], 18, num_groups=2)
    np.testing.assert_allclose(old, (normal * group[:, None] + group[:, None]).reshape(X.shape), rtol=1e-5, atol=1e-6)
    channels = (SCALE.reshape(4, 1, 1), BIAS.reshape(4, 1, 1))
    (new,) = run_node("GroupNormalization", [X, SCALE, BIAS], 21, num_groups=2)
    np.testing.assert_allclose(new, normal.reshape(X.shape) * channels[0] + channels[1], rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidModel, match="2 entries; expected 4"):
        run_node("GroupNormalization", [X, group, group], 21, num_groups=2)


@pytest.mark.parametrize("opset", [1, 6, 22])
def test_instance_norm(opset):
    mean, variance = X.mean((2, 3), keepdims=True), X.var((2, 3), keepdims=True)
    expected = (X - mean) / np.sqrt(variance + 1e-5) * SCALE.reshape(4, 1, 1) + BIAS.reshape(4, 1, 1)
    np.testing.assert_allclose(
        run_node("InstanceNormalization", [X, SCALE, BIAS], opset)[0], expected, rtol=2e-5, atol=1e-5
    )


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("opset", [1, 13])
def test_local_response_norm(opset, size):
    agrees_with_onnxruntime("LRN", [X], opset, size=size, alpha=0.5, beta=0.6, bias=1.5)


@pytest.mark.parametrize("opset", [9, 13])
def test_mean_variance_norm(opset):
    agrees_with_onnxruntime("MeanVarianceNormalization", [X], opset)
    axes = (0, 1)
    expected = (X - X.mean(axes, keepdims=True)) / X.std(axes, keepdims=True)
    (got,) = run_node("MeanVarianceNormalization", [X], opset, axes=list(axes))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("opset", [1, 22])
def test_lp_norm(opset, p):
    agrees_with_onnxruntime("LpNormalization", [X], opset, axis=1, p=p)


def test_other_norms_are_refused():
    with pytest.raises(InvalidModel, match="'p' is 3; expected 1 or 2"):
        run_node("LpNormalization", [X], 1, p=3)
