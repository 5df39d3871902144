import sys

import numpy as np
import pytest

from conformance.case import CaseInfo
from conformance.errors import Unavailable
from conformance.suites import make_suite, tensorflow_models
from conformance.suites.tensorflow_operators import describe
from conformance.tensorflow_runtime import first_line, tensorflow
from conformance.tolerance_names import parse_tolerance
from conformance.widening import ones
from generators.keras_cases import expand_keras
from generators.tensorflow_cases import expand_item
from opsets.keras_manifest import keras_names, load_keras_manifest
from opsets.tensorflow_manifest import load_tensorflow_manifests, tensorflow_item


def first_info(operator, **wanted):
    cases = expand_item(tensorflow_item(operator))
    return describe(next(c for c in cases if all(getattr(c, k) == v for k, v in wanted.items())), "operators")


@pytest.mark.parametrize("suite", ["operators", "keras"])
def test_without_tensorflow_a_case_is_unavailable_and_says_how_to_install_it(monkeypatch, suite):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    tensorflow.cache_clear()
    info = next(info for info in make_suite(suite).cases() if info.framework == "tensorflow")
    with pytest.raises(Unavailable, match=r"TensorFlow is not installed .*; pip install 'opatlas\[tensorflow\]'"):
        make_suite(suite).load(info)
    tensorflow.cache_clear()


def test_every_tolerance_class_of_the_manifests_is_defined():
    for item in load_tensorflow_manifests():
        for dtype in item.elements:
            parse_tolerance(str(item.tolerance(dtype)))
    for entry in load_keras_manifest("layers").layers.values():
        parse_tolerance(entry.tolerance)


def test_cases_of_keras_are_filed_under_their_layer():
    infos = list(make_suite("keras").cases())
    assert {info.operator for info in infos} == keras_names("layers") | keras_names("applications")
    assert {info.framework for info in infos} == {"tensorflow"}
    assert len(infos) == len(list(expand_keras()))


def test_of_tensorflows_reports_the_line_before_the_node_is_shown():
    report = "Graph execution error:\n\nDetected at node Tile\nTileOp : not supported\n\t [[{{node Tile}}]]"
    assert first_line(ValueError(report)) == "TileOp : not supported"
    assert first_line(ValueError("plain\nand more")) == "plain"


# with TensorFlow


@pytest.fixture
def operators():
    pytest.importorskip("tensorflow", reason="builds and runs cases")
    return make_suite("operators")


def test_the_exact_run_decides_where_tensorflow_rounds_after_each_step(operators):
    half = operators.load(first_info("Elu", dtype="bfloat16", data_class="random"))
    single = operators.load(first_info("Elu", dtype="float32", data_class="random"))
    assert half.ruling == "native-widened"
    assert "round" in half.rule
    assert single.ruling == "native"
    assert half.native.outputs(wide=True)[0].dtype == np.float64


def test_the_exact_run_decides_where_tensorflow_flushes_denormals(operators):
    case = operators.load(first_info("Equal", dtype="float32", data_class="special"))
    assert case.ruling == "native-widened"
    assert "denormals" in case.rule


def test_transformed_runs_are_tensorflows_own(operators):
    case = operators.load(first_info("MatMul", dtype="float32", mode="static"))
    (counts,) = case.native.outputs_on(ones)
    assert set(counts.ravel()) == {case.inputs[0].shape[1]}


def test_what_tensorflow_has_no_kernel_for_is_unavailable_with_its_reason(operators):
    with pytest.raises(Unavailable, match="TensorFlow computes no such form"):
        operators.load(first_info("Tile", dtype="uint2"))


def test_a_case_of_another_kind_is_refused_by_the_suite_of_keras():
    with pytest.raises(TypeError, match="expected a KerasCase"):
        make_suite("keras").load(CaseInfo(id="x", suite="keras", operator="Dense"))


def no_network(*_):
    raise Unavailable("no network")


def test_a_saved_model_that_cannot_be_had_is_unavailable_with_its_reason(monkeypatch, tmp_path):
    pytest.importorskip("tensorflow", reason="without it, that is the reason")
    monkeypatch.setattr(tensorflow_models, "wheel_files", no_network)
    said = []
    tensorflow_models.prepare(tmp_path, said.append)
    assert said == ["models: basic-pitch-saved-model can't be had: no network"]
    with pytest.raises(Unavailable, match="no network"):
        tensorflow_models.load("basic-pitch-saved-model", tmp_path, tmp_path / "twin.onnx", lambda _: [])


def test_files_of_a_saved_model_keep_their_places(monkeypatch, tmp_path):
    model = tensorflow_models.SAVED_MODELS["basic-pitch-saved-model"]
    files = {f"{model.folder}saved_model.pb": b"model", f"{model.folder}variables/variables.index": b"index"}
    monkeypatch.setattr(tensorflow_models, "wheel_files", lambda *_: files)
    tensorflow_models.prepare(tmp_path, print)
    assert (tmp_path / model.name / "saved_model.pb").read_bytes() == b"model"
    assert (tmp_path / model.name / "variables" / "variables.index").read_bytes() == b"index"
