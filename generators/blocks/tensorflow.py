"""How TensorFlow spells the words. Its convolutions and pools on the CPU take channels last, so turned around here."""

from __future__ import annotations

from typing import Final

from generators.blocks.program import Step
from generators.blocks.rendering import Argument, Framework, Spelling, literal

_LAST: Final = "tf.transpose({}, [0, 2, 3, 1])"
_FIRST: Final = "tf.transpose({}, [0, 3, 1, 2])"


def _conv(step: Step, a: list[Argument]) -> str:
    settings = step.settings
    if settings["dims"] == 1:
        return _conv_1d(step, a)
    pad, stride, dilation = settings["padding"], settings["stride"], settings["dilation"]
    x = _LAST.format(f"tf.pad({a[0]}, [[0, 0], [0, 0], [{pad}, {pad}], [{pad}, {pad}]])" if pad else f"{a[0]}")
    if settings["groups"] == settings["channels"] > 1:
        kernel = f"tf.transpose({a[1]}, [2, 3, 0, 1])"
        strides = f'strides=[1, {stride}, {stride}, 1], padding="VALID", dilations=[{dilation}, {dilation}]'
        return _FIRST.format(f"tf.nn.depthwise_conv2d({x}, {kernel}, {strides})")
    kernel = f"tf.transpose({a[1]}, [2, 3, 1, 0])"
    return _FIRST.format(f'tf.nn.conv2d({x}, {kernel}, {stride}, "VALID", dilations={dilation})')


def _conv_1d(step: Step, a: list[Argument]) -> str:
    settings = step.settings
    pad = settings["padding"]
    x = f"tf.pad({a[0]}, [[0, 0], [0, 0], [{pad}, {pad}]])" if pad else f"{a[0]}"
    if settings["groups"] == settings["channels"] > 1:
        rows = f"tf.transpose({x}, [0, 2, 1])[:, None]"
        kernel = f"tf.transpose({a[1]}, [2, 0, 1])[None]"
        found = f'tf.nn.depthwise_conv2d({rows}, {kernel}, strides=[1, 1, 1, 1], padding="VALID")'
        return f"tf.transpose({found}[:, 0], [0, 2, 1])"
    kernel = f"tf.transpose({a[1]}, [2, 1, 0])"
    found = f'tf.nn.conv1d(tf.transpose({x}, [0, 2, 1]), {kernel}, {settings["stride"]}, "VALID")'
    return f"tf.transpose({found}, [0, 2, 1])"


def _conv_transpose(step: Step, a: list[Argument]) -> str:
    x, kernel = _LAST.format(a[0]), f"tf.transpose({a[1]}, [2, 3, 1, 0])"
    shape, stride = step.settings["nhwc"], step.settings["stride"]
    return _FIRST.format(f'tf.nn.conv2d_transpose({x}, {kernel}, {shape}, {stride}, "VALID")')


def _max_pool(step: Step, a: list[Argument]) -> str:
    pad = step.settings["padding"]
    pads = f"[[0, 0], [{pad}, {pad}], [{pad}, {pad}], [0, 0]]" if pad else '"VALID"'
    kernel, stride = step.settings["kernel"], step.settings["stride"]
    return _FIRST.format(f"tf.nn.max_pool2d({_LAST.format(a[0])}, {kernel}, {stride}, {pads})")


def _avg_pool(step: Step, a: list[Argument]) -> str:
    kernel, stride = step.settings["kernel"], step.settings["stride"]
    return _FIRST.format(f'tf.nn.avg_pool2d({_LAST.format(a[0])}, {kernel}, {stride}, "VALID")')


def _upsample(step: Step, a: list[Argument]) -> str:
    settings = step.settings
    resized = f'tf.image.resize({_LAST.format(a[0])}, {settings["space"]}, method="{settings["mode"]}")'
    return f"tf.cast({_FIRST.format(resized)}, tf.{step.results[0].dtype})"


def _argmax(step: Step, a: list[Argument]) -> str:
    axis = step.settings["axis"]
    found = f"tf.argmax({a[0]}, axis={axis})"
    return f"tf.expand_dims({found}, {axis})" if step.settings["keep"] else found


_WRITE: Final = (
    "tf.transpose(tf.tensor_scatter_nd_update(tf.transpose({0}, [2, 0, 1, 3]), tf.expand_dims({2}, 1), "
    "tf.transpose({1}, [2, 0, 1, 3])), [1, 2, 0, 3])"
)
_MATH: Final = "exp log sqrt rsqrt tanh erf sigmoid sin cos round floor abs reciprocal"

WORDS: Final[dict[str, Spelling]] = {
    **{name: f"tf.math.{name}({{0}})" for name in _MATH.split()},
    "neg": "-{0}", "relu": "tf.nn.relu({0})", "logical_not": "tf.logical_not({0})",
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "pow": "{0} ** {1}",
    "mod": "{0} % {1}", "bit_and": "tf.bitwise.bitwise_and({0:c}, {1:c})",
    "shift_right": "tf.bitwise.right_shift({0:c}, {1:c})",
    "maximum": "tf.maximum({0:c}, {1:c})", "minimum": "tf.minimum({0:c}, {1:c})",
    "logical_and": "tf.logical_and({0}, {1})", "logical_or": "tf.logical_or({0}, {1})",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}", "eq": "{0} == {1}",
    "where": "tf.where({0}, {1:c}, {2:c})", "clamp": "tf.clip_by_value({0}, {low}, {high})",
    "cast": "tf.cast({0}, {dtype})", "reshape": "tf.reshape({0}, {dims})",
    "transpose": "tf.transpose({0}, {permutation})", "swap": "tf.linalg.matrix_transpose({0})",
    "unsqueeze": "tf.expand_dims({0}, {axis})", "squeeze": "tf.squeeze({0}, [{axis}])",
    "expand": "tf.broadcast_to({0}, {dims})", "concat": "tf.concat([{all}], axis={axis})",
    "split": "tf.split({0}, {sizes}, axis={axis})", "cut": "{0}[{before}{start}:{end}{step}]",
    "pad": "tf.pad({0}, {pads})",
    "sum": "tf.reduce_sum({0}, {axis}, keepdims={keep})", "mean": "tf.reduce_mean({0}, {axis}, keepdims={keep})",
    "max": "tf.reduce_max({0}, {axis}, keepdims={keep})", "min": "tf.reduce_min({0}, {axis}, keepdims={keep})",
    "argmax": _argmax, "cumsum": "tf.cumsum({0}, axis={axis})",
    "matmul": "tf.matmul({0}, {1})", "einsum": 'tf.einsum("{equation}", {all})', "conv": _conv,
    "conv_transpose": _conv_transpose, "max_pool": _max_pool, "avg_pool": _avg_pool, "upsample": _upsample,
    "gather": "tf.gather({0}, {1}, axis={axis})", "take_along": "tf.gather({0}, {1}, axis={axis}, batch_dims={batch})",
    "top_k": "top_k({0}, {count})", "write": _WRITE, "iota": "tf.range({count}, dtype=tf.int64)",
    "constant": "tf.constant({values}, {dtype})", "repeat_interleave": "tf.repeat({0}, {count}, axis={axis})",
    "builtin.relu": "tf.nn.relu({0})", "builtin.gelu": "tf.nn.gelu({0}, approximate=False)",
    "builtin.gelu_tanh": "tf.nn.gelu({0}, approximate=True)", "builtin.silu": "tf.nn.silu({0})",
    "builtin.softplus": "tf.math.softplus({0})", "builtin.softmax": "tf.nn.softmax({0}, axis={axis})",
    "builtin.log_softmax": "tf.nn.log_softmax({0}, axis={axis})",
}  # fmt: skip

FRAMEWORK: Final = Framework(
    "tensorflow",
    WORDS,
    number=lambda value, dtype: f"tf.constant({literal(value)}, tf.{dtype})",
    type_name=lambda dtype: f"tf.{dtype}",
    weight="self.{}",
    reserved=frozenset({"tf", "self", "np"}),
)
