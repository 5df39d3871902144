"""Converters of raw operators, a family a module. Importing the package fills the table."""

from typing import Final

from compiler.frontends.tensorflow.converters import (
    binary,
    contraction,
    control,
    convolution,
    creation,
    image,
    indexing,
    linear_algebra,
    movement,
    normalization,
    pooling,
    quantization,
    reduce,
    scale_and_translate,
    scatter,
    signal,
    source,
    strided_slice,
    tensor_lists,
    unary,
)

WRITES: Final = frozenset({
    "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "Assign", "AssignAdd", "AssignSub",
    "ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul",
    "ResourceScatterSub", "ResourceScatterUpdate", "ResourceScatterNdAdd", "ResourceScatterNdMax",
    "ResourceScatterNdMin", "ResourceScatterNdSub", "ResourceScatterNdUpdate", "ResourceStridedSliceAssign",
    "ResourceCountUpTo", "ResourceApplyGradientDescent", "ResourceApplyAdam", "ResourceApplyMomentum",
})  # fmt: skip
"""Raw operators that change a variable, whose effect no output shows."""

__all__ = [
    "WRITES",
    "binary",
    "contraction",
    "control",
    "convolution",
    "creation",
    "image",
    "indexing",
    "linear_algebra",
    "movement",
    "normalization",
    "pooling",
    "quantization",
    "reduce",
    "scale_and_translate",
    "scatter",
    "signal",
    "source",
    "strided_slice",
    "tensor_lists",
    "unary",
]
