import pytest

from opsets.errors import ManifestError
from opsets.tensorflow_manifest import (
    excluded_operators,
    load_tensorflow_manifests,
    named_operators,
    tensorflow_cells,
    tensorflow_item,
)
from opsets.tensorflow_schema import VERSION, installed, installed_names, raw_operator, raw_schema

ENTRY = """
framework: tensorflow
family: test
operators:
  Sum: {tolerance: {all: exact}%s}
"""


def loaded(folder, text):
    (folder / "test.yaml").write_text(text, encoding="utf-8")
    return load_tensorflow_manifests(folder)


def test_a_cases_type_is_that_of_the_first_input():
    assert tensorflow_item("Sum").dtype_attribute == "T"
    assert tensorflow_item("Gather").dtype_attribute == "Tparams"
    assert tensorflow_item("LogicalAnd").elements == ("bool",)


def test_types_are_those_of_tensorflows_definition():
    assert tensorflow_item("BitwiseAnd").elements == (
        "int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64",
    )  # fmt: skip


def test_types_without_a_kernel_are_told_from_those_with_one():
    item = tensorflow_item("TridiagonalMatMul")
    assert item.elements == ("float32", "float64", "complex64", "complex128")
    assert "float8e5m2" in tensorflow_item("Transpose").elements
    assert "int2" not in tensorflow_item("Pad").computed_elements


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (", kind: 3", "kind: Extra inputs are not permitted, found '3'"),
        (", grid: {axes: [1]}", "found 'axes', expected an input or attribute: T, Tidx, axis, input, keep_dims"),
        (", outputs: [sum]", "outputs: found ['sum'], expected some of output"),
        (", types: {T: [float32]}", "types: found no reason, expected one in no_types"),
        (", types: {T: [bool]}, no_types: x", "types: found T: ['bool'], expected types that the operator allows"),
        (", data: [strange]", "data.0: Input should be"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_operator(tmp_path, extra, message):
    with pytest.raises(ManifestError) as caught:
        loaded(tmp_path, ENTRY % extra)
    text = str(caught.value)
    assert message in text
    assert "test.yaml: operators.Sum" in text
    assert "\n" not in text


def test_a_type_without_a_tolerance_class_is_refused(tmp_path):
    with pytest.raises(ManifestError, match=r"Sum\.tolerance: found no class for int64"):
        loaded(tmp_path, (ENTRY % "").replace("all: exact", "float: exact"))


def test_an_unknown_raw_operator_is_named(tmp_path):
    with pytest.raises(ManifestError, match="found no operator 'Summ'"):
        loaded(tmp_path, (ENTRY % "").replace("Sum:", "Summ:"))


def test_an_operator_in_two_files_is_refused(tmp_path):
    (tmp_path / "other.yaml").write_text(ENTRY % "", encoding="utf-8")
    with pytest.raises(ManifestError, match="'Sum' stands there twice"):
        loaded(tmp_path, ENTRY % "")


def test_an_operator_is_in_scope_or_left_out_for_a_reason_but_not_both():
    left_out = excluded_operators()
    assert not set(named_operators()) & set(left_out)
    assert all(len(reason) > 10 for reason in left_out.values())


def test_both_lists_together_are_the_whole_of_tensorflow():
    tf = pytest.importorskip("tensorflow", reason="holds the lists against tf.raw_ops")
    if not tf.__version__.startswith(VERSION):
        pytest.skip(f"the lists are those of {VERSION}, TensorFlow {tf.__version__} is installed")
    assert sorted([*named_operators(), *excluded_operators()]) == sorted(installed_names())


def test_the_stored_definitions_are_tensorflows_own():
    tf = pytest.importorskip("tensorflow", reason="reads the definitions of operators")
    if not tf.__version__.startswith(VERSION):
        pytest.skip(f"the file is that of {VERSION}, TensorFlow {tf.__version__} is installed")
    for name, body in installed(named_operators()).items():
        stored = raw_operator(name)
        assert [list(vars_of(one)) for one in stored.inputs] == body["inputs"], name
        assert {key: list(types) for key, types in stored.types.items()} == body["types"], name
        assert {key: list(types) for key, types in stored.kernels.items()} == body["kernels"], name
        assert dict(stored.attributes) == body["attributes"], name


def vars_of(argument):
    return argument.name, argument.type, argument.count


def test_the_file_holds_the_operators_in_scope_and_no_others():
    assert set(raw_schema()) == set(named_operators())
    assert len(raw_schema()) >= 320


def test_cells_have_types_of_the_definition_that_no_case_has():
    cells = {(cell.operator, cell.dtype) for cell in tensorflow_cells()}
    assert ("Einsum", "int8") in cells
    assert "int8" not in tensorflow_item("Einsum").elements
    assert len(cells) > 4000
