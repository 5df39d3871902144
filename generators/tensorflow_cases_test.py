import subprocess
import sys

import numpy as np
import pytest

from generators.keras_cases import build_keras, expand_keras, render_keras
from generators.tensorflow_build import build_tensorflow
from generators.tensorflow_cases import expand_item, expand_tensorflow
from generators.tensorflow_source import render_tensorflow, tensorflow_source
from opsets.tensorflow_manifest import tensorflow_item

CASES = list(expand_tensorflow())


def cases_of(operator):
    return list(expand_item(tensorflow_item(operator)))


def test_listing_cases_imports_no_tensorflow():
    code = (
        "import sys; from generators.tensorflow_cases import expand_tensorflow;"
        "from generators.keras_cases import expand_keras; cases = [*expand_tensorflow(), *expand_keras()];"
        "assert len(cases) > 6000, len(cases); assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ids_are_unique_the_same_each_time_and_short():
    ids = [case.id for case in (*CASES, *expand_keras())]
    assert len(set(ids)) == len(ids)
    assert ids == [case.id for case in (*expand_tensorflow(), *expand_keras())]
    assert max(map(len, ids)) <= 210


def test_each_operator_is_tried_in_each_type_of_its_entry():
    for operator in ("Sum", "Conv2D", "GatherV2", "StatelessIf", "TensorListStack"):
        assert {case.dtype for case in cases_of(operator)} == set(tensorflow_item(operator).elements)


def test_every_case_renders_to_source_that_compiles():
    for case in CASES[::25]:
        compile(render_tensorflow(case), case.id, "exec")
    for case in list(expand_keras())[::10]:
        compile(render_keras(case), case.id, "exec")


def test_a_value_is_a_constant_or_an_argument_as_the_mode_says():
    fed = next(case for case in cases_of("Transpose") if case.mode == "fed")
    static = next(case for case in cases_of("Transpose") if case.mode == "static")
    assert "def model(x, perm)" in tensorflow_source(fed).model
    assert "perm = tf.constant([" in tensorflow_source(static).model
    assert "def model(x)" in tensorflow_source(static).model


def test_sizes_are_left_open_in_symbolic_cases_alone():
    symbolic = next(case for case in cases_of("Relu") if case.mode == "symbolic" and case.shapes[0][1])
    assert "tf.TensorSpec([None" in tensorflow_source(symbolic).model


def test_later_inputs_are_constants_of_initializer_cases():
    case = next(case for case in cases_of("AddV2") if case.mode == "initializer")
    sources = tensorflow_source(case)
    assert "def model(x)" in sources.model
    assert "y = tf.constant(VALUES[1])" in sources.model
    assert sources.arguments == (0,)


def test_types_that_follow_from_inputs_are_not_named():
    case = next(case for case in cases_of("Sum") if dict(case.parameters)["Tidx"] == "int64")
    source = tensorflow_source(case).model
    assert "Tidx" not in source
    assert "tf.int64)" in source


def test_of_float64_no_denormals_are_drawn():
    case = next(case for case in cases_of("Relu") if case.dtype == "float64" and case.data_class == "special")
    assert "flushed(special(" in tensorflow_source(case).inputs


# with TensorFlow


def test_a_built_case_runs_in_tensorflow_and_is_drawn_by_its_id():
    pytest.importorskip("tensorflow", reason="runs a case")
    case = next(case for case in cases_of("MatMul") if case.dtype == "float32" and case.mode == "static")
    program = build_tensorflow(case)
    again = build_tensorflow(case)
    assert all(np.array_equal(a, b) for a, b in zip(program.arguments, again.arguments, strict=True))
    a, b = program.arguments
    a = a.T if dict(case.parameters).get("transpose_a") else a
    b = b.T if dict(case.parameters).get("transpose_b") else b
    assert np.allclose(program.outputs()[0], a @ b, rtol=1e-4, atol=1e-4)
    assert np.array_equal(program.outputs()[0], program.traced_outputs()[0])


def test_the_wide_program_has_the_same_values_in_float64():
    pytest.importorskip("tensorflow", reason="runs a case")
    case = next(case for case in cases_of("Mul") if case.dtype == "bfloat16" and case.data_class == "random")
    narrow, wide = build_tensorflow(case), build_tensorflow(case, wide=True)
    assert all(np.array_equal(a.astype(np.float64), b) for a, b in zip(narrow.arguments, wide.arguments, strict=True))
    assert wide.outputs()[0].dtype == np.float64


def test_data_of_constants_are_transformed_too():
    pytest.importorskip("tensorflow", reason="runs a case")
    case = next(case for case in cases_of("AddV2") if case.mode == "initializer" and case.dtype == "float32")
    (ones,) = build_tensorflow(case, wide=True, transform=np.ones_like).outputs()
    assert (ones == 2).all()


def test_keras_weights_and_inputs_are_the_same_in_float64():
    pytest.importorskip("tensorflow", reason="Keras runs on it here")
    pytest.importorskip("keras", minversion="3.0", reason="builds a layer")
    case = next(case for case in expand_keras() if case.entry == "Dense" and case.dtype == "float32")
    narrow, wide = build_keras(case).outputs()[0], build_keras(case, wide=True).outputs()[0]
    assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)
    assert np.allclose(narrow, wide, rtol=1e-5, atol=1e-6)
    assert np.abs(wide).max() > 0.1


def test_a_reproducer_runs_on_its_own():
    pytest.importorskip("tensorflow", reason="runs a reproducer")
    case = next(case for case in cases_of("Softmax") if case.dtype == "bfloat16")
    ran = subprocess.run(
        [sys.executable, "-"], input=render_tensorflow(case), text=True, capture_output=True, check=True
    )
    assert "Softmax" in ran.stdout
    assert "->" in ran.stdout
