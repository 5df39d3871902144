import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.errors import InvalidModel
from compiler.frontends.onnx.data import constant_from, sparse_constant

ELEMENTS = [
    (TensorProto.FLOAT, np.float32, [0, -0.0, 1.5, np.inf]),
    (TensorProto.DOUBLE, np.float64, [1e300, -1, 2, 3]),
    (TensorProto.FLOAT16, np.float16, [1, -2, 65504, 6e-8]),
    (TensorProto.BFLOAT16, ml_dtypes.bfloat16, [1, -2, 3e38, 0.5]),
    (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, [1, -2, 448, 0.5]),
    (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, [1, -2, 240, 0.5]),
    (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2, [1, -2, 57344, 0.5]),
    (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz, [1, -2, 57344, 0.5]),
    (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn, [0.5, -6, 3, 1]),
    (TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu, [1, 2, 0.5, 4]),
    (TensorProto.INT64, np.int64, [-(2**63), 2**63 - 1, 0, 1]),
    (TensorProto.INT32, np.int32, [-(2**31), 2**31 - 1, 0, 1]),
    (TensorProto.INT16, np.int16, [-(2**15), 2**15 - 1, 0, 1]),
    (TensorProto.INT8, np.int8, [-128, 127, 0, 1]),
    (TensorProto.INT4, ml_dtypes.int4, [-8, 7, 0, -1]),
    (TensorProto.UINT64, np.uint64, [2**64 - 1, 1, 0, 2]),
    (TensorProto.UINT32, np.uint32, [2**32 - 1, 1, 0, 2]),
    (TensorProto.UINT16, np.uint16, [2**16 - 1, 1, 0, 2]),
    (TensorProto.UINT8, np.uint8, [255, 1, 0, 2]),
    (TensorProto.UINT4, ml_dtypes.uint4, [15, 1, 0, 2]),
    (TensorProto.BOOL, np.bool_, [True, False, True, True]),
    (TensorProto.COMPLEX64, np.complex64, [1 + 2j, -1, 0, 1j]),
    (TensorProto.COMPLEX128, np.complex128, [1 + 2j, -1, 0, 1j]),
]
NEWER = [
    ("UINT2", "uint2", [3, 1, 0, 2]),
    ("INT2", "int2", [-2, 1, 0, -1]),
    ("FLOAT6E2M3", "float6_e2m3fn", [1, -2, 7.5, 0.125]),
    ("FLOAT6E3M2", "float6_e3m2fn", [1, -2, 28, 0.25]),
]
for name, dtype, values in NEWER:
    if name in TensorProto.DataType.keys():  # noqa: SIM118
        ELEMENTS.append((TensorProto.DataType.Value(name), getattr(ml_dtypes, dtype), values))


def external(path, location, proto, **entries):
    """``proto`` with its raw bytes moved to a file."""
    (path / location).write_bytes(proto.raw_data)
    moved = TensorProto(name=proto.name, data_type=proto.data_type, dims=proto.dims)
    return at(moved, location=location, **entries)


def at(proto, **entries):
    proto.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def weight(values=(1, 2, 3, 4), dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), "w")


@pytest.mark.parametrize(("number", "dtype", "values"), ELEMENTS, ids=lambda x: str(getattr(x, "__name__", "")))
@pytest.mark.parametrize("raw", [False, True], ids=["fields", "raw"])
def test_every_element_type_is_read(number, dtype, values, raw):
    array = np.array(values, np.uint64 if dtype is np.uint64 else None).astype(dtype)
    if raw:
        proto = numpy_helper.from_array(array, "w")
    else:
        proto = helper.make_tensor("w", number, array.shape, array.astype(dtype))
    constant = constant_from(proto, None, "weight 'w'")
    assert constant.array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(constant.array.view(np.uint8), array.view(np.uint8))


@pytest.mark.parametrize(("number", "dtype", "values"), ELEMENTS, ids=lambda x: str(getattr(x, "__name__", "")))
def test_every_element_type_is_read_from_external_data(tmp_path, number, dtype, values):
    array = np.array(values, np.uint64 if dtype is np.uint64 else None).astype(dtype)
    proto = external(tmp_path, "w.bin", numpy_helper.from_array(array, "w"))
    constant = constant_from(proto, tmp_path, "weight 'w'")
    np.testing.assert_array_equal(constant.array.view(np.uint8), array.view(np.uint8))


def test_odd_number_of_packed_elements():
    array = np.array([1, -3, 7], ml_dtypes.int4)
    constant = constant_from(numpy_helper.from_array(array, "w"), None, "w")
    assert constant.array.astype(int).tolist() == [1, -3, 7]


def test_external_data_is_mapped_and_not_copied(tmp_path):
    proto = external(tmp_path, "w.bin", weight(), offset=0, length=16)
    array = constant_from(proto, tmp_path, "w").array
    base = array
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not array.flags.writeable


def test_external_data_at_an_offset(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"\0\0\0" + np.array([5, 6], np.float32).tobytes() + b"\0")
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2]), location="w.bin", offset=3, length=8)
    assert constant_from(proto, tmp_path, "w").array.tolist() == [5, 6]


def test_external_data_of_no_elements(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"")
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[0, 3]), location="w.bin")
    assert constant_from(proto, tmp_path, "w").array.shape == (0, 3)


def test_external_data_in_a_folder_below(tmp_path):
    (tmp_path / "data").mkdir()
    proto = external(tmp_path, "data/w.bin", weight())
    assert constant_from(proto, tmp_path, "w").array.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("missing.bin", "does not exist"),
        ("", "without a location"),
        ("/etc/passwd", "absolute path"),
        ("C:\\weights.bin", "absolute path"),
        ("\\\\server\\share", "absolute path"),
        ("../w.bin", "leaves the model's folder"),
        ("data/../../w.bin", "leaves the model's folder"),
        ("..\\w.bin", "leaves the model's folder"),
        ("a\0b", "zero byte"),
        (".", "no regular file"),
    ],
)
def test_external_data_in_a_wrong_place_is_refused(tmp_path, location, message):
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1]), location=location)
    with pytest.raises(InvalidModel, match=message):
        constant_from(proto, tmp_path, "weight 'w'")


def test_symbolic_link_out_of_the_folder_is_refused(tmp_path):
    model, outside = tmp_path / "model", tmp_path / "outside.bin"
    model.mkdir()
    outside.write_bytes(bytes(16))
    (model / "w.bin").symlink_to(outside)
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]), location="w.bin")
    with pytest.raises(InvalidModel, match="link that leaves"):
        constant_from(proto, model, "weight 'w'")


def test_symbolic_link_inside_the_folder_is_followed(tmp_path):
    (tmp_path / "real.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (tmp_path / "w.bin").symlink_to(tmp_path / "real.bin")
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]), location="w.bin")
    assert constant_from(proto, tmp_path, "w").array.tolist() == [1, 1, 1, 1]


def test_external_data_without_a_folder_is_refused():
    proto = at(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]), location="w.bin")
    with pytest.raises(InvalidModel, match="without a folder"):
        constant_from(proto, None, "weight 'w'")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"length": 12}, "has 12 bytes of external data; expected 16"),
        ({"offset": 8}, "needs bytes 8 to 24 of 'w.bin', which has 16"),
        ({"offset": -4}, "offset '-4'"),
        ({"length": "many"}, "length 'many'"),
    ],
)
def test_external_data_of_a_wrong_size_is_refused(tmp_path, entries, message):
    proto = external(tmp_path, "w.bin", weight(), **entries)
    with pytest.raises(InvalidModel, match=message):
        constant_from(proto, tmp_path, "weight 'w'")


def test_external_data_with_a_key_given_twice_is_refused(tmp_path):
    proto = at(external(tmp_path, "w.bin", weight()), location="other.bin")
    with pytest.raises(InvalidModel, match="'location' of its external data twice"):
        constant_from(proto, tmp_path, "w")


def test_raw_data_of_a_wrong_size_is_refused():
    proto = weight()
    proto.dims[0] = 5
    with pytest.raises(InvalidModel, match=r"weight 'w' has 16 bytes; expected 20 for shape \[5\] of f32"):
        constant_from(proto, None, "weight 'w'")


def test_typed_data_of_a_wrong_size_is_refused():
    proto = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    proto.dims[0] = 3
    with pytest.raises(InvalidModel, match="2 entries of float_data"):
        constant_from(proto, None, "weight 'w'")


@pytest.mark.parametrize(
    ("number", "field", "entries"),
    [
        (TensorProto.INT8, "int32_data", [-128, 128]),
        (TensorProto.UINT8, "int32_data", [255, -1]),
        (TensorProto.INT16, "int32_data", [32767, -32769]),
        (TensorProto.FLOAT16, "int32_data", [65535, 65536]),
        (TensorProto.UINT32, "uint64_data", [2**32 - 1, 2**32]),
        (TensorProto.INT4, "int32_data", [256]),
    ],
)
def test_entry_that_its_element_type_cannot_hold_is_refused(number, field, entries):
    tensor = TensorProto(data_type=number, dims=[2])
    getattr(tensor, field).extend(entries)
    with pytest.raises(InvalidModel, match=rf"the weight of \w+ has {entries[-1]} in {field}; expected"):
        constant_from(tensor, None, "the weight")


def test_raw_data_beside_a_typed_field_is_refused():
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[1], raw_data=bytes(4), float_data=[1.0])
    with pytest.raises(InvalidModel, match="raw_data and 1 entries of float_data; expected one of them"):
        constant_from(tensor, None, "the weight")


def test_weight_without_data_is_refused():
    with pytest.raises(InvalidModel, match="no data"):
        constant_from(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2]), None, "weight 'w'")


def test_negative_size_is_refused():
    with pytest.raises(InvalidModel, match="sizes of at least 0"):
        constant_from(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-1]), None, "w")


@pytest.mark.parametrize("number", [0, 99])
def test_unknown_element_type_is_refused(number):
    with pytest.raises(InvalidModel, match="expected one of ONNX's data types"):
        constant_from(TensorProto(name="w", data_type=number, dims=[1]), None, "w")


def test_strings():
    proto = helper.make_tensor("w", TensorProto.STRING, [2], ["ä", ""])
    assert constant_from(proto, None, "w").array.tolist() == ["ä", ""]


def test_string_that_is_not_utf8_is_refused():
    proto = TensorProto(name="w", data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff"])
    with pytest.raises(InvalidModel, match="not UTF-8"):
        constant_from(proto, None, "w")


def sparse(values, indices, dims):
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), "s"),
        numpy_helper.from_array(np.array(indices, np.int64), "i"),
        dims,
    )


def test_sparse_weight_with_flat_indices():
    dense = sparse_constant(sparse([7, 9], [1, 5], [2, 3]), None, "s").array
    assert dense.tolist() == [[0, 7, 0], [0, 0, 9]]


def test_sparse_weight_with_index_vectors():
    dense = sparse_constant(sparse([7, 9], [[0, 1], [1, 2]], [2, 3]), None, "s").array
    assert dense.tolist() == [[0, 7, 0], [0, 0, 9]]


@pytest.mark.parametrize("indices", [[6], [-1], [[0, 3]], [[0, 0, 0]], [0, 1]])
def test_sparse_weight_with_wrong_indices_is_refused(indices):
    with pytest.raises(InvalidModel, match="'s'"):
        sparse_constant(sparse([7], indices, [2, 3]), None, "sparse weight 's'")
