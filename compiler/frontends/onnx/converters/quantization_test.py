import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from compiler.errors import InvalidModel, OpatlasError
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(11)
X = (RANDOM.normal(size=(2, 3, 4)) * 40).astype(np.float32)
TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 300, -300], np.float32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantize_by_one_scale(opset, dtype):
    agrees_with_onnxruntime("QuantizeLinear", [X, scalar(0.5), scalar(3, dtype)], opset)
    agrees_with_onnxruntime("QuantizeLinear", [TIES, scalar(1.0), scalar(0, dtype)], opset)


def test_quantize_without_a_zero_point_gives_uint8():
    for opset in (10, 13, 21):
        agrees_with_onnxruntime("QuantizeLinear", [X, scalar(0.5)], opset)


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_and_dequantize_along_an_axis(opset, axis):
    size = X.shape[axis]
    scale, zero = np.linspace(0.3, 2, size, dtype=np.float32), np.arange(size, dtype=np.int8)
    agrees_with_onnxruntime("QuantizeLinear", [X, scale, zero], opset, axis=axis)
    stored = RANDOM.integers(-128, 128, X.shape).astype(np.int8)
    agrees_with_onnxruntime("DequantizeLinear", [stored, scale, zero], opset, axis=axis)


def test_axis_is_1_by_default():
    scale, zero = np.array([1, 2, 3], np.float32), np.zeros(3, np.int8)
    agrees_with_onnxruntime("QuantizeLinear", [X, scale, zero], 13)


def test_first_version_has_one_scale():
    with pytest.raises(InvalidModel, match="has attribute 'axis'"):
        run_node("QuantizeLinear", [X, scalar(1.0)], 10, axis=0)


def test_blocks():
    scale = np.array([[[1, 2]] * 3] * 2, np.float32)
    zero = np.ones_like(scale, np.int8)
    agrees_with_onnxruntime("QuantizeLinear", [X, scale, zero], 21, axis=2, block_size=2)
    stored = RANDOM.integers(-128, 128, X.shape).astype(np.int8)
    agrees_with_onnxruntime("DequantizeLinear", [stored, scale, zero], 21, axis=2, block_size=2)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
def test_dequantize(opset):
    stored = np.array([0, 100, 255], np.uint8)
    agrees_with_onnxruntime("DequantizeLinear", [stored, scalar(0.5), scalar(128, np.uint8)], opset)
    agrees_with_onnxruntime("DequantizeLinear", [stored, scalar(0.5)], opset)


def test_output_type_by_attribute():
    (got,) = run_node("QuantizeLinear", [X, scalar(2.0)], 21, output_dtype=TensorProto.INT16)
    np.testing.assert_array_equal(got, np.rint(X / 2).astype(np.int16))
    (got,) = run_node("QuantizeLinear", [X, scalar(8.0)], 21, output_dtype=TensorProto.INT4)
    np.testing.assert_array_equal(got.astype(int), np.clip(np.rint(X / 8), -8, 7))
    with pytest.raises(InvalidModel, match="expected one type"):
        run_node("QuantizeLinear", [X, scalar(2.0), scalar(0, np.int8)], 21, output_dtype=TensorProto.INT16)


def test_narrow_floats_saturate_unless_told_otherwise():
    arrays = [np.array([1e6, 3.3], np.float32), scalar(1.0), scalar(0, ml_dtypes.float8_e4m3fn)]
    assert run_node("QuantizeLinear", arrays, 19)[0].astype(float).tolist() == [448, 3.25]
    assert np.isnan(run_node("QuantizeLinear", arrays, 19, saturate=0)[0].astype(float)).tolist() == [True, False]


def test_quotient_is_taken_in_the_scales_type():
    x, scale = np.array([1.0], np.float16), np.array(0.0002, np.float16)
    expected = np.rint(x / scale).astype(np.int16)
    zero = scalar(0, np.int16)
    np.testing.assert_array_equal(run_node("QuantizeLinear", [x, scale, zero], 21)[0], expected)
    precise = np.rint(np.float32(1) / np.float32(scale)).astype(np.int16)
    assert precise != expected
    (got,) = run_node("QuantizeLinear", [x, scale, zero], 23, precision=TensorProto.FLOAT)
    np.testing.assert_array_equal(got, [precise])


@pytest.mark.parametrize("x", [X, np.abs(X), -np.abs(X)])
def test_dynamic_quantize(x):
    agrees_with_onnxruntime("DynamicQuantizeLinear", [x], 11, 3)


A, B = RANDOM.integers(0, 256, (2, 3, 5)).astype(np.uint8), RANDOM.integers(-128, 128, (5, 4)).astype(np.int8)


def test_matmul_of_integers():
    agrees_with_onnxruntime("MatMulInteger", [A, B, scalar(7, np.uint8), scalar(-3, np.int8)], 10)
    agrees_with_onnxruntime("MatMulInteger", [A, B], 10)
    agrees_with_onnxruntime("MatMulInteger", [A, B, None, np.arange(4, dtype=np.int8)], 10)


@pytest.mark.parametrize("opset", [10, 21])
def test_matmul_of_quantized(opset):
    arrays = [
        A,
        scalar(0.1),
        scalar(7, np.uint8),
        B,
        scalar(0.02),
        scalar(-3, np.int8),
        scalar(0.7),
        scalar(9, np.uint8),
    ]
    agrees_with_onnxruntime("QLinearMatMul", arrays, opset)


IMAGE = RANDOM.integers(0, 256, (1, 4, 6, 5)).astype(np.uint8)
WEIGHT = RANDOM.integers(-128, 128, (6, 2, 3, 2)).astype(np.int8)


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}, {"auto_pad": "SAME_UPPER"}])
def test_conv_of_integers(attributes):
    unsigned = (WEIGHT.astype(np.int16) + 128).astype(np.uint8)
    zeros = [scalar(100, np.uint8), scalar(128, np.uint8)]
    agrees_with_onnxruntime("ConvInteger", [IMAGE, unsigned, *zeros], 10, group=2, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}])
def test_conv_of_quantized(attributes):
    w_scale, bias = np.linspace(0.01, 0.03, 6, dtype=np.float32), np.arange(6, dtype=np.int32) * 1000
    w_zero = np.zeros(6, np.int8)
    arrays = [
        IMAGE,
        scalar(0.1),
        scalar(100, np.uint8),
        WEIGHT,
        w_scale,
        w_zero,
        scalar(0.9),
        scalar(50, np.uint8),
        bias,
    ]
    agrees_with_onnxruntime("QLinearConv", arrays, 10, group=2, **attributes)


def test_scales_of_a_wrong_number_are_refused():
    with pytest.raises(OpatlasError):
        run_node("QuantizeLinear", [X, np.ones(2, np.float32), np.zeros(2, np.int8)], 13, axis=1)
