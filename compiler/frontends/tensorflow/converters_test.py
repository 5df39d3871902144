import numpy as np
import pytest

from compiler.errors import UnsupportedOperator
from compiler.frontends.tensorflow import import_tensorflow
from compiler.frontends.tensorflow.harness_test import check, tf, traced


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_floor_division_keeps_its_sign_at_the_limits_of_integers(dtype):
    info = np.iinfo(dtype)
    a = np.array([info.max, info.max - 1, info.min + 1, info.min, 7, -7], dtype)
    b = np.array([info.min, info.min, info.max, info.max, -2, 2], dtype)
    check(lambda x, y: tf.raw_ops.FloorDiv(x=x, y=y), a, b)


def test_truncated_division_of_floats_has_whole_results():
    a, b = np.array([7.5, -7.5, 0.5], np.float32), np.array([2.0, 2.0, 1.0], np.float32)
    check(lambda x, y: tf.raw_ops.TruncateDiv(x=x, y=y), a, b)


def test_the_squared_difference_of_complex_numbers_is_its_squared_magnitude():
    a, b = np.array([1 + 2j, 3 - 1j], np.complex64), np.array([2 - 1j, 1j], np.complex64)
    check(lambda x, y: tf.raw_ops.SquaredDifference(x=x, y=y), a, b)


@pytest.mark.parametrize("axis", [[0], []])
def test_the_norm_of_complex_numbers_is_that_of_their_magnitudes(axis):
    x = np.array([[1 + 2j, 3 - 1j], [2j, -4]], np.complex64)
    check(lambda x: tf.raw_ops.EuclideanNorm(input=x, axis=axis), x)


def test_a_product_of_sparse_bfloat16_is_float32():
    x = tf.cast(np.arange(6).reshape(2, 3), tf.bfloat16).numpy()
    check(lambda a, b: tf.raw_ops.SparseMatMul(a=a, b=b), x, x.T)


def test_the_padding_of_a_dilation_of_integers_does_not_wrap():
    x = np.arange(12, dtype=np.int32).reshape(1, 3, 4, 1)
    w = np.full((3, 2, 1), -5, np.int32)
    strides = [1, 1, 1, 1]
    check(lambda x, w: tf.raw_ops.Dilation2D(input=x, filter=w, strides=strides, rates=strides, padding="SAME"), x, w)


def test_of_unsigned_numbers_a_narrow_range_is_the_whole_one():
    def quantized(x):
        return tf.raw_ops.QuantizeAndDequantizeV2(
            input=x, input_min=0.0, input_max=5.0, signed_input=False, range_given=True, narrow_range=True
        )

    check(quantized, np.array([-1.0, 0.01, 2.3, 9.0], np.float32))


def test_digits_of_floats_are_not_cut_off():
    program = traced(lambda x: tf.raw_ops.Cast(x=x, DstT=tf.float16, Truncate=True), np.ones(2, np.float32))
    with pytest.raises(UnsupportedOperator, match="rounding towards zero"):
        import_tensorflow(program)


@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz", "int2", "uint2"])
def test_types_of_few_bits_are_imported(name):
    dtype = getattr(tf.dtypes.experimental, name, None) or tf.dtypes.as_dtype(name)
    x = np.array([1, 0, 1]).astype(dtype.as_numpy_dtype)
    check(lambda x: tf.raw_ops.Identity(input=x), x)
