"""Steps of random graphs, with those that hold graphs of their own: branches and loops that read from outside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, TensorProto, helper

from conformance.suites.random_drawing import HELD, Drawing, Made, Mismatch, Step, joined
from conformance.suites.random_moves import MOVES
from conformance.suites.random_sums import SUMS


def _inner(d: Drawing, steps: int) -> Drawing:
    """Return a drawing of a nested graph, which sees what there is outside."""
    inner = Drawing(d.chance, d.element, rounds=False, prefix=f"{d.name()}i")
    inner.values = list(d.values)
    grow(inner, steps, STEPS)
    return inner


def _if(d: Drawing) -> None:
    x = d.number()
    condition = d.add("ReduceMax", [_truth(d)], keepdims=0)[0] if d.flip(0.7) else d.constant(np.array(d.flip()))
    condition = d.add("Cast", [condition], to=TensorProto.BOOL)[0]
    branches: list[GraphProto] = []
    for _ in range(2):
        inner = _inner(d, d.chance.randint(0, 3))
        y = d.chance.choice([v for v in inner.values if v.element == x.element and v.exact])
        target = inner.constant(np.array(x.shape, np.int64))
        flat = inner.add("Reshape", [y.name, inner.constant(np.array([-1]))])
        count = max(x.size, 1)
        padded = inner.add("Pad", [*flat, inner.constant(np.array([0, count]))])
        cut = inner.add("Slice", [*padded, *(inner.constant(np.array([v])) for v in (0, x.size))])
        given = inner.add("Reshape", [*cut, target], allowzero=1)[0]
        inner.nodes.append(helper.make_node("Clip", [given], [f"{given}_out"]))
        output = helper.make_tensor_value_info(f"{given}_out", x.element, x.shape)
        branches.append(helper.make_graph(inner.nodes, "branch", [], [output], inner.constants))
    name = d.add("If", [condition], then_branch=branches[0], else_branch=branches[1])[0]
    d.keep(name, x, bound=HELD[x.element] + 1)


def _truth(d: Drawing) -> str:
    """Return the name of an int32 value, not empty, of zeros and ones."""
    x = d.pick(lambda v: v.element == TensorProto.BOOL and v.size > 0)
    return d.add("Cast", [x.name], to=TensorProto.INT32)[0]


def _loop(d: Drawing) -> None:
    x = d.number()
    inner = Drawing(d.chance, d.element, rounds=False, prefix=f"{d.name()}l")
    carried = Made(inner.name() + "_carried", x.element, x.shape, 5)
    inner.values = [*d.values, carried]
    grow(inner, d.chance.randint(1, 3), STEPS)
    y = d.chance.choice(
        [v for v in inner.values if v.element == x.element and v.exact and joined(v.shape, x.shape) == x.shape]
    )
    scanned = inner.add("Identity", [d.chance.choice(inner.values[-3:]).name])[0]
    scanned_value = next((v for v in inner.values if inner.nodes[-1].input[0] == v.name), y)
    dtype = helper.tensor_dtype_to_np_dtype(x.element)
    low, high = (inner.constant(np.array(v, dtype)) for v in (-4, 5))
    carried_out = inner.add("Clip", [inner.add("Add", [carried.name, y.name])[0], low, high])[0]
    on = inner.add("Identity", ["on"])[0]
    scalar = [helper.make_tensor_value_info("i", TensorProto.INT64, [])]
    scalar.append(helper.make_tensor_value_info("on", TensorProto.BOOL, []))
    types = [helper.make_tensor_value_info(n, x.element, x.shape) for n in (carried.name, carried_out)]
    outputs = [helper.make_tensor_value_info(on, TensorProto.BOOL, []), types[1]]
    outputs.append(helper.make_tensor_value_info(scanned, scanned_value.element, scanned_value.shape))
    body = helper.make_graph(inner.nodes, "body", [*scalar, types[0]], outputs, inner.constants)
    trips = d.chance.choice([0, 1, 3])
    dtype_limits = [d.constant(np.array(v, dtype)) for v in (-4, 5)]
    start = d.add("Clip", [x.name, *dtype_limits])[0]
    names = d.add("Loop", [d.constant(np.array(trips)), "", start], 2, body=body)
    d.keep(names[0], x, bound=5)
    d.keep(names[1], scanned_value, (trips, *scanned_value.shape))


STEPS: Mapping[Step, int] = {**SUMS, **MOVES}
"""Step -> how often, relative to others; these may stand in a nested graph too."""
ALL_STEPS: Mapping[Step, int] = {**STEPS, _if: 2, _loop: 2}


def grow(d: Drawing, steps: int, among: Mapping[Step, int]) -> None:
    """Add `steps` steps; those that do not fit are passed over."""
    table, weights = list(among), list(among.values())
    for step in d.chance.choices(table, weights, k=steps):
        try:
            step(d)
        except Mismatch:
            continue
