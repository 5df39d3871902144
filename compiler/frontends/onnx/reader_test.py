import onnx
import pytest
from onnx import helper

from compiler.errors import InvalidModel
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import info, model_of
from compiler.frontends.onnx.reader import read_model


def identity_model(**options):
    return model_of([helper.make_node("Identity", ["x"], ["y"])], [info("x")], [info("y")], **options)


def test_missing_file_is_refused_with_its_path(tmp_path):
    with pytest.raises(InvalidModel, match=r"nowhere\.onnx' cannot be read: No such file"):
        read_model(tmp_path / "nowhere.onnx")


def test_folder_instead_of_a_file_is_refused(tmp_path):
    with pytest.raises(InvalidModel, match="cannot be read"):
        read_model(tmp_path)


def test_empty_file_is_refused(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"")
    with pytest.raises(InvalidModel, match="is empty"):
        read_model(path)


@pytest.mark.parametrize("data", [b"\x80\x04\x95 not a protobuf", b"hello, world\n", b"{}", b"PK\x03\x04"])
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModel):
        read_model(path)


def test_truncated_file_is_refused_wherever_it_is_cut(tmp_path):
    data = identity_model().SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(InvalidModel):
            import_model(path)


def test_newer_ir_version_is_refused():
    with pytest.raises(InvalidModel, match=r"IR version 999; expected 1 to"):
        read_model(identity_model(ir_version=999))


def test_newer_operator_set_is_refused():
    with pytest.raises(InvalidModel, match=rf"ai.onnx 99; expected 1 to {onnx.defs.onnx_opset_version()}"):
        read_model(identity_model(opset=99))


def test_operator_set_zero_is_refused():
    with pytest.raises(InvalidModel, match=r"ai\.onnx 0"):
        read_model(identity_model(opset=0))


def test_domain_imported_twice_with_different_versions_is_refused():
    model = identity_model()
    model.opset_import.append(helper.make_opsetid("ai.onnx", 17))
    with pytest.raises(InvalidModel, match="twice"):
        read_model(model)


def test_both_spellings_of_the_standard_domain_are_one():
    model = identity_model()
    model.opset_import[0].domain = "ai.onnx"
    model.graph.node[0].domain = "ai.onnx"
    assert read_model(model).opsets == {"": 18}
    import_model(model)


def test_model_before_ir_version_3_has_operator_set_1():
    model = identity_model(ir_version=2)
    del model.opset_import[:]
    assert read_model(model).opsets == {"": 1}


def test_file_name_and_folder_are_kept(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(identity_model().SerializeToString())
    source = read_model(path)
    assert (source.name, source.folder) == ("m.onnx", tmp_path)


@pytest.mark.parametrize("version", [0, -1, 2**31])
def test_impossible_version_of_another_domain_is_refused(version):
    model = identity_model()
    model.opset_import.append(helper.make_opsetid("com.example", version))
    with pytest.raises(InvalidModel, match=f"com.example {version}; expected 1 to"):
        read_model(model)
