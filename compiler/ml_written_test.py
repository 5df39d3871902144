import numpy as np
import onnx
import pytest

from compiler.errors import ExportError
from compiler.exporters.onnx import export_model
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.converters.ml_harness_test import ml_model
from compiler.frontends.onnx.converters.ml_trees_test import ROWS, WEIGHTS, newest, trees, votes
from compiler.ir import graphs_equal
from compiler.ops.interpreter import interpret

WORDS = np.array(["a", "c"], object)
MAP = onnx.helper.make_map_type_proto(
    onnx.TensorProto.INT64, onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
)


@pytest.mark.parametrize(
    ("operator", "given", "attributes"),
    [
        ("LabelEncoder", WORDS, {"keys_strings": ["a", "b"], "values_int64s": [4, 2]}),
        ("LabelEncoder", np.array([1.5, 2], np.float32), {"keys_floats": [1.5], "values_strings": ["x"]}),
        ("DictVectorizer", MAP, {"int64_vocabulary": [3, 1]}),
        ("CastMap", MAP, {"cast_to": "TO_STRING", "map_form": "SPARSE", "max_map": 4}),
        ("CastMap", MAP, {"cast_to": "TO_INT64"}),
        ("ZipMap", np.ones((2, 2), np.float32), {"classlabels_strings": ["x", "y"]}),
    ],
)
def test_what_is_written_reads_back_as_it_was(operator, given, attributes):
    graph = import_model(ml_model(operator, [given], 4, **attributes))
    assert graphs_equal(graph, import_model(export_model(graph)))


OLD = {**trees("BRANCH_LT", missing=1), **votes("target", [0, 1, 0, 1, 1], WEIGHTS), "n_targets": 2}
SETS = {"membership_values": onnx.numpy_helper.from_array(np.array([2, 3, np.nan, 0, np.nan], np.float32))}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_mean_the_same_when_read_back(dtype, aggregate):
    x = ROWS.astype(dtype)
    graph = import_model(ml_model("TreeEnsembleRegressor", [x], 3, aggregate_function=aggregate, **OLD))
    again = import_model(export_model(graph))
    np.testing.assert_array_equal(interpret(again, [x])[0], interpret(graph, [x])[0])


def test_trees_with_sets_mean_the_same_when_read_back():
    x = np.array([[2, -3, 0], [4, -3, 0], [3, 5, 7], [np.nan, 0, 1]], np.float32)
    graph = import_model(ml_model("TreeEnsemble", [x], 5, **newest([6, 0, 6], **SETS)))
    np.testing.assert_array_equal(interpret(import_model(export_model(graph)), [x])[0], interpret(graph, [x])[0])


def test_a_leaf_with_two_weights_has_no_form():
    twice = votes("target", [0, 1, 0, 1, 1, 1], [*WEIGHTS, 1.0], [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 2)])
    graph = import_model(ml_model("TreeEnsembleRegressor", [ROWS], 3, **trees(), **twice, n_targets=2))
    with pytest.raises(ExportError, match="one weight a leaf"):
        export_model(graph)
