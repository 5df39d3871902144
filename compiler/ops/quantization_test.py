import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import BF16, F16, I8, I16, U4, U8, element_of
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(17)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def reference(operator, opset, inputs, **attributes):
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(operator, names, ["o"], **attributes)
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "g", types, [helper.make_tensor_value_info("o", TensorProto.UNDEFINED, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))[0]


@WAYS
def test_ties_go_to_even_and_ends_saturate(way):
    x = np.array([-1e9, -1.5, -0.5, 0.5, 1.5, 2.5, 300, np.inf, -np.inf], np.float32)
    found = way("quantize", x, np.float32(1).reshape(()), np.array(0, np.int8))
    np.testing.assert_array_equal(found, [-128, -2, 0, 0, 2, 2, 127, 127, -128])
    # The zero point comes after the rounding: 0.5 is a tie still.
    found = way("quantize", x[2:4], np.float32(1).reshape(()), np.array(3, np.uint8))
    np.testing.assert_array_equal(found, [3, 3])


TYPES = [np.int8, np.uint8, np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn,
         ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz]  # fmt: skip


@WAYS
@pytest.mark.parametrize("dtype", TYPES)
def test_quantize_and_back_an_axis(way, dtype):
    x, scale = normal(2, 3, 4) * 40, np.abs(normal(3)) + np.float32(0.1)
    zero = np.zeros(3, dtype) if element_of(np.dtype(dtype)).is_float else np.array([1, 0, 2]).astype(dtype)
    stored = way("quantize", x, scale, zero)
    np.testing.assert_array_equal(stored, reference("QuantizeLinear", 21, [x, scale, zero]))
    back = way("dequantize", stored, scale, zero)
    expected = (stored.astype(np.float32) - zero.astype(np.float32)[:, None]) * scale[:, None]
    np.testing.assert_array_equal(back, expected)


@WAYS
@pytest.mark.parametrize("axis", [0, -1])
def test_blocks(way, axis):
    x = normal(6, 4) * 10
    shape = (2, 4) if axis == 0 else (6, 2)
    scale, zero = np.abs(normal(*shape)) + np.float32(0.1), RNG.integers(-5, 5, shape).astype(np.int8)
    block = 3 if axis == 0 else 2
    stored = way("quantize", x, scale, zero, axis=axis, block=block)
    np.testing.assert_array_equal(
        stored, reference("QuantizeLinear", 21, [x, scale, zero], axis=axis, block_size=block)
    )
    wide = np.repeat(scale, block, axis), np.repeat(zero, block, axis)
    np.testing.assert_array_equal(
        way("dequantize", stored, scale, zero, axis=axis, block=block), (stored - wide[1].astype(np.float32)) * wide[0]
    )


@WAYS
def test_narrow_floats_overflow_unless_saturated(way):
    x, one = np.array([1e4, -1e4, np.nan], np.float32), np.array(1, np.float32)
    kind = element_of(np.dtype(ml_dtypes.float8_e5m2))
    to_e4m3 = element_of(np.dtype(ml_dtypes.float8_e4m3fn))
    np.testing.assert_array_equal(way("quantize", x, one, to=to_e4m3).astype(np.float32), [448, -448, np.nan])
    open_ended = way("quantize", x * 1e3, one, to=kind, saturate=False).astype(np.float32)
    np.testing.assert_array_equal(open_ended, [np.inf, -np.inf, np.nan])


@WAYS
def test_types_follow_to_zero_point_and_scale(way):
    x, scale = normal(2, 2), np.array(0.5, np.float32)
    assert way("quantize", x, scale).dtype == np.uint8
    assert way("quantize", x, scale, to=U4).dtype == ml_dtypes.uint4
    assert way("quantize", x.astype(np.float16), scale.astype(np.float16), to=I16).dtype == np.int16
    q = np.array([100, -100], np.int8)
    assert way("dequantize", q, scale.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    assert way("dequantize", q, scale, to=F16).dtype == np.float16


@WAYS
def test_half_dequantization_rounds_once(way):
    q, scale = np.array([[-100, 127, 3]], np.int8), np.array(0.3, np.float16)
    exact = q.astype(np.float64) * float(scale)
    np.testing.assert_array_equal(way("dequantize", q, scale), exact.astype(np.float16))


@WAYS
def test_int32_is_subtracted_as_integers(way):
    q, zero = np.array([2**24 + 1, 2**24 + 3], np.int32), np.array(2**24, np.int32)
    np.testing.assert_array_equal(way("dequantize", q, np.array(1, np.float32), zero), [1, 3])


@WAYS
@pytest.mark.parametrize("x", [[1.0, 2.0, -3.0], [0.0, 0.0], [4.0, 2.0], [-5.0, -1.0]])
def test_dynamic_quantization_follows_onnx(way, x):
    from onnx.reference.ops.op_dynamic_quantize_linear import DynamicQuantizeLinear

    array = np.array(x, np.float32)
    expected = DynamicQuantizeLinear._run(None, array)
    for one, other in zip(way("dynamic_quantize", array), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_wrong_zero_points_are_named():
    x, scale = normal(2, 3), np.array(1, np.float32)
    with pytest.raises(TypeMismatch, match="to is i8 and the zero point is ui8"):
        run("quantize", x, scale, np.array(0, np.uint8), to=I8)
    with pytest.raises(InvalidAttribute, match="to is bf16"):
        run("quantize", x, scale, to=BF16)
    with pytest.raises(TypeMismatch, match="of 2 entries; expected 3"):
        run("quantize", x, np.ones(2, np.float32), to=U8)
