import pytest
from onnx import TensorProto, TypeProto, helper

from compiler.errors import InvalidModel, TypeMismatch, UnsupportedType
from compiler.ir import BF16, ELEMENT_TYPES, F32, I64, UNKNOWN, optional_of, sequence_of, tensor
from compiler.onnx_types import DATA_TYPES, ELEMENTS, element_from, refined, type_from, type_proto, type_string


def test_every_data_type_has_its_element_type_and_back():
    known = {number for name, number in TensorProto.DataType.items() if name != "UNDEFINED"}
    assert set(ELEMENTS) == known
    assert set(DATA_TYPES) == set(ELEMENT_TYPES)
    assert all(DATA_TYPES[element] == number for number, element in ELEMENTS.items())


@pytest.mark.parametrize(
    "type_",
    [
        tensor(F32, ()),
        tensor(BF16, (2, "N", UNKNOWN)),
        tensor(I64, None),
        sequence_of(tensor(F32, ("N",))),
        optional_of(sequence_of(tensor(I64, None))),
    ],
    ids=str,
)
def test_types_survive_the_way_there_and_back(type_):
    assert type_from(type_proto(type_), "x") is type_


def test_notation_of_schemas():
    assert type_string(tensor(BF16, (2,))) == "tensor(bfloat16)"
    assert type_string(optional_of(sequence_of(tensor(F32)))) == "optional(seq(tensor(float)))"


@pytest.mark.parametrize(
    ("inferred", "declared", "expected"),
    [
        (("N", UNKNOWN, 3), (4, "M", UNKNOWN), (4, "M", 3)),
        (("N",), ("batch",), ("N",)),
        (None, (2, "N"), (2, "N")),
        ((2, "N"), None, (2, "N")),
        ((), (), ()),
    ],
)
def test_the_more_precise_dim_stays(inferred, declared, expected):
    assert refined(tensor(F32, inferred), tensor(F32, declared), "x") is tensor(F32, expected)


def test_element_types_of_sequences_are_refined():
    found = refined(sequence_of(tensor(F32, None)), sequence_of(tensor(F32, (2,))), "x")
    assert found is sequence_of(tensor(F32, (2,)))


@pytest.mark.parametrize(
    "declared", [tensor(I64, (2,)), tensor(F32, (3,)), tensor(F32, (2, 1)), sequence_of(tensor(F32, (2,)))], ids=str
)
def test_contradiction_names_both_types(declared):
    with pytest.raises(TypeMismatch, match=r"x is declared as .*, but has type tensor<2xf32>"):
        refined(tensor(F32, (2,)), declared, "x")


def test_wrong_types_are_refused():
    with pytest.raises(InvalidModel, match="x has no type"):
        type_from(TypeProto(), "x")
    with pytest.raises(InvalidModel, match="element type UNDEFINED"):
        type_from(helper.make_tensor_type_proto(0, [1]), "x")
    with pytest.raises(InvalidModel, match="element type 99"):
        element_from(99, "x")
    sparse = TypeProto()
    sparse.sparse_tensor_type.elem_type = 1
    with pytest.raises(UnsupportedType, match="x is a sparse tensor"):
        type_from(sparse, "x")
