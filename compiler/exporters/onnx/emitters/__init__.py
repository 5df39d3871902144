"""Emitters of the IR's operators, a file a family. Importing the package enters them all."""

from compiler.exporters.onnx.emitters import (
    contraction,
    control,
    direct,
    elementwise,
    indexing,
    ml,
    movement,
    normalization,
    quantization,
    recurrent,
    reduce,
    regions,
    resize,
    sampling,
    sequence,
    strings,
)

__all__ = [
    "contraction",
    "control",
    "direct",
    "elementwise",
    "indexing",
    "ml",
    "movement",
    "normalization",
    "quantization",
    "recurrent",
    "reduce",
    "regions",
    "resize",
    "sampling",
    "sequence",
    "strings",
]
