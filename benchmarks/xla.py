"""XLA's cost analysis beside this compiler's: flops and bytes accessed of dots, which must be the same.

JAX lowers the products in its own environment, and XLA counts; here ONNX models of the same products are imported and
optimized, and their graph is counted. Shapes are those of networks and seeded random ones, with and without batch.
XLA gives its counts as float32, so larger ones are compared as it rounds them.
"""

from __future__ import annotations

import argparse
import random
from typing import Any, Final

import numpy as np

from benchmarks.foreign import ask
from benchmarks.measure import publish
from benchmarks.shapes import NETWORKS

Dot = tuple[list[int], list[int], str]
_ELEMENTS: Final = {
    "float32": (1, "MatMul"),
    "float16": (10, "MatMul"),
    "bfloat16": (16, "MatMul"),
    "int8": (3, "MatMulInteger"),
}


def dots(count: int) -> list[Dot]:
    """Return products of networks in every element type, then random ones."""
    found: list[Dot] = []
    for name in ("bert-base", "gpt2", "vit-b16"):
        for layer in NETWORKS[name]():
            m, n, k = layer.product
            batch = [] if layer.times == 1 else [layer.times]
            found += [([*batch, m, k], [*batch, k, n], element) for element in _ELEMENTS]
    draw = random.Random(0)
    while len(found) < count:
        m, n, k = (draw.randint(1, 300) for _ in range(3))
        batch = [draw.randint(1, 5) for _ in range(draw.randint(0, 2))]
        found.append(([*batch, m, k], [*batch, k, n], draw.choice(list(_ELEMENTS))))
    return found


def count_here(dot: Dot) -> dict[str, int]:
    """Return flops and bytes of a product as the compiler's cost analysis counts them."""
    from onnx import helper as h

    from compiler import api
    from compiler.simulator.cost_analysis import cost_analysis

    a, b, element = dot
    kind, operator = _ELEMENTS[element]
    result = 6 if element == "int8" else kind  # int8 products are summed in int32
    inputs = [h.make_tensor_value_info(name, kind, shape) for name, shape in (("a", a), ("b", b))]
    output = h.make_tensor_value_info("y", result, [*a[:-1], b[-1]])
    graph = h.make_graph([h.make_node(operator, ["a", "b"], ["y"])], "dot", inputs, [output])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    found = cost_analysis(api.compile(model).optimized())
    return {"flops": found.flops, "bytes": found.bytes_accessed}


def _same(row: dict[str, Any], name: str) -> bool:
    return bool(int(np.float32(row[f"{name} here"])) == row[f"{name} of XLA"])


def main() -> None:
    """Compare and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    every = dots(parser.parse_args().count)
    answer = ask("jax", {"dots": every})
    rows: list[dict[str, Any]] = []
    for dot, theirs in zip(every, answer["dots"], strict=True):
        ours = count_here(dot)
        rows.append(
            {
                "a": "x".join(map(str, dot[0])),
                "b": "x".join(map(str, dot[1])),
                "element": dot[2],
                **{f"{name} here": ours[name] for name in ours},
                **{f"{name} of XLA": int(theirs[name]) for name in ours},
            }
        )
    facts = {
        "jax": answer["version"],
        "dots": len(rows),
        "flops agree": sum(_same(row, "flops") for row in rows),
        "bytes agree": sum(_same(row, "bytes") for row in rows),
    }
    differing = [row for row in rows if not (_same(row, "flops") and _same(row, "bytes"))]
    publish("xla", differing[:20] or rows[:5], facts)


if __name__ == "__main__":
    main()
