"""The operators of the IR. Importing the package fills the registry, one family a module."""

from compiler.ops import (
    activation,
    compare,
    contraction,
    control,
    conv_transpose,
    convert,
    elementwise,
    logic,
    movement,
    normalization,
    padding,
    pooling,
    reduce,
    reshape,
)
from compiler.ops.registry import Composite, Operator, lookup, operators

__all__ = [
    "Composite",
    "Operator",
    "activation",
    "compare",
    "contraction",
    "control",
    "conv_transpose",
    "convert",
    "elementwise",
    "logic",
    "lookup",
    "movement",
    "normalization",
    "operators",
    "padding",
    "pooling",
    "reduce",
    "reshape",
]
