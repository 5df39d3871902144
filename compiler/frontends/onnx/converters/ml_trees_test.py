import numpy as np
import onnx
import pytest

from compiler.errors import EvaluationError, InvalidAttribute, InvalidModel
from compiler.frontends.onnx.converters.ml_harness_test import (
    DTYPES,
    assert_equal,
    numbers,
    run_ml,
    same_as_onnxruntime,
)

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def trees(mode="BRANCH_LEQ", missing=0):
    """Two trees: x0 ? (x1 ? 2 : 3) : 4 with node ids of its own, and x2 ? 1 : 2."""
    return {
        "nodes_treeids": [0] * 5 + [1] * 3,
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
        "nodes_modes": [mode, mode, "LEAF", "LEAF", "LEAF", mode, "LEAF", "LEAF"],
        "nodes_values": [1.0, -2.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [missing] * 8,
    }


LEAVES = [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]


def votes(kind, ids, weights, leaves=LEAVES):
    return {
        f"{kind}_treeids": [tree for tree, _ in leaves],
        f"{kind}_nodeids": [node for _, node in leaves],
        f"{kind}_ids": ids,
        f"{kind}_weights": weights,
    }


WEIGHTS = [0.5, -1.25, 2.0, 0.75, -3.0]
ROWS = np.array([[1, -2, 0.5], [0, -3, 1], [2, 0, 0], [1, -1, 0.5], [-5, -2, 3]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [1, 3])
def test_nodes_compare_as_their_mode_says(mode, version):
    given = {"n_targets": 1, **trees(mode), **votes("target", [0] * 5, WEIGHTS)}
    same_as_onnxruntime("TreeEnsembleRegressor", [ROWS.astype(np.float32)], version, **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [{}, {"base_values": [0.5, -0.25]}])
def test_weights_of_a_target_are_joined(dtype, aggregate, base):
    # onnxruntime leaves base values out where a row reaches no leaf of a target: here each row reaches both.
    ids = [0, 0, 0, 1, 1] if base else [0, 1, 0, 1, 1]
    given = {"n_targets": 2, "aggregate_function": aggregate, **base, **trees(), **votes("target", ids, WEIGHTS)}
    same_as_onnxruntime("TreeEnsembleRegressor", [numbers((9, 3), dtype)], 1, **given)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_compared_as_the_numbers_they_are(dtype):
    given = {"n_targets": 2, **trees(), **votes("target", [0, 1, 0, 1, 1], WEIGHTS)}
    found = run_ml("TreeEnsembleRegressor", [ROWS.astype(dtype)], 1, **given)[0]
    assert_equal(found, run_ml("TreeEnsembleRegressor", [ROWS.astype(dtype).astype(np.float32)], 1, **given)[0])


def test_base_values_count_for_targets_that_no_leaf_reaches():
    given = {"n_targets": 2, "base_values": [0.5, -0.25], **trees(), **votes("target", [0] * 5, WEIGHTS)}
    found = run_ml("TreeEnsembleRegressor", [ROWS.astype(np.float32)], 1, **given)[0]
    assert found[:, 1].tolist() == [-0.25] * 5


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_sums_are_transformed(transform):
    given = {"n_targets": 2, "post_transform": transform, **trees(), **votes("target", [0, 1, 0, 1, 1], WEIGHTS)}
    same_as_onnxruntime("TreeEnsembleRegressor", [ROWS.astype(np.float32)], 1, **given)


@pytest.mark.parametrize("missing", [0, 1])
def test_nan_goes_where_the_node_says(missing):
    x = np.array([[np.nan, -3, 0], [0, np.nan, 0], [0, 0, np.nan]], np.float32)
    given = {"n_targets": 1, **trees(missing=missing), **votes("target", [0] * 5, WEIGHTS)}
    same_as_onnxruntime("TreeEnsembleRegressor", [x], 1, **given)


def test_thresholds_may_be_doubles():
    doubles = {
        name: onnx.numpy_helper.from_array(np.array(values))
        for name, values in (
            ("nodes_values_as_tensor", [1 + 1e-12, -2.0, 0, 0, 0, 0.5, 0, 0]),
            ("target_weights_as_tensor", WEIGHTS),
            ("base_values_as_tensor", [0.125]),
        )
    }
    plain = {**trees(), **votes("target", [0] * 5, WEIGHTS), "n_targets": 1}
    given = {name: value for name, value in plain.items() if name not in {"nodes_values", "target_weights"}}
    x = np.array([[1 + 5e-13, -3, 0], [1 + 2e-12, -3, 0]])
    found = run_ml("TreeEnsembleRegressor", [x], 3, **given, **doubles)[0]
    assert_equal(found, np.array([[0.5 + 0.75 + 0.125], [2 + 0.75 + 0.125]], np.float32))


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [7, 5, 9]}, {"classlabels_strings": ["x", "y", "z"]}])
@pytest.mark.parametrize("base", [None, [0.5, -0.25, 1.0]])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_class_with_the_most_votes_wins(labels, base, transform):
    given = {
        "post_transform": transform,
        **trees(),
        **labels,
        **votes("class", [0, 1, 2, 2, 1], np.abs(WEIGHTS).tolist()),
    }
    given |= {} if base is None else {"base_values": base}
    same_as_onnxruntime("TreeEnsembleClassifier", [numbers((9, 3), np.float32)], 1, 2, **given)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [1, 3])
def test_types_and_versions_of_classifiers(dtype, version):
    given = {"classlabels_int64s": [7, 5, 9], **trees(), **votes("class", [0, 1, 2, 2, 1], np.abs(WEIGHTS).tolist())}
    same_as_onnxruntime("TreeEnsembleClassifier", [numbers((9, 3), dtype)], version, 2, **given)


SHARES = [0.125, 0.5, 0.25, 0.25, 0.5]


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [7, 5]}, {"classlabels_strings": ["x", "y"]}])
@pytest.mark.parametrize("weights", [SHARES, WEIGHTS])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("voted", [0, 1])
def test_votes_for_one_class_of_two_are_its_score(labels, weights, transform, voted):
    given = {"post_transform": transform, **labels, **trees(), **votes("class", [voted] * 5, weights)}
    same_as_onnxruntime("TreeEnsembleClassifier", [ROWS.astype(np.float32)], 1, 2, **given)


@pytest.mark.parametrize("base", [[0.25], [0.5, -0.25]])
def test_the_last_base_value_is_added_to_the_score_of_two_classes(base):
    """The specification is silent; this is onnxruntime's sum where both classes have votes."""
    given = {"classlabels_int64s": [7, 5], **trees(), **votes("class", [1] * 5, WEIGHTS)}
    without, added = (
        run_ml("TreeEnsembleClassifier", [ROWS.astype(np.float32)], 1, 2, **given, **more)[1]
        for more in ({}, {"base_values": base})
    )
    np.testing.assert_allclose(added[:, 1], without[:, 1] + base[-1], rtol=1e-6)


def test_a_softmax_of_two_classes_is_one_of_the_margin_and_its_opposite():
    given = {"post_transform": "SOFTMAX", "classlabels_int64s": [7, 5], **trees(), **votes("class", [0] * 5, WEIGHTS)}
    scores = run_ml("TreeEnsembleClassifier", [ROWS.astype(np.float32)], 1, 2, **given)[1]
    margin = run_ml("TreeEnsembleClassifier", [ROWS.astype(np.float32)], 1, 2, **{**given, "post_transform": "NONE"})[1]
    np.testing.assert_allclose(scores, np.exp(margin) / np.exp(margin).sum(1, keepdims=True), rtol=1e-6)


def newest(modes=(0, 0, 0), splits=(1.0, -2.0, 0.5), dtype=np.float32, **changes):
    """The trees above in the form of version 5."""
    given = {
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2],
        "nodes_modes": onnx.numpy_helper.from_array(np.array(modes, np.uint8)),
        "nodes_splits": onnx.numpy_helper.from_array(np.array(splits, dtype)),
        "nodes_truenodeids": [1, 0, 3],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 4],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 1],
        "leaf_weights": onnx.numpy_helper.from_array(np.array(WEIGHTS, dtype)),
        "n_targets": 2,
    }
    return {**given, **changes}


@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", range(4))
def test_the_newest_form_means_the_same(mode, dtype, aggregate):
    given = newest([mode] * 3, dtype=dtype, aggregate_function=aggregate)
    if mode == 0 and dtype is np.float32:
        names = ["AVERAGE", "SUM", "MIN", "MAX"]
        old = {
            "n_targets": 2,
            "aggregate_function": names[aggregate],
            **trees(),
            **votes("target", [0, 1, 0, 1, 1], WEIGHTS),
        }
        expected = run_ml("TreeEnsembleRegressor", [ROWS.astype(dtype)], 3, **old)[0]
        assert_equal(run_ml("TreeEnsemble", [ROWS.astype(dtype)], 5, **given)[0], expected)
    same_as_onnxruntime("TreeEnsemble", [ROWS.astype(dtype)], 5, **given)


def test_half_floats_stay_half_floats():
    found = run_ml("TreeEnsemble", [ROWS.astype(np.float16)], 5, **newest(dtype=np.float16))[0]
    wide = run_ml("TreeEnsemble", [ROWS.astype(np.float32)], 5, **newest())[0]
    assert_equal(found, wide.astype(np.float16))


def test_members_of_sets_go_the_true_way():
    sets = onnx.numpy_helper.from_array(np.array([2, 3, np.nan, 0, np.nan], np.float32))
    given = newest([6, 0, 6], membership_values=sets)
    x = np.array([[2, -3, 0], [4, -3, 0], [3, 5, 7]], np.float32)
    expected = np.array([[0.5, 0.75], [2.0, 0.75], [0.0, -1.25 - 3.0]], np.float32)
    assert_equal(run_ml("TreeEnsemble", [x], 5, **given)[0], expected)


def test_a_tree_that_goes_round_is_named():
    given = newest(nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 0, 1])
    with pytest.raises(EvaluationError, match="goes round"):
        run_ml("TreeEnsemble", [ROWS.astype(np.float32)], 5, **given)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tree_roots": [9]}, InvalidAttribute),
        ({"leaf_targetids": [0, 1, 0, 1, 5]}, InvalidAttribute),
        ({"nodes_trueleafs": [0, 1]}, InvalidModel),
        ({"aggregate_function": 7}, InvalidModel),
        ({"nodes_modes": onnx.numpy_helper.from_array(np.array([6, 0, 0], np.uint8))}, InvalidAttribute),
    ],
)
def test_trees_that_do_not_fit_are_refused(change, error):
    with pytest.raises(error):
        run_ml("TreeEnsemble", [ROWS.astype(np.float32)], 5, **newest(**change))


def test_a_feature_that_is_missing_is_named():
    with pytest.raises(EvaluationError, match="features 0 to 2"):
        run_ml("TreeEnsemble", [ROWS[:, :2].astype(np.float32)], 5, **newest())
