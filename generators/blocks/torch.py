"""How PyTorch spells the words."""

from __future__ import annotations

from typing import Final

from generators.blocks.program import Step
from generators.blocks.rendering import Argument, Framework, Spelling, literal


def _attention(step: Step, a: list[Argument]) -> str:
    settings = step.settings
    parts = [f"{a[0]}, {a[1]}, {a[2]}"]
    parts += [f"attn_mask={a[3]}"] if len(a) > 3 else []
    parts += ["is_causal=True"] if settings.get("causal") else []
    parts.append(f"scale={literal(float(settings['scale']))}")
    parts += ["enable_gqa=True"] if settings["grouped"] else []
    return f"F.scaled_dot_product_attention({', '.join(parts)})"


def _pad(step: Step, a: list[Argument]) -> str:
    flat = [size for pair in reversed(step.settings["pads"]) for size in pair]
    return f"F.pad({a[0]}, {flat})"


def _conv(step: Step, a: list[Argument]) -> str:
    settings = step.settings
    given = {name: settings[name] for name, plain in _CONV.items() if settings[name] != plain}
    named = "".join(f", {name}={value}" for name, value in given.items())
    return f"F.conv{settings['dims']}d({a[0]}, {a[1]}{named})"


def _upsample(step: Step, a: list[Argument]) -> str:
    align = ", align_corners=False" if step.settings["mode"] == "bilinear" else ""
    return f'F.interpolate({a[0]}, size={step.settings["space"]}, mode="{step.settings["mode"]}"{align})'


_PLAIN: Final = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "relu", "sin", "cos", "round", "floor", "abs",
)  # fmt: skip
_CONV: Final = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}

WORDS: Final[dict[str, Spelling]] = {
    **{name: f"torch.{name}({{0}})" for name in _PLAIN},
    "neg": "-{0}", "reciprocal": "torch.reciprocal({0})", "logical_not": "torch.logical_not({0})",
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "pow": "{0} ** {1}",
    "mod": "{0} % {1}", "bit_and": "{0} & {1}", "shift_right": "{0} >> {1}",
    "maximum": "torch.maximum({0:c}, {1:c})", "minimum": "torch.minimum({0:c}, {1:c})",
    "logical_and": "torch.logical_and({0}, {1})", "logical_or": "torch.logical_or({0}, {1})",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}", "eq": "{0} == {1}",
    "where": "torch.where({0}, {1:c}, {2:c})", "clamp": "torch.clamp({0}, {low}, {high})", "cast": "{0}.to({dtype})",
    "reshape": "{0}.reshape({dims})", "transpose": "{0}.permute({permutation})", "swap": "{0}.transpose(-1, -2)",
    "unsqueeze": "{0}.unsqueeze({axis})", "squeeze": "{0}.squeeze({axis})", "expand": "{0}.expand({dims})",
    "concat": "torch.cat([{all}], dim={axis})", "split": "torch.split({0}, {sizes}, dim={axis})",
    "cut": "{0}[{before}{start}:{end}{step}]", "pad": _pad,
    "sum": "{0}.sum({axis}, keepdim={keep})", "mean": "{0}.mean({axis}, keepdim={keep})",
    "max": "{0}.amax({axis}, keepdim={keep})", "min": "{0}.amin({axis}, keepdim={keep})",
    "argmax": "{0}.argmax({axis}, keepdim={keep})", "cumsum": "{0}.cumsum({axis})",
    "matmul": "{0} @ {1}", "einsum": 'torch.einsum("{equation}", {all})', "conv": _conv,
    "conv_transpose": "F.conv_transpose2d({0}, {1}, stride={stride})",
    "max_pool": "F.max_pool2d({0}, {kernel}, stride={stride}, padding={padding})",
    "avg_pool": "F.avg_pool2d({0}, {kernel}, stride={stride})", "upsample": _upsample,
    "gather": "{0}[{before}{1}]", "take_along": "torch.gather({0}, {axis}, {1})", "top_k": "torch.topk({0}, {count})",
    "write": "{0}.index_copy(2, {2}, {1})", "iota": "torch.arange({count})",
    "constant": "torch.tensor({values}, dtype={dtype})",
    "repeat_interleave": "torch.repeat_interleave({0}, {count}, dim={axis})",
    "builtin.relu": "F.relu({0})", "builtin.gelu": "F.gelu({0})",
    "builtin.gelu_tanh": 'F.gelu({0}, approximate="tanh")',
    "builtin.silu": "F.silu({0})", "builtin.softplus": "F.softplus({0})", "builtin.hard_swish": "F.hardswish({0})",
    "builtin.softmax": "torch.softmax({0}, dim={axis})", "builtin.log_softmax": "torch.log_softmax({0}, dim={axis})",
    "builtin.layer_norm": "F.layer_norm({0}, [{size}], {1}, {2}, {eps})",
    "builtin.rms_norm": "F.rms_norm({0}, [{size}], {1}, {eps})",
    "builtin.group_norm": "F.group_norm({0}, {groups}, {1}, {2}, {eps})",
    "builtin.batch_norm": "F.batch_norm({0}, {3}, {4}, {1}, {2}, eps={eps})",
    "builtin.attention": _attention, "builtin.masked_attention": _attention,
}  # fmt: skip

FRAMEWORK: Final = Framework(
    "torch",
    WORDS,
    number=lambda value, dtype: f"torch.tensor({literal(value)}, dtype=torch.{dtype})",
    type_name=lambda dtype: f"torch.{dtype}",
    weight="self.{}",
    reserved=frozenset({"torch", "F", "self", "np"}),
)
