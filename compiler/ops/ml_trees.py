"""Ensembles of decision trees. Which way a row goes is data at every node, so they run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from compiler.errors import EvaluationError, InvalidAttribute, TypeMismatch
from compiler.ir import BOOL, Call, Constant, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import DATA, ELEMENT, REAL, Attribute, Operand, Variable, choice, integer, register

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.ir import Array

MODES: Final = ("leq", "lt", "gte", "gt", "eq", "neq", "member", "leaf")
"""What a node asks of its feature; the index is the code of the mode."""
_LEAF: Final = MODES.index("leaf")
_MEMBER: Final = MODES.index("member")
_COMPARISONS: Final[tuple[Callable[[Array, Array], Array], ...]] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)
_NODES: Final = ("features", "modes", "splits", "on_true", "on_false", "missing")
_LEAVES: Final = ("weight_nodes", "weight_targets", "weights")
_START: Final[dict[str, float]] = {"sum": 0.0, "average": 0.0, "min": np.inf, "max": -np.inf}


@register
class TreeEnsemble(Evaluated):
    """The joined weights of the leaves that each row of x [N, F] reaches: [N, targets], and whether any was (bool).

    The nodes of all trees are numbered together. Node i compares feature ``features[i]`` with ``splits[i]`` as
    ``modes[i]`` says (an index of MODES) and goes on to node ``on_true[i]`` or ``on_false[i]``; NaN goes by
    ``missing[i]`` alone. A 'member' node asks whether the feature is in its set: ``members`` has the sets in the order
    of their nodes, each ended by NaN. Leaf ``weight_nodes[j]`` gives ``weights[j]`` to target ``weight_targets[j]``.
    An average is the sum over the number of trees; a target without any weight is 0. Computed in float64, rounded once.
    Source: ONNX ai.onnx.ml TreeEnsemble-5. Raises EvaluationError for features that x lacks and trees that go round.
    """

    name: ClassVar[str] = "tree_ensemble"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *(Attribute(name, DATA, doc="one entry a node") for name in _NODES),
        *(Attribute(name, DATA, doc="one entry a weight") for name in _LEAVES),
        Attribute("roots", DATA, doc="the first node of each tree"),
        Attribute("members", DATA, None, "elements of the sets, each set ended by NaN"),
        Attribute("aggregate", choice(*_START), "sum", "how the weights of a target are joined"),
        Attribute("targets", integer(1), doc="number of columns of the result"),
        Attribute("to", ELEMENT, doc="element type of the result"),
    )

    def check(self, call: Call) -> None:
        """Raises InvalidAttribute for constants of different lengths, and nodes and targets that do not exist."""
        super().check(call)
        for names in (_NODES, _LEAVES):
            lengths = {name: call.constant(name).type.size for name in names}
            if len(set(lengths.values())) > 1:
                msg = f"tree_ensemble: lengths {lengths}; expected equal ones"
                raise InvalidAttribute(msg)
        count, modes = call.constant("modes").type.size, self._numbers(call, "modes")
        inner = modes != _LEAF
        limits = {
            "on_true": (self._numbers(call, "on_true")[inner], count),
            "on_false": (self._numbers(call, "on_false")[inner], count),
            "roots": (self._numbers(call, "roots"), count),
            "weight_nodes": (self._numbers(call, "weight_nodes"), count),
            "weight_targets": (self._numbers(call, "weight_targets"), call.integer("targets")),
            "modes": (modes, len(MODES)),
        }
        for name, (found, limit) in limits.items():
            if found.size and not (found.min() >= 0 and found.max() < limit):
                msg = f"tree_ensemble: '{name}' has entries {found.min()} to {found.max()}; expected 0 to {limit - 1}"
                raise InvalidAttribute(msg)
        sets = 0 if call.get("members") is None else int(np.isnan(self._reals(call, "members")).sum())
        if sets != int((modes == _MEMBER).sum()):
            msg = f"tree_ensemble: {sets} sets for {int((modes == _MEMBER).sum())} nodes that ask for one"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[N, targets] twice. Raises TypeMismatch for another rank than 2."""
        x = call.tensor(0)
        if x.dims is not None and len(x.dims) != 2:
            msg = f"tree_ensemble: operand 'x' is {x}; expected dims [N, F]"
            raise TypeMismatch(msg)
        dims = ("?" if x.dims is None else x.dims[0], call.integer("targets"))
        return (tensor(call.element("to"), dims), tensor(BOOL, dims))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x = np.asarray(operands[0]).astype(np.float64)
        features = self._numbers(call, "features")[self._numbers(call, "modes") != _LEAF]
        if features.size and not 0 <= features.min() <= features.max() < x.shape[1]:
            msg = f"tree_ensemble: features {features.min()} to {features.max()} of x {list(x.shape)}"
            raise EvaluationError(msg)
        aggregate = call.text("aggregate")
        scores = np.full((x.shape[0], call.integer("targets")), _START[aggregate])
        scored = np.zeros(scores.shape, np.bool_)
        weights, targets = self._reals(call, "weights"), self._numbers(call, "weight_targets")
        places = _grouped(self._numbers(call, "weight_nodes"), call.constant("modes").type.size)
        join = {"min": np.minimum, "max": np.maximum}.get(aggregate, np.add)
        roots = self._numbers(call, "roots")
        for root in roots:
            for row, leaf in enumerate(self._reached(call, x, int(root))):
                for place in places[leaf]:
                    scores[row, targets[place]] = join(scores[row, targets[place]], weights[place])
                    scored[row, targets[place]] = True
        if aggregate == "average" and roots.size:
            scores /= roots.size
        return (np.where(scored, scores, 0.0).astype(call.element("to").dtype), scored)

    def _reached(self, call: Call, x: Array, root: int) -> list[int]:
        """The leaf that each row reaches from a root."""
        modes, missing = self._numbers(call, "modes"), self._numbers(call, "missing")
        features, splits = self._numbers(call, "features"), self._reals(call, "splits")
        on_true, on_false = self._numbers(call, "on_true"), self._numbers(call, "on_false")
        sets = self._sets(call)
        at = np.full(x.shape[0], root)
        for _ in range(modes.size):
            rows = np.flatnonzero(modes[at] != _LEAF)
            if not rows.size:
                break
            nodes = at[rows]
            values = x[rows, features[nodes]]
            holds = np.zeros(rows.size, np.bool_)
            for mode, compare in enumerate(_COMPARISONS):
                holds |= (modes[nodes] == mode) & compare(values, splits[nodes])
            for place in np.flatnonzero(modes[nodes] == _MEMBER):
                holds[place] = values[place] in sets[int(nodes[place])]
            holds = np.where(np.isnan(values), missing[nodes] != 0, holds)
            at[rows] = np.where(holds, on_true[nodes], on_false[nodes])
        if (modes[at] != _LEAF).any():
            msg = f"tree_ensemble: the tree from node {root} goes round; expected leaves at every end"
            raise EvaluationError(msg)
        return [int(leaf) for leaf in at]

    def _sets(self, call: Call) -> dict[int, frozenset[float]]:
        nodes = np.flatnonzero(self._numbers(call, "modes") == _MEMBER)
        if not nodes.size:
            return {}
        values = self._reals(call, "members")
        ends = np.flatnonzero(np.isnan(values))
        starts = [0, *(ends[:-1] + 1)]
        return {
            int(node): frozenset(values[start:end].tolist())
            for node, start, end in zip(nodes, starts, ends, strict=True)
        }

    @staticmethod
    def _numbers(call: Call, name: str) -> Array:
        return call.constant(name).array.astype(np.int64, copy=False)

    @staticmethod
    def _reals(call: Call, name: str) -> Array:
        return cast("Constant", call.get(name)).array.astype(np.float64)


def _grouped(nodes: Array, count: int) -> list[list[int]]:
    """For each node the places of its weights."""
    places: list[list[int]] = [[] for _ in range(count)]
    for place, node in enumerate(nodes.tolist()):
        places[node].append(place)
    return places
