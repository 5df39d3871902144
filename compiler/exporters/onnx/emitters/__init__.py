"""Emitters of the IR's operators, a file a family. Importing the package enters them all."""

from compiler.exporters.onnx.emitters import (
    contraction,
    control,
    elementwise,
    movement,
    normalization,
    reduce,
)

__all__ = ["contraction", "control", "elementwise", "movement", "normalization", "reduce"]
