"""Tree ensembles: each version's way to write trees becomes one list of nodes and one of leaf weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.frontends.onnx.converters.ml_scores import (
    ML,
    best,
    complemented,
    labels_of,
    mirrored,
    positive,
    transformed,
    two_labels,
)
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import F32, Constant, Op
from compiler.ops.compose import Emit
from compiler.ops.ml_trees import MODES, TreeEnsemble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, Value

_MODES: Final = {f"BRANCH_{mode.upper()}": code for code, mode in enumerate(MODES[:6])} | {"LEAF": MODES.index("leaf")}
_AGGREGATES: Final = ("average", "sum", "min", "max")
_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True, slots=True)
class _Trees:
    """Nodes and weights, as the operator takes them; ``targets`` is the target or class of each weight."""

    nodes: dict[str, Array]
    weight_nodes: Array
    targets: Array
    weights: Array
    roots: Array

    def run(self, site: Site, x: Value, aggregate: str, count: int, **extra: Constant) -> Op:
        """The ensemble on rows of x; float32 results, or x's own type where that is narrower or the newest form."""
        arrays = {
            **self.nodes,
            "weight_nodes": self.weight_nodes,
            "weight_targets": self.targets,
            "weights": self.weights,
            "roots": self.roots,
        }
        constants = {name: Constant.of(array) for name, array in arrays.items()}
        to = x.tensor.element if "members" in extra or (site.version >= 5 and site.operator == "TreeEnsemble") else F32
        return site.b.op(TreeEnsemble, [x], (), aggregate=aggregate, targets=count, to=to, **constants, **extra)


def _reals(site: Site, name: str) -> Array:
    """Floats, or the tensor that may stand in their place; empty without either."""
    tensor = site.attribute(f"{name}_as_tensor")
    return (
        np.asarray(tensor.array).reshape(-1) if tensor is not None else np.array(site.attribute(name) or (), np.float32)
    )


def _old_trees(site: Site, kind: str) -> _Trees:
    """Trees of versions 1 to 4: nodes by the ids of their tree and within it; leaves are nodes."""
    trees, ids = site.attribute("nodes_treeids") or (), site.attribute("nodes_nodeids") or ()
    modes = site.attribute("nodes_modes") or ()
    keys = list(zip(trees, ids, strict=False))
    numbers = {key: number for number, key in enumerate(keys)}
    unknown = set(modes) - set(_MODES)
    if unknown or not keys or len(numbers) != len(keys) or len(modes) != len(keys) or len(trees) != len(ids):
        site.bad_attribute(
            f"{len(trees)} trees, {len(ids)} ids, {len(modes)} modes {sorted(unknown)}; expected one each a node"
        )

    def number(tree: int, node: int) -> int:
        if (tree, node) not in numbers:
            site.bad_attribute(f"tree {tree} has no node {node}, to which another refers")
        return numbers[tree, node]

    def branch(name: str) -> Array:
        ends = site.attribute(name) or ()
        if len(ends) != len(keys):
            site.bad_attribute(f"attribute '{name}' has {len(ends)} entries; expected {len(keys)}, one a node")
        return np.array([0 if m == "LEAF" else number(t, n) for t, n, m in zip(trees, ends, modes, strict=True)])

    nodes = {
        "features": np.array(site.attribute("nodes_featureids") or (), np.int64),
        "modes": np.array([_MODES[mode] for mode in modes]),
        "splits": _reals(site, "nodes_values"),
        "on_true": branch("nodes_truenodeids"),
        "on_false": branch("nodes_falsenodeids"),
        "missing": np.array(site.attribute("nodes_missing_value_tracks_true") or (0,) * len(keys)),
    }
    targets, weights = site.attribute(f"{kind}_ids") or (), _reals(site, f"{kind}_weights")
    leaves = zip(site.attribute(f"{kind}_treeids") or (), site.attribute(f"{kind}_nodeids") or (), strict=False)
    weighted = np.array([number(*leaf) for leaf in leaves], np.int64)
    firsts = {tree: place for place, tree in reversed(list(enumerate(trees)))}
    roots = np.array([firsts[tree] for tree in sorted(firsts)])
    return _Trees(nodes, weighted, np.array(targets, np.int64), weights, roots)


@converts("TreeEnsembleRegressor", domain=ML, until=4)
def tree_ensemble_regressor(site: Site) -> Results:
    """Joined weights plus base values, transformed."""
    trees, emit = _old_trees(site, "target"), Emit(site.b)
    count = site.attribute("n_targets") or int(trees.targets.max(initial=0)) + 1
    aggregate = str(site.attribute("aggregate_function")).lower()
    if aggregate not in _AGGREGATES:
        site.bad_attribute(f"attribute 'aggregate_function' is '{aggregate}'; expected one of {', '.join(_AGGREGATES)}")
    scores = trees.run(site, _features(site), aggregate, count).results[0]
    return transformed(site, _with_base(site, emit, scores, count), str(site.attribute("post_transform")))


def _features(site: Site) -> Value:
    """X as rows of its own type: a comparison of integers or doubles must not be rounded."""
    x = site.input(0)
    return Emit(site.b).unsqueeze(x, (0,)) if site.rank(x) == 1 else x


def _with_base(site: Site, emit: Emit, scores: Value, count: int) -> Value:
    base = _reals(site, "base_values").astype(np.float32)
    if not base.size:
        return scores
    if base.size not in {1, count}:
        site.bad_attribute(f"it has {base.size} base values; expected {count}")
    return emit("add", scores, emit.constant(base))


@converts("TreeEnsembleClassifier", domain=ML, until=4)
def tree_ensemble_classifier(site: Site) -> Results:
    """The class with the greatest sum of votes; votes for one class of two alone are its score."""
    trees, emit = _old_trees(site, "class"), Emit(site.b)
    labels = labels_of(site, "classlabels_int64s", "classlabels_strings")
    if labels is None:
        site.bad_attribute("it has neither 'classlabels_int64s' nor 'classlabels_strings'; expected one of them")
    transform = str(site.attribute("post_transform"))
    if len(set(trees.targets.tolist())) == 1 and labels.size <= 2:
        return _binary(site, trees, labels, transform)
    scores, scored = trees.run(site, _features(site), "sum", labels.size).results
    if _reals(site, "base_values").size:
        scores = _with_base(site, emit, scores, labels.size)
        return best(site, scores, labels), transformed(site, scores, transform)
    voted = emit("select", scored, scores, emit.scalar(-np.inf, F32))
    return best(site, voted, labels), transformed(site, scores, transform)


def _binary(site: Site, trees: _Trees, labels: Array, transform: str) -> Results:
    """All votes are for one class of two, and their sum s decides alone.

    Weights that are all positive make s a probability, with 1/2 as its bound; others a margin, with 0. Votes for the
    first class are read as those for the second, and the scores are [1 - s, s] for a probability without a transform,
    else [-s, s]; votes for the second leave the first at 0. This is what onnxruntime does, but that it leaves out
    SOFTMAX for the first; the specification is silent.
    """
    emit = Emit(site.b)
    single = _Trees(trees.nodes, trees.weight_nodes, np.zeros_like(trees.targets), trees.weights, trees.roots)
    score = single.run(site, _features(site), "sum", 1).results[0]
    base = _reals(site, "base_values").astype(np.float32)
    if base.size:
        score = emit("add", score, emit.constant(base[-1:]))
    is_share = bool((trees.weights >= 0).all())
    label = positive(site, score, 0.5 if is_share else 0.0, two_labels(labels))
    if base.size != 2 and trees.targets[0] == 1:
        pair = emit.concat([emit("mul", score, 0.0), score], 1)
    elif base.size != 2 and is_share and transform in {"NONE", "PROBIT"}:
        pair = complemented(emit, score)
    else:
        pair = mirrored(emit, score)
    return label, transformed(site, pair, transform)


@converts("TreeEnsemble", domain=ML)
def tree_ensemble(site: Site) -> Results:
    """Inner nodes and leaves numbered apart: leaves come after the nodes."""
    modes = np.asarray(site.attribute("nodes_modes").array).reshape(-1).astype(np.int64)
    weights = np.asarray(site.attribute("leaf_weights").array).reshape(-1)
    inner, leaves = modes.size, weights.size

    def branch(ends: Sequence[int], is_leaf: Sequence[int]) -> Array:
        if len(ends) != inner or len(is_leaf) != inner:
            site.bad_attribute(
                f"its nodes have {len(ends)} ends and {len(is_leaf)} marks; expected {inner}, one a node"
            )
        joined = [end + inner if leaf else end for end, leaf in zip(ends, is_leaf, strict=True)]
        return np.array([*joined, *[0] * leaves])

    def filled(values: Array) -> Array:
        return np.concatenate([values, np.zeros(leaves, values.dtype)])

    tracks = site.attribute("nodes_missing_value_tracks_true") or (0,) * inner
    nodes = {
        "features": filled(np.array(site.attribute("nodes_featureids"))),
        "modes": np.concatenate([modes, np.full(leaves, MODES.index("leaf"))]),
        "splits": filled(np.asarray(site.attribute("nodes_splits").array).reshape(-1)),
        "on_true": branch(site.attribute("nodes_truenodeids"), site.attribute("nodes_trueleafs")),
        "on_false": branch(site.attribute("nodes_falsenodeids"), site.attribute("nodes_falseleafs")),
        "missing": filled(np.array(tracks)),
    }
    targets, roots = np.array(site.attribute("leaf_targetids")), np.array(site.attribute("tree_roots"))
    trees = _Trees(nodes, np.arange(inner, inner + leaves), targets, weights, roots)
    aggregate, transform = site.attribute("aggregate_function"), site.attribute("post_transform")
    if aggregate not in range(4) or transform not in range(5):
        site.bad_attribute(f"aggregate {aggregate} and transform {transform}; expected 0 to 3 and 0 to 4")
    members = site.attribute("membership_values")
    extra = {} if members is None else {"members": members}
    count = site.attribute("n_targets") or int(targets.max(initial=0)) + 1
    scores = trees.run(site, site.input(0), _AGGREGATES[aggregate], count, **extra).results[0]
    element = scores.tensor.element
    emit = Emit(site.b)
    name = _TRANSFORMS[transform]
    return scores if name == "NONE" else emit.cast(transformed(site, emit.cast(scores, F32), name), element)
