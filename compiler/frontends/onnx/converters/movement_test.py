import numpy as np
import pytest
from onnx import TensorProto

from compiler.errors import InvalidModel, OpatlasError, UnsupportedOperator, ValueNeeded
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("opset", [5, 13, 14, 19, 21, 23])
@pytest.mark.parametrize("shape", [(4, 6), (-1, 2), (0, 12), (0, 0, -1), (24,), (2, 3, 4, 1)])
def test_reshape(opset, shape):
    agrees_with_onnxruntime("Reshape", [X, ints(*shape)], opset)


def test_reshape_by_an_attribute():
    np.testing.assert_array_equal(run_node("Reshape", [X], 1, shape=[0, -1])[0], X.reshape(2, 12))


def test_reshape_with_zero_taken_as_zero():
    empty = np.zeros((0, 3), np.float32)
    (got,) = run_node("Reshape", [empty, ints(3, 0)], 14, known=[1], allowzero=1)
    assert got.shape == (3, 0)
    with pytest.raises(InvalidModel, match="both 0 and -1"):
        run_node("Reshape", [empty, ints(0, -1)], 14, known=[1], allowzero=1)


@pytest.mark.parametrize("shape", [(-2, 12), (-1, -1), (0, 0, 0, 0, 24)])
def test_wrong_shape_is_refused(shape):
    with pytest.raises(InvalidModel):
        run_node("Reshape", [X, ints(*shape)], 13, known=[1])


@pytest.mark.parametrize("opset", [1, 9, 11, 13, 21, 23, 24, 25])
@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 24)), (1, (2, 12)), (3, (24, 1))])
def test_flatten(opset, axis, shape):
    np.testing.assert_array_equal(run_node("Flatten", [X], opset, axis=axis)[0], X.reshape(shape))


def test_flatten_counts_from_the_end_since_version_11():
    assert run_node("Flatten", [X], 11, axis=-1)[0].shape == (6, 4)
    with pytest.raises(InvalidModel, match="only since version 11"):
        run_node("Flatten", [X], 9, axis=-1)
    with pytest.raises(InvalidModel, match="'axis' is 4; expected -3 to 3"):
        run_node("Flatten", [X], 11, axis=4)


@pytest.mark.parametrize("opset", [1, 13, 21, 23, 24, 25])
def test_transpose(opset):
    np.testing.assert_array_equal(run_node("Transpose", [X], opset)[0], X.T)
    np.testing.assert_array_equal(run_node("Transpose", [X], opset, perm=[1, 0, 2])[0], X.transpose(1, 0, 2))


@pytest.mark.parametrize("opset", [8, 13])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (5, 1, 1, 4), (4,)])
def test_expand(opset, shape):
    agrees_with_onnxruntime("Expand", [X, ints(*shape)], opset)


@pytest.mark.parametrize("opset", [1, 11])
def test_squeeze_and_unsqueeze_by_attributes(opset):
    x = X.reshape(2, 1, 12, 1)
    np.testing.assert_array_equal(run_node("Squeeze", [x], opset)[0], x.reshape(2, 12))
    np.testing.assert_array_equal(run_node("Squeeze", [x], opset, axes=[1])[0], x.reshape(2, 12, 1))
    np.testing.assert_array_equal(run_node("Unsqueeze", [X], opset, axes=[0, 4])[0], X.reshape(1, 2, 3, 4, 1))


@pytest.mark.parametrize("opset", [13, 21, 23, 24, 25])
def test_squeeze_and_unsqueeze_by_inputs(opset):
    x = X.reshape(2, 1, 12, 1)
    np.testing.assert_array_equal(run_node("Squeeze", [x], opset)[0], x.reshape(2, 12))
    np.testing.assert_array_equal(run_node("Squeeze", [x, ints(-1)], opset)[0], x.reshape(2, 1, 12))
    np.testing.assert_array_equal(run_node("Unsqueeze", [X, ints(-1, 0)], opset)[0], X.reshape(1, 2, 3, 4, 1))


def test_squeeze_of_a_dim_that_is_not_1_is_refused():
    with pytest.raises(OpatlasError):
        run_node("Squeeze", [X], 11, axes=[0])


@pytest.mark.parametrize(
    ("opset", "attributes"), [(1, {}), (1, {"axis": 1}), (4, {"axis": 1}), (11, {"axis": -2}), (13, {"axis": 1})]
)
def test_concat(opset, attributes):
    np.testing.assert_array_equal(run_node("Concat", [X, X], opset, **attributes)[0], np.concatenate([X, X], 1))


@pytest.mark.parametrize("opset", [2, 11])
def test_split_by_attribute(opset):
    agrees_with_onnxruntime("Split", [X], opset, 2, axis=2, split=[1, 3])
    agrees_with_onnxruntime("Split", [X], opset, 2)


def test_first_split_takes_sizes_as_an_input_too():
    first, second = run_node("Split", [X, np.array([1, 2], np.float32)], 1, 2, known=[1], axis=1)
    np.testing.assert_array_equal(first, X[:, :1])
    np.testing.assert_array_equal(second, X[:, 1:])


def test_split_by_input():
    agrees_with_onnxruntime("Split", [X, ints(1, 3)], 13, 2, axis=-1)
    agrees_with_onnxruntime("Split", [X, ints(1, 3)], 18, 2, axis=-1)
    agrees_with_onnxruntime("Split", [X], 18, 3, axis=2, num_outputs=3)
    agrees_with_onnxruntime("Split", [X], 13, 3, axis=1)


@pytest.mark.parametrize(
    ("arrays", "opset", "outputs", "attributes"),
    [
        ([X], 13, 2, {"axis": 1}),
        ([X], 18, 2, {"num_outputs": 3}),
        ([X, ints(1, 1)], 18, 2, {"num_outputs": 2}),
        ([X], 11, 2, {"split": [1, 2]}),
    ],
)
def test_wrong_split_is_refused(arrays, opset, outputs, attributes):
    with pytest.raises(OpatlasError):
        run_node("Split", arrays, opset, outputs, **attributes)


@pytest.mark.parametrize(
    ("starts", "ends", "axes"),
    [([0, 1], [2, 3], None), ([1], [-1], [2]), ([-100], [100], [1]), ([2], [1], [0]), ([0], [2**63 - 1], [-1])],
)
def test_slice_by_attributes(starts, ends, axes):
    attributes = {} if axes is None else {"axes": axes}
    if axes == [-1]:
        np.testing.assert_array_equal(run_node("Slice", [X], 1, starts=starts, ends=ends, axes=axes)[0], X)
        return
    agrees_with_onnxruntime("Slice", [X], 1, starts=starts, ends=ends, **attributes)


@pytest.mark.parametrize("opset", [10, 11, 13])
@pytest.mark.parametrize(
    "operands",
    [
        [ints(1), ints(3)],
        [ints(0, 0), ints(2, 4), ints(1, 2)],
        [ints(-1), ints(-100), ints(2), ints(-2)],
        [np.array([3], np.int32), np.array([0], np.int32), np.array([2], np.int32), np.array([-1], np.int32)],
        [ints(0), ints(4), None, ints(2)],
        [ints(2), ints(2**63 - 1), ints(1)],
    ],
)
def test_slice_by_inputs(opset, operands):
    agrees_with_onnxruntime("Slice", [X, *operands], opset)


def test_slice_with_unequal_numbers_is_refused():
    with pytest.raises(InvalidModel, match="2 starts, 1 ends"):
        run_node("Slice", [X], 1, starts=[0, 1], ends=[1])


def test_first_tile_repeats_one_axis():
    arrays = [X, np.array(2, np.float32), np.array(1, np.float32)]
    np.testing.assert_array_equal(run_node("Tile", arrays, 1, known=[1, 2])[0], np.tile(X, (1, 2, 1)))


@pytest.mark.parametrize("opset", [6, 13])
def test_tile(opset):
    agrees_with_onnxruntime("Tile", [X, ints(2, 1, 3)], opset)


BLOCKS = np.arange(32, dtype=np.float32).reshape(1, 8, 2, 2)


@pytest.mark.parametrize(
    ("opset", "attributes"), [(1, {}), (11, {"mode": "CRD"}), (13, {"mode": "DCR"}), (13, {"mode": "CRD"})]
)
def test_depth_to_space(opset, attributes):
    agrees_with_onnxruntime("DepthToSpace", [BLOCKS], opset, blocksize=2, **attributes)


@pytest.mark.parametrize("opset", [1, 13])
def test_space_to_depth(opset):
    agrees_with_onnxruntime("SpaceToDepth", [BLOCKS], opset, blocksize=2)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth_undoes_depth_to_space_in_both_orders(mode):
    (spread,) = run_node("DepthToSpace", [BLOCKS], 28, blocksize=2, mode=mode)
    np.testing.assert_array_equal(run_node("SpaceToDepth", [spread], 28, blocksize=2, mode=mode)[0], BLOCKS)


def test_wrong_mode_is_refused():
    with pytest.raises(InvalidModel, match="expected DCR or CRD"):
        run_node("DepthToSpace", [BLOCKS], 13, blocksize=2, mode="XYZ")


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -1, 0, 2, 100])
def test_trilu(upper, k):
    arrays = [X] if k is None else [X, np.array(k, np.int64)]
    agrees_with_onnxruntime("Trilu", arrays, 14, upper=upper)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_by_attributes(mode):
    agrees_with_onnxruntime("Pad", [X], 2, pads=[0, 1, 2, 1, 0, 1], mode=mode, value=1.5)


def test_first_pad_spells_its_widths_otherwise():
    (got,) = run_node("Pad", [X], 1, paddings=[0, 1, 0, 0, 0, 2], value=-1.0)
    np.testing.assert_array_equal(got, np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=-1))


@pytest.mark.parametrize("opset", [11, 13, 18, 19, 21, 23])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad_by_inputs(opset, mode):
    if mode == "wrap" and opset < 19:
        with pytest.raises(InvalidModel, match="'mode' is 'wrap'"):
            run_node("Pad", [X, ints(0, 1, 2, 1, 0, 1)], opset, mode=mode)
        return
    agrees_with_onnxruntime("Pad", [X, ints(0, 1, 2, 1, 0, 1), np.array(7, np.float32)], opset, mode=mode)


def test_pad_crops_where_widths_are_negative():
    agrees_with_onnxruntime("Pad", [X, ints(0, -1, 1, 0, 0, -2)], 13)
    agrees_with_onnxruntime("Pad", [X], 2, pads=[0, -1, 1, 0, 0, -2])


def test_pad_of_chosen_axes():
    agrees_with_onnxruntime("Pad", [X, ints(1, 0, 0, 2), None, ints(-1, 0)], 18)


def test_wrong_number_of_pads_is_refused():
    with pytest.raises(InvalidModel, match="4 pads for rank 3; expected 6"):
        run_node("Pad", [X], 2, pads=[0, 1, 1, 0])


@pytest.mark.parametrize(("opset", "start", "end", "expected"), [
    (1, None, None, [2, 3, 4]), (13, None, None, [2, 3, 4]), (15, 1, None, [3, 4]), (15, None, -1, [2, 3]),
    (19, -2, 100, [3, 4]), (21, 2, 1, []), (25, -100, 1, [2]),
])  # fmt: skip
def test_shape(opset, start, end, expected):
    attributes = {key: value for key, value in (("start", start), ("end", end)) if value is not None}
    (got,) = run_node("Shape", [X], opset, **attributes)
    assert (got.tolist(), got.dtype) == (expected, np.int64)


def test_size():
    for opset in (1, 13, 19, 21, 23, 24, 25):
        assert run_node("Size", [X], opset)[0] == 24


def test_constant_of_shape():
    for opset in (9, 20, 21, 23, 24, 25):
        (got,) = run_node("ConstantOfShape", [ints(2, 0)], opset, known=[0])
        assert (got.shape, got.dtype) == ((2, 0), np.float32)
    with pytest.raises(InvalidModel, match="2 elements; expected one"):
        from onnx import helper

        run_node("ConstantOfShape", [ints(2)], 9, value=helper.make_tensor("v", TensorProto.FLOAT, [2], [1, 2]))


@pytest.mark.parametrize(
    ("attributes", "expected", "dtype"),
    [
        ({"value_float": 1.5}, 1.5, np.float32),
        ({"value_floats": [1.5, 2]}, [1.5, 2], np.float32),
        ({"value_int": 3}, 3, np.int64),
        ({"value_ints": [3, 4]}, [3, 4], np.int64),
        ({"value_string": "a"}, "a", object),
        ({"value_strings": ["a", "b"]}, ["a", "b"], object),
    ],
)
def test_constant(attributes, expected, dtype):
    (got,) = run_node("Constant", [], 13, **attributes)
    assert (got.tolist(), got.dtype) == (expected, dtype)


def test_constant_with_two_values_is_refused():
    with pytest.raises(InvalidModel, match="has 2 values"):
        run_node("Constant", [], 13, value_int=1, value_float=1.0)


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 5, 2), (5, 0, -2), (3, 3, 1), (1.5, 3.0, 0.5)])
@pytest.mark.parametrize("opset", [11, 27])
def test_range(opset, start, limit, delta):
    arrays = [np.array(value, np.float32) for value in (start, limit, delta)]
    (got,) = run_node("Range", arrays, opset)
    np.testing.assert_array_equal(got, np.arange(start, limit, delta, np.float32))


def test_eye_like():
    agrees_with_onnxruntime("EyeLike", [X[0]], 9, k=1)
    agrees_with_onnxruntime("EyeLike", [X[0]], 9, dtype=TensorProto.INT64, k=-1)


@pytest.mark.parametrize("opset", [1, 6])
def test_cast_by_a_types_name(opset):
    to = "INT32" if opset == 1 else TensorProto.INT32
    assert run_node("Cast", [np.array([1.7, -1.7], np.float32)], opset, to=to)[0].tolist() == [1, -1]


def test_cast_to_a_type_of_no_name_is_refused():
    with pytest.raises(InvalidModel, match="'FLOTE'; expected the name of a data type"):
        run_node("Cast", [X], 1, to="FLOTE")


@pytest.mark.parametrize("opset", [6, 9, 13, 19, 21])
@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL])
def test_cast(opset, to):
    agrees_with_onnxruntime("Cast", [X - 3.5], opset, to=to)


def test_cast_to_narrow_floats_saturates_unless_told_otherwise():
    big = np.array([1e6, -1e6, 1], np.float32)
    assert run_node("Cast", [big], 19, to=TensorProto.FLOAT8E4M3FN)[0].astype(float).tolist() == [448, -448, 1]
    (loose,) = run_node("Cast", [big], 19, to=TensorProto.FLOAT8E4M3FN, saturate=0)
    assert np.isnan(loose.astype(float)).tolist() == [True, True, False]


def test_cast_like_and_bit_cast():
    assert run_node("CastLike", [X, np.ones(1, np.int32)], 15)[0].dtype == np.int32
    (bits,) = run_node("BitCast", [np.array([1.0], np.float32)], 26, to=TensorProto.INT32)
    assert bits.tolist() == [0x3F800000]


@pytest.mark.parametrize("opset", [1, 6, 7, 10, 12, 13, 22])
def test_dropout_in_inference_is_the_identity(opset):
    attributes = {"is_test": 1} if opset < 7 else {}
    result, mask = run_node("Dropout", [X], opset, 2, **attributes)
    np.testing.assert_array_equal(result, X)
    assert (mask.dtype, bool(mask.all())) == (np.bool_ if opset >= 10 else np.float32, True)


def test_dropout_in_training_zeroes_or_scales():
    arrays = [np.ones(1000, np.float32), np.array(0.25, np.float32), np.array(True)]
    result, mask = run_node("Dropout", arrays, 13, 2, known=[2], seed=7)
    assert 650 < mask.sum() < 850
    np.testing.assert_allclose(result, mask / 0.75, rtol=1e-6)


def test_training_mode_that_is_not_known_is_asked_for():
    with pytest.raises(ValueNeeded) as caught:
        run_node("Dropout", [X, np.array(0.25, np.float32), np.array(True)], 13)
    assert caught.value.value == "x2"
    assert isinstance(caught.value, UnsupportedOperator)
