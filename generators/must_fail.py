"""Models that break one rule of ONNX each, made from the schemas: every one must be refused with a named diagnosis.

A valid model of an operator, the first case of its manifest entry, is broken by one rule at one place. The kind of
violation decides which diagnosis is expected, never a run of a compiler. Ids come from schemas alone; a model is
built when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from generators.broken_graphs import GRAPHS
from generators.broken_nodes import RULES, Subject
from generators.broken_weights import WEIGHTS
from generators.expand import expand
from generators.render import build
from opsets import Item, load_manifests

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class MustFail:
    """One broken model: its rule, what states the rule, and the class of diagnosis that the violation calls for."""

    id: str
    rule: str
    statement: str
    diagnosis: str
    domain: str
    operator: str
    since_version: int


def must_fail_models() -> Iterator[MustFail]:
    """Every broken model, in a fixed order; nothing is built."""
    for item in _items():
        for name, rule in RULES.items():
            if rule.applies(Subject.of(item)):
                where = "" if item.domain == "ai.onnx" else f"{item.domain}-"
                identity = f"{name}-{where}{item.operator}-{item.since_version}"
                yield MustFail(
                    identity, name, rule.statement, rule.diagnosis, item.domain, item.operator, item.since_version
                )
    for name, graph in chain(GRAPHS.items(), WEIGHTS.items()):
        yield MustFail(name, graph.rule, graph.statement, graph.diagnosis, "ai.onnx", graph.operator, 0)


def build_must_fail(case: MustFail) -> tuple[ModelProto, list[np.ndarray[Any, Any]] | None]:
    """The broken model of a description, and inputs of the valid model it is made from; None without one.

    :raises ManifestError: if its operator has no valid model to start from.
    """
    if case.id in GRAPHS or case.id in WEIGHTS:
        return (GRAPHS.get(case.id) or WEIGHTS[case.id]).build(), None
    item = next(one for one in _items() if _is_of(one, case))
    model, inputs = build(next(expand(item)))
    del model.graph.value_info[:]
    RULES[case.rule].break_(model, Subject.of(item))
    return model, inputs


def _is_of(item: Item, case: MustFail) -> bool:
    return (item.domain, item.operator, item.since_version) == (case.domain, case.operator, case.since_version)


@cache
def _items() -> tuple[Item, ...]:
    return tuple(item for manifest in load_manifests("onnx") for item in manifest.items)
