"""Targets: what an accelerator is, in YAML, schema-checked, every figure with its source."""

from compiler.targets.explain import explain
from compiler.targets.loader import DEFAULT_TARGET, load_target, parse_target, target_names
from compiler.targets.schema import Dataflow, Matrix, Product, Target, VectorUnit

__all__ = [
    "DEFAULT_TARGET",
    "Dataflow",
    "Matrix",
    "Product",
    "Target",
    "VectorUnit",
    "explain",
    "load_target",
    "parse_target",
    "target_names",
]
