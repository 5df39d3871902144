import sys
import types

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from compiler.errors import OpatlasError, UnsupportedType
from conformance.backends import built_in_names, default_target, load_backend
from conformance.errors import UnknownBackend
from reports.record import Outcome, Placement, Stage

X = np.array([-1.5, 2.0], np.float32)


def relu():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def test_each_file_is_a_backend():
    assert built_in_names() == ["onnx_reference", "onnxruntime", "opatlas"]
    assert default_target("opatlas") == "reference-npu"
    assert default_target("onnxruntime") == default_target("some.module") == "cpu"


@pytest.mark.parametrize("name", ["onnx_reference", "onnxruntime", "opatlas", "onnxruntime.backend"])
def test_a_backend_compiles_and_runs(name):
    backend = load_backend(name, default_target(name))
    outputs = backend.compile(relu()).run([X])
    np.testing.assert_array_equal(outputs[0], [0.0, 2.0])
    assert backend.versions()


def test_the_bundled_compiler_reports_what_it_did():
    program = load_backend("opatlas", "reference-npu").compile(relu())
    program.run([X])
    report = program.report
    assert report.placement is Placement.ACCELERATOR
    assert report.cycles > 0
    assert report.traffic_bytes >= report.compulsory_bytes == 16
    assert all(0 <= share <= 1 for share in report.utilization.values())
    np.testing.assert_array_equal(program.evaluate([X])[0], [0.0, 2.0])


def module(monkeypatch, **members):
    made = types.ModuleType("a_foreign_backend")
    for name, value in members.items():
        if isinstance(value, type):
            value.__module__ = made.__name__
        setattr(made, name, value)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return load_backend(made.__name__, "cpu")


def test_a_module_with_compile_is_a_backend(monkeypatch):
    program = types.SimpleNamespace(run=lambda inputs: [np.maximum(inputs[0], 0)])
    backend = module(monkeypatch, compile=lambda model: program)
    assert backend.compile(relu()).run([X])[0].tolist() == [0.0, 2.0]


def test_an_onnx_backend_class_is_found_in_its_module(monkeypatch):
    class Rep(BackendRep):
        def run(self, inputs):
            return (np.maximum(inputs[0], 0),)

    class Foreign(Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            assert device == "CPU"
            return Rep()

    backend = module(monkeypatch, Foreign=Foreign)
    assert backend.compile(relu()).run([X])[0].tolist() == [0.0, 2.0]


def test_prepare_that_returns_nothing_is_a_refusal(monkeypatch):
    backend = module(monkeypatch, prepare=lambda model, device: None)
    with pytest.raises(NotImplementedError) as error:
        backend.compile(relu())
    assert backend.explain(error.value, Stage.IMPORT).outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    ("error", "outcome", "named"),
    [
        (BackendIsNotSupposedToImplementIt("no"), Outcome.UNSUPPORTED, True),
        (NotImplementedError("no"), Outcome.UNSUPPORTED, True),
        (KeyError("no"), Outcome.ERROR, False),
    ],
)
def test_only_refusals_count_as_unsupported(monkeypatch, error, outcome, named):
    found = module(monkeypatch, compile=None, prepare=print).explain(error, Stage.SIMULATE)
    assert (found.outcome, found.named, found.stage) == (outcome, named, Stage.SIMULATE)


def test_refusals_of_the_bundled_compiler_have_a_stage_and_a_diagnosis():
    backend = load_backend("opatlas", "reference-npu")
    error = UnsupportedType("no such type\nhere")
    error.stage = "lower"
    found = backend.explain(error, Stage.IMPORT)
    assert (found.outcome, found.stage, found.diagnosis) == (Outcome.UNSUPPORTED, Stage.LOWER, "UnsupportedType")
    for stray in (NotImplementedError("x"), KeyError("x"), AssertionError()):
        found = backend.explain(stray, Stage.IMPORT)
        assert (found.outcome, found.named) == (Outcome.ERROR, False)


def test_no_refusal_of_ours_is_one_that_onnx_reports_as_a_pass():
    kinds = [OpatlasError]
    while kinds:
        kind = kinds.pop()
        assert not issubclass(kind, BackendIsNotSupposedToImplementIt)
        kinds += kind.__subclasses__()


@pytest.mark.parametrize("name", ["nonsense", "nonsense.module", "json", "conformance.errors"])
def test_what_is_no_backend_is_refused_in_one_line(name):
    with pytest.raises(UnknownBackend) as error:
        load_backend(name, "cpu")
    assert name in str(error.value)
    assert "\n" not in str(error.value)
