import pytest

from conformance.case import CaseInfo
from conformance.errors import BadSelection
from conformance.options import Settings, read_settings

DEFAULTS = {
    "suite": "operators", "framework": "", "op": "", "opset": "", "dtype": "", "backend": "onnx_reference",
    "target": "", "failed_from": "",
    "full": False, "case_timeout": 0.0, "case_memory": 0, "output": "build/x", "expectations": "",
}  # fmt: skip


def settings(**options):
    return read_settings({**DEFAULTS, **options}.__getitem__)


def info(**fields):
    return CaseInfo(**{"id": "i", "suite": "operators", "operator": "Abs", "since_version": 6, "opset": 6, **fields})


def test_settings_survive_the_way_to_a_worker():
    made = settings(op="Abs,Add", opset="7-13,21", dtype="float16")
    assert Settings.from_plain(made.plain()) == made


@pytest.mark.parametrize(
    ("opset", "versions"),
    [("1", {1}), ("5", {1}), ("6", {6}), ("12", {6}), ("13", {13}), ("28", {13}), ("5-6", {1, 6}), ("1,13", {1, 13})],
)
def test_an_opset_selects_the_operator_versions_in_force(opset, versions):
    made = settings(opset=opset)
    # Abs has the versions 1, 6 and 13; the newest one is tried in models of the newest opset.
    tried = {version: info(since_version=version, opset=28 if version == 13 else version) for version in (1, 6, 13)}
    assert {version for version, case in tried.items() if made.selects(case)} == versions


@pytest.mark.parametrize(
    ("option", "case", "chosen"),
    [
        ({"op": "Abs"}, {}, True),
        ({"op": "Add"}, {}, False),
        ({"dtype": "float16,int8"}, {"dtype": "int8"}, True),
        ({"dtype": "float16"}, {"dtype": "int8"}, False),
        ({"framework": "torch"}, {}, False),
        ({}, {}, True),
    ],
)
def test_options_choose_cases(option, case, chosen):
    made = settings(**option)
    assert made.selects(info(**case)) is chosen
    assert made.filtered is bool(option)


def test_a_suite_of_one_framework_needs_no_name_of_it():
    case = info(suite="keras", framework="tensorflow")
    assert settings(suite="keras").selects(case)
    assert not settings(suite="keras", framework="torch").selects(case)


@pytest.mark.parametrize("option", [{"op": "Nonsense"}, {"opset": "7-"}, {"suite": ""}, {"framework": "mxnet"}])
def test_a_value_that_selects_nothing_is_refused(option):
    with pytest.raises(BadSelection):
        settings(**option)


def test_the_target_of_the_bundled_compiler_is_checked():
    assert settings(backend="opatlas").targets == ("reference-npu",)
    with pytest.raises(BadSelection, match="target 'nowhere' is unknown"):
        settings(backend="opatlas", target="reference-npu,nowhere")
