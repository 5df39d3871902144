"""Operators that ONNX has with the same operands; attributes may have other names there."""

from __future__ import annotations

from typing import Final

from compiler.exporters.onnx.forms import direct
from compiler.ir import Definition
from compiler.ops import (
    activation,
    compare,
    convert,
    creation,
    detection,
    einsum,
    elementwise,
    grid_sample,
    image,
    indexing,
    integer_contraction,
    linear_algebra,
    logic,
    movement,
    normalization,
    optional,
    padding,
    quantization,
    reduce,
    reshape,
    selection,
    sequence,
    shape,
    softmax,
    strings,
)

_ALIKE: Final[dict[type[Definition], str]] = {
    activation.HardSwish: "HardSwish",
    activation.Mish: "Mish",
    activation.PRelu: "PRelu",
    activation.Relu: "Relu",
    activation.Softplus: "Softplus",
    activation.Softsign: "Softsign",
    compare.Eq: "Equal",
    compare.Ge: "GreaterOrEqual",
    compare.Gt: "Greater",
    compare.IsNan: "IsNaN",
    compare.Le: "LessOrEqual",
    compare.Lt: "Less",
    compare.Select: "Where",
    creation.Range: "Range",
    elementwise.Abs: "Abs",
    elementwise.Acos: "Acos",
    elementwise.Acosh: "Acosh",
    elementwise.Add: "Add",
    elementwise.Asin: "Asin",
    elementwise.Asinh: "Asinh",
    elementwise.Atan: "Atan",
    elementwise.Atanh: "Atanh",
    elementwise.Ceil: "Ceil",
    elementwise.Cos: "Cos",
    elementwise.Cosh: "Cosh",
    elementwise.Div: "Div",
    elementwise.Erf: "Erf",
    elementwise.Exp: "Exp",
    elementwise.Floor: "Floor",
    elementwise.Log: "Log",
    elementwise.Logistic: "Sigmoid",
    elementwise.Max: "Max",
    elementwise.Min: "Min",
    elementwise.Mul: "Mul",
    elementwise.Neg: "Neg",
    elementwise.Pow: "Pow",
    elementwise.Reciprocal: "Reciprocal",
    elementwise.Round: "Round",
    elementwise.Sign: "Sign",
    elementwise.Sin: "Sin",
    elementwise.Sinh: "Sinh",
    elementwise.Sqrt: "Sqrt",
    elementwise.Sub: "Sub",
    elementwise.Tan: "Tan",
    elementwise.Tanh: "Tanh",
    integer_contraction.MatMulInteger: "MatMulInteger",
    linear_algebra.Determinant: "Det",
    logic.And: "And",
    logic.BitAnd: "BitwiseAnd",
    logic.BitNot: "BitwiseNot",
    logic.BitOr: "BitwiseOr",
    logic.BitXor: "BitwiseXor",
    logic.Not: "Not",
    logic.Or: "Or",
    logic.Xor: "Xor",
    movement.BroadcastTo: "Expand",
    movement.Slice: "Slice",
    movement.Tile: "Tile",
    optional.OptionalGet: "OptionalGetElement",
    optional.OptionalHas: "OptionalHasElement",
    optional.OptionalOf: "Optional",
    quantization.DynamicQuantize: "DynamicQuantizeLinear",
    reshape.Squeeze: "Squeeze",
    reshape.Unsqueeze: "Unsqueeze",
    selection.NonZero: "NonZero",
    sequence.SequenceAt: "SequenceAt",
    sequence.SequenceErase: "SequenceErase",
    sequence.SequenceInsert: "SequenceInsert",
    sequence.SequenceLength: "SequenceLength",
    shape.SizeOf: "Size",
    strings.StringConcat: "StringConcat",
}
"""Operators without attributes."""

for _definition, _operator in _ALIKE.items():
    direct(_definition, _operator)

direct(activation.Celu, "Celu", "alpha")
direct(activation.Elu, "Elu", "alpha")
direct(activation.Gelu, "Gelu", "approximate")
direct(activation.HardSigmoid, "HardSigmoid", "alpha", "beta")
direct(activation.LeakyRelu, "LeakyRelu", "alpha")
direct(activation.Selu, "Selu", "alpha", "gamma")
direct(activation.Shrink, "Shrink", "lambd", "bias")
direct(activation.ThresholdedRelu, "ThresholdedRelu", "alpha")
direct(compare.IsInf, "IsInf", "detect_negative", "detect_positive")
direct(convert.BitCast, "BitCast", "to")
direct(creation.EyeLike, "EyeLike", "k", dtype="to")
direct(detection.NonMaxSuppression, "NonMaxSuppression", center_point_box="center")
direct(einsum.Einsum, "Einsum", "equation")
direct(grid_sample.AffineGrid, "AffineGrid", "align_corners")
direct(image.DecodeImage, "ImageDecoder", pixel_format="format")
direct(indexing.Gather, "Gather", "axis")
direct(indexing.GatherElements, "GatherElements", "axis")
direct(indexing.GatherNd, "GatherND", "batch_dims")
direct(indexing.OneHot, "OneHot", "axis")
direct(indexing.ReverseSequence, "ReverseSequence", "batch_axis", "time_axis")
direct(indexing.ScatterElements, "ScatterElements", "axis", "reduction")
direct(indexing.ScatterNd, "ScatterND", "reduction")
direct(movement.Concat, "Concat", "axis")
direct(movement.Transpose, "Transpose", perm="permutation")
direct(normalization.BatchNorm, "BatchNormalization", "epsilon")
direct(normalization.InstanceNorm, "InstanceNormalization", "epsilon")
direct(normalization.Lrn, "LRN", "size", "alpha", "beta", "bias")
direct(normalization.LpNorm, "LpNormalization", "axis", "p")
direct(padding.Trilu, "Trilu", "upper")
direct(reduce.ArgMax, "ArgMax", "axis", keepdims="keep_dims", select_last_index="select_last")
direct(reduce.ArgMin, "ArgMin", "axis", keepdims="keep_dims", select_last_index="select_last")
direct(reshape.DepthToSpace, "DepthToSpace", "mode", blocksize="block_size")
direct(reshape.SpaceToDepth, "SpaceToDepth", blocksize="block_size")
direct(selection.Compress, "Compress", "axis")
direct(selection.TopK, "TopK", "axis", "largest", "sorted")
direct(selection.Unique, "Unique", "axis", "sorted")
direct(sequence.ConcatFromSequence, "ConcatFromSequence", "axis", "new_axis")
direct(softmax.Hardmax, "Hardmax", "axis")
direct(softmax.LogSoftmax, "LogSoftmax", "axis")
direct(softmax.Softmax, "Softmax", "axis")
direct(strings.RegexFullMatch, "RegexFullMatch", "pattern")
direct(strings.StringSplit, "StringSplit", "delimiter", maxsplit="limit")
