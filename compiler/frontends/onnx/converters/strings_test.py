import numpy as np
import pytest

from compiler.errors import InvalidAttribute, InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, node_model, run_node, run_onnxruntime


def text(*items, shape=None):
    array = np.array(items, object)
    return array if shape is None else array.reshape(shape)


def same_text(op_type, arrays, opset, outputs=1, **attributes):
    expected = run_onnxruntime(node_model(op_type, arrays, opset, outputs, **attributes), *arrays)
    found = run_node(op_type, arrays, opset, outputs, **attributes)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.tolist() == np.asarray(theirs).tolist()
        assert mine.shape == theirs.shape


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (text("a", "", "ü"), text("x")),
        (text("a", "b", shape=(2, 1)), text("x", "y", "z")),
        (text(shape=(0, 2)), text("a", "b")),
    ],
    ids=["suffix", "both", "empty"],
)
def test_strings_are_joined_with_broadcasting(a, b):
    same_text("StringConcat", [a, b], 20)


@pytest.mark.parametrize("delimiter", [None, "", " ", "-", "--"])
@pytest.mark.parametrize("limit", [None, 1, 2])
def test_strings_are_split(delimiter, limit):
    given = {"delimiter": delimiter, "maxsplit": limit}
    x = text("a b c", "a-b--c", "x", " two  words", shape=(2, 2))
    same_text("StringSplit", [x], 20, 2, **{key: value for key, value in given.items() if value is not None})


def test_an_empty_string_is_one_substring_with_a_delimiter_and_none_without():
    parts, counts = run_node("StringSplit", [text("", "a")], 20, 2, delimiter="-")
    assert (parts.tolist(), counts.tolist()) == ([[""], ["a"]], [1, 1])
    assert run_node("StringSplit", [text("", "a")], 20, 2)[1].tolist() == [0, 1]


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("shape", [(4,), (1, 4)])
def test_stop_words_are_left_out_and_case_changed(action, sensitive, shape):
    x = text("Monday", "monday", "Tuesday", "Über", shape=shape)
    attributes = {
        "case_change_action": action,
        "is_case_sensitive": sensitive,
        "stopwords": ["monday"],
        "locale": "C.UTF-8",
    }
    expected = {0: ["Tuesday", "Über"], 1: ["Monday", "Tuesday", "Über"]}[sensitive]
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    found = run_node("StringNormalizer", [x], 10, **attributes)[0]
    assert found.shape == (*shape[:-1], len(expected))
    assert found.reshape(-1).tolist() == [change(word) for word in expected]


def test_nothing_but_stop_words_leaves_one_empty_string():
    assert run_node("StringNormalizer", [text("a", shape=(1, 1))], 10, stopwords=["a"])[0].tolist() == [[""]]


@pytest.mark.parametrize("pattern", ["a+", "(a|b)*", "\\d{2}", "[[:alpha:]]+", "\\pL+", "(?i)AB", ""])
def test_a_match_is_of_the_whole_string_in_re2_syntax(pattern):
    same_text("RegexFullMatch", [text("ab", "aa", "42", "", "ü", "ab\n")], 20, pattern=pattern)


@pytest.mark.parametrize("pattern", ["(a)\\1", "a(?=b)", "(", "a{2000}"])
def test_what_re2_does_not_take_is_refused(pattern):
    with pytest.raises(InvalidAttribute, match="expected an expression of RE2"):
        run_node("RegexFullMatch", [text("a")], 20, pattern=pattern)


POOL = {"ngram_counts": [0, 4], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
WEIGHTS = [0.5, 1.0, 2.0, 1.5, 1.25, 0.25, 3.0]


IN_ORDER, MIXED, SHARED = [0, 1, 2, 3, 4, 5, 6], [6, 5, 0, 1, 2, 4, 3], [0, 1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize(
    ("mode", "columns"),
    [*((mode, columns) for mode in ("TF", "IDF", "TFIDF") for columns in (IN_ORDER, MIXED)), ("TFIDF", SHARED)],
)
@pytest.mark.parametrize(("shortest", "longest", "skips"), [(1, 1, 0), (2, 2, 0), (1, 2, 5), (1, 2, 1)])
def test_ngrams_are_counted_as_onnxruntime_counts(mode, columns, shortest, longest, skips):
    lengths = {"min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips}
    x = np.array([[1, 5, 6, 7, 8, 6, 7], [5, 6, 5, 2, 3, 3, 6]], np.int32)
    for row in (x, x[0]):
        agrees_with_onnxruntime(
            "TfIdfVectorizer", [row], 9, mode=mode, ngram_indexes=columns, weights=WEIGHTS, **lengths, **POOL
        )


def test_ngrams_of_strings_are_counted():
    pool = {"ngram_counts": [0, 2], "pool_strings": ["a", "b", "a", "b", "b", "a"], "ngram_indexes": [0, 1, 2, 3]}
    lengths = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    agrees_with_onnxruntime("TfIdfVectorizer", [text("a", "b", "c", "b", "a")], 9, mode="TF", **pool, **lengths)


def test_an_unknown_mode_is_refused():
    lengths = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
    with pytest.raises(InvalidModel, match="'mode' is 'BM25'"):
        run_node("TfIdfVectorizer", [np.array([1])], 9, mode="BM25", ngram_indexes=[0] * 7, **POOL, **lengths)
