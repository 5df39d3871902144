"""Converters of ONNX operators, a file a family. Importing the package enters them all."""

from compiler.frontends.onnx.converters import (
    activation,
    contraction,
    control,
    convert,
    creation,
    elementwise,
    indexing,
    movement,
    normalization,
    pad,
    pooling,
    quantization,
    random,
    recurrent,
    reduce,
    resize,
)

__all__ = [
    "activation",
    "contraction",
    "control",
    "convert",
    "creation",
    "elementwise",
    "indexing",
    "movement",
    "normalization",
    "pad",
    "pooling",
    "quantization",
    "random",
    "recurrent",
    "reduce",
    "resize",
]
