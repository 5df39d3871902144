import numpy as np
import onnx
import pytest

from compiler.errors import EvaluationError, InvalidModel, UnsupportedOperator
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.converters.ml_harness_test import (
    DTYPES,
    assert_equal,
    ml_model,
    numbers,
    run_ml,
    same_as_onnxruntime,
)
from compiler.frontends.onnx.harness_test import run, run_onnxruntime
from compiler.ir import graphs_equal, parse_graph, print_graph
from compiler.ops import lookup

WORDS = np.array(["b", "a", "", "b"], object)


@pytest.mark.parametrize("dtype", [*DTYPES, object])
@pytest.mark.parametrize("shape", [(6,), (2, 4), (2, 3, 5)])
def test_features_are_taken_along_the_last_dim(dtype, shape):
    x = numbers(shape, np.int64).astype(str).astype(object) if dtype is object else numbers(shape, dtype)
    same_as_onnxruntime("ArrayFeatureExtractor", [x, np.array([3, 0, 3])])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements_above_the_threshold_are_one(dtype):
    x = np.array([[-1, 0.5, 0.75, np.nan, np.inf]], dtype)
    expected = np.array([[0, 0, 1, 0, 1]], dtype)
    assert_equal(run_ml("Binarizer", [x], 1, threshold=0.5)[0], expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_not_rounded_against_a_fraction(dtype):
    assert run_ml("Binarizer", [np.array([0, 1, 2], dtype)], 1, threshold=1.5)[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factors", [([0.5], [2.0]), ([0.5, -1.0, 2.0], [2.0, 0.25, -1.0])])
def test_scaling_is_subtract_then_multiply(dtype, factors):
    same_as_onnxruntime("Scaler", [numbers((4, 3), dtype)], offset=factors[0], scale=factors[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalized(dtype, norm):
    x = numbers((5, 4), dtype)
    x[1], x[2] = 0, [-3, -1, -2, -5]
    same_as_onnxruntime("Normalizer", [x], norm=norm)


@pytest.mark.parametrize(("shape", "norm"), [((2, 3), "L3"), ((2, 3, 4), "L1")])
def test_other_norms_and_ranks_are_refused(shape, norm):
    with pytest.raises(InvalidModel):
        run_ml("Normalizer", [numbers(shape, np.float32)], 1, norm=norm)


@pytest.mark.parametrize("replaced", [2.0, float("nan")])
@pytest.mark.parametrize("values", [[9.5], [1.5, 2.5, 3.5]])
def test_a_float_is_replaced(replaced, values):
    x = np.array([[2, np.nan, 1], [0, 2, np.nan]], np.float32)
    same_as_onnxruntime("Imputer", [x], imputed_value_floats=values, replaced_value_float=replaced)
    found = [
        run_ml("Imputer", [given], 1, imputed_value_floats=values, replaced_value_float=replaced)[0]
        for given in (x, x.astype(np.float64))
    ]
    assert_equal(found[1], found[0].astype(np.float64))


@pytest.mark.parametrize("values", [[9], [7, 8, 9]])
def test_an_integer_is_replaced(values):
    x = np.array([[2, 1, 2], [0, 2, 2]])
    same_as_onnxruntime("Imputer", [x], imputed_value_int64s=values, replaced_value_int64=2)
    narrow = run_ml("Imputer", [x.astype(np.int32)], 1, imputed_value_int64s=values, replaced_value_int64=2)[0]
    assert narrow.dtype == np.int32


@pytest.mark.parametrize("dtype", DTYPES)
def test_features_stand_side_by_side(dtype):
    same_as_onnxruntime("FeatureVectorizer", [numbers((2, 3), dtype), numbers((2, 1), dtype)], inputdimensions=[3, 1])


def test_features_are_cut_or_filled_with_zeros_to_their_dimensions():
    x = np.array([[1, 2], [3, 4]], np.float32)
    expected = np.array([[1, 2, 0, 1], [3, 4, 0, 3]], np.float32)
    assert_equal(run_ml("FeatureVectorizer", [x, x], 1, inputdimensions=[3, 1])[0], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])  # onnxruntime lacks int32
def test_categories_are_marked(dtype):
    same_as_onnxruntime("OneHotEncoder", [np.array([[1, 3], [2, 9]], dtype)], cats_int64s=[3, 1, 2])


def test_categories_of_strings_are_marked():
    same_as_onnxruntime("OneHotEncoder", [WORDS], cats_strings=["a", "b"])


def test_an_error_for_unknown_categories_is_refused():
    with pytest.raises(UnsupportedOperator, match="zeros"):
        run_ml("OneHotEncoder", [WORDS], 1, cats_strings=["a"], zeros=0)


@pytest.mark.parametrize("x", [WORDS, np.array([[4, 2], [0, 4]])])
def test_categories_map_both_ways(x):
    given = {"cats_strings": ["a", "b"], "cats_int64s": [4, 2], "default_string": "?", "default_int64": -7}
    same_as_onnxruntime("CategoryMapper", [x], **given)


@pytest.mark.parametrize("x", [WORDS, np.array([1, 0, 2, -1])])
def test_the_first_label_encoder_knows_strings_by_their_place(x):
    same_as_onnxruntime("LabelEncoder", [x], classes_strings=["a", "b"], default_int64=-7, default_string="?")


KINDS = {
    "strings": (["a", "b", "a"], WORDS),
    "int64s": ([4, 2, 4], np.array([2, 4, 7])),
    "floats": ([0.5, float("nan"), 0.5], np.array([np.nan, 0.5, 3, -0.0], np.float32)),
}
VALUES = {"strings": ["x", "y", "z"], "int64s": [1, 2, 3], "floats": [1.5, 2.5, 3.5]}


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("keys", KINDS)
@pytest.mark.parametrize("values", VALUES)
def test_keys_map_to_values_and_the_last_of_equal_ones_counts(version, keys, values):
    given, x = KINDS[keys]
    defaults = {"default_string": "?", "default_int64": -7, "default_float": 0.25}
    attributes = {f"keys_{keys}": given, f"values_{values}": VALUES[values], **defaults}
    found = run_ml("LabelEncoder", [x], version, **attributes)[0]
    table = {str(key): value for key, value in zip(given, VALUES[values], strict=True)}
    default = {"strings": "?", "int64s": -7, "floats": 0.25}[values]
    assert found.tolist() == [table.get(str(item), default) for item in x.tolist()]


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.int32])
def test_tables_may_be_tensors(dtype):
    tensors = {
        "keys_tensor": onnx.numpy_helper.from_array(np.array([3, 1], dtype)),
        "values_tensor": onnx.numpy_helper.from_array(np.array([30, 10], dtype)),
        "default_tensor": onnx.numpy_helper.from_array(np.array([-5], dtype)),
    }
    found = run_ml("LabelEncoder", [np.array([[1, 2, 3]], dtype)], 4, **tensors)[0]
    assert (found.tolist(), found.dtype) == ([[10, -5, 30]], dtype)


def test_defaults_of_tensors_are_those_of_the_specification():
    keys = onnx.numpy_helper.from_array(np.array([3], np.int32))
    values = onnx.numpy_helper.from_array(np.array([30.0]))
    found = run_ml("LabelEncoder", [np.array([1], np.int32)], 4, keys_tensor=keys, values_tensor=values)[0]
    assert (found.tolist(), np.signbit(found).tolist()) == ([0.0], [True])


@pytest.mark.parametrize("change", [{"values_int64s": [1]}, {"values_int64s": [1, 2], "values_floats": [1.0, 2.0]}])
def test_tables_that_do_not_fit_are_refused(change):
    with pytest.raises(InvalidModel):
        run_ml("LabelEncoder", [WORDS], 4, keys_strings=["a", "b"], **change)


def map_type(key, value):
    element = onnx.helper.make_tensor_type_proto(value, [])
    return onnx.helper.make_map_type_proto(key, element)


T = onnx.TensorProto
WORDS_OF = {"string_vocabulary": ["b", "c", "a"]}
NUMBERS_OF = {"int64_vocabulary": [7, 1]}
MAPS = [
    (T.STRING, T.FLOAT, WORDS_OF, {"a": 1.5, "b": 2.0}, np.array([[2, 0, 1.5]], np.float32)),
    (T.STRING, T.INT64, WORDS_OF, {"a": 1, "b": 2}, np.array([[2, 0, 1]])),
    (T.STRING, T.DOUBLE, WORDS_OF, {"a": 1.5, "b": 2.0}, np.array([[2, 0, 1.5]])),
    (T.INT64, T.FLOAT, NUMBERS_OF, {1: 0.5, 7: 2.5, 3: 1.0}, np.array([[2.5, 0.5]], np.float32)),
    (T.INT64, T.DOUBLE, NUMBERS_OF, {1: 0.5}, np.array([[0, 0.5]])),
    (T.INT64, T.STRING, NUMBERS_OF, {7: "y"}, np.array([["y", ""]], object)),
]


@pytest.mark.parametrize(("key", "value", "vocabulary", "given", "expected"), MAPS)
def test_maps_become_rows(key, value, vocabulary, given, expected):
    model = ml_model("DictVectorizer", [map_type(key, value)], 1, **vocabulary)
    assert_equal(run(model, given)[0], expected)
    if value == T.FLOAT:  # the only values that onnxruntime's Python interface takes
        assert_equal(expected, run_onnxruntime(model, given)[0])


@pytest.mark.parametrize("to", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
@pytest.mark.parametrize("form", [{"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 5}])
def test_maps_are_converted(to, form):
    model = ml_model("CastMap", [map_type(T.INT64, T.FLOAT)], 1, cast_to=to, **form)
    given = {3: -2.75, 0: 1.5}
    assert_equal(run(model, given)[0], run_onnxruntime(model, given)[0])


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("TO_FLOAT", np.array([[15, 0, -2.5]], np.float32)),
        ("TO_INT64", np.array([[15, 0, -2]])),
        ("TO_STRING", np.array([["15", "0.f", "-2"]], object)),
    ],
)
def test_maps_of_strings_are_converted(to, expected):
    model = ml_model("CastMap", [map_type(T.INT64, T.STRING)], 1, cast_to=to, map_form="SPARSE", max_map=3)
    given = {2: "-2.5" if to == "TO_FLOAT" else "-2", 0: "15"}
    assert_equal(run(model, given)[0], expected)


def test_a_string_that_is_no_number_is_named():
    model = ml_model("CastMap", [map_type(T.INT64, T.STRING)], 1, cast_to="TO_INT64")
    with pytest.raises(EvaluationError, match="'x'"):
        run(model, {1: "x"})


def test_map_types_have_a_text_form():
    graph = import_model(ml_model("CastMap", [map_type(T.INT64, T.FLOAT)], 1))
    text = print_graph(graph)
    assert "!ir.map<i64, tensor<f32>>" in text
    assert graphs_equal(parse_graph(text, lookup), graph)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [5, 3]}, {"classlabels_strings": ["x", "y"]}])
@pytest.mark.parametrize("x", [numbers((3, 2), np.float32), numbers(2, np.float32)])
def test_scores_become_maps(labels, x):
    model = ml_model("ZipMap", [x], 1, **labels)
    assert run(model, x)[0] == run_onnxruntime(model, x)[0]
