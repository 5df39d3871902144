"""Converters of ATen operators, a family a module. Importing the package fills the table."""

from compiler.frontends.torch.converters import (
    activation,
    binary,
    contraction,
    creation,
    gradient,
    indexing,
    movement,
    normalization,
    padding,
    pooling,
    recurrent,
    reduce,
    resize,
    unary,
)

__all__ = [
    "activation",
    "binary",
    "contraction",
    "creation",
    "gradient",
    "indexing",
    "movement",
    "normalization",
    "padding",
    "pooling",
    "recurrent",
    "reduce",
    "resize",
    "unary",
]
