"""The operators of the IR. Importing the package fills the registry, one family a module."""

from compiler.ops import (
    activation,
    compare,
    contraction,
    control,
    convert,
    elementwise,
    logic,
    normalization,
    pooling,
    reduce,
)
from compiler.ops.registry import Composite, Operator, lookup, operators

__all__ = [
    "Composite",
    "Operator",
    "activation",
    "compare",
    "contraction",
    "control",
    "convert",
    "elementwise",
    "logic",
    "lookup",
    "normalization",
    "operators",
    "pooling",
    "reduce",
]
