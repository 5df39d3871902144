"""The words of the block language: what each makes of its operands' shapes and element types.

A word is a function of tensors, numbers and sizes that returns what a back-end needs to render it. Words are the whole
vocabulary: three tables, one a framework, say how each is spelled there (onnx.py, torch.py, tensorflow.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from generators.blocks.program import BOOL, FLOATS, INT64, Shape, Var
from opsets.errors import ManifestError


@dataclass(frozen=True, slots=True)
class Made:
    """A step to be: operands, what else is rendered, and (shape, element type) of each result."""

    operands: Sequence[Any]
    results: Sequence[tuple[Shape, str]]
    settings: dict[str, Any] = field(default_factory=dict)


WORDS: Final[dict[str, Callable[..., Made]]] = {}


def word(function: Callable[..., Made]) -> Callable[..., Made]:
    """Decorator: enter a word under the function's name, without the underscore that avoids Python's own."""
    WORDS[function.__name__.rstrip("_").replace("builtin_", "builtin.")] = function
    return function


def _axis(x: Var, axis: int) -> int:
    if not -x.rank <= axis < x.rank:
        raise ManifestError(f"axis {axis} of a tensor of shape {list(x.shape)}: expected one of its {x.rank}")
    return axis % x.rank


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def broadcast(*operands: Any) -> Shape:  # noqa: ANN401 - tensors and numbers
    """The shape of an elementwise result. Raises ManifestError where sizes do not meet."""
    shapes = [operand.shape for operand in operands if isinstance(operand, Var)]
    rank = max(map(len, shapes))
    sizes = []
    for column in zip(*[(1,) * (rank - len(shape)) + shape for shape in shapes], strict=True):
        found = {size for size in column if size != 1} or {1}
        if len(found) > 1:
            raise ManifestError(f"shapes {[list(shape) for shape in shapes]} do not broadcast")
        sizes.append(found.pop())
    return tuple(sizes)


def _type(*operands: Any) -> str:  # noqa: ANN401
    types = {operand.dtype for operand in operands if isinstance(operand, Var)}
    if len(types) != 1:
        raise ManifestError(f"operands of the types {sorted(types)}: expected one; cast them")
    return str(types.pop())


def _unary(name: str) -> None:
    WORDS[name] = lambda x: Made((x,), [(x.shape, x.dtype)])


def _binary(name: str) -> None:
    WORDS[name] = lambda a, b: Made((a, b), [(broadcast(a, b), _type(a, b))])


def _comparison(name: str) -> None:
    def made(a: Any, b: Any) -> Made:  # noqa: ANN401
        _type(a, b)
        return Made((a, b), [(broadcast(a, b), BOOL)])

    WORDS[name] = made


for _name in [
    "neg",
    "abs",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "tanh",
    "erf",
    "sigmoid",
    "relu",
    "sin",
    "cos",
    "reciprocal",
    "round",
    "floor",
    "logical_not",
]:
    _unary(_name)
for _name in [
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "maximum",
    "minimum",
    "mod",
    "logical_and",
    "logical_or",
    "bit_and",
    "shift_right",
]:
    _binary(_name)
for _name in ["lt", "le", "gt", "ge", "eq"]:
    _comparison(_name)
for _name in [
    "builtin.relu",
    "builtin.gelu",
    "builtin.gelu_tanh",
    "builtin.silu",
    "builtin.softplus",
    "builtin.hard_swish",
]:
    _unary(_name)


@word
def where(condition: Var, a: Any, b: Any) -> Made:  # noqa: ANN401
    """a where the condition holds, else b; numbers take the type of the other."""
    return Made((condition, a, b), [(broadcast(condition, a, b), _type(a, b))])


@word
def clamp(x: Var, low: float, high: float) -> Made:
    """Each element within two numbers."""
    return Made((x,), [(x.shape, x.dtype)], {"low": low, "high": high})


@word
def cast(x: Var, dtype: str) -> Made:
    """Another element type."""
    return Made((x,), [(x.shape, dtype)], {"dtype": dtype})


@word
def reshape(x: Var, *sizes: int) -> Made:
    """The same elements under other sizes, one of which may be -1."""
    known = math.prod(size for size in sizes if size != -1)
    dims = tuple(math.prod(x.shape) // max(known, 1) if size == -1 else size for size in sizes)
    if math.prod(dims) != math.prod(x.shape):
        raise ManifestError(f"reshape of {list(x.shape)} to {list(sizes)}: expected the same number of elements")
    return Made((x,), [(dims, x.dtype)], {"dims": list(sizes)})


@word
def transpose(x: Var, *permutation: int) -> Made:
    """Dim d of the result is dim permutation[d]."""
    if sorted(permutation) != list(range(x.rank)):
        raise ManifestError(f"transpose of {list(x.shape)} by {list(permutation)}: expected each axis once")
    return Made((x,), [(tuple(x.shape[axis] for axis in permutation), x.dtype)], {"permutation": list(permutation)})


@word
def swap(x: Var) -> Made:
    """The last two dims exchanged."""
    permutation = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    return Made((x,), [((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)], {"permutation": permutation})


@word
def unsqueeze(x: Var, axis: int) -> Made:
    """A dim of size 1 put in at an axis of the result."""
    axis %= x.rank + 1
    return Made((x,), [((*x.shape[:axis], 1, *x.shape[axis:]), x.dtype)], {"axis": axis})


@word
def squeeze(x: Var, axis: int) -> Made:
    """A dim of size 1 taken out."""
    axis = _axis(x, axis)
    return Made((x,), [((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)], {"axis": axis})


@word
def concat(axis: int, *parts: Var) -> Made:
    """Parts one after the other along an axis."""
    at = _axis(parts[0], axis)
    size = sum(part.shape[at] for part in parts)
    return Made(parts, [(_with(parts[0].shape, at, size), _type(*parts))], {"axis": axis})


@word
def split(x: Var, axis: int, *sizes: int) -> Made:
    """Consecutive parts along an axis."""
    at = _axis(x, axis)
    if sum(sizes) != x.shape[at]:
        raise ManifestError(f"split of {list(x.shape)} along {axis} into {list(sizes)}: they do not add up")
    results = [(_with(x.shape, at, size), x.dtype) for size in sizes]
    return Made((x,), results, {"axis": at, "sizes": list(sizes)})


@word
def cut(x: Var, axis: int, start: int, end: int, step: int = 1) -> Made:
    """Elements start to end - 1 along an axis."""
    at = _axis(x, axis)
    low, high, _ = slice(start, end, step).indices(x.shape[at])
    settings = {"axis": at, "start": low, "end": high, "step": step, "before": [":"] * at}
    return Made((x,), [(_with(x.shape, at, max(0, -(-(high - low) // step))), x.dtype)], settings)


@word
def expand(x: Var, *sizes: int) -> Made:
    """Dims of size 1 repeated."""
    return Made((x,), [(tuple(sizes), x.dtype)], {"dims": list(sizes)})


@word
def pad(x: Var, axis: int, before: int, after: int) -> Made:
    """Zeros along one axis."""
    at = _axis(x, axis)
    pads = [(before, after) if d == at else (0, 0) for d in range(x.rank)]
    shape = _with(x.shape, at, x.shape[at] + before + after)
    return Made((x,), [(shape, x.dtype)], {"pads": pads})


def _reduction(name: str, dtype: str = "") -> None:
    def made(x: Var, axis: int, keep: bool = True) -> Made:
        at = _axis(x, axis)
        shape = _with(x.shape, at, 1) if keep else (*x.shape[:at], *x.shape[at + 1 :])
        return Made((x,), [(shape, dtype or x.dtype)], {"axis": axis, "keep": keep})

    WORDS[name] = made


for _name in ("sum", "mean", "max", "min"):
    _reduction(_name)
_reduction("argmax", INT64)


@word
def cumsum(x: Var, axis: int) -> Made:
    """Running sums along an axis."""
    return Made((x,), [(x.shape, x.dtype)], {"axis": axis})


@word
def matmul(a: Var, b: Var) -> Made:
    """Matrix product; leading dims broadcast."""
    if a.shape[-1] != b.shape[max(b.rank - 2, 0)]:
        raise ManifestError(f"matmul of {list(a.shape)} and {list(b.shape)}: the inner sizes differ")
    lead = broadcast(Var(a.shape[:-2], ""), Var(b.shape[:-2], ""))
    return Made((a, b), [((*lead, a.shape[-2], b.shape[-1]), _type(a, b))])


@word
def einsum(equation: str, *operands: Var) -> Made:
    """Sum of products by an equation without an ellipsis."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    sizes = {
        letter: size
        for letters, operand in zip(inputs.split(","), operands, strict=True)
        for letter, size in zip(letters, operand.shape, strict=True)
    }
    return Made(operands, [(tuple(sizes[letter] for letter in output), _type(*operands))], {"equation": equation})


def _window(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@word
def conv(x: Var, w: Var, stride: int = 1, padding: int = 0, groups: int = 1, dilation: int = 1) -> Made:
    """x [N, C, *S], w [M, C / groups, *K]."""
    space = (_window(s, k, stride, padding, dilation) for s, k in zip(x.shape[2:], w.shape[2:], strict=True))
    settings = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation, "dims": x.rank - 2}
    settings |= {"channels": x.shape[1]}
    return Made((x, w), [((x.shape[0], w.shape[0], *space), _type(x, w))], settings)


@word
def conv_transpose(x: Var, w: Var, stride: int = 1) -> Made:
    """x [N, C, H, W], w [C, M, K, K]: kernels as wide as their stride."""
    space = tuple((size - 1) * stride + k for size, k in zip(x.shape[2:], w.shape[2:], strict=True))
    shape = (x.shape[0], w.shape[1], *space)
    return Made((x, w), [(shape, _type(x, w))], {"stride": stride, "nhwc": [shape[0], *space, shape[1]]})


def _pool(name: str) -> None:
    def made(x: Var, kernel: int, stride: int, padding: int = 0) -> Made:
        space = (_window(size, kernel, stride, padding) for size in x.shape[2:])
        settings = {"kernel": kernel, "stride": stride, "padding": padding}
        return Made((x,), [((*x.shape[:2], *space), x.dtype)], settings)

    WORDS[name] = made


_pool("max_pool")
_pool("avg_pool")


@word
def upsample(x: Var, factor: int, mode: str) -> Made:
    """x [N, C, H, W] by a whole factor: nearest or bilinear (half-pixel centres)."""
    space = tuple(size * factor for size in x.shape[2:])
    return Made((x,), [((*x.shape[:2], *space), x.dtype)], {"factor": factor, "mode": mode, "space": list(space)})


@word
def gather(table: Var, ids: Var, axis: int = 0) -> Made:
    """Slices of a table at indices along an axis."""
    at = _axis(table, axis)
    shape = (*table.shape[:at], *ids.shape, *table.shape[at + 1 :])
    return Made((table, ids), [(shape, table.dtype)], {"axis": at, "before": [":"] * at})


@word
def take_along(x: Var, ids: Var, axis: int) -> Made:
    """Element ids[..., i, ...] along an axis, all other places as they are; the last axis alone."""
    return Made((x, ids), [(ids.shape, x.dtype)], {"axis": _axis(x, axis), "batch": x.rank - 1})


@word
def top_k(x: Var, count: int) -> Made:
    """The greatest along the last axis, in descending order, and where they stand."""
    shape = _with(x.shape, x.rank - 1, count)
    return Made((x,), [(shape, x.dtype), (shape, INT64)], {"count": count})


@word
def write(cache: Var, rows: Var, places: Var) -> Made:
    """cache [B, H, L, D] with rows [B, H, S, D] put at places [S] of its third dim."""
    return Made((cache, rows, places), [(cache.shape, cache.dtype)], {"shape": list(rows.shape)})


@word
def iota(count: int) -> Made:
    """0 to count - 1 as int64."""
    return Made((), [((count,), INT64)], {"count": count})


@word
def constant(values: Sequence[Any], dtype: str) -> Made:
    """A vector of numbers."""
    flat = [float(value) if dtype in FLOATS else int(value) for value in values]
    return Made((), [((len(flat),), dtype)], {"values": flat, "dtype": dtype})


@word
def builtin_softmax(x: Var, axis: int) -> Made:
    """The framework's own."""
    return Made((x,), [(x.shape, x.dtype)], {"axis": axis})


@word
def builtin_log_softmax(x: Var, axis: int) -> Made:
    """The framework's own."""
    return Made((x,), [(x.shape, x.dtype)], {"axis": axis})


@word
def builtin_layer_norm(x: Var, scale: Var, bias: Var, eps: float) -> Made:
    """The framework's own, over the last dim."""
    return Made((x, scale, bias), [(x.shape, x.dtype)], {"eps": eps, "size": x.shape[-1]})


@word
def builtin_rms_norm(x: Var, scale: Var, eps: float) -> Made:
    """The framework's own, over the last dim."""
    return Made((x, scale), [(x.shape, x.dtype)], {"eps": eps, "size": x.shape[-1]})


@word
def builtin_group_norm(x: Var, groups: int, scale: Var, bias: Var, eps: float) -> Made:
    """The framework's own of x [N, C, H, W]."""
    return Made((x, scale, bias), [(x.shape, x.dtype)], {"groups": groups, "eps": eps})


@word
def builtin_batch_norm(x: Var, scale: Var, bias: Var, mean: Var, variance: Var, eps: float) -> Made:
    """The framework's own with given statistics, of x [N, C, H, W]."""
    return Made((x, scale, bias, mean, variance), [(x.shape, x.dtype)], {"eps": eps})


@word
def builtin_attention(q: Var, k: Var, v: Var, scale: float, causal: bool = False) -> Made:
    """The framework's own attention of q [B, H, S, D] over k [B, G, L, D] and v [B, G, L, E]."""
    settings = {"scale": scale, "causal": causal, "grouped": q.shape[1] != k.shape[1]}
    return Made((q, k, v), [((*q.shape[:3], v.shape[3]), q.dtype)], settings)


@word
def builtin_masked_attention(q: Var, k: Var, v: Var, mask: Var, scale: float) -> Made:
    """The same with a mask, bool or added."""
    settings = {"scale": scale, "grouped": q.shape[1] != k.shape[1]}
    return Made((q, k, v, mask), [((*q.shape[:3], v.shape[3]), q.dtype)], settings)


@word
def builtin_rotary(x: Var, cos: Var, sin: Var, interleaved: bool = False) -> Made:
    """The framework's own rotary embedding of x [B, H, S, D] by angles [B, S, D / 2]."""
    return Made((x, cos, sin), [(x.shape, x.dtype)], {"interleaved": int(interleaved)})


@word
def repeat_interleave(x: Var, count: int, axis: int) -> Made:
    """Each element along an axis so often in place."""
    at = _axis(x, axis)
    places = [i // count for i in range(x.shape[at] * count)]
    return Made(
        (x,), [(_with(x.shape, at, x.shape[at] * count), x.dtype)], {"count": count, "axis": at, "places": places}
    )
