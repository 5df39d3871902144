"""Blocks laid over images, and caches written at an index."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from compiler.frontends.onnx.converters.common import cast, concat, reshape, shape_of, squeeze, unsqueeze
from compiler.frontends.onnx.converters.windows import per_dim
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import BOOL, I64, STRING, U8, Array, Value
from compiler.ops.compose import widened
from compiler.ops.creation import Fill, Iota
from compiler.ops.elementwise import Add, Mod
from compiler.ops.indexing import ScatterElements, ScatterNd
from compiler.ops.movement import Slice, Transpose


@dataclass(frozen=True, slots=True)
class _Layout:
    """How blocks lie on an image, a number a dim each; ``low`` counts the pads before the image."""

    image: tuple[int, ...]
    low: tuple[int, ...]
    padded: tuple[int, ...]
    block: tuple[int, ...]
    dilations: tuple[int, ...]
    strides: tuple[int, ...]

    def places(self) -> Array:
        """int64 [elements of a block, blocks]: where each element lies in the flat padded image; none for no block."""
        flat = np.zeros((1, 1), np.int64)
        dims = zip(self.padded, self.block, self.dilations, self.strides, strict=True)
        for size, block, dilation, stride in dims:
            reach = (block - 1) * dilation + 1
            along = np.arange(block)[:, None] * dilation + np.arange(0, size - reach + 1, stride)
            joined = flat[:, None, :, None] * size + along[None, :, None, :]
            flat = joined.reshape(len(flat) * block, flat.shape[1] * along.shape[1])
        return flat


def _layout(site: Site, rank: int) -> _Layout:
    image, block = site.needed_integers(1), site.needed_integers(2)
    count = len(image)
    if len(block) != count or rank != 3:
        site.bad_shape(f"an image of {count} dims, blocks of {len(block)} and an input of rank {rank} do not fit")
    pads = per_dim(site, "pads", 2 * count, 0)
    padded = tuple(size + pads[d] + pads[count + d] for d, size in enumerate(image))
    strides, dilations = per_dim(site, "strides", count, 1), per_dim(site, "dilations", count, 1)
    if min((*strides, *dilations), default=1) < 1:
        site.bad_attribute(f"strides are {list(strides)} and dilations {list(dilations)}; expected at least 1 each")
    return _Layout(image, pads[:count], padded, block, dilations, strides)


@converts("Col2Im")
def col2im(site: Site) -> Value:
    """Sums of overlapping blocks: each element is added at its place in the padded image, from which the image is cut.

    Floats narrower than 32 bits are summed in float32 and rounded once. A sum of booleans is true where one of them is.
    """
    x, element = site.input(0), site.tensor(0).element
    if element is STRING:
        site.refuse("elements that overlap are added, and strings have no sum")
    layout = _layout(site, site.rank(x))
    places = layout.places()
    rows, columns = x.tensor.known_dims[1:]
    if not isinstance(rows, int):
        site.undecided("the number of channels is unknown")
    counts = {rows % prod(layout.block), places.shape[1] - columns if isinstance(columns, int) else 0}
    if not places.size or counts != {0}:
        blocks = f"{places.shape[1]} blocks of {list(layout.block)}"
        site.bad_shape(f"{blocks} do not fit an image of {list(layout.image)} and an input {x.tensor}")
    channels = rows // prod(layout.block)
    # Booleans are joined as bytes, of which the greatest is their disjunction.
    kind, reduction = (U8, "max") if element is BOOL else (widened(element), "add")
    sizes = concat(site, [site.integers(prod(layout.padded)), shape_of(site, x, 0, 1), site.integers(channels)])
    nothing = site.b(Fill, site.folded(sizes), site.scalar(0, kind))
    updates = site.b(Transpose, reshape(site, cast(site, x, kind), (-1, channels, places.size)), permutation=(2, 0, 1))
    index = site.b.constant(places.reshape(-1, 1))
    summed = site.b(ScatterNd, nothing, index, updates, reduction=reduction)
    planes = reshape(site, site.b(Transpose, summed, permutation=(1, 2, 0)), (-1, channels, *layout.padded))
    planes.type = planes.tensor.with_dims((x.tensor.known_dims[0], channels, *layout.padded))
    ends = [low + size for low, size in zip(layout.low, layout.image, strict=True)]
    axes = range(2, 2 + len(ends))
    cut = site.b(Slice, planes, site.integers(*layout.low), site.integers(*ends), site.integers(*axes), None)
    return cast(site, cut, element)


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
