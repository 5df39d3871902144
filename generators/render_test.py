import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import onnx
import pytest

from generators import build, case_by_id, expand, render, twin
from generators.render import reproducer_scope
from opsets import load_manifests

CASES = [case for manifest in load_manifests("onnx") for case in expand(manifest)]
PLAIN = "onnx-Abs-13-float32-3x4x5-random-static"


def first_of_each_item():
    seen = {}
    for case in CASES:
        seen.setdefault((case.operator, case.since_version), case)
    return list(seen.values())


def one_of_each_mode_and_template():
    seen = {}
    for case in CASES:
        seen.setdefault(
            (case.operator in {"If", "Loop", "Scan", "SequenceMap"} and case.operator, case.input_mode), case
        )
    return list(seen.values())


def find(operator, **facts):
    return next(
        case
        for case in CASES
        if case.operator == operator and all(getattr(case, name) == value for name, value in facts.items())
    )


def same(left, right):
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and (left.tobytes() == right.tobytes() or (left == right).all())
    )


@pytest.mark.parametrize("case", first_of_each_item(), ids=str)
def test_models_are_valid(case):
    model, inputs = build(case)
    onnx.checker.check_model(model)
    assert [opset.version for opset in model.opset_import] == [case.opset]
    assert len(inputs) == len(model.graph.input)
    for info, value in zip(model.graph.input, inputs, strict=True):
        if info.type.HasField("map_type"):
            assert isinstance(value, dict)
            continue
        tensor = info.type.tensor_type
        assert onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) == value.dtype
        for dim, size in zip(tensor.shape.dim, value.shape, strict=True):
            assert dim.dim_param or dim.dim_value == size


def test_a_sample_of_all_models_is_valid():
    for case in CASES[::11]:
        onnx.checker.check_model(build(case)[0])


@pytest.mark.parametrize("case", one_of_each_mode_and_template(), ids=str)
def test_the_reproducer_is_what_ran(case):
    model, inputs = build(case)
    scope = reproducer_scope(render(case))
    values = scope["make_inputs"]()
    again = scope["make_model"](values)
    assert again.SerializeToString() == model.SerializeToString()
    fed = [values[info.name] for info in again.graph.input]
    assert all(same(left, right) for left, right in zip(inputs, fed, strict=True))


def test_the_reproducer_runs_alone(tmp_path):
    path = tmp_path / "case.py"
    path.write_text(render(case_by_id(PLAIN)), encoding="utf-8")
    run = subprocess.run([sys.executable, "-I", path], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "-> Y float32 [3, 4, 5]" in run.stdout


def test_the_reproducer_writes_its_model_and_inputs(tmp_path):
    case = case_by_id(PLAIN)
    reproducer_scope(render(case))["main"](tmp_path / "made")
    model, inputs = build(case)
    assert (tmp_path / "made" / "model.onnx").read_bytes() == model.SerializeToString()
    with np.load(tmp_path / "made" / "inputs.npz") as found:
        assert all(same(found[info.name], value) for info, value in zip(model.graph.input, inputs, strict=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8e4m3fn", "bool", "string"])
def test_the_reproducer_of_any_type_gives_what_went_in(dtype, capsys):
    case = find("Identity", since_version=21, dtype=dtype)
    scope = reproducer_scope(render(case))
    scope["main"]()
    before, _, after = capsys.readouterr().out.partition("-> output ")
    assert before.split("\n", 1)[1].strip() == after.split("\n", 1)[1].strip()


def test_the_reproducer_hands_over_packed_elements(capsys):
    case = find("DequantizeLinear", since_version=21, dtype="int4")
    reproducer_scope(render(case))["main"]()
    assert "-> y " in capsys.readouterr().out


def test_the_reproducer_knows_nothing_of_the_project():
    for case in CASES[::97]:
        source = render(case)
        assert "opsets" not in source.replace("opsets =", "").replace("=opsets", "")
        assert "generators" not in source
        compile(source, case.id, "exec")


def test_building_twice_gives_the_same_bytes():
    for case in CASES[::501]:
        (left, a), (right, b) = build(case), build(case)
        assert left.SerializeToString() == right.SerializeToString()
        assert all(same(x, y) for x, y in zip(a, b, strict=True))


def test_building_is_cheap():
    sample = CASES[::50]
    build(sample[0])
    start = time.process_time()
    for case in sample:
        build(case)
    assert (time.process_time() - start) / len(sample) < 0.005


def test_the_initializer_mode_keeps_the_first_input():
    model, inputs = build(find("Add", input_mode="initializer", dtype="float32"))
    assert [info.name for info in model.graph.input] == ["A"]
    assert [tensor.name for tensor in model.graph.initializer] == ["B"]
    assert len(inputs) == 1


def test_the_symbolic_mode_names_each_dim():
    model, _ = build(find("Add", input_mode="symbolic", dtype="float32"))
    dims = [dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim]
    assert all(dims)
    assert len(set(dims)) == len(dims)


def test_an_absent_optional_input_has_an_empty_name():
    case = next(c for c in CASES if c.operator == "Clip" and dict(c.values) == {"min": None, "max": 3})
    node = build(case)[0].graph.node[0]
    assert list(node.input) == ["input", "", "max"]


def test_element_types_of_attributes_are_numbers():
    node = build(find("Cast", since_version=13, dtype="float32"))[0].graph.node[0]
    assert node.attribute[0].name == "to"
    assert node.attribute[0].type == onnx.AttributeProto.INT


def test_bfloat16_inputs_are_bfloat16():
    _, inputs = build(find("Add", dtype="bfloat16"))
    assert inputs[0].dtype == np.dtype(ml_dtypes.bfloat16)


def test_indices_stay_in_range():
    for case in CASES:
        if case.operator == "Gather" and case.input_mode != "initializer" and case.data_class != "empty":
            _, inputs = build(case)
            size = dict(case.shapes)["data"][dict(case.attributes).get("axis", 0)]
            assert np.all((inputs[1] >= -size) & (inputs[1] < size))


@pytest.mark.parametrize("case", [case for case in first_of_each_item() if case.since_version < 7], ids=str)
def test_twins_are_valid(case):
    found = twin(case)
    if found is not None:
        onnx.checker.check_model(found)
        model, _ = build(case)
        assert [info.name for info in found.graph.input] == [info.name for info in model.graph.input]
        assert [info.name for info in found.graph.output] == [info.name for info in model.graph.output]


def test_the_twin_of_an_old_softmax_normalizes_rows():
    from onnx.reference import ReferenceEvaluator

    case = find("Softmax", since_version=1, dtype="float32")
    assert dict(case.attributes) == {}
    _, (x,) = build(case)
    (y,) = ReferenceEvaluator(twin(case)).run(None, {"input": x})
    rows = np.exp(x.astype(np.float64).reshape(3, 20))
    np.testing.assert_allclose(y.reshape(3, 20), rows / rows.sum(1, keepdims=True), rtol=1e-5)


def test_the_twin_of_an_old_addition_lays_the_second_input_along_the_axis():
    from onnx.reference import ReferenceEvaluator

    case = next(
        c for c in CASES if c.operator == "Add" and c.since_version == 1 and dict(c.attributes).get("axis") == 1
    )
    model, inputs = build(case)
    initial = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    values = initial | {info.name: value for info, value in zip(model.graph.input, inputs, strict=True)}
    a, b = values["A"], values["B"]
    (c,) = ReferenceEvaluator(twin(case)).run(None, {info.name: values[info.name] for info in model.graph.input})
    np.testing.assert_array_equal(c, a + b.reshape(1, *b.shape, *[1] * (3 - b.ndim)))
