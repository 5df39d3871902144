"""Matrix products with learned matrices."""

from __future__ import annotations

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import I64, Value
from compiler.ops.contraction import MatMul
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Add
from compiler.ops.indexing import Gather


@converts("InnerProduct")
def inner_product(site: Site) -> Value:
    """Dims from ``axis`` on times weights [num_output, K], stored the other way round with ``transpose``."""
    found, dims = site.parameters("inner_product_param"), site.dims()
    axis, outputs = site.axis(found.axis, len(dims)), int(found.num_output)
    if outputs < 1:
        site.invalid("num_output is missing; expected a positive number")
    rows, depth = (int(np.prod(part, dtype=np.int64)) for part in (dims[:axis], dims[axis:]))
    shape = (depth, outputs) if found.transpose else (outputs, depth)
    stored = site.blob(0, "weights", shape)
    weights = stored if found.transpose else np.ascontiguousarray(stored.T)
    result = site.b(MatMul, site.reshape(site.inputs[0], (rows, depth)), site.b.constant(weights))
    if found.bias_term:
        result = site.b(Add, result, site.weight(1, "bias", (outputs,)))
    return site.reshape(result, (*dims[:axis], outputs))


@converts("Embed")
def embed(site: Site) -> Value:
    """Rows of weights [input_dim, num_output] that the bottom's whole numbers name."""
    found = site.parameters("embed_param")
    rows, outputs = int(found.input_dim), int(found.num_output)
    if rows < 1 or outputs < 1:
        site.invalid("input_dim or num_output is missing; expected positive numbers")
    indices = site.b(Cast, site.inputs[0], to=I64)
    result = site.b(Gather, site.weight(0, "weights", (rows, outputs)), indices, axis=0)
    return site.b(Add, result, site.weight(1, "bias", (outputs,))) if found.bias_term else result
