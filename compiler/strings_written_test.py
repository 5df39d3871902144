import numpy as np
import pytest

from compiler.exporters.onnx import export_model
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import node_model
from compiler.ir import graphs_equal

TEXT = np.array(["a b", "B"], object)
GRAMS = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0], "ngram_indexes": [0, 1]}


@pytest.mark.parametrize(
    ("operator", "arrays", "outputs", "attributes"),
    [
        ("StringConcat", [TEXT, TEXT], 1, {}),
        ("StringSplit", [TEXT], 2, {"delimiter": " ", "maxsplit": 1}),
        ("StringSplit", [TEXT], 2, {}),
        ("StringNormalizer", [TEXT], 1, {"stopwords": ["b"], "case_change_action": "UPPER", "is_case_sensitive": 1}),
        ("StringNormalizer", [TEXT], 1, {}),
        ("RegexFullMatch", [TEXT], 1, {"pattern": "a.*"}),
        ("TfIdfVectorizer", [TEXT], 1, {"mode": "TF", "pool_strings": ["B", "a b"], **GRAMS}),
        ("Det", [np.eye(2, dtype=np.float32)], 1, {}),
        ("ImageDecoder", [np.zeros(9, np.uint8)], 1, {"pixel_format": "BGR"}),
        ("TfIdfVectorizer", [np.arange(3)], 1, {"mode": "IDF", "pool_int64s": [1, 2], "weights": [0.5, 2.0], **GRAMS}),
    ],
)
def test_what_is_written_reads_back_as_it_was(operator, arrays, outputs, attributes):
    graph = import_model(node_model(operator, arrays, 21, outputs, **attributes))
    assert graphs_equal(graph, import_model(export_model(graph)))
