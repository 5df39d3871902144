"""Steps of random graphs that move elements about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.suites.random_drawing import Array, Drawing, Made, Mismatch, Step


def _transpose(d: Drawing) -> None:
    x = d.any()
    order = list(range(len(x.shape)))
    d.chance.shuffle(order)
    attributes: dict[str, Any] = {"perm": order} if order and d.flip(0.8) else {}
    order = order if attributes else order[::-1] and sorted(order, reverse=True)
    d.keep(d.add("Transpose", [x.name], **attributes)[0], x, [x.shape[axis] for axis in order])


def _reshape(d: Drawing) -> None:
    x = d.any()
    rest = x.size
    sizes: list[int] = []
    while rest > 1 and len(sizes) < 4:
        divisor = d.chance.choice([size for size in range(1, rest + 1) if rest % size == 0])
        sizes.append(divisor)
        rest //= divisor
    sizes = [*sizes, rest] if rest != 1 or d.flip(0.3) else sizes
    asked = list(sizes)
    if asked and x.size and d.flip():
        asked[d.chance.randrange(len(asked))] = -1
    attributes = {"allowzero": 1} if 0 in asked else {}
    d.keep(d.add("Reshape", [x.name, d.constant(np.array(asked, np.int64))], **attributes)[0], x, sizes)


def _flatten(d: Drawing) -> None:
    x = d.any()
    axis = d.chance.randint(-len(x.shape), len(x.shape))
    at = axis + len(x.shape) if axis < 0 else axis
    shape = [math.prod(x.shape[:at]), math.prod(x.shape[at:])]
    d.keep(d.add("Flatten", [x.name], axis=axis)[0], x, shape)


def _squeeze(d: Drawing) -> None:
    x = d.any()
    if 1 in x.shape and d.flip():
        axis = d.chance.choice([axis for axis, size in enumerate(x.shape) if size == 1])
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        axis -= len(x.shape) if d.flip() else 0
        d.keep(d.add("Squeeze", [x.name, d.constant(np.array([axis]))])[0], x, shape)
    elif len(x.shape) < 5:
        axis = d.chance.randint(0, len(x.shape))
        d.keep(d.add("Unsqueeze", [x.name, d.constant(np.array([axis]))])[0], x, (*x.shape[:axis], 1, *x.shape[axis:]))


def _slice(d: Drawing) -> None:
    x = d.any(1)
    axes = sorted(d.chance.sample(range(len(x.shape)), d.chance.randint(1, len(x.shape))))
    shape = list(x.shape)
    starts: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    extremes = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 100, 2**31 - 1, 2**31, 2**63 - 1]
    for axis in axes:
        step = d.chance.choice([1, 1, 2, 3, -1, -2, 2**31 - 1])
        # onnxruntime takes the largest numbers as an end of "down to the first" when the step is negative.
        start, end = d.chance.choice(extremes), d.chance.choice(extremes if step > 0 else extremes[:-3])
        shape[axis] = len(range(*slice(max(start, -x.shape[axis]), end, step).indices(x.shape[axis])))
        starts, ends, steps = [*starts, start], [*ends, end], [*steps, step]
    given = [axis - len(x.shape) if d.flip(0.3) else axis for axis in axes]
    d.keep(d.add("Slice", [x.name, *(d.constant(np.array(v)) for v in (starts, ends, given, steps))])[0], x, shape)


def _pad(d: Drawing) -> None:
    x = d.number(least_rank=1)
    mode = d.chance.choice(["constant", "constant", "edge", "reflect", "wrap"])
    if mode != "constant" and (0 in x.shape or len(x.shape) > 4):
        raise Mismatch
    least, most = (-2, 3) if mode == "constant" else (0, min(x.shape) - (mode == "reflect"))
    pads = [[d.chance.randint(least, min(most, 3)) for _ in x.shape] for _ in range(2)]
    shape = [low + size + high for size, low, high in zip(x.shape, *pads, strict=True)]
    if min(shape) < 0:
        raise Mismatch
    inputs = [x.name, d.constant(np.array(pads[0] + pads[1]))]
    inputs += [d.number_constant(()).name] if mode == "constant" and d.flip() else []
    d.keep(d.add("Pad", inputs, mode=mode)[0], x, shape, bound=max(x.bound, 3))


def _concat(d: Drawing) -> None:
    x = d.any(1)
    axis = d.chance.randrange(len(x.shape))

    def fits(v: Made) -> bool:
        same = len(v.shape) == len(x.shape) and v.element == x.element and v.exact == x.exact
        return same and all(a == b for at, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if at != axis)

    parts = [x] + [d.pick(fits) for _ in range(d.chance.randint(0, 3))]
    d.chance.shuffle(parts)
    shape = list(x.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    given = axis - len(shape) if d.flip() else axis
    d.keep(d.add("Concat", [p.name for p in parts], axis=given)[0], x, shape, bound=max(p.bound for p in parts))


def _split(d: Drawing) -> None:
    x = d.any(1)
    axis = d.chance.randrange(len(x.shape))
    first = d.chance.randint(0, x.shape[axis])
    second = d.chance.randint(0, x.shape[axis] - first)
    sizes = [first, second, x.shape[axis] - first - second]
    names = d.add("Split", [x.name, d.constant(np.array(sizes))], 3, axis=axis)
    for name, size in zip(names, sizes, strict=True):
        if size or d.flip(0.2):
            d.keep(name, x, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


def _tile(d: Drawing) -> None:
    x = d.any()
    repeats = [d.chance.choice([0, 1, 1, 1, 2, 2, 3]) for _ in x.shape]
    shape = [size * times for size, times in zip(x.shape, repeats, strict=True)]
    d.keep(d.add("Tile", [x.name, d.constant(np.array(repeats, np.int64))])[0], x, shape)


def _expand(d: Drawing) -> None:
    x = d.any()
    asked = [size if size != 1 or d.flip(0.3) else d.chance.choice([1, 2, 5]) for size in x.shape]
    asked = [2] * d.chance.randint(0, 1) + asked
    if d.flip(0.3):
        asked = [1 if d.flip() else size for size in asked][-max(len(x.shape), 1) :]
    d.keep(
        d.add("Expand", [x.name, d.constant(np.array(asked, np.int64))])[0],
        x,
        np.broadcast_shapes(x.shape, tuple(asked)),
    )


def _indices(d: Drawing, size: int, shape: list[int]) -> Array:
    if not size and 0 not in shape:
        raise Mismatch
    generator = np.random.default_rng(d.chance.getrandbits(32))
    return generator.integers(-size, size, tuple(shape)) if size else np.zeros(tuple(shape), np.int64)


def _gather(d: Drawing) -> None:
    x = d.any(1)
    axis = d.chance.randrange(len(x.shape))
    sizes = [d.chance.choice([0, 1, 2, 4]) for _ in range(d.chance.randint(0, 2))]
    indices = d.constant(_indices(d, x.shape[axis], sizes).astype(d.chance.choice([np.int32, np.int64])))
    d.keep(d.add("Gather", [x.name, indices], axis=axis)[0], x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def _gather_elements(d: Drawing) -> None:
    x = d.any(1)
    axis = d.chance.randrange(len(x.shape))
    shape = [d.chance.randint(min(1, size), size) for size in x.shape]
    shape[axis] = d.chance.choice([1, 2, 5])
    indices = d.constant(_indices(d, x.shape[axis], shape))
    d.keep(d.add("GatherElements", [x.name, indices], axis=axis)[0], x, shape)


def _gather_nd(d: Drawing) -> None:
    x = d.any(1)
    depth = d.chance.randint(1, len(x.shape))
    columns = [_indices(d, size, [3, 1]) for size in x.shape[:depth]]
    indices = d.constant(np.concatenate(columns, axis=1))
    d.keep(d.add("GatherND", [x.name, indices])[0], x, (3, *x.shape[depth:]))


def _scatter_elements(d: Drawing) -> None:
    x = d.number(least_rank=1)
    axis = d.chance.randrange(len(x.shape))
    if not x.size:
        raise Mismatch
    shape = [d.chance.randint(1, size) for size in x.shape]
    reduction = d.chance.choice(["none", "add", "max", "min"])
    if reduction == "none":
        order = np.random.default_rng(d.chance.getrandbits(32)).permutation(x.shape[axis])[: shape[axis]]
        at = order.reshape([-1 if place == axis else 1 for place in range(len(shape))])
        indices = np.broadcast_to(at, shape)
    else:
        indices = _indices(d, x.shape[axis], shape)
    updates = d.number_constant(shape)
    attributes: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
    name = d.add("ScatterElements", [x.name, d.constant(indices), updates.name], axis=axis, **attributes)[0]
    d.keep(name, x, bound=x.bound + 3 * (shape[axis] if reduction == "add" else 1))


def _scatter_nd(d: Drawing) -> None:
    x = d.number(least_rank=1)
    if not x.shape[0]:
        raise Mismatch
    rows = np.random.default_rng(d.chance.getrandbits(32)).permutation(x.shape[0])[:2].reshape(-1, 1)
    updates = d.number_constant((len(rows), *x.shape[1:]))
    d.keep(d.add("ScatterND", [x.name, d.constant(rows), updates.name])[0], x, bound=max(x.bound, 3))


def _trilu(d: Drawing) -> None:
    x = d.any(2)
    k = d.chance.choice([-100, -1, 0, 1, 100])
    d.keep(d.add("Trilu", [x.name, d.constant(np.array(k))], upper=int(d.flip()))[0], x)


MOVES: Mapping[Step, int] = {
    _transpose: 3,
    _reshape: 3,
    _flatten: 1,
    _squeeze: 2,
    _slice: 3,
    _pad: 3,
    _concat: 3,
    _split: 2,
    _tile: 2,
    _expand: 2,
    _gather: 2,
    _gather_elements: 1,
    _gather_nd: 1,
    _scatter_elements: 1,
    _scatter_nd: 1,
    _trilu: 1,
}
"""Step -> how often, relative to others."""
