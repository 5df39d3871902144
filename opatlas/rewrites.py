"""What `opatlas explain` and `opatlas bisect` do: why a rule fires or not, and which rewrite first breaks a result."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opatlas import checks, work

if TYPE_CHECKING:
    from onnx import ModelProto

    from compiler.api import CompiledModel
    from compiler.ir import Graph
    from compiler.rewrite import Rule


def rules() -> dict[str, Rule]:
    """Return every rule of every pass by name, in the order of the passes' modules."""
    from compiler import passes
    from compiler.rewrite import RuleSet

    found: dict[str, Rule] = {}
    for module in pkgutil.iter_modules(passes.__path__, "compiler.passes."):
        if not module.name.endswith("_test"):
            listed = getattr(importlib.import_module(module.name), "RULES", None)
            found |= {rule.name: rule for rule in listed.rules} if isinstance(listed, RuleSet) else {}
    return found


def rule_rows() -> list[dict[str, Any]]:
    """Return one row a rule: what it does, and what it may do to the numbers."""
    return [{"rule": name, "numerics": str(rule.numerics), "what it does": rule.doc} for name, rule in rules().items()]


def explain(compiled: CompiledModel, name: str, bind: Mapping[str, int], *, optimized: bool) -> list[str]:
    """Say of each operation that the rule's root takes why the rule fires there or not. Raises `BadOption`."""
    from compiler.pipeline import optimize
    from compiler.rewrite import explain as explain_at

    rule = rules().get(name)
    if rule is None:
        raise work.BadOption(f"--rule: found {name!r}, expected one of {', '.join(rules())}")
    graph = _specialized(compiled, work.seeded_inputs(compiled, bind, seed=0))
    if optimized:
        optimize(graph, compiled.target)
    candidates = [op for op in graph.walk() if rule.pattern.takes(op.definition)]
    return [explain_at(graph, rule, op) for op in candidates]


def bisect(compiled: CompiledModel, model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Find the first rewrite after which the graph no longer agrees with onnxruntime, by a binary search.

    The graph is evaluated by its operators' reference meaning, so what is found is a fault of a rewrite: not of the
    import (`broken_at` is 0 then) and not of lowering (`broken_at` is None).
    """
    from compiler.ops.interpreter import interpret
    from compiler.passes.manager import bisect as find_culprit
    from compiler.pipeline import passes_for
    from reports.agreement import compare_output

    reference = checks.run_onnxruntime(model, feeds)
    exact = checks.most_exact(model, feeds, reference)
    ordered = [feeds[name] for name in compiled.input_names]

    def agrees(graph: Graph) -> bool:
        compared = zip(interpret(graph, ordered), reference, exact, strict=True)
        return all(compare_output("", *values).agrees for values in compared)

    graph = _specialized(compiled, feeds)
    if not agrees(graph):
        return {"broken_at": 0, "rewrite": "none: the imported graph differs already"}
    culprit = find_culprit(graph, passes_for(compiled.target), agrees)
    if culprit is None:
        return {"broken_at": None, "rewrite": None}
    return {"broken_at": culprit.number, "rewrite": culprit.description}


def _specialized(compiled: CompiledModel, feeds: Mapping[str, Any]) -> Graph:
    import numpy as np

    from compiler.ir import TensorType, element_of, tensor
    from compiler.passes.specialize import specialize

    types = [
        tensor(element_of(np.asarray(feeds[value.name]).dtype), np.shape(feeds[value.name]))
        if isinstance(value.type, TensorType)
        else value.type
        for value in compiled.graph.inputs
    ]
    return specialize(compiled.graph, types)
