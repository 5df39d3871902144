"""Converters of layers; importing the package fills the table."""

from compiler.frontends.caffe.layers import (
    activation,
    arithmetic,
    detection,
    inner_product,
    movement,
    normalization,
    pooling,
    recurrent,
    selection,
    windows,
)

__all__ = [
    "activation",
    "arithmetic",
    "detection",
    "inner_product",
    "movement",
    "normalization",
    "pooling",
    "recurrent",
    "selection",
    "windows",
]
