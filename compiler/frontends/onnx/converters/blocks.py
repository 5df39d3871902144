"""Blocks laid over images, and caches written at an index."""

from __future__ import annotations

from math import prod

import numpy as np

from compiler.frontends.onnx.converters.common import cast, reshape, shape_of, squeeze, unsqueeze
from compiler.frontends.onnx.converters.windows import per_dim
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import I64, Value
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.creation import Iota
from compiler.ops.elementwise import Add, Mod
from compiler.ops.indexing import ScatterElements


@converts("Col2Im")
def col2im(site: Site) -> Value:
    """Sums of overlapping blocks: a transposed convolution whose weights put each row of a block at its place."""
    x = site.input(0)
    image, block = site.needed_integers(1), site.needed_integers(2)
    count = len(image)
    if len(block) != count or site.rank(x) != 3:
        site.bad_shape(f"an image of {count} dims, blocks of {len(block)} and an input of rank {site.rank(x)} do not fit")
    strides, dilations = per_dim(site, "strides", count, 1), per_dim(site, "dilations", count, 1)
    pads = per_dim(site, "pads", 2 * count, 0)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(block, dilations, strict=True)]
    spans = [size + pads[d] + pads[count + d] - reach[d] for d, size in enumerate(image)]
    counts = [span // stride + 1 for span, stride in zip(spans, strides, strict=True)]
    rows = x.tensor.known_dims[1]
    if not isinstance(rows, int):
        site.undecided("the number of channels is unknown")
    if min(spans) < 0 or rows % prod(block):
        site.bad_shape(f"blocks of {list(block)} do not fit an image of {list(image)} with {rows} rows")
    channels = rows // prod(block)
    one_hot = np.tile(np.eye(prod(block)).reshape(prod(block), 1, *block), (channels, *[1] * (count + 1)))
    return site.b(
        ConvTranspose,
        reshape(site, x, (-1, rows, *counts)),
        site.b.constant(one_hot.astype(x.tensor.element.dtype)),
        strides=strides,
        dilations=dilations,
        pads=pads,
        output_padding=tuple(span % stride for span, stride in zip(spans, strides, strict=True)),
        groups=channels,
    )


@converts("TensorScatter")
def tensor_scatter(site: Site) -> Value:
    """New rows of a cache from an index on, one index a batch entry; mode 'circular' begins again at the end."""
    cache, update = site.input(0), site.input(1)
    mode = site.attribute("mode")
    if mode not in {"linear", "circular"}:
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected linear or circular")
    rank = site.rank(cache)
    axis = site.axis(site.attribute("axis"), rank)
    if not axis:
        site.invalid("the axis is the batch; expected another one")
    places = site.b(Iota, shape_of(site, update), axis=axis, to=I64)
    if site.has(2):
        first = cast(site, site.input(2), I64)
        places = site.b(Add, places, unsqueeze(site, first, tuple(range(1, rank))))
    if mode == "circular":
        places = site.b(Mod, places, squeeze(site, shape_of(site, cache, axis, axis + 1), (0,)))
    return site.b(ScatterElements, cache, places, update, axis=axis, reduction="none")
