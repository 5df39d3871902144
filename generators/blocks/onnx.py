"""How ONNX spells the words: calls of a small graph builder that stands in the rendered file."""

from __future__ import annotations

from typing import Final

from generators.blocks.program import Step
from generators.blocks.rendering import Argument, Framework, Spelling, literal
from opsets.elements import numpy_source

OPSET: Final = 24
_PROTO: Final = {"float32": "FLOAT", "float64": "DOUBLE"}


def _pad(step: Step, a: list[Argument]) -> str:
    pads = step.settings["pads"]
    return f"g.Pad({a[0]}, g.ints({[low for low, _ in pads] + [high for _, high in pads]}))"


def _conv(step: Step, a: list[Argument]) -> str:
    settings, dims = step.settings, step.settings["dims"]
    named = [f"strides={[settings['stride']] * dims}"] if settings["stride"] != 1 else []
    named += [f"pads={[settings['padding']] * 2 * dims}"] if settings["padding"] else []
    named += [f"dilations={[settings['dilation']] * dims}"] if settings["dilation"] != 1 else []
    named += [f"group={settings['groups']}"] if settings["groups"] != 1 else []
    return f"g.Conv({', '.join([f'{a[0]}', f'{a[1]}', *named])})"


def _upsample(step: Step, a: list[Argument]) -> str:
    sizes = f'{a[0]}, "", "", g.ints({list(step.results[0].shape)})'
    if step.settings["mode"] == "bilinear":
        return f'g.Resize({sizes}, mode="linear")'
    return f'g.Resize({sizes}, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")'


def _attention(step: Step, a: list[Argument]) -> str:
    causal = ", is_causal=1" if step.settings.get("causal") else ""
    return f"g.Attention({', '.join(map(format, a))}, scale={literal(float(step.settings['scale']))}{causal})"


def _reduce(kind: str) -> str:
    return f"g.{kind}({{0}}, g.ints([{{axis}}]), keepdims=int({{keep}}))"


def _clamp(step: Step, a: list[Argument]) -> str:
    low, high = (_scalar(step.settings[name], step.results[0].dtype) for name in ("low", "high"))
    return f"g.Clip({a[0]}, {low}, {high})"


def _pool(kind: str) -> str:
    shape = "kernel_shape=[{kernel}, {kernel}], strides=[{stride}, {stride}], pads=[{padding}] * 4"
    return f"g.{kind}({{0}}, {shape})"


_UNARY: Final = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "erf": "Erf", "sigmoid": "Sigmoid", "relu": "Relu",
    "sin": "Sin", "cos": "Cos", "round": "Round", "floor": "Floor", "neg": "Neg", "reciprocal": "Reciprocal",
    "abs": "Abs", "logical_not": "Not", "builtin.relu": "Relu", "builtin.gelu": "Gelu", "builtin.silu": "Swish",
    "builtin.softplus": "Softplus", "builtin.hard_swish": "HardSwish",
}  # fmt: skip
_BINARY: Final = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min",
    "mod": "Mod", "logical_and": "And", "logical_or": "Or", "bit_and": "BitwiseAnd", "lt": "Less",
    "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal", "matmul": "MatMul",
}  # fmt: skip

WORDS: Final[dict[str, Spelling]] = {
    **{name: f"g.{kind}({{0}})" for name, kind in _UNARY.items()},
    **{name: f"g.{kind}({{0}}, {{1}})" for name, kind in _BINARY.items()},
    "rsqrt": "g.Reciprocal(g.Sqrt({0}))", "shift_right": 'g.BitShift({0}, {1}, direction="RIGHT")',
    "where": "g.Where({0}, {1}, {2})", "cast": "g.Cast({0}, to={dtype})",
    "clamp": _clamp,
    "reshape": "g.Reshape({0}, g.ints({dims}))", "transpose": "g.Transpose({0}, perm={permutation})",
    "swap": "g.Transpose({0}, perm={permutation})", "unsqueeze": "g.Unsqueeze({0}, g.ints([{axis}]))",
    "squeeze": "g.Squeeze({0}, g.ints([{axis}]))", "expand": "g.Expand({0}, g.ints({dims}))",
    "concat": "g.Concat({all}, axis={axis})",
    "split": lambda step, a: (
        f"g.Split({a[0]}, g.ints({step.settings['sizes']}), axis={step.settings['axis']}, outputs={len(step.results)})"
    ),
    "cut": lambda step, a: (
        f"g.Slice({a[0]}, {', '.join(f'g.ints([{step.settings[key]}])' for key in ('start', 'end', 'axis', 'step'))})"
    ),
    "pad": _pad,
    "sum": _reduce("ReduceSum"), "mean": _reduce("ReduceMean"), "max": _reduce("ReduceMax"),
    "min": _reduce("ReduceMin"), "argmax": "g.ArgMax({0}, axis={axis}, keepdims=int({keep}))",
    "cumsum": "g.CumSum({0}, g.scalar({axis}, np.int64))", "einsum": 'g.Einsum({all}, equation="{equation}")',
    "conv": _conv, "conv_transpose": "g.ConvTranspose({0}, {1}, strides=[{stride}, {stride}])",
    "max_pool": _pool("MaxPool"), "avg_pool": _pool("AveragePool"), "upsample": _upsample,
    "gather": "g.Gather({0}, {1}, axis={axis})", "take_along": "g.GatherElements({0}, {1}, axis={axis})",
    "top_k": "g.TopK({0}, g.ints([{count}]), outputs=2)",
    "write": "g.ScatterElements({0}, g.Expand(g.Reshape({2}, g.ints([1, 1, -1, 1])), g.ints({shape})), {1}, axis=2)",
    "iota": "g.Range(g.scalar(0, np.int64), g.scalar({count}, np.int64), g.scalar(1, np.int64))",
    "constant": lambda step, _: (
        f"g.constant([{', '.join(map(literal, step.settings['values']))}], {numpy_source(step.settings['dtype'])})"
    ),
    "repeat_interleave": "g.Gather({0}, g.ints({places}), axis={axis})",
    "builtin.gelu_tanh": 'g.Gelu({0}, approximate="tanh")', "builtin.softmax": "g.Softmax({0}, axis={axis})",
    "builtin.log_softmax": "g.LogSoftmax({0}, axis={axis})",
    "builtin.layer_norm": "g.LayerNormalization({0}, {1}, {2}, epsilon={eps})",
    "builtin.rms_norm": "g.RMSNormalization({0}, {1}, epsilon={eps})",
    "builtin.group_norm": "g.GroupNormalization({0}, {1}, {2}, num_groups={groups}, epsilon={eps})",
    "builtin.batch_norm": "g.BatchNormalization({0}, {1}, {2}, {3}, {4}, epsilon={eps})",
    "builtin.attention": _attention, "builtin.masked_attention": _attention,
    "builtin.rotary": "g.RotaryEmbedding({0}, {1}, {2}, interleaved={interleaved})",
}  # fmt: skip


def proto_name(dtype: str) -> str:
    """The element type as TensorProto spells it."""
    return _PROTO.get(dtype, dtype.upper())


def _scalar(value: float, dtype: str) -> str:
    return f"g.scalar({literal(value)}, {numpy_source(dtype)})"


FRAMEWORK: Final = Framework(
    "onnx",
    WORDS,
    number=_scalar,
    type_name=lambda dtype: f"TensorProto.{proto_name(dtype)}",
    weight="{}",
    bare=False,
    reserved=frozenset({"g", "np", "onnx", "weights", "helper", "graph", "opsets"}),
)
