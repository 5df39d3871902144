"""Runs in JAX's environment: shapes of dots in, what XLA's cost analysis says of each out."""

import json
import sys

import jax


def main():
    question = json.load(sys.stdin)
    found = []
    for a, b, element in question["dots"]:
        given = [jax.ShapeDtypeStruct(tuple(shape), element) for shape in (a, b)]
        batch = tuple(range(len(a) - 2))
        contracted = ((len(a) - 1,), (len(b) - 2,))

        def dot(x, y, dimensions=(contracted, (batch, batch)), kind="int32" if element == "int8" else element):
            return jax.lax.dot_general(x, y, dimensions, preferred_element_type=kind)

        costs = jax.jit(dot).lower(*given).cost_analysis()
        found.append({"flops": costs["flops"], "bytes": costs["bytes accessed"]})
    print(json.dumps({"version": jax.__version__, "dots": found}))


main()
