"""Steps of random graphs that compute: elementwise, reductions, products, windows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from conformance.suites.random_drawing import FLOATS, HELD, Drawing, Made, Mismatch, Step, joined


def _unary(d: Drawing) -> None:
    x = d.number()
    operators = ["Abs", "Sign", "Identity", "Neg"]
    operators += ["Relu", "Floor", "Ceil", "Round"] * (x.element in FLOATS)
    d.keep(d.add(d.chance.choice(operators), [x.name])[0], x)


def _partner(d: Drawing, x: Made) -> Made:
    """Return a value or a constant that broadcasts with `x` from either side."""
    if d.flip(0.6):
        try:
            return d.pick(lambda v: v.exact and v.element == x.element and joined(v.shape, x.shape) is not None)
        except Mismatch:
            pass
    kept = x.shape[d.chance.randint(0, len(x.shape)) :]
    return d.number_constant([1 if d.flip(0.3) else size for size in kept])


def _binary(d: Drawing) -> None:
    x = d.number()
    y = _partner(d, x)
    bounds = {"Add": x.bound + y.bound, "Mul": x.bound * y.bound, "Sub": x.bound + y.bound}
    bounds |= {"Max": max(x.bound, y.bound), "Min": max(x.bound, y.bound)}
    operator = d.chance.choice(sorted(bounds))
    if operator in ("Add", "Sub", "Mul") and bounds[operator] > max(HELD[x.element], 127):
        raise Mismatch
    pair = [x.name, y.name] if d.flip() else [y.name, x.name]
    d.keep(d.add(operator, pair)[0], x, joined(x.shape, y.shape), bound=bounds[operator])


def _compare(d: Drawing) -> None:
    x = d.number()
    y = _partner(d, x)
    operator = d.chance.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    name = d.add(operator, [x.name, y.name])[0]
    d.keep(name, x, joined(x.shape, y.shape), element=TensorProto.BOOL, bound=1)


def _logic(d: Drawing) -> None:
    x = d.pick(lambda v: v.element == TensorProto.BOOL)
    if d.flip(0.3):
        d.keep(d.add("Not", [x.name])[0], x)
        return
    y = d.pick(lambda v: v.element == TensorProto.BOOL and joined(v.shape, x.shape) is not None)
    operator = d.chance.choice(["And", "Or", "Xor"])
    d.keep(d.add(operator, [x.name, y.name])[0], x, joined(x.shape, y.shape))


def _where(d: Drawing) -> None:
    condition = d.pick(lambda v: v.element == TensorProto.BOOL)
    x = d.pick(lambda v: v.element == d.element and v.exact and joined(v.shape, condition.shape) is not None)
    y = _partner(d, x)
    shape = joined(condition.shape, x.shape, y.shape)
    if shape is None:
        raise Mismatch
    d.keep(d.add("Where", [condition.name, x.name, y.name])[0], x, shape, bound=max(x.bound, y.bound))


def _cast(d: Drawing) -> None:
    x = d.pick(lambda v: v.exact)
    d.keep(d.add("Cast", [x.name], to=d.element)[0], x, element=d.element, bound=max(x.bound, 1))


def _reduce(d: Drawing) -> None:
    x = d.number()
    axes = sorted(d.chance.sample(range(len(x.shape)), d.chance.randint(0, len(x.shape))))
    reduced = axes or list(range(len(x.shape)))
    keep = int(d.flip())
    shape = [1 if axis in reduced else size for axis, size in enumerate(x.shape) if keep or axis not in reduced]
    count = math.prod(x.shape[axis] for axis in reduced)
    sums = x.element != TensorProto.INT8 and x.bound * count <= HELD[x.element]
    operators = ["ReduceSum"] * sums + ["ReduceMax", "ReduceMin"] * (count > 0)
    if not operators:
        raise Mismatch
    operator = d.chance.choice(operators)
    given = [axis - len(x.shape) if d.flip() else axis for axis in axes]
    inputs = [x.name] + ([d.constant(np.array(given))] if axes else [])
    bound = x.bound * max(count, 1) if operator == "ReduceSum" else x.bound
    d.keep(d.add(operator, inputs, keepdims=keep)[0], x, shape, bound=bound)


def _arg(d: Drawing) -> None:
    x = d.number(least_rank=1)
    axis = d.chance.randrange(len(x.shape))
    if not x.shape[axis]:
        raise Mismatch
    operator, last = d.chance.choice(["ArgMax", "ArgMin"]), int(d.flip())
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    name = d.add(operator, [x.name], axis=axis, keepdims=1, select_last_index=last)[0]
    d.keep(name, x, shape, element=TensorProto.INT64, bound=x.shape[axis])


def _cumsum(d: Drawing) -> None:
    x = d.number(least_rank=1)
    axis = d.chance.randrange(len(x.shape))
    if x.bound * x.shape[axis] > HELD[x.element] or x.element == TensorProto.INT8:
        raise Mismatch
    flags = {"exclusive": int(d.flip(0.3)), "reverse": int(d.flip(0.3))}
    d.keep(d.add("CumSum", [x.name, d.constant(np.array(axis))], **flags)[0], x, bound=x.bound * max(x.shape[axis], 1))


def _top_k(d: Drawing) -> None:
    x = d.number(least_rank=1)
    axis = d.chance.randrange(len(x.shape))
    k = d.chance.randint(0, x.shape[axis])
    names = d.add("TopK", [x.name, d.constant(np.array([k]))], 2, axis=axis, largest=int(d.flip()))
    d.keep(names[0], x, (*x.shape[:axis], k, *x.shape[axis + 1 :]))


def _matmul(d: Drawing) -> None:
    x = d.number(least_rank=1)
    depth = x.shape[-1]
    small = x.element == TensorProto.INT8
    held = HELD[TensorProto.INT32 if small else x.element]
    # With a depth of 0, onnxruntime's MatMulInteger leaves what was in memory.
    if x.bound * 3 * depth > held or (small and not depth):
        raise Mismatch
    try:
        y = d.pick(lambda v: v.exact and v.element == x.element and len(v.shape) > 1 and v.shape[-2] == depth)
        batch = joined(x.shape[:-2], y.shape[:-2])
        if batch is None or x.bound * y.bound * depth > held:
            raise Mismatch  # noqa: TRY301 - both ways lead to a constant
    except Mismatch:
        y = d.number_constant((depth, d.chance.choice([0, 1, 3, 9])))
        batch = x.shape[:-2]
    shape = (*batch, *x.shape[-2:-1], y.shape[-1])
    if small:
        limits = [d.constant(np.array(limit, np.float32)) for limit in (-9, 9)]
        wide = d.add("Cast", d.add("MatMulInteger", [x.name, y.name]), to=TensorProto.FLOAT)
        d.keep(d.add("Cast", d.add("Clip", [*wide, *limits]), to=x.element)[0], x, shape, bound=9)
        return
    d.keep(d.add("MatMul", [x.name, y.name])[0], x, shape, bound=x.bound * y.bound * max(depth, 1))


def _gemm(d: Drawing) -> None:
    x = d.number(rank=2)
    flipped = int(d.flip())
    rows, depth = x.shape[::-1] if flipped else x.shape
    if 9 * x.bound * (depth + 1) > HELD[x.element] or x.element not in FLOATS:
        raise Mismatch
    columns = d.chance.choice([1, 2, 7])
    y = d.number_constant((depth, columns))
    added = [d.number_constant(d.chance.choice([(), (1,), (columns,), (rows, 1), (rows, columns)])).name] * d.flip(0.7)
    name = d.add("Gemm", [x.name, y.name, *added], alpha=2.0, beta=-1.0, transA=flipped)[0]
    d.keep(name, x, (rows, columns), bound=x.bound * 6 * depth + 3)


def _conv(d: Drawing) -> None:
    x = d.number(least_rank=3)
    if len(x.shape) > 4 or x.element not in FLOATS or 0 in x.shape:
        raise Mismatch
    channels, space = x.shape[1], x.shape[2:]
    group = channels if d.flip(0.3) else 1
    kernel = [d.chance.randint(1, min(3, size)) for size in space]
    weights = d.number_constant((group * d.chance.randint(1, 3), channels // group, *kernel))
    if x.bound * 3 * math.prod(weights.shape[1:]) > HELD[x.element]:
        raise Mismatch
    strides = [d.chance.randint(1, 3) for _ in space]
    pads = [d.chance.randint(0, 2) for _ in 2 * space]
    around = zip(space, kernel, strides, pads[: len(space)], pads[len(space) :], strict=True)
    sizes = [(size + low + high - wide) // step + 1 for size, wide, step, low, high in around]
    inputs = [x.name, weights.name] + [d.number_constant(weights.shape[:1]).name] * d.flip()
    name = d.add("Conv", inputs, strides=strides, pads=pads, group=group)[0]
    bound = x.bound * 3 * math.prod(weights.shape[1:]) + 3
    d.keep(name, x, (x.shape[0], weights.shape[0], *sizes), bound=bound)


def _max_pool(d: Drawing) -> None:
    x = d.number(least_rank=3)
    space = x.shape[2:]
    if len(x.shape) > 4 or x.element not in FLOATS or 0 in x.shape:
        raise Mismatch
    kernel = [d.chance.randint(1, min(3, size)) for size in space]
    strides = [d.chance.randint(1, 3) for _ in space]
    pads = [d.chance.randint(0, wide - 1) for wide in kernel]
    around = zip(space, kernel, strides, pads, strict=True)
    sizes = [(size + 2 * pad - wide) // step + 1 for size, wide, step, pad in around]
    name = d.add("MaxPool", [x.name], kernel_shape=kernel, strides=strides, pads=pads * 2)[0]
    d.keep(name, x, (*x.shape[:2], *sizes))


def _rounding(d: Drawing) -> None:
    """Functions with a rounded result: what they give is only moved about."""
    x = d.number()
    if not d.rounds or x.element not in FLOATS:
        raise Mismatch
    operators = ["Sigmoid", "Tanh", "Erf", "Softplus", "Atan"] + ["Softmax", "LogSoftmax"] * (len(x.shape) > 0)
    d.keep(d.add(d.chance.choice(operators), [x.name])[0], x, exact=False)


def _quantize(d: Drawing) -> None:
    """To 8 bits and back with scales that are powers of two."""
    x = d.number()
    if x.element != TensorProto.FLOAT:
        raise Mismatch
    scale = d.constant(np.float32(d.chance.choice([0.5, 1.0, 2.0])))
    zero = d.constant(np.array(d.chance.choice([0, 3]), d.chance.choice([np.int8, np.uint8])))
    quantized = d.add("QuantizeLinear", [x.name, scale, zero])
    d.keep(d.add("DequantizeLinear", [*quantized, scale, zero])[0], x, bound=2 * x.bound + 2)


SUMS: Mapping[Step, int] = {
    _unary: 2,
    _binary: 6,
    _compare: 2,
    _logic: 1,
    _where: 2,
    _cast: 2,
    _reduce: 3,
    _arg: 1,
    _cumsum: 1,
    _top_k: 1,
    _matmul: 3,
    _gemm: 2,
    _conv: 3,
    _max_pool: 2,
    _rounding: 2,
    _quantize: 1,
}
"""Step -> how often, relative to others."""
